/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_build.c - graphs that are built: streams bound to them take tasks for the graph, and
 * execute them in its runs.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/probe.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/stream.h"

bly_status blyi_graph_build(uint32_t site, void **handle)
{
    struct blyi_context_here here;
    struct blyi_graph *graph;
    bly_status status = blyi_context_look(&here, site);
    if (status == BLY_OK)
        status = blyi_engine_need(here.card->id, BLYI_ENGINE_COPY);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = blyi_graph_make(&here, site, &graph);
    if (status == BLY_OK) {
        graph->built = true;
        __atomic_store_n(&graph->state, BLYI_GRAPH_BUILDING, __ATOMIC_RELEASE);
        *handle = graph->handle;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    if (status == BLY_OK)
        BLYI_PROBE(GRAPH_CREATE, .card = here.card->id, .event = graph->id, .site = site);
    return status;
}

/* Graph and stream of a call; both pinned. */
static bly_status pin_both(void *graph_handle, void *stream_handle, struct blyi_graph **graph,
                           struct blyi_stream **stream)
{
    bly_status status = blyi_graph_pin_here(graph_handle, graph);
    if (status != BLY_OK)
        return status;
    status = blyi_stream_pin_own(stream_handle, stream);
    if (status != BLY_OK)
        blyi_graph_unpin(*graph);
    return status;
}

static void unpin_both(struct blyi_graph *graph, struct blyi_stream *stream)
{
    blyi_stream_unpin(stream);
    blyi_graph_unpin(graph);
}

static bly_status check_building_locked(const struct blyi_graph *graph)
{
    if (!graph->built)
        return blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " was captured, not built", graph->id);
    if (blyi_graph_state(graph) != BLYI_GRAPH_BUILDING)
        return blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " is built already", graph->id);
    return BLY_OK;
}

static bly_status bind_locked(struct blyi_graph *graph, struct blyi_stream *stream, bool head)
{
    struct blyi_line *line;
    bly_status status = check_building_locked(graph);
    if (status != BLY_OK)
        return status;
    if ((stream->flags & BLYI_STREAM_PERSISTENT) == 0)
        return blyi_fail(BLY_E_INVALID,
                         "stream %" PRIu32 " was not created PERSISTENT: it cannot be bound to "
                         "graph %" PRIu32,
                         stream->id, graph->id);
    if (blyi_queue_divert(stream) != NULL)
        return blyi_fail(BLY_E_GRAPH_STREAM, "stream %" PRIu32 " belongs to a graph already",
                         stream->id);
    status = blyi_line_add_locked(graph, stream, false, &line);
    if (status != BLY_OK)
        return status;
    blyi_queue_ref(stream); /* the line's */
    line->head = head;
    line->divert.mode = BLYI_DIVERT_BUILD;
    blyi_line_divert_locked(line, stream);
    return BLY_OK;
}

bly_status blyi_graph_bind(void *graph_handle, void *stream_handle, bool head)
{
    struct blyi_graph *graph;
    struct blyi_stream *stream;
    bly_status status = pin_both(graph_handle, stream_handle, &graph, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = bind_locked(graph, stream, head);
    blyi_lock_drop(&blyi_graphs_lock);
    unpin_both(graph, stream);
    return status;
}

static bly_status find_bound_locked(const struct blyi_graph *graph,
                                    const struct blyi_stream *stream, struct blyi_line **line)
{
    *line = stream->line;
    if (*line != NULL && (*line)->graph == graph && graph->built && (*line)->captured != NULL)
        return BLY_OK;
    return blyi_fail(BLY_E_GRAPH_STREAM, "stream %" PRIu32 " is not bound to graph %" PRIu32,
                     stream->id, graph->id);
}

/* The line stays in the graph, without tasks: others may name it. */
static bly_status unbind_locked(struct blyi_graph *graph, struct blyi_stream *stream)
{
    struct blyi_line *line;
    bly_status status = find_bound_locked(graph, stream, &line);
    if (status != BLY_OK)
        return status;
    if (__atomic_load_n(&graph->n_queued, __ATOMIC_ACQUIRE) != 0)
        return blyi_fail(BLY_E_GRAPH_RUNNING,
                         "graph %" PRIu32 " runs: stream %" PRIu32 " cannot be unbound", graph->id,
                         stream->id);
    graph->n_unbound++;
    line->head = false;
    line->captured = NULL;
    stream->line = NULL;
    __atomic_store_n(&stream->divert, NULL, __ATOMIC_RELEASE);
    blyi_queue_unref(stream);
    return BLY_OK;
}

bly_status blyi_graph_unbind(void *graph_handle, void *stream_handle)
{
    struct blyi_graph *graph;
    struct blyi_stream *stream;
    bly_status status = pin_both(graph_handle, stream_handle, &graph, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = unbind_locked(graph, stream);
    blyi_lock_drop(&blyi_graphs_lock);
    unpin_both(graph, stream);
    return status;
}

static bly_status end_task_locked(struct blyi_graph *graph, struct blyi_stream *stream,
                                  uint32_t site)
{
    struct blyi_line *line;
    struct blyi_task task = {.kind = BLYI_TASK_END, .site = site};
    bly_status status = check_building_locked(graph);
    if (status == BLY_OK)
        status = find_bound_locked(graph, stream, &line);
    if (status == BLY_OK && graph->has_end)
        status = blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " has its end task already", graph->id);
    if (status == BLY_OK)
        status = blyi_node_room_locked(line);
    if (status != BLY_OK)
        return status;
    blyi_node_add_locked(line, &task);
    graph->has_end = true;
    return BLY_OK;
}

bly_status blyi_graph_end_task(void *graph_handle, void *stream_handle, uint32_t site)
{
    struct blyi_graph *graph;
    struct blyi_stream *stream;
    bly_status status = pin_both(graph_handle, stream_handle, &graph, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = end_task_locked(graph, stream, site);
    blyi_lock_drop(&blyi_graphs_lock);
    unpin_both(graph, stream);
    return status;
}

static bly_status build_end_locked(struct blyi_graph *graph)
{
    bool has_head = false;
    bly_status status = check_building_locked(graph);
    if (status == BLY_OK)
        status = blyi_capture_valid_locked(graph);
    if (status != BLY_OK)
        return status;
    BLYI_LIST_FOR(node, &graph->lines)
    has_head |= BLYI_CONTAINER(node, struct blyi_line, link)->head;
    if (!has_head)
        return blyi_fail(BLY_E_GRAPH_STREAM,
                         "graph %" PRIu32 " has no stream that starts with a run", graph->id);
    if (!graph->has_end)
        return blyi_fail(BLY_E_STATE,
                         "graph %" PRIu32 " has no end task: a run would never be "
                         "complete",
                         graph->id);
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        line->divert.mode = BLYI_DIVERT_BUILT;
    }
    __atomic_store_n(&graph->state, BLYI_GRAPH_READY, __ATOMIC_RELEASE);
    return BLY_OK;
}

bly_status blyi_graph_build_end(void *handle)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = build_end_locked(graph);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_graph_unpin(graph);
    return status;
}

/* ── Tasks that start other streams ───────────────────────────────────────────────────────── */

static bly_status add_locked(const struct blyi_stream *target, const struct blyi_stream *stream,
                             const struct blyi_task *task)
{
    struct blyi_line *line = blyi_build_line_locked(stream);
    struct blyi_line *other = blyi_build_line_locked(target);
    if (line == NULL || other == NULL || other->graph != line->graph)
        return blyi_fail(BLY_E_GRAPH_STREAM,
                         "streams %" PRIu32 " and %" PRIu32 " are not both bound to one graph that "
                         "is being built",
                         stream->id, target->id);
    bly_status status = blyi_node_room_locked(line);
    if (status == BLY_OK)
        blyi_node_add_locked(line, task)->target = other;
    return status;
}

static bly_status add(void *target_handle, void *stream_handle, const struct blyi_task *task)
{
    struct blyi_stream *target, *stream;
    bly_status status = blyi_stream_pin_own(target_handle, &target);
    if (status != BLY_OK)
        return status;
    status = blyi_stream_pin_own(stream_handle, &stream);
    if (status == BLY_OK) {
        status = blyi_capture_refuse(stream, "made to start another");
        if (status == BLY_OK) {
            blyi_lock_take(&blyi_graphs_lock);
            status = add_locked(target, stream, task);
            blyi_lock_drop(&blyi_graphs_lock);
        }
        blyi_stream_unpin(stream);
    }
    blyi_stream_unpin(target);
    return status;
}

bly_status blyi_graph_activate(void *target, void *stream, uint32_t site)
{
    struct blyi_task task = {.kind = BLYI_TASK_ACTIVATE, .site = site};
    return add(target, stream, &task);
}

bly_status blyi_graph_switch(const void *left, enum blyi_compare compare, const void *right,
                             bool is_64, void *target, void *stream, uint32_t site)
{
    struct blyi_task task = {
        .kind = BLYI_TASK_SWITCH, .value = (uint8_t)compare, .spare = is_64, .site = site};
    if (blyi_place_of(left, NULL) != BLYI_PLACE_CARD ||
        blyi_place_of(right, NULL) != BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_INVALID, "the values at %p and %p are not both in card memory", left,
                         right);
    task.u.copy.src = left;
    task.u.copy.dst = (void *)(uintptr_t)right;
    return add(target, stream, &task);
}
