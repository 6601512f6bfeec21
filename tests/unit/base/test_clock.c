/* SPDX-License-Identifier: Apache-2.0
 * Real and virtual time. */
#include "base_test.h"
#include "base/clock.h"
#include "base/stamp.h"

#define SECOND 1000000000u

static void real_time_does_not_go_back(void **state)
{
    (void)state;
    assert_false(blyi_clock_is_virtual());
    uint64_t before = blyi_clock_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = blyi_clock_ns();
        assert_true(now >= before);
        before = now;
    }
    assert_true(blyi_clock_wall_ns() > (uint64_t)1577836800 * SECOND); /* 2020 */
}

static void virtual_time_moves_by_hand(void **state)
{
    (void)state;
    blyi_clock_set_virtual(true);
    assert_true(blyi_clock_is_virtual());
    assert_int_equal(blyi_clock_ns(), SECOND);
    assert_int_equal(blyi_clock_ns(), SECOND);
    blyi_clock_advance(5);
    assert_int_equal(blyi_clock_ns(), SECOND + 5);
    assert_true(blyi_clock_wall_ns() > (uint64_t)1577836800 * SECOND);
    blyi_clock_set_virtual(true);
    assert_int_equal(blyi_clock_ns(), SECOND);
    blyi_clock_set_virtual(false);
    assert_true(blyi_clock_ns() != SECOND);
}

static void advance(int index)
{
    (void)index;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = blyi_clock_ns();
        blyi_clock_advance(1);
        require(blyi_clock_ns() > before);
    }
}

static void threads_add_up(void **state)
{
    (void)state;
    blyi_clock_set_virtual(true);
    run_threads(advance);
    assert_int_equal(blyi_clock_ns(), SECOND + TEST_THREADS * 1000);
    blyi_clock_set_virtual(false);
}

/* Over the first lines and longer than a line is valid. */
static void near_the_clock(int index)
{
    (void)index;
    uint64_t start = blyi_clock_ns(), now = start;
    while (now - start < 30000000u) {
        uint64_t before = blyi_clock_ns(), stamp = blyi_stamp_ns();
        now = blyi_clock_ns();
        require(stamp + 20000 > before);
        require(stamp < now + 20000);
    }
}

static void stamps_are_near_the_clock(void **state)
{
    (void)state;
    near_the_clock(0);
    run_threads(near_the_clock);
    blyi_clock_set_virtual(true);
    assert_int_equal(blyi_stamp_ns(), SECOND);
    blyi_clock_advance(7);
    assert_int_equal(blyi_stamp_ns(), SECOND + 7);
    blyi_clock_set_virtual(false);
    near_the_clock(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_time_does_not_go_back),
        cmocka_unit_test(virtual_time_moves_by_hand),
        cmocka_unit_test(threads_add_up),
        cmocka_unit_test(stamps_are_near_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
