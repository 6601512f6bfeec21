/* SPDX-License-Identifier: Apache-2.0
 * Free ranges beside an array of units. */
#include "base_test.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/ranges.h"

#define UNITS 256

static bool is_free[UNITS]; /* the model */

static uint64_t run_at(uint64_t start)
{
    uint64_t n = 0;
    while (start + n < UNITS && is_free[start + n])
        n++;
    return n;
}

static void mark(uint64_t start, uint64_t length, bool now)
{
    for (uint64_t i = start; i < start + length; i++)
        is_free[i] = now;
}

/* Best fit by looking at everything. */
static bool model_best(uint64_t length, uint64_t align, uint64_t *best)
{
    uint64_t best_run = UINT64_MAX;
    for (uint64_t start = 0, run; start < UNITS; start += run ? run : 1) {
        run = run_at(start);
        uint64_t place = (start + align - 1) / align * align;
        if (run > 0 && place + length <= start + run && run < best_run) {
            best_run = run;
            *best = place;
        }
    }
    return best_run != UINT64_MAX;
}

static void check(const struct blyi_ranges *ranges)
{
    uint64_t total = 0, largest = 0;
    size_t count = 0;
    for (uint64_t start = 0, run; start < UNITS; start += run ? run : 1) {
        run = run_at(start);
        total += run;
        count += run > 0;
        largest = run > largest ? run : largest;
    }
    assert_true(blyi_ranges_audit(ranges));
    assert_int_equal(ranges->total, total);
    assert_int_equal(ranges->by_start.count, count);
    assert_int_equal(blyi_ranges_largest(ranges), largest);
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    struct blyi_ranges ranges;
    blyi_ranges_init(&ranges);
    memset(is_free, 0, sizeof(is_free));
    for (int step = 0; step < 20000; step++) {
        uint64_t length = 1 + rng_below(&rng, 12), at = rng_below(&rng, UNITS - length + 1);
        bool inject = rng_below(&rng, 4) == 0;
        if (inject)
            blyi_host_fail_nth(1);
        bly_status status;
        switch (rng_below(&rng, 3)) {
        case 0: { /* add what is wholly taken */
            uint64_t n = 0;
            while (n < length && !is_free[at + n])
                n++;
            if (n == 0)
                break;
            status = blyi_ranges_add(&ranges, at, n);
            assert_int_equal(status, inject && blyi_host_failed() ? BLY_E_HOST_MEMORY : BLY_OK);
            if (status == BLY_OK)
                mark(at, n, true);
            break;
        }
        case 1: {
            uint64_t align = 1 + rng_below(&rng, 9), want = UINT64_MAX, got = 12345;
            bool fits = model_best(length, align, &want);
            status = blyi_ranges_take(&ranges, length, align, &got);
            if (!fits) {
                assert_int_equal(status, BLY_E_NO_MEMORY);
            } else if (inject && blyi_host_failed()) {
                assert_int_equal(status, BLY_E_HOST_MEMORY);
            } else {
                assert_int_equal(status, BLY_OK);
                assert_int_equal(got, want);
                mark(got, length, false);
            }
            if (status != BLY_OK)
                assert_int_equal(got, 12345);
            break;
        }
        default: {
            bool whole = run_at(at) >= length;
            status = blyi_ranges_take_at(&ranges, at, length);
            if (!whole) {
                assert_int_equal(status, BLY_E_INVALID);
            } else if (inject && blyi_host_failed()) {
                assert_int_equal(status, BLY_E_HOST_MEMORY);
            } else {
                assert_int_equal(status, BLY_OK);
                mark(at, length, false);
                if (rng_below(&rng, 2)) { /* back at once: never needs host memory */
                    blyi_host_fail_nth(1);
                    assert_int_equal(blyi_ranges_add(&ranges, at, length), BLY_OK);
                    mark(at, length, true);
                }
            }
        }
        }
        blyi_host_fail_nth(0);
        if (step % 20 == 0)
            check(&ranges);
    }
    blyi_ranges_fini(&ranges);
}

static void no_host_memory_is_left_behind(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    blyi_host_stats(&before);
    struct blyi_ranges ranges;
    blyi_ranges_init(&ranges);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(blyi_ranges_add(&ranges, 3 * i, 2), BLY_OK);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(blyi_ranges_take_at(&ranges, 3 * i, 2), BLY_OK);
    blyi_ranges_fini(&ranges);
    assert_true(blyi_ranges_audit(&ranges));
    blyi_host_stats(&after);
    assert_int_equal(after.live_blocks, before.live_blocks);
}

static void the_ends_of_the_number_line(void **state)
{
    (void)state;
    struct blyi_ranges ranges;
    uint64_t start = 0;
    blyi_ranges_init(&ranges);
    assert_int_equal(blyi_ranges_add(&ranges, 5, 0), BLY_E_INVALID);
    assert_int_equal(blyi_ranges_add(&ranges, UINT64_MAX - 1, 5), BLY_E_INVALID);
    assert_int_equal(blyi_ranges_add(&ranges, UINT64_MAX - 9, 9), BLY_OK);
    assert_int_equal(blyi_ranges_take(&ranges, 1, (uint64_t)1 << 63, &start), BLY_E_NO_MEMORY);
    assert_int_equal(blyi_ranges_take_at(&ranges, UINT64_MAX - 9, UINT64_MAX), BLY_E_INVALID);
    assert_int_equal(blyi_ranges_take_at(&ranges, UINT64_MAX, 1), BLY_E_INVALID);
    assert_int_equal(blyi_ranges_take(&ranges, 9, 1, &start), BLY_OK);
    assert_int_equal(start, UINT64_MAX - 9);
    assert_int_equal(blyi_ranges_largest(&ranges), 0);
    blyi_ranges_fini(&ranges);
}

static void add_twice(void)
{
    struct blyi_ranges ranges;
    blyi_ranges_init(&ranges);
    blyi_ranges_add(&ranges, 10, 10);
    blyi_ranges_add(&ranges, 19, 2);
}

static void freeing_twice_stops_the_process(void **state)
{
    (void)state;
    expect_death(add_twice, "2 units at 19", "free already");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(no_host_memory_is_left_behind),
        cmocka_unit_test(the_ends_of_the_number_line),
        cmocka_unit_test(freeing_twice_stops_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
