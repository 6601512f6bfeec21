/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h - tree search for a plan below a given capacity. Complete: when it ends before its
 * budget without a plan, there is none (unless the problem is windowed).
 *
 * Plans are built bottom up: buffers are placed in order of rising offset, each as low as the
 * buffers already placed allow. Every plan that cannot be pushed down further is reached so.
 */
#ifndef BLYI_PLAN_SEARCH_H
#define BLYI_PLAN_SEARCH_H

#include "plan/order.h"
#include "plan/stop.h"
#include "plan/pack.h"

/* Who meets whom; shared by all searches over one problem. */
struct blyi_graph {
    uint32_t *near_at;  /* n + 1 positions in near */
    uint32_t *near;     /* neighbours of each item */
    int64_t *lift;      /* windowed or gapped: offset of near[k] >= offset of i + lift[k] */
    uint32_t *by_first; /* items in order of their first section */
    uint32_t *first_at; /* n_sections + 1 positions in by_first */
    uint32_t *twin;     /* an equal item that must come first, or BLYI_PACK_NONE */
    int64_t *load;      /* live units per section */
    uint32_t *live_at;  /* n_sections + 1 positions in live */
    uint32_t *live;     /* items of each section */
};

bly_status blyi_graph_init(struct blyi_graph *graph, const struct blyi_pack *pack);
void blyi_graph_fini(struct blyi_graph *graph);
/* Pairs that meet, to decide beforehand whether a graph is affordable; stops above `limit`. */
uint64_t blyi_graph_pairs(const struct blyi_pack *pack, uint64_t limit);

enum blyi_search_end { BLYI_SEARCH_FOUND, BLYI_SEARCH_NONE, BLYI_SEARCH_STOPPED };

struct blyi_search;

bly_status blyi_search_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              struct blyi_search **search);
void blyi_search_destroy(struct blyi_search *search);

/* Look for a plan with peak <= capacity within `nodes` placements, or until stopped.
 * FOUND: offset[0 .. n) is the plan. *nodes is what is left of the budget. Conflict weights
 * stay with the search from one run to the next. */
enum blyi_search_end blyi_search_run(struct blyi_search *search, int64_t capacity,
                                     const struct blyi_order *order, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset);
/* Forget what was learnt. */
void blyi_search_reset(struct blyi_search *search);

#endif
