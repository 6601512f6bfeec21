/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.h - one walk over time with free holes kept as an allocator keeps them: for problems
 * too large for anything else. Gaps are ignored (a buffer keeps its place through them).
 */
#ifndef BLYI_PLAN_SWEEP_H
#define BLYI_PLAN_SWEEP_H

#include "plan/pack.h"
#include "plan/stop.h"

/* Items in order of birth and of death, as positions per section. */
struct blyi_timeline {
    uint32_t *born, *born_at; /* items by first section; n_sections + 1 positions */
    uint32_t *dead, *dead_at; /* items by last section */
};

bly_status blyi_timeline_init(struct blyi_timeline *line, const struct blyi_pack *pack);
void blyi_timeline_fini(struct blyi_timeline *line);

enum blyi_sweep_fit {
    BLYI_SWEEP_BEST,      /* smallest hole that is large enough */
    BLYI_SWEEP_FIRST,     /* lowest hole that is large enough */
    BLYI_SWEEP_TWO_ENDED, /* long-lived from below, the others from `ceiling` down */
};

/* Places all items; for problems without fixed offsets. `ceiling`: what TWO_ENDED packs against;
 * what finds no room below it goes on top of everything. `long_life`: section count from which
 * an item is long-lived. `limit`: give up once something ends above. `stop`: NULL where there
 * must be a plan. *done: all items were placed.
 * E_HOST_MEMORY: offset is unspecified. */
bly_status blyi_sweep(const struct blyi_pack *pack, const struct blyi_timeline *line,
                      enum blyi_sweep_fit fit, int64_t ceiling, uint32_t long_life, int64_t limit,
                      struct blyi_stop *stop, int64_t *offset, bool *done);

#endif
