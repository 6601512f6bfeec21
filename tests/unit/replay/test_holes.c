/* SPDX-License-Identifier: Apache-2.0
 * Holes beside a map of units. */
#include "replay/holes.h"
#include "base/host.h"
#include "../base/base_test.h"

#define UNITS 512
#define UNIT  512u

static bool is_hole[UNITS];
static size_t length[UNITS]; /* of the block that begins here */

static size_t first_run(size_t n)
{
    size_t run = 0;
    for (size_t at = 0; at < UNITS; at++) {
        run = is_hole[at] ? run + 1 : 0;
        if (run == n)
            return at + 1 - n;
    }
    return UNITS;
}

static void take(struct blyi_holes *holes, size_t n)
{
    size_t want = first_run(n);
    uint64_t address;
    bool found = blyi_holes_find(holes, n * UNIT, &address);
    assert_int_equal(found, want != UNITS);
    if (!found)
        return;
    assert_int_equal(address, want * UNIT);
    blyi_holes_take(holes, address, n * UNIT);
    for (size_t i = 0; i < n; i++)
        is_hole[want + i] = false;
    length[want] = n;
}

static void give(struct blyi_holes *holes, size_t at)
{
    assert_true(blyi_holes_give(holes, at * UNIT, length[at] * UNIT));
    for (size_t i = 0; i < length[at]; i++)
        is_hole[at + i] = true;
    length[at] = 0;
}

static void random_steps(void **state)
{
    struct rng rng = rng_start();
    struct blyi_holes holes;
    uint64_t address;
    (void)state;
    blyi_holes_init(&holes);
    assert_false(blyi_holes_find(&holes, 1, &address));
    assert_true(blyi_holes_give(&holes, 0, UNITS * UNIT));
    memset(is_hole, true, sizeof(is_hole));
    for (int step = 0; step < 20000; step++) {
        size_t at = rng_below(&rng, UNITS);
        if (length[at] != 0)
            give(&holes, at);
        else
            take(&holes, 1 + rng_below(&rng, step % 4000 < 2000 ? 4 : 24));
        assert_true(blyi_holes_audit(&holes));
    }
    blyi_holes_fini(&holes);
}

/* What is given without host memory is not lost for later. */
static void no_host_memory(void **state)
{
    struct blyi_holes holes;
    uint64_t address;
    (void)state;
    blyi_holes_init(&holes);
    blyi_host_fail_nth(1);
    assert_false(blyi_holes_give(&holes, UNIT, UNIT));
    assert_true(blyi_holes_give(&holes, UNIT, UNIT));
    assert_true(blyi_holes_find(&holes, UNIT, &address));
    assert_int_equal(address, UNIT);
    blyi_holes_fini(&holes);
}

static void audit_sees_what_is_wrong(void **state)
{
    struct blyi_holes holes;
    (void)state;
    blyi_holes_init(&holes);
    assert_true(blyi_holes_give(&holes, 0, UNIT));
    assert_true(blyi_holes_give(&holes, 2 * UNIT, UNIT));
    assert_true(blyi_holes_audit(&holes));
    holes.nodes[holes.root].largest++;
    assert_false(blyi_holes_audit(&holes));
    holes.nodes[holes.root].largest--;
    holes.nodes[2].address = UNIT; /* should be one with the other */
    assert_false(blyi_holes_audit(&holes));
    blyi_holes_fini(&holes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(no_host_memory),
        cmocka_unit_test(audit_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
