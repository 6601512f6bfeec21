/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_buffer.c - a schedule as buffers with lifetimes: step i lives in [i, i + 1).
 */
#include <stdbool.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/ckpt_model.h"

#define NONE SIZE_MAX

/* The buffers of a stage that live now; NONE: not there, or empty. */
struct stage_buffers {
    size_t output;       /* of a plain forward */
    size_t saved_output; /* a saved set is two: its output ... */
    size_t saved_rest;   /* ... and what else is in it */
    size_t gradient;
};

struct listing {
    const bly_chain *chain;
    bly_plan_buffer *buffers;
    size_t n;
    struct stage_buffers *live; /* n + 1 values; [0] is the chain's input */
};

static size_t born(struct listing *listing, size_t step, uint64_t size)
{
    if (size == 0)
        return NONE;
    listing->buffers[listing->n] = bly_plan_buffer_make((int64_t)step, (int64_t)step + 1, size);
    return listing->n++;
}

/* The buffer lives up to `end`, which its step does not reach. */
static void dies(struct listing *listing, size_t *buffer, size_t end)
{
    if (*buffer != NONE)
        listing->buffers[*buffer].upper = (int64_t)end;
    *buffer = NONE;
}

static void list_step(struct listing *listing, size_t step, const bly_ckpt_op *op)
{
    const bly_chain_stage *stage = &listing->chain->stages[op->stage - 1];
    struct stage_buffers *live = &listing->live[op->stage];
    switch (op->kind) {
    case BLY_CKPT_FORWARD:
    case BLY_CKPT_RECOMPUTE:
        live->output = born(listing, step, stage->output);
        born(listing, step, stage->forward_temp);
        break;
    case BLY_CKPT_SAVE:
        live->saved_output = born(listing, step, stage->output);
        live->saved_rest = born(listing, step, stage->saved - stage->output);
        born(listing, step, stage->forward_temp);
        break;
    case BLY_CKPT_DROP:
        dies(listing, &live->output, step);
        break;
    case BLY_CKPT_BACKWARD:
        if (op->stage > 1)
            live[-1].gradient = born(listing, step, stage[-1].gradient);
        born(listing, step, stage->backward_temp);
        dies(listing, &live->saved_output, step + 1);
        dies(listing, &live->saved_rest, step + 1);
        dies(listing, &live->gradient, step + 1);
        break;
    }
}

static void list_all(struct listing *listing, const bly_ckpt_op *ops, size_t n_ops)
{
    size_t n = listing->chain->n;
    for (size_t i = 0; i <= n; i++)
        listing->live[i] = (struct stage_buffers){NONE, NONE, NONE, NONE};
    listing->live[0].output = born(listing, 0, listing->chain->input);
    listing->live[n].gradient = born(listing, 0, listing->chain->stages[n - 1].gradient);
    for (size_t i = 0; i < n_ops; i++)
        list_step(listing, i, &ops[i]);
    dies(listing, &listing->live[0].output, n_ops);
}

bly_status bly_checkpoint_buffers(const bly_chain *chain, const bly_ckpt_op *ops, size_t n_ops,
                                  bly_plan_buffer **buffers, size_t *n_buffers)
{
    bly_ckpt_replay replay;
    bly_status status = bly_checkpoint_replay(chain, ops, n_ops, &replay, NULL);
    if (status != BLY_OK)
        return status;
    struct listing listing = {.chain = chain};
    /* At most three are born at a step, and two before the first. */
    listing.buffers = blyi_host_calloc(n_ops * 3 + 2, sizeof(*listing.buffers));
    listing.live = blyi_host_calloc(chain->n + 1, sizeof(*listing.live));
    if (listing.buffers == NULL || listing.live == NULL) {
        blyi_host_free(listing.buffers);
        blyi_host_free(listing.live);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the buffers of %zu steps", n_ops);
    }
    list_all(&listing, ops, n_ops);
    blyi_host_free(listing.live);
    *buffers = listing.buffers;
    *n_buffers = listing.n;
    return BLY_OK;
}

void bly_checkpoint_buffers_free(bly_plan_buffer *buffers)
{
    blyi_host_free(buffers);
}
