/* SPDX-License-Identifier: Apache-2.0
 * Locks are taken in rising rank. */
#include "base_test.h"
#include "base/assert.h"
#include "base/lock.h"

static struct blyi_lock outer = BLYI_LOCK_INIT(BLYI_RANK_CARD);
static struct blyi_lock inner = BLYI_LOCK_INIT(BLYI_RANK_LOG);

static void rising_order_is_fine(void **state)
{
    (void)state;
    struct blyi_lock middle;
    blyi_lock_init(&middle, BLYI_RANK_OPTION);
    for (int i = 0; i < 2; i++) {
        blyi_lock_take(&outer);
        blyi_lock_take(&middle);
        blyi_lock_take(&inner);
        assert_true(blyi_lock_held(&outer) && blyi_lock_held(&middle) && blyi_lock_held(&inner));
        blyi_lock_drop(&outer); /* in any order */
        blyi_lock_drop(&inner);
        blyi_lock_drop(&middle);
    }
    if (BLY_DEBUG >= 1)
        assert_false(blyi_lock_held(&outer) || blyi_lock_held(&middle) || blyi_lock_held(&inner));
    blyi_lock_fini(&middle);
}

static void take_falling(void)
{
    blyi_lock_take(&inner);
    blyi_lock_take(&outer);
}

static void take_twice(void)
{
    blyi_lock_take(&outer);
    blyi_lock_take(&outer);
}

static void take_behind_try(void)
{
    if (blyi_lock_try(&inner))
        blyi_lock_take(&outer);
}

static void drop_unheld(void)
{
    blyi_lock_drop(&inner);
}

static void other_orders_stop_the_process(void **state)
{
    (void)state;
    if (BLY_DEBUG < 1)
        skip();
    expect_death(take_falling, "rank CARD while holding", "rank LOG");
    expect_death(take_twice, "rank CARD while holding", "rank CARD");
    expect_death(take_behind_try, "rank CARD while holding", "rank LOG");
    expect_death(drop_unheld, "rank LOG", "does not hold");
}

static void try_is_exempt(void **state)
{
    (void)state;
    blyi_lock_take(&inner);
    assert_true(blyi_lock_try(&outer));
    assert_false(blyi_lock_try(&outer));
    blyi_lock_drop(&inner);
    blyi_lock_drop(&outer);
}

static int shared;

static void add(int index)
{
    (void)index;
    for (int i = 0; i < 5000; i++) {
        blyi_lock_take(&outer);
        blyi_lock_take(&inner);
        shared++;
        blyi_lock_drop(&inner);
        blyi_lock_drop(&outer);
    }
}

static struct blyi_lock quick;

static void add_quickly(int index)
{
    (void)index;
    for (int i = 0; i < 5000; i++) { /* in place and by call, which are the same lock */
        if (i % 2 == 0)
            blyi_lock_take_quick(&quick);
        else
            blyi_lock_take(&quick);
        shared++;
        if (i % 3 == 0)
            blyi_lock_drop_quick(&quick);
        else
            blyi_lock_drop(&quick);
    }
}

static void quick_locks_exclude(void **state)
{
    (void)state;
    shared = 0;
    blyi_lock_init_quick(&quick, BLYI_RANK_POOL);
    run_threads(add_quickly);
    assert_int_equal(shared, TEST_THREADS * 5000);
    assert_true(blyi_lock_try(&quick));
    assert_false(blyi_lock_try(&quick));
    blyi_lock_drop(&quick);
    assert_int_equal(quick.word, 0);
    blyi_lock_fini(&quick);
}

static void locks_exclude(void **state)
{
    (void)state;
    shared = 0;
    run_threads(add);
    assert_int_equal(shared, TEST_THREADS * 5000);
}

static void ranks_have_names(void **state)
{
    (void)state;
    assert_string_equal(blyi_lock_rank_name(BLYI_RANK_FACE), "FACE");
    assert_string_equal(blyi_lock_rank_name(BLYI_RANK_LOG), "LOG");
    assert_string_equal(blyi_lock_rank_name(BLYI_RANK_COUNT), "?");
}

/* The table in docs/design/base.md is the list in lock.h, row by row. */
static void the_document_has_the_same_ranks(void **state)
{
    (void)state;
    static const char *const rows[] = {
#define ROW(name, guards) "| " #name " | " guards " |\n",
        BLYI_LOCK_RANKS(ROW)
#undef ROW
    };
    char path[4096], line[512] = "";
    snprintf(path, sizeof(path), "%.*s../../../docs/design/base.md",
             (int)(sizeof(__FILE__) - sizeof("test_lock.c")), __FILE__);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        skip(); /* run away from its source tree */
    while (strcmp(line, rows[0]) != 0)
        assert_non_null(fgets(line, sizeof(line), file));
    for (int i = 1; i < BLYI_RANK_COUNT; i++) {
        assert_non_null(fgets(line, sizeof(line), file));
        assert_string_equal(line, rows[i]);
    }
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_order_is_fine),
        cmocka_unit_test(other_orders_stop_the_process),
        cmocka_unit_test(try_is_exempt),
        cmocka_unit_test(locks_exclude),
        cmocka_unit_test(quick_locks_exclude),
        cmocka_unit_test(ranks_have_names),
        cmocka_unit_test(the_document_has_the_same_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
