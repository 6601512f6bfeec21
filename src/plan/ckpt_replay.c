/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_replay.c - carries a schedule out on paper. Knows the rules of checkpoint.h and nothing
 * of how schedules are made, so that a mistake there cannot hide here.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/ckpt_model.h"

struct stage_state {
    bool output, saved; /* held */
    bool ran;
};

struct replay {
    const bly_chain *chain;
    struct stage_state *state; /* n + 1 values; [0] is the chain's input */
    uint64_t memory;           /* held between steps */
    uint64_t during;           /* while the step ran */
    size_t gradient;           /* the stage whose gradient is current */
    size_t step;               /* from 1 */
};

static bool has_output(const struct replay *replay, size_t stage)
{
    return replay->state[stage].output || replay->state[stage].saved;
}

static bly_status refuse(const struct replay *replay, const bly_ckpt_op *op, const char *why)
{
    return blyi_fail(BLY_E_INVALID, "schedule: step %zu, %s %u: %s", replay->step,
                     bly_ckpt_kind_name(op->kind), op->stage, why);
}

/* Forward, save and recompute. */
static bly_status run_forward(struct replay *replay, const bly_ckpt_op *op)
{
    struct stage_state *state = &replay->state[op->stage];
    const bly_chain_stage *stage = &replay->chain->stages[op->stage - 1];
    if (op->stage > replay->gradient)
        return refuse(replay, op, "its backward has run");
    if (!has_output(replay, op->stage - 1))
        return refuse(replay, op, "its input is not there");
    if (op->kind == BLY_CKPT_SAVE ? state->saved : has_output(replay, op->stage))
        return refuse(replay, op, "what it leaves is there already");
    if (op->kind == BLY_CKPT_FORWARD && state->ran)
        return refuse(replay, op, "it ran before, so this is a recompute");
    if (op->kind == BLY_CKPT_RECOMPUTE && !state->ran)
        return refuse(replay, op, "it never ran, so this is a forward");
    state->ran = true;
    if (op->kind == BLY_CKPT_SAVE)
        state->saved = true;
    else
        state->output = true;
    replay->memory += op->kind == BLY_CKPT_SAVE ? stage->saved : stage->output;
    replay->during = replay->memory + stage->forward_temp;
    return BLY_OK;
}

static bly_status run_drop(struct replay *replay, const bly_ckpt_op *op)
{
    if (!replay->state[op->stage].output)
        return refuse(replay, op, "its output is not there");
    replay->state[op->stage].output = false;
    replay->memory -= replay->chain->stages[op->stage - 1].output;
    replay->during = replay->memory;
    return BLY_OK;
}

static bly_status run_backward(struct replay *replay, const bly_ckpt_op *op)
{
    const bly_chain_stage *stage = &replay->chain->stages[op->stage - 1];
    if (op->stage != replay->gradient)
        return refuse(replay, op, "its gradient is not the current one");
    if (!replay->state[op->stage].saved)
        return refuse(replay, op, "it was not saved");
    if (!has_output(replay, op->stage - 1))
        return refuse(replay, op, "its input is not there");
    replay->state[op->stage].saved = false;
    replay->gradient--;
    if (replay->gradient > 0)
        replay->memory += stage[-1].gradient;
    replay->during = replay->memory + stage->backward_temp;
    replay->memory -= stage->saved + stage->gradient;
    return BLY_OK;
}

static bly_status run_step(struct replay *replay, const bly_ckpt_op *op)
{
    if (op->stage == 0 || op->stage > replay->chain->n)
        return blyi_fail(BLY_E_INVALID, "schedule: step %zu is on stage %u of %zu", replay->step,
                         op->stage, replay->chain->n);
    switch (op->kind) {
    case BLY_CKPT_FORWARD:
    case BLY_CKPT_SAVE:
    case BLY_CKPT_RECOMPUTE:
        return run_forward(replay, op);
    case BLY_CKPT_DROP:
        return run_drop(replay, op);
    case BLY_CKPT_BACKWARD:
        return run_backward(replay, op);
    }
    return blyi_fail(BLY_E_INVALID, "schedule: step %zu is of kind %d, which there is not",
                     replay->step, (int)op->kind);
}

static bly_status check_end(const struct replay *replay)
{
    if (replay->gradient > 0)
        return blyi_fail(BLY_E_INVALID, "schedule: backward %zu never runs", replay->gradient);
    for (size_t i = 1; i <= replay->chain->n; i++)
        if (replay->state[i].output || replay->state[i].saved)
            return blyi_fail(BLY_E_INVALID, "schedule: output %zu is never dropped", i);
    return BLY_OK;
}

static void account(bly_ckpt_replay *result, const struct replay *replay, const bly_ckpt_op *op)
{
    const bly_chain_stage *stage = &replay->chain->stages[op->stage - 1];
    if (op->kind == BLY_CKPT_BACKWARD) {
        result->time_ns += stage->backward_ns;
    } else if (op->kind != BLY_CKPT_DROP) {
        result->time_ns += stage->forward_ns;
        result->n_forwards++;
    }
    if (replay->during > result->peak) {
        result->peak = replay->during;
        result->peak_op = replay->step - 1;
    }
}

static bly_status run_all(struct replay *replay, const bly_ckpt_op *ops, size_t n_ops,
                          bly_ckpt_replay *result, uint64_t *curve)
{
    for (size_t i = 0; i < n_ops; i++) {
        replay->step = i + 1;
        bly_status status = run_step(replay, &ops[i]);
        if (status != BLY_OK)
            return status;
        account(result, replay, &ops[i]);
        if (curve != NULL)
            curve[i] = replay->during;
    }
    return check_end(replay);
}

bly_status bly_checkpoint_replay(const bly_chain *chain, const bly_ckpt_op *ops, size_t n_ops,
                                 bly_ckpt_replay *result, uint64_t *curve)
{
    bly_status status = blyi_ckpt_chain_check(chain);
    if (status != BLY_OK)
        return status;
    struct replay replay = {.chain = chain, .gradient = chain->n};
    replay.state = blyi_host_calloc(chain->n + 1, sizeof(*replay.state));
    if (replay.state == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to replay %zu stages", chain->n);
    replay.state[0].output = true;
    replay.memory = chain->input + chain->stages[chain->n - 1].gradient;
    bly_ckpt_replay found = {.peak = replay.memory};
    status = run_all(&replay, ops, n_ops, &found, curve);
    blyi_host_free(replay.state);
    if (status == BLY_OK)
        *result = found;
    return status;
}

const char *bly_ckpt_kind_name(bly_ckpt_kind kind)
{
    static const char *const names[] = {"forward", "save", "recompute", "drop", "backward"};
    return (size_t)kind < BLYI_COUNT(names) ? names[kind] : "unknown";
}
