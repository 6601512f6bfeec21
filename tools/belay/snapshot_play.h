/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_play.h - a trace as PyTorch's allocator would tell it: blocks in segments, frees that
 * are complete only when other streams are done. A block with pages of its own is a segment.
 */
#ifndef BELAY_SNAPSHOT_PLAY_H
#define BELAY_SNAPSHOT_PLAY_H

#include "trace_live.h"

struct snapshot_segment {
    struct blyi_tree_node node; /* key: address */
    uint64_t size;
    uint32_t stream;
    int card;
    bool own;        /* one block's own pages */
    bool expandable; /* joins its neighbours */
};

struct snapshot_play {
    struct live live;
    struct blyi_tree waiting;  /* freed blocks (struct live_block) that other streams use */
    struct blyi_tree segments; /* struct snapshot_segment */
    struct blyi_map foreign;   /* addresses of live blocks that another stream uses */
};

/* An entry of the history of a card: an action in PyTorch's words, where, how much, of which event;
 * what the event told as the block's name, or 0. */
typedef void snapshot_entry(void *arg, const char *action, int card, uint64_t address,
                            uint64_t size, const struct blyi_trace_event *event, uint32_t name);

/* Plays the whole trace; *play is then what is there at its end, for snapshot_play_end(), also on
 * failure. `entry` may be NULL. False: no memory, or the trace cannot be read. */
bool snapshot_play(struct snapshot_play *play, struct blyi_trace *trace, snapshot_entry *entry,
                   void *arg);
void snapshot_play_end(struct snapshot_play *play);

#endif
