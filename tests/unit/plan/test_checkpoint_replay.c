/* SPDX-License-Identifier: Apache-2.0
 * The simulator of schedules, and schedules as buffers. */
#include "ckpt_test.h"

#define F BLY_CKPT_FORWARD
#define S BLY_CKPT_SAVE
#define R BLY_CKPT_RECOMPUTE
#define D BLY_CKPT_DROP
#define B BLY_CKPT_BACKWARD

#define OPS(...)                                                                                   \
    (const bly_ckpt_op[]){__VA_ARGS__}, sizeof((bly_ckpt_op[]){__VA_ARGS__}) / sizeof(bly_ckpt_op)

static bly_chain_stage stages[] = {
    {NULL, 10, 20, 2, 5, 3, 1, 4},
    {NULL, 100, 200, 7, 11, 6, 0, 8},
};
static const bly_chain chain = {2, stages, 50, 1};

/* Every figure by hand: 50 of input and 6 of the last gradient are there from the start. */
static void figures(void **state)
{
    (void)state;
    uint64_t curve[7];
    bly_ckpt_replay replay;
    assert_ok(bly_checkpoint_replay(&chain, OPS({F, 1}, {S, 2}, {B, 2}, {D, 1}, {S, 1}, {B, 1}),
                                    &replay, curve));
    static const uint64_t wanted[] = {
        56 + 2 + 1, 58 + 11,    69 + 3 + 8, /* gradient 1 comes; saved 2 and gradient 2 go */
        53,         53 + 5 + 1, 58 + 4,
    };
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(curve[i], wanted[i]);
    assert_int_equal(replay.time_ns, 10 + 100 + 200 + 10 + 20);
    assert_int_equal(replay.peak, 80);
    assert_int_equal(replay.peak_op, 2);
    assert_int_equal(replay.n_forwards, 3);
}

static void refused(const bly_ckpt_op *ops, size_t n, const char *words)
{
    bly_ckpt_replay replay;
    bly_plan_buffer *buffers;
    size_t n_buffers;
    assert_int_equal(bly_checkpoint_replay(&chain, ops, n, &replay, NULL), BLY_E_INVALID);
    if (strstr(bly_last_error(), words) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", bly_last_error(), words);
    assert_int_equal(bly_checkpoint_buffers(&chain, ops, n, &buffers, &n_buffers), BLY_E_INVALID);
}

static void refusals(void **state)
{
    (void)state;
    refused(OPS({F, 1}), "backward 2 never runs");
    refused(OPS({F, 2}), "step 1, forward 2: its input is not there");
    refused(OPS({S, 2}), "its input is not there");
    refused(OPS({F, 1}, {F, 1}), "what it leaves is there already");
    refused(OPS({S, 1}, {S, 1}), "what it leaves is there already");
    refused(OPS({S, 1}, {R, 1}), "what it leaves is there already");
    refused(OPS({R, 1}), "it never ran");
    refused(OPS({F, 1}, {D, 1}, {F, 1}), "it ran before");
    refused(OPS({D, 1}), "its output is not there");
    refused(OPS({S, 1}, {D, 1}), "its output is not there");
    refused(OPS({B, 2}), "it was not saved");
    refused(OPS({S, 1}, {B, 1}), "its gradient is not the current one");
    refused(OPS({F, 1}, {S, 2}, {D, 1}, {B, 2}), "step 4, backward 2: its input is not there");
    refused(OPS({S, 1}, {S, 2}, {B, 2}, {S, 2}), "its backward has run");
    refused(OPS({F, 1}, {S, 2}, {B, 2}, {S, 1}, {B, 1}), "output 1 is never dropped");
    refused(OPS({F, 0}), "stage 0 of 2");
    refused(OPS({F, 3}), "stage 3 of 2");
    refused(OPS({(bly_ckpt_kind)9, 1}), "kind 9");
    refused(NULL, 0, "backward 2 never runs");
}

/* At each step the live buffers sum to the simulator's curve. */
static void buffers_follow_the_curve(void **state)
{
    (void)state;
    bly_chain_stage layers[20];
    bly_chain long_chain = layers_chain(20, layers, 1000);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    opts.unpacked = 1;
    for (uint64_t percent = 20; percent <= 100; percent += 20) {
        bly_ckpt_schedule schedule;
        assert_ok(
            bly_checkpoint(&long_chain, full_peak(&long_chain) * percent / 100, &opts, &schedule));
        uint64_t *curve = calloc(schedule.n_ops, sizeof(*curve));
        bly_ckpt_replay replay;
        bly_plan_buffer *buffers;
        size_t n;
        assert_ok(bly_checkpoint_replay(&long_chain, schedule.ops, schedule.n_ops, &replay, curve));
        assert_ok(bly_checkpoint_buffers(&long_chain, schedule.ops, schedule.n_ops, &buffers, &n));
        for (size_t step = 0; step < schedule.n_ops; step++) {
            uint64_t live = 0;
            for (size_t i = 0; i < n; i++)
                if (buffers[i].lower <= (int64_t)step && (int64_t)step < buffers[i].upper)
                    live += buffers[i].size;
            assert_int_equal(live, curve[step]);
        }
        free(curve);
        bly_checkpoint_buffers_free(buffers);
        bly_ckpt_schedule_release(&schedule);
    }
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(bly_ckpt_kind_name(BLY_CKPT_FORWARD), "forward");
    assert_string_equal(bly_ckpt_kind_name(BLY_CKPT_BACKWARD), "backward");
    assert_string_equal(bly_ckpt_kind_name((bly_ckpt_kind)5), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(refusals),
        cmocka_unit_test(buffers_follow_the_curve),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
