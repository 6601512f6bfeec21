/* SPDX-License-Identifier: Apache-2.0
 *
 * pile.h - what a search from the bottom up has placed, and how low what is left can still lie.
 * The last placement can be taken back.
 */
#ifndef BLYI_PLAN_PILE_H
#define BLYI_PLAN_PILE_H

#include "plan/search.h"

#define BLYI_PILE_SHUT (INT64_MAX / 2) /* above all offsets, and twice of it is a number */

struct blyi_pile_trail {
    uint32_t item;
    int64_t off;
};

struct blyi_pile_placement {
    uint32_t item;
    uint32_t trail_mark;
};

struct blyi_pile {
    const struct blyi_pack *pack;
    const struct blyi_graph *graph;
    int64_t *rest;   /* per section: units not placed yet */
    uint32_t *cross; /* per section: unplaced items in both it and the one before */
    int64_t *off;    /* per item: its offset, or the lowest possible one */
    uint8_t *placed;
    /* The same in order of first sections (graph->by_first), for walks over a part: */
    uint32_t *place_of; /* per item: where it stands in that order */
    int64_t *open;      /* off, or BLYI_PILE_SHUT where the item is placed */
    int64_t *room;      /* size, or BLYI_PILE_SHUT where the item is fixed */
    struct blyi_pile_trail *trail;
    size_t trail_used;
    struct blyi_pile_placement *done; /* placements in order, for undoing */
    size_t n_done;
    uint32_t low, high; /* sections that the last placement changed, both included */
};

/* E_HOST_MEMORY: blyi_pile_fini() is needed in either case. */
bly_status blyi_pile_init(struct blyi_pile *p, const struct blyi_pack *pack,
                          const struct blyi_graph *graph);
void blyi_pile_fini(struct blyi_pile *p);
/* Nothing is placed, and fixed items wait where they must lie. */
void blyi_pile_begin(struct blyi_pile *p);

/* Puts an item where it can lie lowest. False: some neighbour cannot stay below the capacity any
 * more (the caller takes the item back). */
bool blyi_pile_place(struct blyi_pile *p, uint32_t item, int64_t capacity);
void blyi_pile_take(struct blyi_pile *p);

#endif
