/* SPDX-License-Identifier: Apache-2.0
 *
 * test_around.c - what is placed around buffers that have their places.
 */
#include "plan_test.h"

#include <string.h>

#include "plan/around.h"
#include "plan/pack.h"

enum { SMALL = 40, ROUNDS = 300 };

/* Every other item stays where a plan of them alone puts it. */
static void place_around(uint64_t *seed)
{
    bly_plan_buffer b[SMALL], kept[SMALL];
    int64_t offset[SMALL];
    uint64_t made[SMALL], peak;
    struct blyi_pack pack;
    struct blyi_timeline line;
    plan_random(seed, b, SMALL, 30, 20);
    for (size_t i = 0; i < SMALL / 2; i++)
        kept[i] = b[2 * i];
    bly_plan_opts opts = bly_plan_opts_default();
    opts.node_budget = 10;
    bly_plan_result r;
    assert_ok(bly_plan(kept, SMALL / 2, &opts, &r));
    assert_ok(blyi_pack_init(&pack, b, NULL, SMALL, 1));
    assert_ok(blyi_timeline_init(&line, &pack));
    for (size_t i = 0; i < SMALL; i++)
        offset[i] = i % 2 == 0 ? (int64_t)r.offset[i / 2] / pack.unit : BLYI_PACK_FREE;
    assert_ok(blyi_sweep_around(&pack, &line, offset));
    for (size_t i = 0; i < SMALL; i++) {
        made[i] = (uint64_t)(offset[i] * pack.unit);
        if (i % 2 == 0)
            assert_int_equal(made[i], r.offset[i / 2]);
    }
    assert_ok(bly_plan_verify(b, SMALL, 1, made, NULL, &peak));
    blyi_timeline_fini(&line);
    blyi_pack_fini(&pack);
    bly_plan_release(&r);
}

static void others_go_around(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    for (int round = 0; round < ROUNDS; round++)
        place_around(&seed);
}

/* What fits below something that is only born later, but not for all of its life, goes above. */
static void what_comes_later_is_seen(void **state)
{
    (void)state;
    bly_plan_buffer b[] = {bly_plan_buffer_make(5, 9, 10), bly_plan_buffer_make(0, 5, 7),
                           bly_plan_buffer_make(0, 6, 7), bly_plan_buffer_make(4, 6, 2)};
    int64_t offset[] = {4, BLYI_PACK_FREE, BLYI_PACK_FREE, BLYI_PACK_FREE};
    struct blyi_pack pack;
    struct blyi_timeline line;
    assert_ok(blyi_pack_init(&pack, b, NULL, 4, 1));
    assert_ok(blyi_timeline_init(&line, &pack));
    assert_ok(blyi_sweep_around(&pack, &line, offset));
    assert_int_equal(offset[0], 4);
    assert_int_equal(offset[1], 0);
    assert_int_equal(offset[2], 14);
    assert_int_equal(offset[3], 21);
    blyi_timeline_fini(&line);
    blyi_pack_fini(&pack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_go_around),
        cmocka_unit_test(what_comes_later_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
