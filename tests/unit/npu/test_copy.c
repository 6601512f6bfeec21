/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets: every direction, every size class, memory that is not there. */
#include "order_test.h"

#include <sys/mman.h>

static void fill(unsigned char *memory, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        memory[i] = (unsigned char)((i * 131 + seed) >> 3);
}

static void bytes_arrive_in_every_size_and_offset(void **state)
{
    (void)state;
    const size_t most = 17 * MiB + 77;
    unsigned char *from = malloc(most + 64), *to = malloc(most + 64);
    const size_t sizes[] = {0, 1, 31, 32, 33, 127, 128, 129, 4096, 65537, MiB + 3, 16 * MiB + 5};
    fill(from, most + 64, 5);
    for (size_t i = 0; i < BLYI_COUNT(sizes); i++)
        for (size_t offset = 0; offset < 64; offset += 21) {
            memset(to, 0xee, most + 64);
            blyi_copy_bytes(to + offset, from + 63 - offset, sizes[i]);
            assert_memory_equal(to + offset, from + 63 - offset, sizes[i]);
            assert_int_equal(to[offset + sizes[i]], 0xee);
            if (offset > 0)
                assert_int_equal(to[offset - 1], 0xee);
        }
    free(from);
    free(to);
}

static void every_direction_works_at_once_and_in_order(void **state)
{
    (void)state;
    enum { SIZE = 300000 };
    void *stream = new_stream();
    unsigned char *host = malloc(SIZE), *back = malloc(SIZE);
    unsigned char *pinned = pinned_alloc(SIZE), *out = pinned_alloc(SIZE);
    unsigned char *a = card_alloc(SIZE), *b = card_alloc(4 * MiB);
    fill(host, SIZE, 1);
    assert_ok(blyi_copy_now(a, host, SIZE));
    assert_ok(blyi_copy_now(b, a, SIZE));
    assert_ok(blyi_copy_now(back, b, SIZE));
    assert_memory_equal(back, host, SIZE);

    fill(pinned, SIZE, 2);
    assert_ok(blyi_copy_async(a, pinned, SIZE, stream, 0));
    assert_ok(blyi_copy_async(b, a, SIZE, stream, 0));
    assert_ok(blyi_copy_async(out, b, SIZE, stream, 0));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_memory_equal(out, pinned, SIZE);

    /* Pageable memory: ordered, and done on return. */
    assert_ok(blyi_set_async(a, 0x11, SIZE, stream, 0));
    assert_ok(blyi_copy_async(back, a, SIZE, stream, 0));
    assert_int_equal(back[SIZE - 1], 0x11);
    assert_ok(blyi_set_async(back, 0x22, SIZE, stream, 0));
    assert_int_equal(back[0], 0x22);
    assert_ok(blyi_set_async(out, 0x33, SIZE, stream, 0));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(out[7], 0x33);
    free(host);
    free(back);
}

static void nothing_happens_for_nothing(void **state)
{
    (void)state;
    assert_ok(blyi_copy_now(NULL, NULL, 0));
    assert_ok(blyi_set_now(NULL, 0, 0));
    assert_ok(blyi_copy_now((void *)16, (void *)16, 4096));
    assert_ok(blyi_copy_async(NULL, NULL, 0, NULL, 0));
    assert_ok(blyi_copy2d_now(NULL, 1, NULL, 1, 0, 5));
    assert_ok(blyi_copy2d_async(NULL, 1, NULL, 1, 5, 0, NULL, 0));
    assert_ok(blyi_stream_sync(NULL, 0));
}

static void host_memory_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    keep_fault_handler();
    char *card = card_alloc(4 * MiB);
    /* Nothing of anybody's lies behind the pages: the kernel may put a stream there, else. */
    char *pages = mmap(NULL, 4 * 4096 + 32 * MiB, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(pages, 4096, PROT_READ | PROT_WRITE);
    mprotect(pages + 2 * 4096, 4096, PROT_READ);
    assert_status(blyi_copy_now(card, pages, 2 * 4096), BLY_E_FAULT);
    assert_sentence("cannot be read, 4096 bytes from its start");
    assert_status(blyi_copy_now(pages, card, 2 * 4096), BLY_E_FAULT);
    assert_sentence("cannot be written");
    assert_status(blyi_copy_now(pages + 2 * 4096, card, 10), BLY_E_FAULT);
    assert_ok(blyi_copy_now(card, pages + 2 * 4096, 4096));
    assert_status(blyi_set_now(pages + 2 * 4096, 1, 10), BLY_E_FAULT);
    void *wild[] = {(void *)1,
                    (void *)4096,
                    pages + 3 * 4096,
                    (void *)0x7ffffffff000,
                    (void *)0x800000000000,
                    (void *)0xdead000000000000,
                    (void *)-4096};
    for (size_t i = 0; i < BLYI_COUNT(wild); i++)
        for (uint64_t size = 1; size <= 16 * MiB; size *= 4096) {
            assert_status(blyi_copy_now(card, wild[i], size < 4 * MiB ? size : 4 * MiB),
                          BLY_E_FAULT);
            assert_status(blyi_copy_now(wild[i], card, size < 4 * MiB ? size : 4 * MiB),
                          BLY_E_FAULT);
            assert_status(blyi_set_now(wild[i], 1, size), BLY_E_FAULT);
            assert_status(blyi_copy_async(wild[i], card, 100, NULL, 0), BLY_E_FAULT);
        }
    assert_status(blyi_copy_now(card, pages, UINT64_MAX), BLY_E_FAULT);
    assert_status(blyi_set_now(pages, 0, UINT64_MAX - 5), BLY_E_FAULT);
    munmap(pages, 4 * 4096 + 32 * MiB);
}

static void card_memory_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    char *card = card_alloc(4 * MiB), *freed = card_alloc(4 * MiB), host[64] = {0};
    assert_ok(blyi_mem_free(freed, 0));
    assert_status(blyi_copy_now(freed, host, 64), BLY_E_FAULT);
    assert_status(blyi_copy_now(host, freed, 64), BLY_E_FAULT);
    assert_status(blyi_set_now(freed, 0, 64), BLY_E_FAULT);
    assert_status(blyi_copy_now(card + 4 * MiB - 10, host, 64), BLY_E_FAULT);
    char *pinned = pinned_alloc(4096);
    assert_ok(blyi_copy_async(pinned, freed, 64, NULL, 0));
    assert_status(blyi_stream_sync(NULL, 0), BLY_E_FAULT);
    assert_sentence("; on stream ");
}

static void freed_pinned_memory_is_told_as_such(void **state)
{
    (void)state;
    keep_fault_handler();
    char *card = card_alloc(MiB), *pinned = pinned_alloc(MiB);
    assert_ok(blyi_pinned_free(pinned, 0));
    assert_ok(blyi_copy_async(card, pinned + 100, 4096, NULL, 0));
    assert_status(blyi_stream_sync(NULL, 0), BLY_E_FAULT);
    assert_sentence(": pinned host memory at 0x");
    assert_sentence("; freed ");
    assert_sentence(" (1 MiB) made at ");
}

static void rows_keep_their_pitch(void **state)
{
    (void)state;
    enum { WIDTH = 100, HEIGHT = 50, DPITCH = 128, SPITCH = 100 };
    unsigned char host[SPITCH * HEIGHT], back[SPITCH * HEIGHT];
    unsigned char *card = card_alloc(DPITCH * HEIGHT), *other = card_alloc(DPITCH * HEIGHT);
    fill(host, sizeof(host), 9);
    assert_ok(blyi_set_now(card, 0xaa, DPITCH * HEIGHT));
    assert_ok(blyi_copy2d_now(card, DPITCH, host, SPITCH, WIDTH, HEIGHT));
    assert_ok(blyi_copy2d_async(other, DPITCH, card, DPITCH, WIDTH, HEIGHT, NULL, 0));
    assert_ok(blyi_stream_sync(NULL, 0));
    assert_ok(blyi_copy2d_now(back, SPITCH, other, DPITCH, WIDTH, HEIGHT));
    assert_memory_equal(back, host, sizeof(host));
    unsigned char gap;
    assert_ok(blyi_copy_now(&gap, card + WIDTH, 1));
    assert_int_equal(gap, 0xaa);
    assert_status(blyi_copy2d_now(card, UINT64_MAX / 2, host, SPITCH, WIDTH, 5), BLY_E_FAULT);
    assert_ok(blyi_copy2d_async(card, UINT64_MAX, other, DPITCH, WIDTH, 9, NULL, 0));
    assert_status(blyi_stream_sync(NULL, 0), BLY_E_FAULT);
}

static void pinned_memory_lives_until_the_copy_has_run(void **state)
{
    (void)state;
    void *stream = new_stream();
    char *pinned = pinned_alloc(4 * MiB), *card = card_alloc(4 * MiB), back[8];
    memset(pinned, 1, 4 * MiB);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_copy_async(card, pinned, 4 * MiB, stream, 0));
    memset(pinned, 2, 1024); /* before it is read */
    assert_ok(blyi_pinned_free(pinned, 0));
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ok(blyi_copy_now(back, card, 8));
    assert_int_equal(back[0], 2);
    assert_ok(blyi_copy_now(back, card + 1024, 8));
    assert_int_equal(back[0], 1);
    assert_true(blyi_pinned_audit());
    /* Dropped work gives it back as well. */
    struct blyi_pinned_figures before, figures;
    blyi_pinned_figures(&before);
    pinned = pinned_alloc(MiB);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_copy_async(card, pinned, MiB, stream, 0));
    assert_ok(blyi_pinned_free(pinned, 0));
    assert_ok(blyi_stream_destroy(stream, true));
    blyi_pinned_figures(&figures);
    assert_int_equal(figures.live, before.live);
}

static void wrong_streams_are_told(void **state)
{
    (void)state;
    void *stale = new_stream(), *stream = new_stream(), *own;
    char *card = card_alloc(4096);
    assert_ok(blyi_stream_destroy(stale, false));
    assert_status(blyi_copy_async(card, card + 64, 64, stale, 0), BLY_E_HANDLE);
    assert_status(blyi_set_async(card, 0, 64, stale, 0), BLY_E_HANDLE);
    assert_status(blyi_copy2d_async(card, 8, card + 64, 8, 8, 8, card, 0), BLY_E_HANDLE);
    assert_ok(blyi_context_create(0, 0, &own));
    assert_status(blyi_copy_async(card, card + 64, 64, stream, 0), BLY_E_STREAM_CONTEXT);
    assert_status(blyi_set_async(card, 0, 64, stream, 0), BLY_E_STREAM_CONTEXT);
    assert_ok(blyi_context_destroy(own));
}

static struct blyi_probe seen[64];
static uint32_t n_seen;

static void keep(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    uint32_t i = __atomic_fetch_add(&n_seen, 1, __ATOMIC_RELAXED);
    if (i < 64)
        seen[i] = *probe;
}

static void probes_tell_work_at_submission_and_its_end(void **state)
{
    (void)state;
    static struct blyi_sink sink = {
        .kinds = BLYI_KIND(COPY) | BLYI_KIND(SET) | BLYI_KIND(TASK_DONE),
        .probe = keep,
    };
    void *stream = new_stream();
    char *card = card_alloc(8192);
    int32_t id;
    assert_ok(blyi_stream_id(stream, &id));
    blyi_probe_add_sink(&sink);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_set_async(card, 1, 4096, stream, 77));
    assert_ok(blyi_copy_async(card + 4096, card, 4096, stream, 78));
    assert_int_equal(n_seen, 2);
    assert_int_equal(seen[0].kind, BLYI_PROBE_SET);
    assert_int_equal(seen[0].site, 77);
    assert_int_equal(seen[0].stream, id);
    assert_int_equal(seen[1].kind, BLYI_PROBE_COPY);
    assert_int_equal(seen[1].other, (uintptr_t)card);
    assert_int_equal(seen[1].size, 4096);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(n_seen, 4);
    assert_int_equal(seen[2].kind, BLYI_PROBE_TASK_DONE);
    assert_int_equal(seen[3].aux, BLY_OK);
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    keep_fault_handler();
    const struct CMUnitTest tests[] = {
        order_test(bytes_arrive_in_every_size_and_offset),
        order_test(every_direction_works_at_once_and_in_order),
        order_test(nothing_happens_for_nothing),
        order_test(host_memory_that_is_not_there_is_an_error),
        order_test(card_memory_that_is_not_there_is_an_error),
        order_test(freed_pinned_memory_is_told_as_such),
        order_test(rows_keep_their_pitch),
        order_test(pinned_memory_lives_until_the_copy_has_run),
        order_test(wrong_streams_are_told),
        order_test(probes_tell_work_at_submission_and_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
