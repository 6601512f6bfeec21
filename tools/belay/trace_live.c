/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_live.c - blocks by address.
 */
#include "trace_live.h"

#include <stdlib.h>

static uint64_t *sum_of(struct live *live, const struct blyi_trace_block *block)
{
    return &live->asked[block->class_ != BLYI_TRACE_PINNED_BLOCK && block->card < 64 ? block->card
                                                                                     : 64];
}

static struct live_block *add(struct live *live, const struct blyi_trace_block *is)
{
    struct live_block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return NULL;
    block->is = *is;
    block->id = ++live->n_ids;
    if (!blyi_tree_insert(&live->blocks, &block->node, is->address, is->class_)) {
        /* Its free was lost: the older one is gone. */
        struct live_block *old =
            live_block_of(blyi_tree_find(&live->blocks, is->address, is->class_));
        blyi_tree_remove(&live->blocks, &old->node);
        *sum_of(live, &old->is) -= old->is.asked;
        free(old);
        blyi_tree_insert(&live->blocks, &block->node, is->address, is->class_);
    }
    *sum_of(live, is) += is->asked;
    return block;
}

bool live_begin(struct live *live, struct blyi_trace *trace)
{
    size_t n;
    const struct blyi_trace_block *start = blyi_trace_start_blocks(trace, &n);
    *live = (struct live){0};
    for (size_t i = 0; i < n; i++)
        if (add(live, &start[i]) == NULL) {
            live_end(live);
            return false;
        }
    return blyi_trace_rewind(trace) == BLY_OK;
}

void live_end(struct live *live)
{
    struct blyi_tree_node *node;
    while ((node = blyi_tree_first(&live->blocks)) != NULL) {
        blyi_tree_remove(&live->blocks, node);
        free(live_block_of(node));
    }
}

struct live_block *live_around(const struct live *live, uint64_t address)
{
    struct blyi_tree_node *node = blyi_tree_floor(&live->blocks, address);
    while (node != NULL && node->sub == BLYI_TRACE_HANDLE) /* a number, not an address */
        node = blyi_tree_prev(node);
    struct live_block *block = live_block_of(node);
    if (block == NULL ||
        (address != block->is.address && address - block->is.address >= block->is.asked))
        return NULL;
    return block;
}

static struct live_block *make(struct live *live, const struct blyi_trace_event *event, int class_)
{
    struct blyi_trace_block is;
    blyi_trace_block_make(&is, &event->probe, class_, event->seq, event->stack);
    struct live_block *block = add(live, &is);
    if (block != NULL) {
        block->name = event->probe.event;
        block->range = event->range;
        block->thread = event->thread;
    }
    return block;
}

bool live_step(struct live *live, const struct blyi_trace_event *event, enum live_change *change,
               struct live_block **block)
{
    const struct blyi_probe *probe = &event->probe;
    bool makes;
    int class_ = blyi_trace_class_of(probe->kind, &makes);
    *change = LIVE_NOTHING;
    *block = NULL;
    if (probe->kind == BLYI_PROBE_TAG) {
        *block = live_around(live, probe->address);
        if (*block != NULL) {
            (*block)->tag = probe->event;
            *change = LIVE_TAGGED;
        }
        return true;
    }
    if (class_ < 0 || probe->address == 0)
        return true;
    if (makes) {
        *block = make(live, event, class_);
        *change = LIVE_MADE;
        return *block != NULL;
    }
    struct blyi_tree_node *node = blyi_tree_find(&live->blocks, probe->address, (uint64_t)class_);
    if (node == NULL)
        return true;
    *block = live_block_of(node);
    blyi_tree_remove(&live->blocks, node);
    *sum_of(live, &(*block)->is) -= (*block)->is.asked;
    *change = LIVE_ENDED;
    return true;
}

bool live_find_tags(struct blyi_trace *trace, struct blyi_map *tags)
{
    struct live live;
    struct blyi_trace_event event;
    enum live_change change;
    struct live_block *block;
    bool ok = live_begin(&live, trace);
    while (ok && blyi_trace_next(trace, &event)) {
        ok = live_step(&live, &event, &change, &block);
        if (ok && change == LIVE_TAGGED && block->tag != 0)
            ok = blyi_map_put(tags, block->id, (void *)(uintptr_t)block->tag) == BLY_OK;
        if (change == LIVE_ENDED)
            free(block);
    }
    ok = ok && blyi_trace_status(trace) == BLY_OK;
    live_end(&live);
    return ok && blyi_trace_rewind(trace) == BLY_OK;
}
