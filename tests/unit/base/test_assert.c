/* SPDX-License-Identifier: Apache-2.0
 * Broken invariants stop the process; the level decides which are looked at. */
#include "base_test.h"
#include "base/assert.h"

static int evaluated;

static int evaluate(int value)
{
    evaluated++;
    return value;
}

static void die_by_check(void)
{
    bly_check(1 + 1 == 3);
}

static void die_with_values(void)
{
    bly_check_msg(evaluate(0), "size %d of %s", 42, "pool");
}

static void checks_are_always_on(void **state)
{
    (void)state;
    expect_death(die_by_check, "test_assert.c:", "1 + 1 == 3");
    expect_death(die_with_values, "size 42 of pool", "evaluate(0)");
}

static void levels_buy_more(void **state)
{
    (void)state;
    evaluated = 0;
    bly_check(evaluate(1));
    assert_int_equal(evaluated, 1);
    bly_assert(evaluate(1));
    assert_int_equal(evaluated, BLY_DEBUG >= 1 ? 2 : 1);
    bly_audit(evaluate(1));
    assert_int_equal(evaluated, 1 + (BLY_DEBUG >= 1) + (BLY_DEBUG >= 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_are_always_on),
        cmocka_unit_test(levels_buy_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
