/* SPDX-License-Identifier: Apache-2.0
 *
 * export_snapshot.c - PyTorch's memory snapshot, for its viewer.
 */
#include <stdlib.h>
#include <string.h>

#include "pickle_out.h"
#include "snapshot_play.h"
#include "trace_convert.h"

#define CARDS 64

struct writer {
    struct blyi_trace *trace;
    struct pickle_out p;
    struct export_clock clock;
    struct blyi_map frames; /* stack, or site with the top bit -> number in the memo + 1 */
    int card;
};

static void put_key(struct writer *w, const char *key, uint64_t value)
{
    pickle_out_text(&w->p, key);
    pickle_out_int(&w->p, value);
}

static void put_frame(struct writer *w, uint32_t site)
{
    char text[BLYI_TRACE_SITE_TEXT];
    struct blyi_trace_site is;
    bool known = blyi_trace_site(w->trace, site, &is);
    bool named = known && is.function[0] != '\0';
    pickle_out_dict(&w->p);
    pickle_out_text(&w->p, "filename");
    pickle_out_text(&w->p, !known ? "" : is.source[0] != '\0' ? is.source : is.module);
    put_key(w, "line", known ? is.line : 0);
    pickle_out_text(&w->p, "name");
    pickle_out_text(&w->p, named ? is.function : blyi_trace_site_text(w->trace, site, text));
    pickle_out_dict_end(&w->p);
}

/* A block that has nothing but a name shows that. */
static void put_name(struct writer *w, uint32_t name)
{
    pickle_out_dict(&w->p);
    pickle_out_text(&w->p, "filename");
    pickle_out_text(&w->p, "");
    put_key(w, "line", 0);
    pickle_out_text(&w->p, "name");
    pickle_out_text(&w->p, blyi_trace_name(w->trace, name));
    pickle_out_dict_end(&w->p);
}

static void put_frames(struct writer *w, uint32_t site, uint32_t stack, uint32_t name)
{
    uint64_t key = stack != 0  ? stack
                   : site != 0 ? (uint64_t)site | (uint64_t)1 << 63
                               : (uint64_t)name | (uint64_t)1 << 62;
    uintptr_t known = (uintptr_t)blyi_map_get(&w->frames, key);
    size_t n;
    const uint32_t *sites = blyi_trace_stack(w->trace, stack, &n);
    pickle_out_text(&w->p, "frames");
    if (known != 0) {
        pickle_out_again(&w->p, (uint32_t)(known - 1));
        return;
    }
    pickle_out_list(&w->p);
    for (size_t i = 0; i < n; i++)
        put_frame(w, sites[i]);
    if (n == 0 && site != 0)
        put_frame(w, site);
    else if (n == 0 && name != 0)
        put_name(w, name);
    pickle_out_list_end(&w->p);
    uint32_t number = pickle_out_remember(&w->p);
    if (blyi_map_put(&w->frames, key, (void *)(uintptr_t)(number + 1)) != BLY_OK)
        w->p.no_memory = true;
}

/* ── History ──────────────────────────────────────────────────────────────────────────────── */

static void put_entry(void *writer, const char *action, int card, uint64_t address, uint64_t size,
                      const struct blyi_trace_event *event, uint32_t name)
{
    struct writer *w = writer;
    const struct blyi_trace_info *info = blyi_trace_info(w->trace);
    uint64_t us = info->start_wall_ns / 1000 + export_since(&w->clock, event->probe.time_ns) / 1000;
    if (card != w->card)
        return;
    pickle_out_dict(&w->p);
    pickle_out_text(&w->p, "action");
    pickle_out_text(&w->p, action);
    put_key(w, strcmp(action, "oom") == 0 ? "device_free" : "addr", address);
    put_key(w, "size", size);
    put_key(w, "stream", event->probe.stream);
    put_key(w, "time_us", us);
    pickle_out_text(&w->p, "pool_id");
    pickle_out_pair(&w->p, 0, 0);
    put_frames(w, event->probe.site, event->stack, name);
    pickle_out_dict_end(&w->p);
}

static bool put_history(struct writer *w, int card)
{
    struct snapshot_play play;
    w->card = card;
    w->clock = export_clock_of(w->trace);
    pickle_out_list(&w->p);
    bool ok = snapshot_play(&play, w->trace, put_entry, w);
    pickle_out_list_end(&w->p);
    snapshot_play_end(&play);
    return ok;
}

/* ── Segments at the end ──────────────────────────────────────────────────────────────────── */

static void put_inactive(struct writer *w, uint64_t address, uint64_t size)
{
    if (size == 0)
        return;
    pickle_out_dict(&w->p);
    put_key(w, "address", address);
    put_key(w, "size", size);
    put_key(w, "requested_size", 0);
    pickle_out_text(&w->p, "state");
    pickle_out_text(&w->p, "inactive");
    pickle_out_text(&w->p, "frames");
    pickle_out_list(&w->p);
    pickle_out_list_end(&w->p);
    pickle_out_dict_end(&w->p);
}

static void put_block(struct writer *w, const struct live_block *of, uint64_t size, bool waits)
{
    const struct blyi_trace_block *block = &of->is;
    pickle_out_dict(&w->p);
    put_key(w, "address", block->address);
    put_key(w, "size", size);
    put_key(w, "requested_size", block->asked < size ? block->asked : size);
    pickle_out_text(&w->p, "state");
    pickle_out_text(&w->p, waits ? "active_pending_free" : "active_allocated");
    put_frames(w, block->site, block->stack, of->name);
    pickle_out_dict_end(&w->p);
}

/* The next block of a card at or behind an address, live or waiting. */
static const struct live_block *next_block(const struct snapshot_play *play, uint64_t address,
                                           bool *waits)
{
    struct blyi_tree_node *live = blyi_tree_ceil(&play->live.blocks, address);
    struct blyi_tree_node *waiting = blyi_tree_ceil(&play->waiting, address);
    while (live != NULL && live->sub != BLYI_TRACE_CARD_BLOCK)
        live = blyi_tree_next(live);
    *waits = waiting != NULL && (live == NULL || waiting->key < live->key);
    return live_block_of(*waits ? waiting : live);
}

struct sums {
    uint64_t allocated, active, requested; /* the first without blocks that wait */
};

/* What a block takes of its segment: as rounded, so far as that is known to be its own. */
static uint64_t size_of(const struct snapshot_play *play, const struct live_block *block,
                        uint64_t end)
{
    bool waits;
    const struct live_block *next = next_block(play, block->is.address + 1, &waits);
    uint64_t size = block->is.rounded > block->is.asked ? block->is.rounded : block->is.asked;
    if (next != NULL && next->is.address < end)
        end = next->is.address;
    return size < end - block->is.address ? size : end - block->is.address;
}

/* Sums of a segment's blocks; with `print` also what is in it: blocks, and gaps between them. */
static struct sums put_blocks(struct writer *w, const struct snapshot_play *play,
                              const struct snapshot_segment *segment, bool print)
{
    uint64_t at = segment->node.key, end = at + segment->size;
    struct sums sum = {0};
    bool waits;
    for (const struct live_block *block = next_block(play, at, &waits);
         block != NULL && block->is.address < end;
         block = next_block(play, block->is.address + 1, &waits)) {
        uint64_t size = size_of(play, block, end);
        if (size == 0)
            continue;
        if (print) {
            put_inactive(w, at, block->is.address - at);
            put_block(w, block, size, waits);
        }
        at = block->is.address + size;
        sum.active += size;
        sum.allocated += waits ? 0 : size;
        sum.requested += block->is.asked < size ? block->is.asked : size;
    }
    if (print)
        put_inactive(w, at, end - at);
    return sum;
}

static void put_segment(struct writer *w, const struct snapshot_play *play,
                        const struct snapshot_segment *segment)
{
    struct sums sum = put_blocks(w, play, segment, false);
    pickle_out_dict(&w->p);
    put_key(w, "device", (uint64_t)segment->card);
    put_key(w, "address", segment->node.key);
    put_key(w, "total_size", segment->size);
    put_key(w, "allocated_size", sum.allocated);
    put_key(w, "active_size", sum.active);
    put_key(w, "requested_size", sum.requested);
    put_key(w, "stream", segment->stream);
    pickle_out_text(&w->p, "segment_type");
    pickle_out_text(&w->p, segment->size <= 2 * MiB ? "small" : "large");
    pickle_out_text(&w->p, "segment_pool_id");
    pickle_out_pair(&w->p, 0, 0);
    pickle_out_text(&w->p, "is_expandable");
    pickle_out_bool(&w->p, segment->expandable);
    pickle_out_text(&w->p, "frames");
    pickle_out_list(&w->p);
    pickle_out_list_end(&w->p);
    pickle_out_text(&w->p, "blocks");
    pickle_out_list(&w->p);
    (void)put_blocks(w, play, segment, true);
    pickle_out_list_end(&w->p);
    pickle_out_dict_end(&w->p);
}

static bool put_segments(struct writer *w, uint64_t *cards)
{
    struct snapshot_play play;
    bool ok = snapshot_play(&play, w->trace, NULL, NULL);
    pickle_out_list(&w->p);
    for (struct blyi_tree_node *node = blyi_tree_first(&play.segments); ok && node != NULL;
         node = blyi_tree_next(node)) {
        const struct snapshot_segment *segment =
            BLYI_TREE_ENTRY(node, struct snapshot_segment, node);
        put_segment(w, &play, segment);
        *cards |= (uint64_t)1 << segment->card;
    }
    pickle_out_list_end(&w->p);
    snapshot_play_end(&play);
    return ok;
}

static uint64_t cards_of(struct blyi_trace *trace)
{
    struct blyi_trace_event event;
    uint64_t cards = 1; /* the first is always there */
    (void)blyi_trace_rewind(trace);
    while (blyi_trace_next(trace, &event))
        if (event.probe.card >= 0 && event.probe.card < CARDS)
            cards |= (uint64_t)1 << event.probe.card;
    return cards;
}

bly_status export_snapshot(struct blyi_trace *trace, const struct export_opts *opts, FILE *out)
{
    struct writer w = {.trace = trace};
    uint64_t cards = cards_of(trace);
    (void)opts;
    blyi_map_init(&w.frames);
    pickle_out_begin(&w.p, out);
    pickle_out_dict(&w.p);
    pickle_out_text(&w.p, "segments");
    bool ok = put_segments(&w, &cards);
    pickle_out_text(&w.p, "device_traces");
    pickle_out_list(&w.p);
    for (int card = 0; ok && card < CARDS && cards >> card != 0; card++)
        ok = put_history(&w, card);
    pickle_out_list_end(&w.p);
    pickle_out_dict_end(&w.p);
    pickle_out_end(&w.p);
    blyi_map_fini(&w.frames);
    return ok && !w.p.no_memory ? BLY_OK : export_no_memory(trace);
}
