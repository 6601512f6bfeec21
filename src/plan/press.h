/* SPDX-License-Identifier: Apache-2.0
 *
 * press.h - lowers the peak of a plan, window by window: only the times at which the plan is
 * higher than wanted are looked at, each as a small problem of its own in which the buffers
 * that reach out of the window stay where they are.
 */
#ifndef BLYI_PLAN_PRESS_H
#define BLYI_PLAN_PRESS_H

#include "plan/pack.h"
#include "plan/stop.h"
#include "plan/rand.h"
#include "plan/sweep.h"

struct blyi_press {
    const struct blyi_pack *pack;
    const struct blyi_timeline *line;
    struct blyi_rand rand;
    double share;   /* of the distance to the bound that the next attempt wants to gain */
    double growth;  /* of it after a success */
    uint32_t reach; /* items born before and after a peak that its window takes in */
    uint64_t steps; /* for one window */
};

void blyi_press_init(struct blyi_press *press, const struct blyi_pack *pack,
                     const struct blyi_timeline *line, uint64_t seed);

/* One attempt to bring the peak of offset[0 .. n) below what it is, at best to `bound`. The
 * plan stays valid whatever happens; *peak is its new peak, *nodes the steps left.
 * E_HOST_MEMORY: offset is still a plan. */
bly_status blyi_press_once(struct blyi_press *press, int64_t bound, uint64_t *nodes,
                           struct blyi_stop *stop, int64_t *offset, int64_t *peak);

#endif
