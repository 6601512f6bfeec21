/* SPDX-License-Identifier: Apache-2.0
 * Checkpoint schedules of long chains: fronts, budgets, bad input, failing host memory. */
#include "ckpt_test.h"

#include "base/host.h"

#define MIB ((uint64_t)1 << 20)

static bly_ckpt_opts unpacked(void)
{
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    opts.unpacked = 1;
    return opts;
}

/* At each point's budget the schedule takes the point's time; one byte less, and it takes that
 * of the point before. */
static void check_front(const bly_chain *chain, const bly_ckpt_opts *opts, size_t stride)
{
    bly_ckpt_front front;
    bly_ckpt_schedule schedule;
    assert_ok(bly_checkpoint_front(chain, opts, &front));
    assert_true(front.exact && front.n > 0);
    assert_int_equal(front.points[front.n - 1].time_ns, front.base_ns);
    assert_int_equal(front.points[front.n - 1].budget, full_peak(chain));
    for (size_t i = 0; i < front.n; i += stride) {
        const bly_ckpt_point *point = &front.points[i];
        assert_true(point->time_ns <= point->persistent_ns);
        assert_ok(bly_checkpoint(chain, point->budget, opts, &schedule));
        assert_int_equal(schedule.time_ns, point->time_ns);
        assert_int_equal(schedule.persistent_ns, point->persistent_ns);
        assert_int_equal(schedule.peak, point->budget);
        bly_ckpt_schedule_release(&schedule);
        bly_status status = bly_checkpoint(chain, point->budget - 1, opts, &schedule);
        assert_int_equal(status, i > 0 ? BLY_OK : BLY_E_NO_MEMORY);
        if (status == BLY_OK) {
            assert_int_equal(schedule.time_ns, point[-1].time_ns);
            assert_true(point[-1].budget < point->budget && point[-1].time_ns > point->time_ns);
            bly_ckpt_schedule_release(&schedule);
        }
    }
    bly_ckpt_front_release(&front);
}

static void fronts(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    bly_chain_stage stages[60];
    bly_ckpt_opts opts = unpacked();
    bly_chain chain = layers_chain(26, stages, 16 * MIB);
    check_front(&chain, &opts, 1);
    chain = layers_chain(60, stages, 16 * MIB);
    check_front(&chain, &opts, 37);
    for (size_t i = 0; i < 14; i++) {
        uint64_t output = MIB + rng_below(&rng, 8 * MIB);
        stages[i] = (bly_chain_stage){NULL,
                                      1 + rng_below(&rng, 1000000),
                                      1 + rng_below(&rng, 1000000),
                                      output,
                                      output + rng_below(&rng, 40 * MIB),
                                      output,
                                      rng_below(&rng, 3 * MIB),
                                      rng_below(&rng, 9 * MIB)};
    }
    chain = (bly_chain){14, stages, 3 * MIB, 1};
    check_front(&chain, &opts, 7);
    opts.persistent = 1;
    check_front(&chain, &opts, 7);
}

/* One stage alone: save and backward, whatever the budget. */
static void one_stage(void **state)
{
    (void)state;
    bly_chain_stage stage = {NULL, 5, 7, 2, 10, 3, 1, 4};
    bly_chain chain = {1, &stage, 100, 1};
    bly_ckpt_opts opts = unpacked();
    bly_ckpt_schedule schedule;
    assert_ok(bly_checkpoint(&chain, 117, &opts, &schedule));
    assert_int_equal(schedule.n_ops, 2);
    assert_int_equal(schedule.ops[0].kind, BLY_CKPT_SAVE);
    assert_int_equal(schedule.ops[1].kind, BLY_CKPT_BACKWARD);
    assert_int_equal(schedule.time_ns, 12);
    assert_int_equal(schedule.peak, 117); /* input, saved, gradient, larger temporary */
    bly_ckpt_schedule_release(&schedule);
    assert_int_equal(bly_checkpoint(&chain, 116, &opts, &schedule), BLY_E_NO_MEMORY);
    assert_non_null(strstr(bly_last_error(), "117 B"));
    assert_int_equal(bly_checkpoint(&chain, 50, &opts, &schedule), BLY_E_NO_MEMORY);
    assert_ok(bly_checkpoint(&chain, UINT64_MAX, &opts, &schedule));
    bly_ckpt_schedule_release(&schedule);

    stage = (bly_chain_stage){0}; /* a stage of nothing */
    chain.input = 0;
    assert_ok(bly_checkpoint(&chain, 0, &opts, &schedule));
    assert_int_equal(schedule.peak, 0);
    bly_ckpt_schedule_release(&schedule);
}

/* With fewer points kept the times are worse or equal, and no longer called exact. */
static void thinned(void **state)
{
    (void)state;
    bly_chain_stage stages[60];
    bly_chain chain = layers_chain(60, stages, MIB);
    for (size_t i = 0; i < 60; i++)
        stages[i].output += i * 4321;
    uint64_t budget = full_peak(&chain) / 3;
    bly_ckpt_opts opts = unpacked();
    bly_ckpt_schedule exact, coarse;
    assert_ok(bly_checkpoint(&chain, budget, &opts, &exact));
    opts.max_points = 16;
    assert_ok(bly_checkpoint(&chain, budget, &opts, &coarse));
    assert_true(exact.exact && !coarse.exact);
    assert_true(coarse.time_ns >= exact.time_ns && coarse.persistent_ns >= exact.persistent_ns);
    assert_true(coarse.time_ns <= coarse.persistent_ns);
    assert_true(coarse.peak <= budget);
    bly_ckpt_schedule_release(&exact);
    bly_ckpt_schedule_release(&coarse);
}

static void longest_chain(void **state)
{
    (void)state;
    static bly_chain_stage stages[BLY_CHAIN_STAGES_MAX];
    bly_chain chain = layers_chain(BLY_CHAIN_STAGES_MAX, stages, MIB);
    bly_ckpt_opts opts = unpacked();
    bly_ckpt_schedule schedule;
    opts.max_points = 16;
    opts.persistent = 1;
    assert_ok(bly_checkpoint(&chain, full_peak(&chain) / 10, &opts, &schedule));
    assert_true(schedule.time_ns < schedule.base_ns * 3 / 2);
    bly_ckpt_schedule_release(&schedule);
}

static void bad_arguments(void **state)
{
    (void)state;
    bly_chain_stage stages[3];
    bly_chain chain = layers_chain(3, stages, MIB);
    bly_ckpt_opts opts = unpacked();
    bly_ckpt_schedule schedule = {.n_ops = 77};
    opts.struct_size = 4;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    opts = unpacked();
    chain.n = 0;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    chain.n = BLY_CHAIN_STAGES_MAX + 1;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    chain.n = 3;
    stages[1].saved = stages[1].output - 1;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "stage 2"));
    chain = layers_chain(3, stages, BLY_CHAIN_SIZE_MAX / 100);
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    chain = layers_chain(3, stages, MIB);
    stages[2].backward_ns = BLY_CHAIN_TIME_MAX + 1;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_INVALID);
    chain = layers_chain(3, stages, MIB);
    volatile int cancel = 1;
    opts.cancel = &cancel;
    assert_int_equal(bly_checkpoint(&chain, 1, &opts, &schedule), BLY_E_CANCELLED);
    assert_int_equal(schedule.n_ops, 77);
}

/* Whichever allocation fails, the status says so and nothing stays behind. */
static void failing_host_memory(void **state)
{
    (void)state;
    bly_chain_stage stages[8];
    bly_chain chain = layers_chain(8, stages, MIB);
    bly_ckpt_opts opts = unpacked();
    uint64_t budget = full_peak(&chain) / 2;
    struct blyi_host_stats before, after;
    bool failed = true;
    blyi_host_stats(&before);
    for (uint64_t nth = 1; failed; nth++) {
        bly_ckpt_schedule schedule = {0};
        bly_ckpt_front front = {0};
        blyi_host_fail_nth(nth);
        bly_status status = bly_checkpoint(&chain, budget, &opts, &schedule);
        if (status == BLY_OK)
            status = bly_checkpoint_front(&chain, &opts, &front);
        failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_int_equal(status, failed ? BLY_E_HOST_MEMORY : BLY_OK);
        bly_ckpt_schedule_release(&schedule);
        bly_ckpt_front_release(&front);
        blyi_host_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
    }
}

/* ── Known answers, where the folder beside the tree is present ───────────────────────────── */

static void check_answer(const bly_chain *chain, const char *name, uint64_t units, const char *time)
{
    bly_ckpt_opts opts = unpacked();
    bly_ckpt_schedule schedule;
    bly_status status = bly_checkpoint(chain, units * chain->unit, &opts, &schedule);
    if (strcmp(time, "INFEASIBLE") == 0) {
        assert_int_equal(status, BLY_E_NO_MEMORY);
        return;
    }
    if (status != BLY_OK || schedule.persistent_ns != strtoull(time, NULL, 10) * 1000)
        fail_msg("%s at %llu units: %llu ns, not %s us; %s", name, (unsigned long long)units,
                 (unsigned long long)schedule.persistent_ns, time, bly_last_error());
    assert_true(schedule.exact && schedule.time_ns <= schedule.persistent_ns);
    bly_ckpt_schedule_release(&schedule);
}

static void known_answers(void **state)
{
    (void)state;
    FILE *file = fopen(PLANNER_FOLDER "/answers.tsv", "r");
    if (file == NULL) {
        print_message("no " PLANNER_FOLDER "/answers.tsv\n");
        skip();
    }
    int n = 0;
    for (char line[1024]; fgets(line, sizeof(line), file) != NULL;) {
        char name[128], path[512], time[32];
        unsigned long long units;
        if (sscanf(line, "%127s %*s %llu %*s %31s", name, &units, time) != 3 || name[0] == '#')
            continue;
        bly_chain chain;
        snprintf(path, sizeof(path), PLANNER_FOLDER "/chains/%s.chain.csv", name);
        assert_ok(bly_chain_read(path, &chain));
        check_answer(&chain, name, units, time);
        bly_chain_release(&chain);
        n++;
    }
    fclose(file);
    print_message("%d answers\n", n);
    assert_true(n > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fronts),        cmocka_unit_test(one_stage),
        cmocka_unit_test(thinned),       cmocka_unit_test(longest_chain),
        cmocka_unit_test(bad_arguments), cmocka_unit_test(failing_host_memory),
        cmocka_unit_test(known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
