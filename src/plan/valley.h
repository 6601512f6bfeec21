/* SPDX-License-Identifier: Apache-2.0
 *
 * valley.h - tree search that branches on valleys of the skyline. For problems without gaps and
 * fixed offsets; complete: when it ends before its budget without a plan, there is none.
 */
#ifndef BLYI_PLAN_VALLEY_H
#define BLYI_PLAN_VALLEY_H

#include "plan/search.h"

struct blyi_valley;

/* mirrored: time runs backwards, so that the rightmost item of a valley comes first. */
bly_status blyi_valley_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              bool mirrored, struct blyi_valley **valley);
void blyi_valley_destroy(struct blyi_valley *valley);

/* As blyi_search_run(). */
enum blyi_search_end blyi_valley_run(struct blyi_valley *valley, int64_t capacity,
                                     const struct blyi_order *order, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset);
void blyi_valley_reset(struct blyi_valley *valley);

#endif
