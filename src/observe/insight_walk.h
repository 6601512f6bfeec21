/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_walk.h - a history while it is made; private to insight_history.c and its kin.
 */
#ifndef BLYI_INSIGHT_WALK_H
#define BLYI_INSIGHT_WALK_H

#include "base/map.h"
#include "base/tree.h"
#include "observe/insight_history.h"

struct blyi_walk_node {
    struct blyi_tree_node node; /* key: address; sub: class of blocks, 0 of pieces */
    uint32_t index;
};

struct blyi_walk {
    struct blyi_history *h;
    struct blyi_tree blocks;
    struct blyi_tree pieces[BLYI_CARDS];
    struct blyi_map dead;   /* address -> index of the last life there + 1 */
    struct blyi_map things; /* kind and id -> index + 1 */
    struct blyi_map seen;   /* starts of pieces that were ever taken, by card */
    uint64_t start_ns, now_ns;
    uint64_t n_live[BLYI_THING_KINDS];
    uint32_t *waiting; /* lives that died while other streams used them */
    size_t n_waiting, room_waiting;
    size_t room_lives, room_pieces, room_changes, room_ns, room_refusals, room_things, room_moments,
        room_calls;
    bool ok; /* false: no host memory */
};

/* Room for one more of `size` bytes; false: w->ok is false now. */
bool blyi_walk_grow(struct blyi_walk *w, void *array, size_t n, size_t *room, size_t size);
void blyi_walk_change(struct blyi_walk *w, enum blyi_change_kind kind, size_t index);
void blyi_walk_piece(struct blyi_walk *w, const struct blyi_trace_event *event);
void blyi_walk_piece_gone(struct blyi_walk *w, const struct blyi_trace_event *event);
void blyi_walk_thing(struct blyi_walk *w, const struct blyi_probe *p, enum blyi_thing_kind kind,
                     bool created);
void blyi_walk_refusal(struct blyi_walk *w, const struct blyi_trace_event *event);
void blyi_walk_call(struct blyi_walk *w, const struct blyi_trace_event *event);
void blyi_walk_moment(struct blyi_walk *w, const struct blyi_trace_event *event);
static inline uint8_t blyi_walk_card(int32_t card)
{
    return card < 0 || card >= BLYI_CARDS ? BLYI_NO_CARD : (uint8_t)card;
}
void blyi_walk_free_nodes(struct blyi_tree *tree);

#endif
