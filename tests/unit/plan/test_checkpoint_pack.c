/* SPDX-License-Identifier: Apache-2.0
 * Schedules together with the offsets of what they allocate. */
#include "ckpt_test.h"

#include "base/host.h"

#define MIB ((uint64_t)1 << 20)

/* The offsets are checked by the planner's verifier, which knows nothing of schedules. */
static void check_packed(const bly_chain *chain, uint64_t budget, const bly_ckpt_opts *opts)
{
    bly_ckpt_schedule schedule;
    bly_status status = bly_checkpoint(chain, budget, opts, &schedule);
    if (status == BLY_E_NO_MEMORY)
        return;
    assert_ok(status);
    uint64_t peak;
    bly_ckpt_replay replay;
    assert_ok(bly_plan_verify(schedule.buffers, schedule.n_buffers, opts->align, schedule.offsets,
                              NULL, &peak));
    assert_ok(bly_checkpoint_replay(chain, schedule.ops, schedule.n_ops, &replay, NULL));
    assert_int_equal(peak, schedule.packed_peak);
    assert_int_equal(replay.peak, schedule.peak);
    assert_int_equal(replay.time_ns, schedule.time_ns);
    assert_true(schedule.peak <= schedule.packed_peak && schedule.packed_peak <= budget);
    bly_ckpt_schedule_release(&schedule);
}

static void packed_peaks_fit(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    bly_chain_stage stages[40];
    bly_chain chain = layers_chain(40, stages, MIB);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    uint64_t full = full_peak(&chain);
    for (uint64_t percent = 5; percent <= 100; percent += 5)
        check_packed(&chain, full * percent / 100, &opts);
    opts.align = 512;
    for (size_t i = 0; i < 12; i++)
        stages[i] = (bly_chain_stage){NULL,
                                      1 + rng_below(&rng, 1000000),
                                      1 + rng_below(&rng, 1000000),
                                      rng_below(&rng, MIB),
                                      MIB + rng_below(&rng, 9 * MIB),
                                      rng_below(&rng, MIB),
                                      rng_below(&rng, MIB),
                                      rng_below(&rng, 2 * MIB)};
    chain = (bly_chain){12, stages, 12345, 1};
    full = full_peak(&chain);
    for (uint64_t percent = 20; percent <= 110; percent += 5)
        check_packed(&chain, full * percent / 100, &opts);
}

/* Without limits everything is saved once, and the packing reaches the sum of live sizes. */
static void no_checkpoints_needed(void **state)
{
    (void)state;
    bly_chain_stage stages[30];
    bly_chain chain = layers_chain(30, stages, MIB);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_schedule schedule;
    assert_ok(bly_checkpoint(&chain, full_peak(&chain) * 2, &opts, &schedule));
    assert_int_equal(schedule.time_ns, schedule.base_ns);
    assert_int_equal(schedule.n_ops, 60);
    assert_int_equal(schedule.peak, full_peak(&chain));
    bly_ckpt_schedule_release(&schedule);
}

/* Where no packing fits, the sentence tells it from a budget that is too small by itself: with
 * an alignment larger than the budget only one buffer can have an offset. */
static void no_packing(void **state)
{
    (void)state;
    bly_chain_stage stages[5];
    bly_chain chain = layers_chain(5, stages, 1000);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_schedule schedule;
    uint64_t budget = full_peak(&chain);
    opts.align = budget * 2;
    opts.pack_tries = 3;
    assert_int_equal(bly_checkpoint(&chain, budget, &opts, &schedule), BLY_E_NO_MEMORY);
    assert_non_null(strstr(bly_last_error(), "none of 3 schedules"));
}

static void same_result_each_time(void **state)
{
    (void)state;
    bly_chain_stage stages[30];
    bly_chain chain = layers_chain(30, stages, MIB);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_schedule a, b;
    uint64_t budget = full_peak(&chain) / 3;
    assert_ok(bly_checkpoint(&chain, budget, &opts, &a));
    assert_ok(bly_checkpoint(&chain, budget, &opts, &b));
    assert_int_equal(a.n_ops, b.n_ops);
    assert_memory_equal(a.ops, b.ops, a.n_ops * sizeof(*a.ops));
    assert_int_equal(a.n_buffers, b.n_buffers);
    assert_memory_equal(a.offsets, b.offsets, a.n_buffers * sizeof(*a.offsets));
    bly_ckpt_schedule_release(&a);
    bly_ckpt_schedule_release(&b);
}

/* Whichever allocation fails, the packer's included, nothing stays behind. */
static void failing_host_memory(void **state)
{
    (void)state;
    bly_chain_stage stages[8];
    bly_chain chain = layers_chain(8, stages, MIB);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    uint64_t budget = full_peak(&chain) / 2; /* allocates by itself */
    struct blyi_host_stats before, after;
    bool failed = true;
    blyi_host_stats(&before);
    for (uint64_t nth = 1; failed; nth++) {
        bly_ckpt_schedule schedule = {0};
        blyi_host_fail_nth(nth);
        bly_status status = bly_checkpoint(&chain, budget, &opts, &schedule);
        failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_int_equal(status, failed ? BLY_E_HOST_MEMORY : BLY_OK);
        bly_ckpt_schedule_release(&schedule);
        blyi_host_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_peaks_fit),    cmocka_unit_test(no_checkpoints_needed),
        cmocka_unit_test(no_packing),          cmocka_unit_test(same_result_each_time),
        cmocka_unit_test(failing_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
