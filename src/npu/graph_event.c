/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_event.c - events in captures: how a capture spreads to other streams and comes back, and
 * the events that cross the border of a graph.
 *
 * A modern event that a captured stream records is *captured*: it stands for that place in the
 * graph until it is recorded elsewhere or the capture ends. A stream that waits for it goes into
 * the graph too.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/host.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/event.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/stream.h"

/* ── What an event stands for ─────────────────────────────────────────────────────────────── */

bool blyi_event_is_capturing(struct blyi_event *event)
{
    if (likely(__atomic_load_n(&event->graph, __ATOMIC_ACQUIRE) == NULL))
        return false;
    blyi_lock_take(&event->lock);
    bool is = event->graph != NULL && blyi_graph_state(event->graph) == BLYI_GRAPH_CAPTURING;
    blyi_lock_drop(&event->lock);
    return is;
}

void blyi_event_forget_capture(struct blyi_event *event)
{
    blyi_lock_take(&event->lock);
    struct blyi_graph *graph = event->graph;
    __atomic_store_n(&event->graph, NULL, __ATOMIC_RELEASE);
    event->captured = NULL;
    blyi_lock_drop(&event->lock);
    if (graph != NULL)
        blyi_graph_unref(graph);
}

static void stand_for(struct blyi_event *event, const struct blyi_node *node)
{
    struct blyi_graph *graph = node->line->graph;
    blyi_event_forget_capture(event);
    blyi_graph_ref(graph);
    blyi_lock_take(&event->lock);
    struct blyi_graph *other = event->graph; /* of another thread */
    event->captured = node;
    __atomic_store_n(&event->graph, graph, __ATOMIC_RELEASE);
    blyi_lock_drop(&event->lock);
    if (other != NULL)
        blyi_graph_unref(other);
}

/* The captured record, if its capture goes on. */
static const struct blyi_node *captured_of(struct blyi_event *event)
{
    blyi_lock_take(&event->lock);
    const struct blyi_node *node = event->captured;
    if (event->graph == NULL || blyi_graph_state(event->graph) != BLYI_GRAPH_CAPTURING)
        node = NULL;
    blyi_lock_drop(&event->lock);
    return node;
}

/* ── Records, waits, resets ───────────────────────────────────────────────────────────────── */

struct blyi_node *blyi_node_add_event_locked(struct blyi_line *line, struct blyi_event *event,
                                             enum blyi_task_kind kind, uint32_t site)
{
    struct blyi_task task = {.kind = (uint8_t)kind, .site = site};
    task.u.event.event = event;
    __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED);
    return blyi_node_add_locked(line, &task);
}

/* Legacy events are flags in memory; a graph takes those alone that are made to cross its border,
 * a built one any of them. With room for a task. */
static bly_status check_kind_locked(struct blyi_line *line, const struct blyi_event *event)
{
    bool built = line->graph->built;
    if (event->signal != NULL)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "event %" PRIu32
                         " is shared between processes: it does not go into a graph",
                         event->id);
    if (built ? !event->modern : event->modern || (event->flags & BLYI_EVENT_EXTERNAL))
        return blyi_node_room_locked(line);
    return blyi_fail(BLY_E_UNSUPPORTED,
                     built ? "event %" PRIu32 " (flags 0x%" PRIx32
                             ") was created by ExWithFlag: it "
                             "does not go into a graph that is being built"
                           : "event %" PRIu32 " (flags 0x%" PRIx32 ") is neither EXTERNAL nor "
                             "created by ExWithFlag: it does not go into a captured graph",
                     event->id, event->flags);
}

static struct blyi_line *line_of_locked(const struct blyi_stream *stream)
{
    struct blyi_line *line = blyi_capture_line_locked(stream);
    return line != NULL ? line : blyi_build_line_locked(stream);
}

bly_status blyi_capture_record(struct blyi_event *event, struct blyi_stream *stream, uint32_t site,
                               bool *taken)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    struct blyi_line *line = line_of_locked(stream);
    if (line != NULL) {
        status = check_kind_locked(line, event);
        if (status == BLY_OK) {
            const struct blyi_node *node =
                blyi_node_add_event_locked(line, event, BLYI_TASK_RECORD, site);
            if (event->modern)
                stand_for(event, node);
            *taken = true;
        }
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

bly_status blyi_capture_reset(struct blyi_event *event, struct blyi_stream *stream, uint32_t site,
                              bool *taken)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    struct blyi_line *line = line_of_locked(stream);
    if (line != NULL) {
        status = check_kind_locked(line, event);
        if (status == BLY_OK)
            blyi_node_add_event_locked(line, event, BLYI_TASK_RESET, site);
        *taken = status == BLY_OK;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

/* The stream goes into the graph of an event that it waits for. */
static bly_status join_locked(struct blyi_graph *graph, struct blyi_stream *stream, uint32_t site,
                              struct blyi_line **out)
{
    struct blyi_context_here here;
    if (stream->is_default)
        return blyi_fail(BLY_E_CAPTURE_DEFAULT,
                         "stream %" PRIu32 " is a default stream: it cannot wait for an event that "
                         "is captured in graph %" PRIu32,
                         stream->id, graph->id);
    if (stream->flags &
        (BLYI_STREAM_PERSISTENT | BLYI_STREAM_CPU_SCHEDULE | BLYI_STREAM_DEVICE_USE_ONLY))
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "stream %" PRIu32 " (flags 0x%" PRIx32 ") cannot be captured", stream->id,
                         stream->flags);
    if (blyi_queue_divert(stream) != NULL)
        return blyi_fail(BLY_E_GRAPH_STREAM,
                         "stream %" PRIu32 " belongs to a graph or updates one: it cannot be "
                         "captured into graph %" PRIu32,
                         stream->id, graph->id);
    bly_status status = blyi_context_look(&here, site);
    if (status == BLY_OK && graph->context != here.context)
        status = blyi_fail(BLY_E_GRAPH_CONTEXT, "graph %" PRIu32 " belongs to another context",
                           graph->id);
    if (status == BLY_OK)
        status = blyi_line_make_locked(graph, &here, site, out);
    if (status == BLY_OK) {
        (*out)->divert.mode = BLYI_DIVERT_CAPTURE;
        blyi_line_divert_locked(*out, stream);
    }
    return status;
}

static bly_status wait_inside_locked(const struct blyi_node *record, struct blyi_event *event,
                                     struct blyi_stream *stream, uint64_t timeout_ns, uint32_t site)
{
    struct blyi_graph *graph = record->line->graph;
    struct blyi_line *line = blyi_capture_line_locked(stream);
    bly_status status = blyi_capture_valid_locked(graph);
    if (status == BLY_OK && line != NULL && line->graph != graph) {
        status = blyi_fail(BLY_E_CAPTURE_CONFLICT,
                           "stream %" PRIu32 ", captured into graph %" PRIu32
                           ", waits for event %" PRIu32 ", captured into graph %" PRIu32,
                           stream->id, line->graph->id, event->id, graph->id);
        blyi_capture_invalidate_locked(graph, blyi_fail_text());
        blyi_capture_invalidate_locked(line->graph, blyi_fail_text());
    }
    if (status == BLY_OK && line == NULL && graph->n_open != 0)
        status = graph->broken = blyi_fail(BLY_E_GROUP_BROKEN,
                                           "graph %" PRIu32 ": stream %" PRIu32
                                           " cannot come in while a task group is open",
                                           graph->id, stream->id);
    if (status == BLY_OK && line == NULL) {
        status = join_locked(graph, stream, site, &line);
        if (status == BLY_OK && blyi_node_room_locked(line) != BLY_OK) {
            status = blyi_fail_code(); /* the stream is in, without what it waits for */
            blyi_capture_invalidate_locked(graph, blyi_fail_text());
        }
    } else if (status == BLY_OK) {
        status = blyi_node_room_locked(line);
    }
    if (status == BLY_OK) {
        struct blyi_node *node = blyi_node_add_event_locked(line, event, BLYI_TASK_WAIT, site);
        node->task.u.event.timeout_ns = timeout_ns;
        node->after = record->line;
        node->after_index = record->index;
    }
    return status;
}

/* A captured stream waits for an event that no capture has recorded. */
static bly_status wait_outside_locked(struct blyi_line *line, struct blyi_event *event,
                                      const struct blyi_stream *stream, uint64_t timeout_ns,
                                      uint32_t site)
{
    bly_status status = check_kind_locked(line, event);
    if (status != BLY_OK)
        return status;
    if (!event->modern) {
        blyi_node_add_event_locked(line, event, BLYI_TASK_WAIT, site)->task.u.event.timeout_ns =
            timeout_ns;
        return BLY_OK;
    }
    if (__atomic_load_n(&event->stream, __ATOMIC_RELAXED) == NULL)
        return BLY_OK; /* never recorded: nothing to wait for */
    return blyi_fail(BLY_E_CAPTURE_ORDER,
                     "stream %" PRIu32 " is captured into graph %" PRIu32
                     " and waits for event %" PRIu32 ", whose record is not in that graph; "
                     "ACL_EVENT_WAIT_EXTERNAL waits for one outside",
                     stream->id, line->graph->id, event->id);
}

bly_status blyi_capture_wait(struct blyi_event *event, struct blyi_stream *stream,
                             uint64_t timeout_ns, uint32_t site, bool *taken)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_node *record = captured_of(event);
    struct blyi_line *line = line_of_locked(stream);
    *taken = record != NULL || line != NULL;
    if (line != NULL && line->graph->built)
        record = NULL;
    if (record != NULL)
        status = wait_inside_locked(record, event, stream, timeout_ns, site);
    else if (line != NULL)
        status = wait_outside_locked(line, event, stream, timeout_ns, site);
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}
