/* SPDX-License-Identifier: Apache-2.0
 *
 * anneal.h - annealing over the order in which a greedy placement takes the buffers.
 */
#ifndef BLYI_PLAN_ANNEAL_H
#define BLYI_PLAN_ANNEAL_H

#include "plan/pack.h"
#include "plan/rand.h"
#include "plan/stop.h"

struct blyi_anneal;

/* Starts from the plan offset[0 .. n): its items from bottom to top.
 * E_HOST_MEMORY: nothing was made. */
bly_status blyi_anneal_create(const struct blyi_pack *pack, uint64_t seed, const int64_t *offset,
                              struct blyi_anneal **anneal);
void blyi_anneal_destroy(struct blyi_anneal *anneal);

/* `moves` changes of the order, each with a placement of everything. True when a plan with a
 * peak below *peak came up: offset and *peak are the best one. */
bool blyi_anneal_run(struct blyi_anneal *anneal, uint64_t moves, int64_t bound,
                     struct blyi_stop *stop, int64_t *offset, int64_t *peak);

#endif
