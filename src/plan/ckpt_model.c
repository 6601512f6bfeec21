/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_model.c - see ckpt_model.h.
 */
#include "plan/ckpt_model.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"

/* Adds the sizes of one stage to *sum, which stays at most BLY_CHAIN_SIZE_MAX. */
static bool sizes_fit(const bly_chain_stage *stage, uint64_t *sum)
{
    const uint64_t sizes[] = {stage->output, stage->saved, stage->gradient, stage->forward_temp,
                              stage->backward_temp};
    for (size_t i = 0; i < BLYI_COUNT(sizes); i++) {
        if (sizes[i] > BLY_CHAIN_SIZE_MAX - *sum)
            return false;
        *sum += sizes[i];
    }
    return true;
}

static bly_status stage_check(const bly_chain_stage *stage, size_t number, uint64_t *sum)
{
    if (stage->forward_ns > BLY_CHAIN_TIME_MAX || stage->backward_ns > BLY_CHAIN_TIME_MAX)
        return blyi_fail(BLY_E_INVALID,
                         "chain: stage %zu takes %" PRIu64 " ns forward and %" PRIu64
                         " ns backward; at most %" PRIu64 " ns are possible",
                         number, stage->forward_ns, stage->backward_ns, BLY_CHAIN_TIME_MAX);
    if (stage->saved < stage->output)
        return blyi_fail(BLY_E_INVALID,
                         "chain: stage %zu saves %" PRIu64 " B, less than its output of %" PRIu64
                         " B, which is part of it",
                         number, stage->saved, stage->output);
    if (!sizes_fit(stage, sum))
        return blyi_fail(BLY_E_INVALID,
                         "chain: the sizes up to stage %zu sum to more than %" PRIu64 " B", number,
                         BLY_CHAIN_SIZE_MAX);
    return BLY_OK;
}

bly_status blyi_ckpt_chain_check(const bly_chain *chain)
{
    if (chain->n == 0 || chain->n > BLY_CHAIN_STAGES_MAX || chain->stages == NULL)
        return blyi_fail(BLY_E_INVALID, "chain: %zu stages; 1 to %d are possible", chain->n,
                         BLY_CHAIN_STAGES_MAX);
    if (chain->input > BLY_CHAIN_SIZE_MAX)
        return blyi_fail(BLY_E_INVALID,
                         "chain: the input has %" PRIu64 " B; at most %" PRIu64 " B are possible",
                         chain->input, BLY_CHAIN_SIZE_MAX);
    uint64_t sum = chain->input;
    for (size_t i = 0; i < chain->n; i++) {
        bly_status status = stage_check(&chain->stages[i], i + 1, &sum);
        if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}

static bool stages_alike(const struct blyi_ckpt_stage *a, const struct blyi_ckpt_stage *b)
{
    return a->forward_ns == b->forward_ns && a->backward_ns == b->backward_ns &&
           a->output == b->output && a->saved == b->saved && a->gradient == b->gradient &&
           a->forward_temp == b->forward_temp && a->backward_temp == b->backward_temp &&
           a[-1].gradient == b[-1].gradient;
}

/* The number of the first stage that is like stage i. */
static uint32_t alike_of(const struct blyi_ckpt_stage *stages, uint32_t i)
{
    uint32_t first = 1;
    while (!stages_alike(&stages[first], &stages[i]))
        first++;
    return first;
}

bly_status blyi_ckpt_model_init(struct blyi_ckpt_model *model, const bly_chain *chain)
{
    bly_status status = blyi_ckpt_chain_check(chain);
    if (status != BLY_OK)
        return status;
    struct blyi_ckpt_stage *stages = blyi_host_calloc(chain->n + 1, sizeof(*stages));
    if (stages == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a chain of %zu stages", chain->n);

    *model = (struct blyi_ckpt_model){.n = (uint32_t)chain->n, .stages = stages};
    stages[0].output = chain->input;
    for (uint32_t i = 1; i <= model->n; i++) {
        const bly_chain_stage *given = &chain->stages[i - 1];
        stages[i] = (struct blyi_ckpt_stage){
            .forward_ns = given->forward_ns,
            .backward_ns = given->backward_ns,
            .output = given->output,
            .saved = given->saved,
            .gradient = given->gradient,
            .forward_temp = given->forward_temp,
            .backward_temp = given->backward_temp,
            .forward_sum = stages[i - 1].forward_sum + given->forward_ns,
        };
        stages[i].alike = alike_of(stages, i);
        model->base_ns += given->forward_ns + given->backward_ns;
    }
    return BLY_OK;
}

void blyi_ckpt_model_fini(struct blyi_ckpt_model *model)
{
    blyi_host_free(model->stages);
    *model = (struct blyi_ckpt_model){0};
}
