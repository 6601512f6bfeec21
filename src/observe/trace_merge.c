/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_merge.c - events of chunks that overlap, in the order of their numbers.
 */
#include "base/fail.h"
#include "base/host.h"
#include "observe/trace_inside.h"

static bly_status no_memory(const struct blyi_trace *trace)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to read it", trace->source.name);
}

static uint64_t seq_at(const struct blyi_trace *trace, size_t i)
{
    return trace->heap[i]->event.seq;
}

static void swap(struct blyi_trace *trace, size_t i, size_t k)
{
    struct blyi_trace_cursor *cursor = trace->heap[i];
    trace->heap[i] = trace->heap[k];
    trace->heap[k] = cursor;
}

static void sift_down(struct blyi_trace *trace)
{
    for (size_t i = 0;;) {
        size_t least = i, left = 2 * i + 1;
        if (left < trace->n_heap && seq_at(trace, left) < seq_at(trace, least))
            least = left;
        if (left + 1 < trace->n_heap && seq_at(trace, left + 1) < seq_at(trace, least))
            least = left + 1;
        if (least == i)
            return;
        swap(trace, i, least);
        i = least;
    }
}

static void push_heap(struct blyi_trace *trace, struct blyi_trace_cursor *cursor)
{
    size_t i = trace->n_heap++;
    trace->heap[i] = cursor;
    for (; i > 0 && seq_at(trace, i) < seq_at(trace, (i - 1) / 2); i = (i - 1) / 2)
        swap(trace, i, (i - 1) / 2);
}

static bly_status open_next_chunk(struct blyi_trace *trace)
{
    const struct blyi_trace_chunk_at *chunk = &trace->chunks[trace->next_chunk++];
    if (!blyi_trace_room(&trace->heap, trace->n_heap, &trace->heap_room,
                         sizeof(struct blyi_trace_cursor *)))
        return no_memory(trace);
    struct blyi_trace_cursor *cursor = blyi_host_alloc(sizeof(*cursor));
    if (cursor == NULL)
        return no_memory(trace);
    bly_status status = blyi_trace_cursor_open(cursor, &trace->source, chunk->at);
    if (status == BLY_OK && blyi_trace_cursor_next(cursor))
        push_heap(trace, cursor);
    else
        blyi_host_free(cursor);
    return status;
}

static void drop_top(struct blyi_trace *trace)
{
    blyi_host_free(trace->heap[0]);
    trace->heap[0] = trace->heap[--trace->n_heap];
    sift_down(trace);
}

/* In this library's terms; and the thread's range moves on. */
static void translate(const struct blyi_trace *trace, struct blyi_trace_cursor *cursor,
                      struct blyi_trace_event *event)
{
    *event = cursor->event;
    int kind = blyi_trace_names_kind(&trace->names, (uint32_t)event->probe.kind);
    event->probe.kind = kind >= 0 ? (enum blyi_probe_kind)kind : BLYI_PROBE_COUNT;
    struct blyi_trace_range range = {0, 0};
    if (event->probe.kind == BLYI_PROBE_RANGE_PUSH) {
        cursor->context.range = event->range = event->probe.event;
    } else if (event->probe.kind == BLYI_PROBE_RANGE_POP) {
        event->range = event->probe.event;
        (void)blyi_trace_range(trace, event->range, &range);
        cursor->context.range = range.parent;
    }
}

bool blyi_trace_step(struct blyi_trace *trace, struct blyi_trace_event *event)
{
    while (trace->status == BLY_OK) {
        while (
            trace->status == BLY_OK && trace->next_chunk < trace->n_chunks &&
            (trace->n_heap == 0 || trace->chunks[trace->next_chunk].first_seq <= seq_at(trace, 0)))
            trace->status = open_next_chunk(trace);
        if (trace->status != BLY_OK || trace->n_heap == 0)
            return false;
        struct blyi_trace_cursor *cursor = trace->heap[0];
        translate(trace, cursor, event);
        if (blyi_trace_cursor_next(cursor))
            sift_down(trace);
        else
            drop_top(trace);
        if (event->seq > trace->last_seq && event->seq >= trace->info.first_seq &&
            event->seq <= trace->info.seen) {
            trace->last_seq = event->seq;
            return true;
        }
    }
    return false;
}

bool blyi_trace_next(struct blyi_trace *trace, struct blyi_trace_event *event)
{
    do
        if (!blyi_trace_step(trace, event))
            return false;
    while (event->probe.kind == BLYI_PROBE_COUNT);
    return true;
}

bly_status blyi_trace_status(const struct blyi_trace *trace)
{
    return trace->status;
}

bly_status blyi_trace_rewind(struct blyi_trace *trace)
{
    while (trace->n_heap > 0)
        blyi_host_free(trace->heap[--trace->n_heap]);
    trace->next_chunk = 0;
    trace->last_seq = 0;
    trace->status = BLY_OK;
    return BLY_OK;
}
