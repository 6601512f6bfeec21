/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that create, map, remap, fill, copy, unmap and free beside a naive model of what each
 * frame holds; one thread gathers the card's memory all the while, one audits. */
#include "../unit/npu/order_test.h"

#include <belay/card.h>
#include <inttypes.h>
#include "base/compiler.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/vmm.h"

#define FRAME   (2 * MiB)
#define THREADS 8
#define HANDLES 6
#define SLOTS   12 /* granules of each thread's range */
#define STEPS   1500

static uint32_t below(struct rng *rng, uint32_t n)
{
    return (uint32_t)rng_below(rng, n);
}

struct model_handle {
    void *handle; /* NULL: none */
    uint32_t frames;
    int mark[4]; /* of each frame; -1: never written */
    int n_maps;
};

struct worker {
    struct rng rng;
    int card;
    uintptr_t range;
    struct model_handle handles[HANDLES];
    int at[SLOTS]; /* handle mapped from this granule on; -1: none */
    bool busy[SLOTS];
    unsigned char *buffer; /* one frame of the host */
};

static volatile bool stop;

static void make(struct worker *w, int i)
{
    struct model_handle *h = &w->handles[i];
    struct blyi_physical_request request = {.card = blyi_card_get(w->card),
                                            .size = (1 + below(&w->rng, 4)) * FRAME,
                                            .page_kind = BLYI_PAGE_HUGE,
                                            .contiguous = below(&w->rng, 8) == 0,
                                            .site = 7};
    bly_status status = blyi_physical_create(&request, &h->handle);
    if (status != BLY_OK) {
        require(status == BLY_E_NO_MEMORY);
        h->handle = NULL;
        return;
    }
    h->frames = (uint32_t)(request.size / FRAME);
    h->n_maps = 0;
    for (int k = 0; k < 4; k++)
        h->mark[k] = -1;
}

static void map(struct worker *w, int i)
{
    struct model_handle *h = &w->handles[i];
    uint32_t slot = below(&w->rng, SLOTS - h->frames + 1);
    bool is_free = true;
    for (uint32_t k = 0; k < h->frames; k++)
        is_free = is_free && !w->busy[slot + k];
    bly_status status =
        blyi_mapping_make(w->range + slot * FRAME, h->frames * FRAME, 0, h->handle, true, 8);
    require(status == (is_free ? BLY_OK : BLY_E_INVALID));
    if (!is_free)
        return;
    w->at[slot] = i;
    h->n_maps++;
    for (uint32_t k = 0; k < h->frames; k++)
        w->busy[slot + k] = true;
}

static void unmap(struct worker *w, uint32_t slot)
{
    bly_status status = blyi_mapping_remove(w->range + slot * FRAME, 9);
    require(status == (w->at[slot] < 0 ? BLY_E_INVALID : BLY_OK));
    if (w->at[slot] < 0)
        return;
    struct model_handle *h = &w->handles[w->at[slot]];
    h->n_maps--;
    for (uint32_t k = 0; k < h->frames; k++)
        w->busy[slot + k] = false;
    w->at[slot] = -1;
}

/* The model's frame behind a granule, or NULL. */
static int *frame_at(struct worker *w, uint32_t slot)
{
    for (uint32_t k = 0; k < 4 && k <= slot; k++) {
        int i = w->at[slot - k];
        if (i >= 0)
            return k < w->handles[i].frames ? &w->handles[i].mark[k] : NULL;
    }
    return NULL;
}

static void fill(struct worker *w, uint32_t slot)
{
    int *mark = frame_at(w, slot), value = (int)below(&w->rng, 256);
    bly_status status = blyi_set_now((void *)(w->range + slot * FRAME), (uint8_t)value, FRAME);
    require(status == (mark ? BLY_OK : BLY_E_FAULT));
    if (mark)
        *mark = value;
}

static void copy(struct worker *w, uint32_t to, uint32_t from)
{
    int *dst = frame_at(w, to), *src = frame_at(w, from);
    if (to == from)
        return;
    bly_status status =
        blyi_copy_now((void *)(w->range + to * FRAME), (void *)(w->range + from * FRAME), FRAME);
    require(status == (dst && src ? BLY_OK : BLY_E_FAULT));
    if (dst && src)
        *dst = *src;
}

static void check(struct worker *w, uint32_t slot)
{
    int *mark = frame_at(w, slot);
    if (!mark || *mark < 0)
        return;
    require(blyi_copy_now(w->buffer, (void *)(w->range + slot * FRAME), FRAME) == BLY_OK);
    for (uint64_t i = 0; i < FRAME; i += 8191)
        require(w->buffer[i] == *mark);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    require(blyi_device_set(w->card, 0) == BLY_OK);
    require(blyi_vmm_reserve(SLOTS * FRAME, 0, 0, 6, &w->range) == BLY_OK);
    w->buffer = malloc(FRAME);
    require(w->buffer != NULL);
    for (int i = 0; i < SLOTS; i++)
        w->at[i] = -1;
    for (int step = 0; step < STEPS; step++) {
        int i = (int)below(&w->rng, HANDLES);
        uint32_t slot = below(&w->rng, SLOTS);
        switch (below(&w->rng, 10)) {
        case 0:
        case 1:
            if (!w->handles[i].handle) {
                make(w, i);
            } else if (w->handles[i].n_maps == 0 && below(&w->rng, 2)) {
                require(blyi_physical_release(w->handles[i].handle, 3) == BLY_OK);
                w->handles[i].handle = NULL;
            }
            break;
        case 2:
        case 3:
            if (w->handles[i].handle)
                map(w, i);
            break;
        case 4:
            unmap(w, slot);
            break;
        case 5:
            fill(w, slot);
            break;
        case 6:
            copy(w, slot, below(&w->rng, SLOTS));
            break;
        default:
            check(w, slot);
        }
    }
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        check(w, slot);
        if (w->at[slot] >= 0)
            unmap(w, slot);
    }
    for (int i = 0; i < HANDLES; i++)
        if (w->handles[i].handle)
            require(blyi_physical_release(w->handles[i].handle, 3) == BLY_OK);
    require(blyi_vmm_release(w->range, 3) == BLY_OK);
    free(w->buffer);
    return NULL;
}

static void *gather(void *arg)
{
    (void)arg;
    for (int card = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); card ^= 1) {
        bly_defrag d = {.struct_size = sizeof d, .card = card};
        require(bly_card_defrag(&d) == BLY_OK);
        require(blyi_card_audit(blyi_card_get(card)));
        require(blyi_vmm_audit());
        usleep(2000);
    }
    return NULL;
}

static void mapping_from_many_threads(void **state)
{
    (void)state;
    static struct worker workers[THREADS];
    pthread_t threads[THREADS], gatherer;
    const char *text = getenv("TEST_SEED");
    uint64_t seed = (uint64_t)(text ? strtol(text, NULL, 0) : getpid());
    print_message("TEST_SEED=%llu\n", (unsigned long long)seed);
    assert_ok(blyi_device_set(1, 0));
    assert_ok(blyi_device_set(0, 0));
    for (int i = 0; i < THREADS; i++) {
        workers[i].rng.state = (seed + (uint64_t)i * 977) << 1 | 1;
        workers[i].card = i % 2;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    assert_int_equal(pthread_create(&gatherer, NULL, gather, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    pthread_join(gatherer, NULL);
    print_message("maps %" PRIu64 ", bytes set %" PRIu64 ", copied %" PRIu64 ", gathered %" PRIu64
                  "\n",
                  blyi_stat_read(BLYI_STAT_maps), blyi_stat_read(BLYI_STAT_set_bytes),
                  blyi_stat_read(BLYI_STAT_copy_bytes), blyi_stat_read(BLYI_STAT_defrag_bytes));
    for (int card = 0; card < 2; card++) {
        struct blyi_mem_figures figures;
        blyi_mem_figures(blyi_card_get(card), &figures);
        assert_int_equal(figures.live, 0);
        assert_int_equal(figures.handles, 0);
    }
}

int main(void)
{
    if (blyi_option_set(BLYI_OPT_HBM, "128MiB") != BLY_OK ||
        blyi_option_set(BLYI_OPT_CARDS, "2") != BLY_OK ||
        blyi_option_set(BLYI_OPT_VMM_WINDOW, "4GiB") != BLY_OK)
        return 1;
    keep_fault_handler();
    const struct CMUnitTest tests[] = {bare_test(mapping_from_many_threads)};
    return cmocka_run_group_tests_name("stress_vmm", tests, NULL, NULL);
}
