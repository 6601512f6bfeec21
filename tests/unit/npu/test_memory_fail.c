/* SPDX-License-Identifier: Apache-2.0
 * Card memory while the host fails: each host allocation and system call of a scenario once,
 * a host that is short, and the peace of a fast path. */
#include "mem_test.h"
#include "npu/host_room.h"
#include <errno.h>

/* One of everything; stops at the first failure. Blocks made so far are in `blocks`. */
static bly_status scenario(struct blyi_card *card, void *blocks[6])
{
    bly_status status = try_align32(card, 4 * FRAME, BLYI_MEM_HUGE_FIRST, &blocks[0]);
    if (status == BLY_OK)
        status = try_align32(card, 4096, BLYI_MEM_NORMAL_ONLY, &blocks[1]);
    if (status == BLY_OK)
        status = try_padded(card, 5 * MiB, BLYI_MEM_NORMAL_ONLY, &blocks[2]);
    if (status == BLY_OK)
        status = blyi_mem_use(blocks[0], 3 * FRAME, BLYI_WRITE);
    if (status == BLY_OK)
        status = blyi_mem_use(blocks[2], 5 * MiB, BLYI_WRITE);
    if (status == BLY_OK) {
        status = blyi_mem_free(blocks[0], SITE_B);
        blocks[0] = NULL;
    }
    if (status == BLY_OK)
        status = try_align32(card, 9 * FRAME, BLYI_MEM_HUGE_ONLY, &blocks[3]);
    if (status == BLY_OK)
        status = blyi_mem_use(blocks[3], 9 * FRAME, BLYI_READ);
    return status;
}

static void arm(bool system, uint64_t nth)
{
    if (system)
        blyi_sys_fail_nth(nth, ENOMEM);
    else
        blyi_host_fail_nth(nth);
}

static bool disarm(bool system)
{
    bool failed = system ? blyi_sys_failed() : blyi_host_failed();
    blyi_sys_fail_nth(0, 0);
    blyi_host_fail_nth(0);
    return failed;
}

static void steps_fail_one_by_one(bool system)
{
    struct blyi_card *card = open_card("256MiB");
    uint64_t f0 = free_of(card), n = 0;
    for (uint64_t nth = 1;; nth++, n++) {
        void *blocks[6] = {NULL};
        blyi_backing_trim(card->backing, GiB);
        arm(system, nth);
        bly_status status = scenario(card, blocks);
        bool failed = disarm(system);
        assert_true(blyi_card_audit(card));
        if (status != BLY_OK)
            assert_true(status == BLY_E_HOST_MEMORY || status == BLY_E_SYSTEM);
        for (int i = 0; i < 6; i++)
            if (blocks[i])
                assert_ok(blyi_mem_free(blocks[i], SITE_B));
        assert_int_equal(free_of(card), f0);
        assert_int_equal(blyi_mem_cap_used(), 16 * MiB);
        assert_true(blyi_card_audit(card));
        if (!failed)
            break;
    }
    print_message("%llu failures\n", (unsigned long long)n);
    close_card(card);
    assert_int_equal(blyi_host_room_held(), 0);
}

static void host_allocations_fail(void **state)
{
    (void)state;
    steps_fail_one_by_one(false);
}

static void system_calls_fail(void **state)
{
    (void)state;
    steps_fail_one_by_one(true);
}

/* The exact state is the one before when an allocation fails. */
static void a_failed_allocation_changes_no_figure(void **state)
{
    (void)state;
    struct blyi_card *card = open_card("256MiB");
    align32(card, 3 * FRAME, BLYI_MEM_HUGE_FIRST);
    align32(card, 5000, BLYI_MEM_NORMAL_ONLY);
    for (int system = 0; system < 2; system++) {
        for (uint64_t nth = 1;; nth++) {
            struct blyi_mem_figures before = figures_of(card), after;
            uint64_t cap = blyi_mem_cap_used();
            void *address = NULL;
            arm(system, nth);
            bly_status status = try_padded(card, 7 * MiB, BLYI_MEM_NORMAL_ONLY, &address);
            bool failed = disarm(system);
            if (status == BLY_OK)
                assert_ok(blyi_mem_free(address, SITE_B));
            else
                assert_null(address);
            after = figures_of(card);
            after.peak = before.peak;
            assert_memory_equal(&after, &before, sizeof after);
            assert_int_equal(blyi_mem_cap_used(), cap);
            assert_true(blyi_card_audit(card));
            if (!failed)
                break;
        }
    }
    blyi_mem_free_all(card);
    close_card(card);
}

static void opening_fails_one_by_one(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    for (int system = 0; system < 2; system++) {
        for (uint64_t nth = 1;; nth++) {
            struct blyi_card *card = NULL;
            set_option(BLYI_OPT_HBM, "1GiB");
            blyi_host_stats(&before);
            arm(system, nth);
            bly_status status = blyi_card_open(0, &card);
            bool failed = disarm(system);
            if (status == BLY_OK)
                blyi_card_close(card);
            else
                assert_null(blyi_card_get(0));
            blyi_host_stats(&after);
            assert_int_equal(after.live_blocks, before.live_blocks);
            if (!failed)
                break;
        }
    }
}

static void a_short_host_fails_the_use_alone(void **state)
{
    (void)state;
    set_option(BLYI_OPT_HOST_LIMIT, "64MiB");
    struct blyi_card *card = open_card("1GiB");
    char *a = align32(card, 512 * MiB, BLYI_MEM_HUGE_FIRST); /* promised, not taken */
    struct blyi_mem_figures before = figures_of(card);
    assert_ok(blyi_mem_use(a, 40 * MiB, BLYI_WRITE));
    assert_fails(blyi_mem_use(a, 512 * MiB, BLYI_WRITE), BLY_E_HOST_MEMORY,
                 "the host, not the card", "BELAY_HOST_LIMIT 67108864 B (64 MiB)");
    struct blyi_mem_figures after = figures_of(card);
    assert_memory_equal(&after, &before, sizeof after);
    assert_ok(blyi_mem_use(a, 40 * MiB, BLYI_READ)); /* what was committed stays */
    assert_ok(blyi_mem_free(a, SITE_B));
    char *b = align32(card, 64 * MiB, BLYI_MEM_HUGE_FIRST);
    assert_ok(blyi_mem_use(b, 64 * MiB, BLYI_WRITE)); /* in the spare frames of the first */
    assert_ok(blyi_mem_free(b, SITE_B));
    close_card(card);
    set_option(BLYI_OPT_HOST_LIMIT, "0");
}

/* A resident block comes and goes with one mmap each, and its use needs no call at all. */
static void calls_of_the_fast_path(void **state)
{
    (void)state;
    struct blyi_card *card = open_card("4GiB");
    uint64_t sizes[] = {FRAME, GiB};
    for (size_t i = 0; i < BLYI_COUNT(sizes); i++) {
        char *a = align32(card, sizes[i], BLYI_MEM_HUGE_FIRST);
        assert_ok(blyi_mem_use(a, FRAME, BLYI_WRITE));
        assert_ok(blyi_mem_free(a, SITE_B));
        uint64_t calls = blyi_sys_failable(), maps = blyi_sys_count(BLYI_SYS_mmap);
        a = align32(card, sizes[i], BLYI_MEM_HUGE_FIRST);
        assert_int_equal(blyi_sys_count(BLYI_SYS_mmap) - maps, 1);
        assert_ok(blyi_mem_use(a, 1, BLYI_WRITE));
        assert_ok(blyi_mem_free(a, SITE_B));
        assert_int_equal(blyi_sys_count(BLYI_SYS_mmap) - maps, 2);
        assert_int_equal(blyi_sys_failable() - calls, 3); /* and one madvise, for core files */
    }
    close_card(card);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(host_allocations_fail),
                                       cmocka_unit_test(system_calls_fail),
                                       cmocka_unit_test(a_failed_allocation_changes_no_figure),
                                       cmocka_unit_test(opening_fails_one_by_one),
                                       cmocka_unit_test(a_short_host_fails_the_use_alone),
                                       cmocka_unit_test(calls_of_the_fast_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
