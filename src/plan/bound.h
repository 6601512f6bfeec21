/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h - what no plan can beat.
 */
#ifndef BLYI_PLAN_BOUND_H
#define BLYI_PLAN_BOUND_H

#include "plan/search.h"

/* Largest sum of live units. load: n_sections values, may be NULL.
 * E_HOST_MEMORY: *bound is unspecified. */
bly_status blyi_bound_load(const struct blyi_pack *pack, int64_t *load, int64_t *bound);

/* Raises *bound while subset sums show that no plan ends there: in a section with little slack
 * an item can only start at a sum of sizes of others, give or take the slack, and it must start
 * at the same place in all its sections. For small problems without gaps, alignments of their
 * own and fixed offsets; otherwise *bound stays. Gives up at `limit`, which is known to be
 * reachable, or after so much work.
 * E_HOST_MEMORY: *bound is still a bound. */
bly_status blyi_bound_subsets(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              int64_t limit, struct blyi_stop *stop, int64_t *bound);

#endif
