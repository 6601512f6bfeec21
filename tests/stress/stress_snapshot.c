/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_snapshot.c - threads allocate, free, map, write and read card memory, each beside a model
 * of its own; one thread backs the process up and restores it again and again, at any moment of
 * theirs. No call of theirs fails, and they find what they wrote.
 */
#include "../unit/npu/order_test.h"

#include <inttypes.h>
#include <sched.h>

#include <belay/card.h>
#include <belay/snapshot.h>
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/snapshot.h"
#include "npu/vmm.h"

enum { WORKERS = 3, SLOTS = 12, FRAME = 2 << 20 };

struct slot {
    char *at;
    void *handle; /* of mapped physical memory; NULL: a block */
    uint64_t size;
    unsigned char mark;
};

struct worker {
    uint64_t random;
    void *stream;
    struct slot slots[SLOTS];
    uint64_t calls;
};

static uint32_t stop;

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint32_t draw(struct worker *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static struct blyi_card *card_here(void)
{
    struct blyi_card *card;
    require(blyi_context_here_card(&card) == BLY_OK);
    return card;
}

static void fill(struct worker *w, struct slot *slot)
{
    slot->mark = (unsigned char)draw(w, 256);
    if (draw(w, 2) == 0) {
        require(blyi_stream_sync(w->stream, 0) == BLY_OK); /* it is in no stream's order */
        require(blyi_set_now(slot->at, slot->mark, slot->size) == BLY_OK);
    } else {
        require(blyi_set_async(slot->at, slot->mark, slot->size, w->stream, 1) == BLY_OK);
        if (draw(w, 2) == 0)
            require(blyi_stream_sync(w->stream, 0) == BLY_OK);
    }
}

static void look(struct worker *w, const struct slot *slot)
{
    unsigned char seen[64];
    uint64_t at = draw(w, (uint32_t)(slot->size - sizeof seen));
    require(blyi_stream_sync(w->stream, 0) == BLY_OK);
    require(blyi_copy_now(seen, slot->at + at, sizeof seen) == BLY_OK);
    for (size_t i = 0; i < sizeof seen; i++)
        require(seen[i] == slot->mark);
}

static void make(struct worker *w, struct slot *slot)
{
    static const uint64_t sizes[] = {4096, 12288, FRAME, FRAME + 65536, 3 * (uint64_t)FRAME};
    if (draw(w, 4) == 0) {
        struct blyi_physical_request request = {.card = card_here(),
                                                .size = FRAME * (1 + draw(w, 3)),
                                                .page_kind = BLYI_PAGE_HUGE,
                                                .contiguous = draw(w, 2)};
        uintptr_t at;
        slot->size = request.size;
        require(blyi_physical_create(&request, &slot->handle) == BLY_OK);
        require(blyi_vmm_reserve(slot->size, 0, 0, 1, &at) == BLY_OK);
        require(blyi_mapping_make(at, slot->size, 0, slot->handle, true, 1) == BLY_OK);
        slot->at = (char *)at;
    } else {
        struct blyi_mem_request request = {.policy = draw(w, 2) ? BLYI_MEM_HUGE_FIRST
                                                                : BLYI_MEM_NORMAL_ONLY,
                                           .flags = draw(w, 4) ? 0 : BLYI_MEM_CONTIGUOUS,
                                           .module = 33};
        void *at;
        request.asked = request.rounded = slot->size = sizes[draw(w, 5)];
        require(blyi_mem_alloc(card_here(), &request, &at) == BLY_OK);
        slot->at = at;
    }
    fill(w, slot);
}

static void end(struct worker *w, struct slot *slot)
{
    require(blyi_stream_sync(w->stream, 0) == BLY_OK);
    if (slot->handle) {
        require(blyi_mapping_remove((uintptr_t)slot->at, 1) == BLY_OK);
        require(blyi_vmm_release((uintptr_t)slot->at, 1) == BLY_OK);
        require(blyi_physical_release(slot->handle, 1) == BLY_OK);
    } else {
        require(blyi_mem_free(slot->at, 1) == BLY_OK);
    }
    *slot = (struct slot){0};
}

static void *works(void *arg)
{
    struct worker *w = arg;
    require(blyi_device_set(0, 0) == BLY_OK);
    require(blyi_stream_create(0, 0, 0, &w->stream) == BLY_OK);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        struct slot *slot = &w->slots[draw(w, SLOTS)];
        if (!slot->at)
            make(w, slot);
        else if (draw(w, 3) == 0)
            end(w, slot);
        else if (draw(w, 2) == 0)
            fill(w, slot);
        else
            look(w, slot);
        __atomic_fetch_add(&w->calls, 1, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < SLOTS; i++)
        if (w->slots[i].at) {
            look(w, &w->slots[i]);
            end(w, &w->slots[i]);
        }
    require(blyi_stream_destroy(w->stream, false) == BLY_OK);
    return NULL;
}

static void audit(void)
{
    assert_true(blyi_card_audit(card_here()));
    assert_true(blyi_vmm_audit());
}

/* Until every worker has done something. */
static void let_work(struct worker *workers)
{
    for (int i = 0; i < WORKERS; i++) {
        uint64_t before = __atomic_load_n(&workers[i].calls, __ATOMIC_RELAXED);
        while (__atomic_load_n(&workers[i].calls, __ATOMIC_RELAXED) == before)
            sched_yield();
    }
}

static void backed_up_at_any_moment(void **state)
{
    (void)state;
    static struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    struct worker mine = {.random = number_of("TEST_SEED", 1)};
    uint64_t rounds = number_of("TEST_ROUNDS", 60);
    struct blyi_mem_figures before, now;
    printf("TEST_SEED=%" PRIu64 "\n", mine.random);
    blyi_mem_figures(card_here(), &before);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].random = mine.random * WORKERS + (uint64_t)i;
        assert_int_equal(pthread_create(&threads[i], NULL, works, &workers[i]), 0);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        bly_defrag d = {.struct_size = sizeof d};
        let_work(workers);
        assert_ok(blyi_snapshot_lock());
        if (draw(&mine, 4) != 0) {
            assert_ok(blyi_snapshot_backup());
            blyi_mem_figures(card_here(), &now);
            assert_int_equal(now.free, now.total);
            audit();
            if (draw(&mine, 2) == 0)
                assert_ok(blyi_snapshot_restore());
        }
        assert_ok(blyi_snapshot_unlock());
        if (draw(&mine, 3) == 0)
            assert_ok(bly_card_defrag(&d));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    blyi_mem_figures(card_here(), &now);
    assert_int_equal(now.free, before.free);
    audit();
}

int main(void)
{
    alarm(600);
    if (blyi_option_set(BLYI_OPT_HBM, "512MiB") != BLY_OK ||
        blyi_option_set(BLYI_OPT_VMM_WINDOW, "4GiB") != BLY_OK)
        return 1;
    const struct CMUnitTest tests[] = {order_test(backed_up_at_any_moment)};
    return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
