/* SPDX-License-Identifier: Apache-2.0
 * Who can give memory back is asked in turn. */
#include "base_test.h"
#include "base/reclaim.h"
#include <stdatomic.h>

struct hoard {
    uint64_t bytes;
    int n_asked, card;
};

static uint64_t give(void *arg, int card, uint64_t bytes)
{
    struct hoard *hoard = arg;
    hoard->n_asked++;
    hoard->card = card;
    uint64_t given = bytes < hoard->bytes ? bytes : hoard->bytes;
    hoard->bytes -= given;
    return given;
}

static void asked_until_there_is_enough(void **state)
{
    (void)state;
    struct hoard a = {.bytes = 10}, b = {.bytes = 100};
    struct blyi_reclaimer ra = {.name = "a", .reclaim = give, .arg = &a};
    struct blyi_reclaimer rb = {.name = "b", .reclaim = give, .arg = &b};
    assert_int_equal(blyi_reclaim_run(0, 5), 0);
    blyi_reclaim_add(&ra);
    blyi_reclaim_add(&rb);
    assert_int_equal(blyi_reclaim_run(2, 5), 5);
    assert_int_equal(a.card, 2);
    assert_int_equal(b.n_asked, 0);
    assert_int_equal(blyi_reclaim_run(2, 50), 50);
    assert_int_equal(a.bytes, 0);
    assert_int_equal(b.bytes, 55);
    assert_int_equal(blyi_reclaim_run(2, 500), 55);
    blyi_reclaim_remove(&rb);
    b.bytes = 9;
    assert_int_equal(blyi_reclaim_run(2, 5), 0);
    blyi_reclaim_remove(&ra);
}

static uint64_t give_atomic(void *arg, int card, uint64_t bytes)
{
    (void)card;
    (void)bytes;
    require(atomic_load((atomic_int *)arg) == 1); /* never asked once removed */
    return 1;
}

static void come_and_go(int index)
{
    atomic_int present;
    atomic_init(&present, 0);
    struct blyi_reclaimer mine = {.name = "thread", .reclaim = give_atomic, .arg = &present};
    for (int i = 0; i < 500; i++) {
        atomic_store(&present, 1);
        blyi_reclaim_add(&mine);
        blyi_reclaim_run(index, 100);
        blyi_reclaim_remove(&mine);
        atomic_store(&present, 0);
    }
}

static void removal_waits_for_a_run(void **state)
{
    (void)state;
    run_threads(come_and_go);
    assert_int_equal(blyi_reclaim_run(0, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_until_there_is_enough),
        cmocka_unit_test(removal_waits_for_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
