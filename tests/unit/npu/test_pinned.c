/* SPDX-License-Identifier: Apache-2.0
 * Pinned host memory: exact pages, limits, blocks that queued work holds. */
#include "mem_test.h"
#include "base/probe.h"
#include "base/sanitizer.h"
#include "npu/host_room.h"
#include "npu/pinned.h"
#include "npu/pointer.h"
#include <errno.h>
#include <sys/mman.h>

/* Sanitizers keep memory of their own, and make mlock() do nothing. */
#define SANITIZED (BLYI_WITH_ASAN || BLYI_WITH_TSAN)

static bool is_known(const char *address)
{
    struct blyi_pointer_quick quick = {.card = 7};
    bool known = blyi_pointer_quick(address, &quick);
    assert_true(!known || (quick.card == -1 && quick.page_kind == BLYI_PAGE_NORMAL));
    return known;
}

static struct blyi_pinned_figures figures(void)
{
    struct blyi_pinned_figures out;
    blyi_pinned_figures(&out);
    assert_true(blyi_pinned_audit());
    return out;
}

static bly_status try_pin(uint64_t size, void **address)
{
    return blyi_pinned_alloc(size, blyi_align_up(size, 32), SITE_A, 33, address);
}

static void *pin(uint64_t size)
{
    void *address = NULL;
    assert_ok(try_pin(size, &address));
    return address;
}

static void unpin(void *address)
{
    assert_ok(blyi_pinned_free(address, SITE_B));
}

/* Resident bytes of a range, as the kernel has them. */
static uint64_t resident(void *address, uint64_t size)
{
    static unsigned char pages[65536];
    uint64_t n = 0;
    assert_int_equal(mincore(address, size, pages), 0);
    for (uint64_t i = 0; i < size / 4096; i++)
        n += pages[i] & 1;
    return n * 4096;
}

/* A row of a file about this process. */
static uint64_t bytes_of(const char *path, const char *key)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtoull(line + strlen(key), NULL, 10) * KiB;
    fclose(file);
    return value;
}

static uint64_t locked_bytes(void)
{
    return bytes_of("/proc/self/status", "VmLck:");
}

/* Counted page by page: RssAnon of status lags behind by some pages for each processor. */
static uint64_t anonymous_bytes(void)
{
    return bytes_of("/proc/self/smaps_rollup", "Anonymous:");
}

/* O-20: 17 blocks of 17 MiB pin 289 MiB, not 544. */
static void no_power_of_two(void **state)
{
    (void)state;
    void *blocks[17];
    uint64_t anonymous = anonymous_bytes(), locked = locked_bytes();
    for (int i = 0; i < 17; i++)
        blocks[i] = pin(17 * MiB);
    assert_int_equal(figures().live, 289 * MiB);
    assert_int_equal(figures().asked, 289 * MiB);
    assert_int_equal(figures().blocks, 17);
    uint64_t grown = anonymous_bytes() - anonymous;
    if (!SANITIZED) {
        assert_true(grown + 17 * 4096 >= 289 * MiB && grown <= 289 * MiB + 17 * 4096);
        assert_int_equal(locked_bytes() - locked, figures().locked);
    }
    for (int i = 0; i < 17; i++) {
        assert_int_equal(resident(blocks[i], 17 * MiB), 17 * MiB);
        unpin(blocks[i]);
    }
    assert_int_equal(figures().live, 0);
    assert_int_equal(figures().locked, 0);
    assert_int_equal(figures().peak, 289 * MiB);
    assert_int_equal(blyi_host_room_held(), 0);
    assert_int_equal(locked_bytes(), locked);
    for (int i = 0; i < 10000; i++)
        unpin(pin(MiB));
    assert_int_equal(figures().peak, 289 * MiB);
    if (!SANITIZED)
        assert_true(anonymous_bytes() < anonymous + MiB);
}

static void exact_pages(void **state)
{
    (void)state;
    char *a = pin(1), *b = pin(4097), *c = pin(2 * MiB);
    struct blyi_pinned_block block;
    assert_int_equal(figures().live, 3 * 4096 + 2 * MiB);
    assert_int_equal((uintptr_t)a % 4096, 0);
    assert_int_equal((uintptr_t)c % FRAME, 0);
    assert_true(blyi_pinned_find(b + 8191, &block));
    assert_int_equal(block.asked, 4097);
    assert_int_equal(block.backed, 8192);
    assert_int_equal(block.site, SITE_A);
    assert_int_equal(blyi_place_of(b, NULL), BLYI_PLACE_PINNED);
    memset(c, 1, 2 * MiB);
    assert_fails(blyi_pinned_free(b + 4096, SITE_B), BLY_E_INVALID, "4096 bytes inside");
    int on_host;
    assert_fails(blyi_pinned_free(&on_host, SITE_B), BLY_E_INVALID, "not pinned host memory");
    unpin(a);
    unpin(b);
    unpin(c);
    assert_fails(blyi_pinned_free(b, SITE_B), BLY_E_INVALID, "freed already");
    assert_false(blyi_pinned_find(b, &block));
}

static void limits_are_named(void **state)
{
    (void)state;
    void *address = NULL;
    set_option(BLYI_OPT_PIN_LIMIT, "8MiB");
    set_option(BLYI_OPT_PIN_CEILING, "6MiB");
    void *a = pin(5 * MiB);
    assert_fails(try_pin(7 * MiB, &address), BLY_E_PIN_LIMIT, "7340032 B", "BELAY_PIN_CEILING");
    assert_fails(try_pin(4 * MiB, &address), BLY_E_PIN_LIMIT, "limit 8388608 B (8 MiB)",
                 "used 5242880 B (5 MiB) in 1 blocks", "left 3145728 B (3 MiB)");
    void *b = pin(3 * MiB);
    assert_int_equal(figures().limit, 8 * MiB);
    unpin(a);
    unpin(b);
    set_option(BLYI_OPT_PIN_LIMIT, "0");
    set_option(BLYI_OPT_PIN_CEILING, "0");
    set_option(BLYI_OPT_HOST_LIMIT, "16MiB");
    assert_fails(try_pin(17 * MiB, &address), BLY_E_HOST_MEMORY, "17825792 B", "BELAY_HOST_LIMIT");
    set_option(BLYI_OPT_HOST_LIMIT, "0");
    assert_fails(blyi_pinned_alloc(0, 0, 0, 33, &address), BLY_E_INVALID, "0 bytes");
    assert_null(address);
    assert_int_equal(figures().live, 0);
}

/* O-17, step 5: freed while a copy is queued. */
static void held_blocks_outlive_their_free(void **state)
{
    (void)state;
    char *a = pin(4 * MiB);
    memset(a, 9, 4 * MiB);
    assert_false(blyi_pinned_hold(a + 4096, 4 * MiB));
    assert_true(blyi_pinned_hold(a + 4096, MiB));
    assert_true(blyi_pinned_hold(a, 4 * MiB));
    unpin(a);
    assert_false(blyi_pinned_hold(a, 1));
    assert_fails(blyi_pinned_free(a, SITE_B), BLY_E_INVALID, "freed already", "queued work");
    char *b = pin(4 * MiB);
    assert_ptr_not_equal(a, b);
    assert_int_equal(a[4 * MiB - 1], 9);
    blyi_pinned_release(a + 4096);
    assert_int_equal(a[0], 9);
    assert_int_equal(figures().live, 8 * MiB);
    blyi_pinned_release(a);
    assert_int_equal(figures().live, 4 * MiB);
    unpin(b);
    assert_true(blyi_pinned_hold(b, 1) == false);
}

static int64_t listened; /* bytes, by the probes */

static void listen(void *arg, const struct blyi_probe *probe)
{
    (void)arg;
    int64_t bytes = (int64_t)probe->backed;
    listened += probe->kind == BLYI_PROBE_HOST_ALLOC ? bytes : -bytes;
}

/* Whoever adds up the probes has what counts toward the limit, held blocks included. */
static void a_held_block_counts_until_its_release(void **state)
{
    (void)state;
    static struct blyi_sink sink = {.kinds = BLYI_KIND(HOST_ALLOC) | BLYI_KIND(HOST_FREE),
                                    .probe = listen};
    int64_t before = (int64_t)figures().live;
    blyi_probe_add_sink(&sink);
    char *a = pin(4 * MiB);
    assert_true(blyi_pinned_hold(a, 1));
    unpin(a);
    assert_int_equal(before + listened, figures().live);
    char *b = pin(MiB);
    assert_int_equal(listened, 5 * MiB);
    blyi_pinned_release(a);
    assert_int_equal(listened, MiB);
    unpin(b);
    assert_int_equal(listened, 0);
}

/* Every host allocation and system call fails once; nothing is left behind. */
static void failures_change_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        for (uint64_t nth = 1;; nth++) {
            void *a = NULL, *b = NULL;
            kind ? blyi_sys_fail_nth(nth, ENOMEM) : blyi_host_fail_nth(nth);
            bly_status first = try_pin(3 * MiB, &a), second = try_pin(100, &b);
            if (a && first == BLY_OK)
                assert_ok(blyi_pinned_free(a, SITE_B));
            if (b && second == BLY_OK)
                assert_ok(blyi_pinned_free(b, SITE_B));
            bool failed = kind ? blyi_sys_failed() : blyi_host_failed();
            blyi_sys_fail_nth(0, 0);
            blyi_host_fail_nth(0);
            assert_int_equal(first == BLY_OK, a != NULL);
            assert_int_equal(second == BLY_OK, b != NULL);
            assert_int_equal(figures().live, 0);
            assert_int_equal(blyi_host_room_held(), 0);
            if (!failed)
                break;
        }
    }
}

static void pin_in_thread(int index)
{
    struct rng rng = {(uint64_t)index + 1};
    for (int i = 0; i < 200; i++) {
        void *address = NULL;
        uint64_t size = 1 + rng_below(&rng, 64 * KiB);
        require(try_pin(size, &address) == BLY_OK);
        *(volatile char *)address = (char)index;
        require(blyi_pinned_hold(address, size));
        require(blyi_pinned_free(address, SITE_B) == BLY_OK);
        require(*(volatile char *)address == (char)index);
        blyi_pinned_release(address);
    }
}

static void threads(void **state)
{
    (void)state;
    run_threads(pin_in_thread);
    assert_int_equal(figures().live, 0);
}

/* Blocks that begin and end anywhere in a word of the table. */
static void each_page_is_known_without_a_lock(void **state)
{
    (void)state;
    enum { N = 40 };
    char *blocks[N];
    uint64_t pages[N];
    for (int i = 0; i < N; i++) {
        pages[i] = (uint64_t)(i * 37 % 150 + 1);
        blocks[i] = pin(pages[i] * 4096 - 100);
    }
    for (int i = 0; i < N; i += 2)
        unpin(blocks[i]);
    for (int i = 0; i < N; i++)
        for (uint64_t page = 0; page < pages[i]; page++)
            assert_int_equal(is_known(blocks[i] + page * 4096 + page), i % 2);
    (void)figures(); /* audits: no bit more */
    assert_true(blyi_pinned_hold(blocks[1], 1));
    for (int i = 1; i < N; i += 2)
        unpin(blocks[i]);
    assert_false(is_known(blocks[1])); /* freed, if not yet given back */
    blyi_pinned_release(blocks[1]);
    (void)figures();
    assert_false(is_known((const char *)state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(failures_change_nothing),
                                       cmocka_unit_test(no_power_of_two),
                                       cmocka_unit_test(exact_pages),
                                       cmocka_unit_test(limits_are_named),
                                       cmocka_unit_test(held_blocks_outlive_their_free),
                                       cmocka_unit_test(a_held_block_counts_until_its_release),
                                       cmocka_unit_test(each_page_is_known_without_a_lock),
                                       cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
