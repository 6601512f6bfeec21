/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_live.h - what is live while a trace is walked through: the state behind every export.
 */
#ifndef BELAY_TRACE_LIVE_H
#define BELAY_TRACE_LIVE_H

#include <stdbool.h>
#include "base/map.h"
#include "base/tree.h"
#include "observe/trace_reader.h"

struct live_block {
    struct blyi_tree_node node; /* key: address; sub: class */
    struct blyi_trace_block is;
    uint64_t id;    /* from 1, in the order in which blocks appear; the same in every walk */
    uint32_t name;  /* that the event told; 0: none */
    uint32_t tag;   /* the last one given */
    uint32_t range; /* that the thread was in */
    uint32_t thread;
};

struct live {
    struct blyi_tree blocks;
    uint64_t n_ids;
    uint64_t asked[65]; /* live bytes by card; the last: pinned host memory */
};

enum live_change { LIVE_NOTHING, LIVE_MADE, LIVE_ENDED, LIVE_TAGGED };

/* With the blocks that were there at the first event; the trace is rewound. False: no memory. */
bool live_begin(struct live *live, struct blyi_trace *trace);
/* What the event did. *block is the block concerned; an ended one is the caller's, by free().
 * False: no memory. */
bool live_step(struct live *live, const struct blyi_trace_event *event, enum live_change *change,
               struct live_block **block);
void live_end(struct live *live);
struct live_block *live_around(const struct live *live, uint64_t address);
static inline struct live_block *live_block_of(struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct live_block, node);
}

/* Tags come after the block, some formats want them with it: id -> name, over the whole trace,
 * which is left rewound. False: no memory, or the trace cannot be read. */
bool live_find_tags(struct blyi_trace *trace, struct blyi_map *tags);

#endif
