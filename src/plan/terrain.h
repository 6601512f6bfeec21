/* SPDX-License-Identifier: Apache-2.0
 *
 * terrain.h - the skyline during a search over its valleys: what is placed, how high each section
 * is filled, how low what is left can still lie. Every change can be undone.
 */
#ifndef BLYI_PLAN_TERRAIN_H
#define BLYI_PLAN_TERRAIN_H

#include "plan/search.h"

/* What a choice changed. */
struct blyi_terrain_change {
    uint32_t first, last; /* of the item placed: a part falls apart in here or nowhere */
    uint32_t low, high;   /* sections with other loads or lowest offsets than before */
};

struct blyi_terrain_undo {
    uint32_t at; /* section, or item + n_sections */
    int64_t old;
};

struct blyi_terrain {
    const struct blyi_pack *pack;
    const struct blyi_graph *graph;
    struct blyi_pack_item *items; /* as the pack's, mirrored in time if asked */
    uint32_t *by_first, *first_at;
    int64_t *load;
    int64_t *floor, *rest; /* per section */
    uint32_t *cross;       /* per section: unplaced items in it and the one before */
    uint64_t *changed_at;  /* per section: clock of the last change that its valley may feel */
    uint64_t clock;        /* of choices made and undone */
    int64_t *off;          /* per item: its offset, or the lowest possible one */
    uint8_t *placed;
    uint32_t *done; /* placed items in order */
    size_t n_done;
    struct blyi_terrain_undo *trail;
    size_t trail_used, trail_room;
    struct blyi_terrain_change change; /* since blyi_terrain_step() */
    bool mirrored;
};

/* A point to come back to. */
struct blyi_terrain_mark {
    size_t n_done, trail_used;
};

/* mirrored: time runs backwards. E_HOST_MEMORY: blyi_terrain_fini() is needed in either case. */
bly_status blyi_terrain_init(struct blyi_terrain *t, const struct blyi_pack *pack,
                             const struct blyi_graph *graph, bool mirrored);
void blyi_terrain_fini(struct blyi_terrain *t);
/* Nothing is placed. */
void blyi_terrain_begin(struct blyi_terrain *t);

/* Begins a choice; false: the trail has no room for one. */
bool blyi_terrain_step(struct blyi_terrain *t, struct blyi_terrain_mark *mark);
/* Puts an item where it can lie lowest. */
void blyi_terrain_place(struct blyi_terrain *t, uint32_t item);
/* Raises the floor of [first, last]; nothing reaches out of it below the new floor. */
void blyi_terrain_raise(struct blyi_terrain *t, uint32_t first, uint32_t last, int64_t floor);
void blyi_terrain_undo(struct blyi_terrain *t, const struct blyi_terrain_mark *mark);

#endif
