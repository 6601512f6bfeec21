/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_model.h - a chain that has been checked, in the form that the planner works on.
 *
 * Stage 0 stands for the chain's input: its output is the input, and it has nothing else. So
 * the input and the gradient of stage i's input are always those of stage i - 1.
 */
#ifndef BLYI_CKPT_MODEL_H
#define BLYI_CKPT_MODEL_H

#include <belay/checkpoint.h>

struct blyi_ckpt_stage {
    uint64_t forward_ns, backward_ns;
    uint64_t output, saved, gradient, forward_temp, backward_temp;
    uint64_t forward_sum; /* forward_ns of stages 1 .. i */
    uint32_t alike; /* equal for stages with equal figures whose inputs' gradients are equal */
};

struct blyi_ckpt_model {
    uint32_t n;
    struct blyi_ckpt_stage *stages; /* n + 1 values */
    uint64_t base_ns;
};

/* E_INVALID: the chain is outside its contract. E_HOST_MEMORY. */
bly_status blyi_ckpt_chain_check(const bly_chain *chain);
bly_status blyi_ckpt_model_init(struct blyi_ckpt_model *model, const bly_chain *chain);
void blyi_ckpt_model_fini(struct blyi_ckpt_model *model);

/* Forward time of stages first .. last; 0 when last < first. */
static inline uint64_t blyi_ckpt_forward_ns(const struct blyi_ckpt_model *model, uint32_t first,
                                            uint32_t last)
{
    return last < first ? 0
                        : model->stages[last].forward_sum - model->stages[first - 1].forward_sum;
}

#endif
