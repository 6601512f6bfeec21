/* SPDX-License-Identifier: Apache-2.0
 *
 * test_fold.c - traces that repeat a step exactly are planned at the bound, however long.
 */
#include "plan_test.h"

enum { HALF = 12, STEP = 2 * HALF, STEPS = 400, LENGTH = 1000 };

/* Two rectangles of one step's length, each cut into pieces without a hole, repeated half a step
 * apart: at the border of any step some buffers reach into the next. Returns their height. */
static uint64_t make_trace(uint64_t *seed, bly_plan_buffer *b)
{
    uint64_t height = 0;
    for (int half = 0; half < 2; half++) {
        bly_plan_buffer piece[HALF];
        uint64_t size = (uint64_t)plan_between(seed, 50000, 99999);
        plan_planted(seed, piece, HALF, LENGTH, size);
        for (int x = 0; x < STEPS * HALF; x++) {
            bly_plan_buffer *made = &b[x / HALF * STEP + half * HALF + x % HALF];
            int64_t shift = LENGTH * (x / HALF) + half * LENGTH / 2;
            *made = piece[x % HALF];
            made->lower += shift;
            made->upper += shift;
        }
        height += size;
    }
    return height;
}

/* A fixed seed: of this step no greedy order over the whole trace reaches the bound before. */
static void a_repeated_step_is_planned_once(void **state)
{
    (void)state;
    static bly_plan_buffer b[STEP * STEPS];
    uint64_t seed = 1, height = make_trace(&seed, b);
    bly_plan_opts opts = bly_plan_opts_default();
    opts.node_budget = 400000;
    bly_plan_result r;
    assert_ok(bly_plan(b, STEP * STEPS, &opts, &r));
    assert_int_equal(r.peak, height);
    assert_true(r.optimal);
    assert_string_equal(r.solver, "fold");
    bly_plan_release(&r);
}

/* What lives through all steps, and what happens once, lies above what repeats. */
static void the_rest_is_planned_too(void **state)
{
    (void)state;
    static bly_plan_buffer b[STEP * STEPS + 2];
    uint64_t seed = plan_seed();
    uint64_t height = make_trace(&seed, b);
    b[STEP * STEPS] = bly_plan_buffer_make(0, LENGTH * (STEPS + 1), 77777);
    b[STEP * STEPS + 1] = bly_plan_buffer_make(LENGTH * 7, LENGTH * 7 + 10, 100);
    bly_plan_opts opts = bly_plan_opts_default();
    opts.node_budget = 20000;
    bly_plan_result r;
    assert_ok(bly_plan(b, STEP * STEPS + 2, &opts, &r));
    assert_true(r.peak <= (height + 77777) * 13 / 10);
    bly_plan_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_step_is_planned_once),
        cmocka_unit_test(the_rest_is_planned_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
