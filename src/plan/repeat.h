/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.h - the longest stretch of births in which all is as it was some births before.
 */
#ifndef BLYI_PLAN_REPEAT_H
#define BLYI_PLAN_REPEAT_H

#include <belay/plan.h>
#include <stdbool.h>

struct blyi_birth {
    int64_t lower;
    uint64_t life, size;
};

/* In order of birth. */
struct blyi_births {
    struct blyi_birth *at;
    size_t n;
    uint64_t end; /* of all lifetimes */
};

/* From `first` on, `run` births agree with those `distance` later. */
struct blyi_repeat {
    size_t first, run, distance; /* run 0: nothing repeats */
};

/* The buffers are valid. E_HOST_MEMORY. */
bly_status blyi_births_init(struct blyi_births *births, const bly_plan_buffer *buffers, size_t n);
void blyi_births_fini(struct blyi_births *births);

/* The repeat that covers most births; run >= distance. any_size: only lifetimes have to agree.
 * E_HOST_MEMORY. */
bly_status blyi_repeat_find(const struct blyi_births *births, bool any_size,
                            struct blyi_repeat *repeat);

#endif
