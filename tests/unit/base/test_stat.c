/* SPDX-License-Identifier: Apache-2.0
 * Counters. */
#include "base_test.h"
#include "base/stat.h"

static void add_many(int index)
{
    for (int i = 0; i < 10000; i++)
        blyi_stat_add(BLYI_STAT_copy_bytes, (uint64_t)index);
}

static void threads_add_up(void **state)
{
    (void)state;
    uint64_t before = blyi_stat_read(BLYI_STAT_copy_bytes);
    run_threads(add_many);
    assert_int_equal(blyi_stat_read(BLYI_STAT_copy_bytes) - before,
                     10000 * (TEST_THREADS * (TEST_THREADS - 1) / 2));
    assert_int_equal(blyi_stat_read(BLYI_STAT_maps), 0);
}

static void each_has_its_words(void **state)
{
    (void)state;
    for (int i = 0; i < BLYI_STAT_COUNT; i++) {
        assert_true(strlen(blyi_stat_name((enum blyi_stat)i)) > 0);
        assert_true(strlen(blyi_stat_unit((enum blyi_stat)i)) > 0);
        assert_true(strlen(blyi_stat_help((enum blyi_stat)i)) > 0);
    }
    assert_string_equal(blyi_stat_name(BLYI_STAT_copy_bytes), "copy_bytes");
    assert_string_equal(blyi_stat_unit(BLYI_STAT_copy_bytes), "bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_add_up),
        cmocka_unit_test(each_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
