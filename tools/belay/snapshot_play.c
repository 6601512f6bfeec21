/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_play.c - see snapshot_play.h.
 */
#include "snapshot_play.h"

#include <stdlib.h>

struct player {
    struct snapshot_play *play;
    const struct blyi_trace_event *event; /* the one that is played */
    snapshot_entry *entry;
    void *arg;
};

static void tell(struct player *p, const char *action, int card, uint64_t address, uint64_t size,
                 uint32_t name)
{
    if (p->entry != NULL && card >= 0)
        p->entry(p->arg, action, card, address, size, p->event, name);
}

/* ── Segments ─────────────────────────────────────────────────────────────────────────────── */

static struct snapshot_segment *segment_of(struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct snapshot_segment, node);
}

/* The segment that an address lies in; NULL: none. */
static struct snapshot_segment *segment_around(struct snapshot_play *play, uint64_t address)
{
    struct snapshot_segment *segment = segment_of(blyi_tree_floor(&play->segments, address));
    bool inside = segment != NULL && address - segment->node.key < segment->size;
    return inside ? segment : NULL;
}

static bool keep(struct snapshot_play *play, uint64_t address, const struct snapshot_segment *is)
{
    struct snapshot_segment *segment = malloc(sizeof(*segment));
    if (segment == NULL)
        return false;
    *segment = *is;
    if (!blyi_tree_insert(&play->segments, &segment->node, address, 0))
        free(segment); /* told twice */
    return true;
}

static void drop(struct snapshot_play *play, struct snapshot_segment *segment)
{
    if (segment == NULL)
        return;
    blyi_tree_remove(&play->segments, &segment->node);
    free(segment);
}

static bool keep_own(struct snapshot_play *play, const struct blyi_trace_block *is)
{
    return keep(play, is->address,
                &(struct snapshot_segment){.size = is->backed > is->asked ? is->backed : is->asked,
                                           .stream = is->stream,
                                           .card = is->card,
                                           .own = true});
}

static bool is_card_block(const struct live_block *block)
{
    return block->is.class_ == BLYI_TRACE_CARD_BLOCK && block->is.card < 64;
}

/* A block of the card that lies there, if there is one. */
static bool has_block(const struct snapshot_play *play, uint64_t address, uint64_t size)
{
    struct blyi_tree_node *node = blyi_tree_ceil(&play->live.blocks, address);
    while (node != NULL && node->key - address < size && !is_card_block(live_block_of(node)))
        node = blyi_tree_next(node);
    return node != NULL && node->key - address < size;
}

/* The neighbours of an expandable segment become a part of it. */
static void join(struct snapshot_play *play, uint64_t address)
{
    struct snapshot_segment *mine = segment_around(play, address);
    struct snapshot_segment *before = segment_around(play, address - 1);
    if (before != NULL && before != mine && before->expandable && before->stream == mine->stream) {
        before->size += mine->size;
        drop(play, mine);
        mine = before;
    }
    struct snapshot_segment *behind = segment_around(play, mine->node.key + mine->size);
    if (behind != NULL && behind->expandable && behind->stream == mine->stream) {
        mine->size += behind->size;
        drop(play, behind);
    }
}

/* Takes [address, address + size) out of an expandable segment. */
static bool carve(struct snapshot_play *play, uint64_t address, uint64_t size)
{
    struct snapshot_segment *old = segment_around(play, address);
    if (old == NULL || !old->expandable)
        return true;
    struct snapshot_segment is = *old;
    uint64_t begin = old->node.key, end = begin + old->size;
    bool ok = true;
    drop(play, old);
    if (begin < address) {
        is.size = address - begin;
        ok = keep(play, begin, &is);
    }
    if (ok && size < end - address) {
        is.size = end - address - size;
        ok = keep(play, address + size, &is);
    }
    return ok;
}

/* A segment in which blocks live already was there before the trace. */
static bool on_segment(struct player *p)
{
    const struct blyi_probe *probe = &p->event->probe;
    struct snapshot_segment is = {.size = probe->size,
                                  .stream = probe->stream,
                                  .card = probe->card,
                                  .expandable = probe->aux != 0};
    if (probe->size == 0 || probe->card < 0)
        return true;
    if (!has_block(p->play, probe->address, probe->size))
        tell(p, is.expandable ? "segment_map" : "segment_alloc", probe->card, probe->address,
             probe->size, 0);
    if (!keep(p->play, probe->address, &is))
        return false;
    if (is.expandable)
        join(p->play, probe->address);
    return true;
}

static bool on_segment_free(struct player *p)
{
    const struct blyi_probe *probe = &p->event->probe;
    tell(p, probe->aux != 0 ? "segment_unmap" : "segment_free", probe->card, probe->address,
         probe->size, 0);
    if (probe->aux != 0)
        return carve(p->play, probe->address, probe->size);
    drop(p->play, segment_of(blyi_tree_find(&p->play->segments, probe->address, 0)));
    return true;
}

/* ── Blocks ───────────────────────────────────────────────────────────────────────────────── */

/* The last use of a freed block is over. Takes the block. */
static void complete(struct player *p, struct live_block *block)
{
    const struct blyi_trace_block *is = &block->is;
    struct snapshot_segment *segment = segment_around(p->play, is->address);
    tell(p, "free_completed", is->card, is->address, is->asked, 0);
    if (segment == NULL) /* was there before the trace, with pages of its own */
        tell(p, "segment_free", is->card, is->address,
             is->backed > is->asked ? is->backed : is->asked, 0);
    else if (segment->own)
        tell(p, "segment_free", is->card, is->address, segment->size, 0);
    if (segment != NULL && segment->own)
        drop(p->play, segment);
    free(block);
}

static void complete_at(struct player *p, struct blyi_tree_node *node)
{
    if (node == NULL)
        return;
    blyi_tree_remove(&p->play->waiting, node);
    complete(p, live_block_of(node));
}

static bool on_made(struct player *p, const struct live_block *block)
{
    const struct blyi_trace_block *is = &block->is;
    complete_at(p, blyi_tree_find(&p->play->waiting, is->address, is->class_));
    if (segment_around(p->play, is->address) == NULL) {
        if (!keep_own(p->play, is))
            return false;
        tell(p, "segment_alloc", is->card, is->address,
             is->backed > is->asked ? is->backed : is->asked, 0);
    }
    tell(p, "alloc", is->card, is->address, is->asked, p->event->probe.event);
    return true;
}

/* Takes the block. */
static void on_ended(struct player *p, struct live_block *block)
{
    const struct blyi_probe *probe = &p->event->probe;
    bool waits = probe->kind == BLYI_PROBE_FREE && probe->aux != 0;
    waits = blyi_map_remove(&p->play->foreign, block->is.address) != NULL || waits;
    tell(p, "free_requested", block->is.card, block->is.address, block->is.asked, 0);
    if (!waits || probe->kind == BLYI_PROBE_RESET_FREE ||
        !blyi_tree_insert(&p->play->waiting, &block->node, block->is.address, block->is.class_))
        complete(p, block);
}

static bool on_block(struct player *p, enum live_change change, struct live_block *block)
{
    if (change == LIVE_MADE && is_card_block(block))
        return on_made(p, block);
    if (change == LIVE_ENDED && is_card_block(block))
        on_ended(p, block);
    else if (change == LIVE_ENDED)
        free(block);
    return true;
}

/* ── Events ───────────────────────────────────────────────────────────────────────────────── */

static bool on_use(struct player *p)
{
    struct live_block *block = live_around(&p->play->live, p->event->probe.address);
    return block == NULL || blyi_map_put(&p->play->foreign, block->is.address, (void *)1) == BLY_OK;
}

static bool on_event(struct player *p)
{
    const struct blyi_probe *probe = &p->event->probe;
    switch (probe->kind) {
    case BLYI_PROBE_SEGMENT:
        return on_segment(p);
    case BLYI_PROBE_SEGMENT_FREE:
        return on_segment_free(p);
    case BLYI_PROBE_USE:
        return on_use(p);
    case BLYI_PROBE_USE_DONE:
        complete_at(p, blyi_tree_find(&p->play->waiting, probe->address, BLYI_TRACE_CARD_BLOCK));
        return true;
    case BLYI_PROBE_CARD_SYNC: /* whoever waited for the card waited for all uses */
        while (p->play->waiting.root != NULL)
            complete_at(p, blyi_tree_first(&p->play->waiting));
        return true;
    case BLYI_PROBE_ALLOC_FAIL:
        /* Enough, and not in one row: the form has no place for that, so what is free is not told.
         */
        tell(p, "oom", probe->card,
             probe->rounded != 0 && probe->backed >= probe->asked ? 0 : probe->backed, probe->asked,
             0);
        return true;
    default:
        return true;
    }
}

bool snapshot_play(struct snapshot_play *play, struct blyi_trace *trace, snapshot_entry *entry,
                   void *arg)
{
    struct blyi_trace_event event;
    struct player p = {.play = play, .event = &event, .entry = entry, .arg = arg};
    *play = (struct snapshot_play){0};
    blyi_map_init(&play->foreign);
    bool ok = live_begin(&play->live, trace);
    while (ok && blyi_trace_next(trace, &event)) {
        enum live_change change;
        struct live_block *block;
        ok = live_step(&play->live, &event, &change, &block);
        ok = ok && on_block(&p, change, block) && on_event(&p);
    }
    for (struct blyi_tree_node *node = blyi_tree_first(&play->live.blocks); ok && node != NULL;
         node = blyi_tree_next(node))
        if (is_card_block(live_block_of(node)) && segment_around(play, node->key) == NULL)
            ok = keep_own(play, &live_block_of(node)->is);
    for (struct blyi_tree_node *node = blyi_tree_first(&play->waiting); ok && node != NULL;
         node = blyi_tree_next(node))
        if (segment_around(play, node->key) == NULL)
            ok = keep_own(play, &live_block_of(node)->is);
    return ok && blyi_trace_status(trace) == BLY_OK;
}

void snapshot_play_end(struct snapshot_play *play)
{
    struct blyi_tree_node *node;
    live_end(&play->live);
    while ((node = blyi_tree_first(&play->waiting)) != NULL) {
        blyi_tree_remove(&play->waiting, node);
        free(live_block_of(node));
    }
    while ((node = blyi_tree_first(&play->segments)) != NULL)
        drop(play, segment_of(node));
    blyi_map_fini(&play->foreign);
}
