/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_start.c - what was live at the first event.
 *
 * A recording that keeps everything says at its beginning what was there. A ring has forgotten how
 * its first event's state came about; but what is still live stands in its table, and what was
 * freed since stands in the events: a free whose allocation is not there tells of a block that was
 * live at the start.
 */
#include <stdlib.h>

#include "base/fail.h"
#include "base/host.h"
#include "observe/trace_inside.h"

/* While searching, values of the map: position in start + 1, or LIVE for a block made since. */
#define LIVE ((uintptr_t)UINT32_MAX + 1)

static bly_status no_memory(const struct blyi_trace *trace)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for the blocks live at its start",
                     trace->source.name);
}

static uint64_t key_of(const struct blyi_trace_block *block)
{
    return blyi_trace_block_key(block->address, block->class_);
}

static bly_status add_start(struct blyi_trace *trace, struct blyi_map *live,
                            const struct blyi_trace_block *block, bool is_live)
{
    uint64_t key = key_of(block);
    if (block->address == 0 || blyi_map_get(live, key) != NULL)
        return BLY_OK;
    if (!blyi_trace_room(&trace->start, trace->n_start, &trace->start_room, sizeof(*block)))
        return no_memory(trace);
    trace->start[trace->n_start++] = *block;
    if (is_live)
        return blyi_map_put(live, key, (void *)(uintptr_t)trace->n_start);
    return BLY_OK;
}

static bly_status add_known(struct blyi_trace *trace, struct blyi_map *live)
{
    bool is_ring = trace->header.ring > 0;
    const struct blyi_trace_block *from = is_ring ? trace->table : trace->names.blocks;
    size_t n = is_ring ? trace->n_table : trace->names.n_blocks;
    bly_status status = BLY_OK;
    for (size_t i = 0; i < n && status == BLY_OK; i++)
        if (from[i].seq < trace->info.first_seq)
            status = add_start(trace, live, &from[i], true);
    return status;
}

static bly_status on_made(struct blyi_trace *trace, struct blyi_map *live,
                          const struct blyi_trace_event *event, int class_)
{
    uint64_t key = blyi_trace_block_key(event->probe.address, class_);
    uintptr_t was = (uintptr_t)blyi_map_get(live, key);
    /* Made while the rest was told, and told as well: the event says when. */
    if (was != 0 && was != LIVE)
        trace->start[was - 1].address = 0;
    return blyi_map_put(live, key, (void *)LIVE);
}

static bly_status on_ended(struct blyi_trace *trace, struct blyi_map *live,
                           const struct blyi_trace_event *event, int class_)
{
    struct blyi_trace_block block;
    uint64_t key = blyi_trace_block_key(event->probe.address, class_);
    if (blyi_map_remove(live, key) != NULL)
        return BLY_OK;
    blyi_trace_block_make(&block, &event->probe, class_, 0, 0);
    block.site = 0; /* that of the event is where it was freed */
    block.time_ns = 0;
    bool is_whole = trace->header.ring == 0 && trace->info.first_seq == 1;
    block.flags = is_whole ? BLYI_TRACE_BEFORE : 0;
    return add_start(trace, live, &block, false);
}

/* ── Frees of nothing ─────────────────────────────────────────────────────────────────────── */

/* Values of the map below. */
#define UNSEEN ((void *)1)
#define FREED  ((void *)2)
#define MADE   ((void *)3)

/* Until each of `n_unseen` addresses has had its first event. */
static bly_status look_again(struct blyi_trace *trace, struct blyi_map *first, size_t n_unseen)
{
    struct blyi_trace_event event;
    bly_status status = blyi_trace_rewind(trace);
    while (status == BLY_OK && n_unseen > 0 && blyi_trace_step(trace, &event)) {
        bool makes;
        int class_ = blyi_trace_class_of(event.probe.kind, &makes);
        uint64_t key = blyi_trace_block_key(event.probe.address, class_);
        if (class_ < 0 || event.probe.address == 0 || blyi_map_get(first, key) != UNSEEN)
            continue;
        n_unseen--;
        status = blyi_map_put(first, key, makes ? MADE : FREED);
    }
    return status != BLY_OK ? status : trace->status;
}

/* A block that is known by its free alone was live at the start unless something was made at its
 * address before: then it was freed twice. Blocks from `from` on are known so. */
static bly_status drop_freed_twice(struct blyi_trace *trace, size_t from)
{
    struct blyi_map first;
    size_t n_unseen = 0;
    bly_status status = BLY_OK;
    blyi_map_init(&first);
    for (size_t i = from; i < trace->n_start && status == BLY_OK; i++) {
        uint64_t key = key_of(&trace->start[i]);
        n_unseen += blyi_map_get(&first, key) == NULL;
        status = blyi_map_put(&first, key, UNSEEN);
    }
    if (status == BLY_OK && n_unseen > 0)
        status = look_again(trace, &first, n_unseen);
    for (size_t i = from; i < trace->n_start && status == BLY_OK; i++)
        if (blyi_map_get(&first, key_of(&trace->start[i])) == MADE)
            trace->start[i].address = 0;
    blyi_map_fini(&first);
    return status;
}

static int by_key(const void *a, const void *b)
{
    const struct blyi_trace_block *x = a, *y = b;
    if (key_of(x) != key_of(y))
        return key_of(x) < key_of(y) ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Sorted, without those that turned out to be none, and each once. */
static void tidy(struct blyi_trace *trace)
{
    size_t n = 0;
    if (trace->n_start > 0)
        qsort(trace->start, trace->n_start, sizeof(*trace->start), by_key);
    for (size_t i = 0; i < trace->n_start; i++) {
        const struct blyi_trace_block *block = &trace->start[i];
        if (block->address != 0 && (n == 0 || key_of(&trace->start[n - 1]) != key_of(block)))
            trace->start[n++] = *block;
    }
    trace->n_start = n;
}

static void note_event(struct blyi_trace_info *info, const struct blyi_trace_event *event)
{
    uint64_t time = event->probe.time_ns;
    if (info->kept == 0 || time < info->first_ns)
        info->first_ns = time;
    if (info->kept == 0 || time > info->last_ns)
        info->last_ns = time;
    info->kept++;
    info->unknown += event->probe.kind == BLYI_PROBE_COUNT;
}

bly_status blyi_trace_find_start(struct blyi_trace *trace)
{
    struct blyi_map live;
    struct blyi_trace_event event;
    blyi_map_init(&live);
    bly_status status = add_known(trace, &live);
    size_t n_known = trace->n_start;
    while (status == BLY_OK && blyi_trace_step(trace, &event)) {
        bool makes;
        int class_ = blyi_trace_class_of(event.probe.kind, &makes);
        note_event(&trace->info, &event);
        if (class_ >= 0 && event.probe.address != 0)
            status = makes ? on_made(trace, &live, &event, class_)
                           : on_ended(trace, &live, &event, class_);
    }
    blyi_map_fini(&live);
    if (status == BLY_OK)
        status = trace->status;
    if (status == BLY_OK)
        status = drop_freed_twice(trace, n_known);
    tidy(trace);
    return status;
}

const struct blyi_trace_block *blyi_trace_start_blocks(const struct blyi_trace *trace, size_t *n)
{
    *n = trace->n_start;
    return trace->start;
}
