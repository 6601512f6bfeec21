/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_capture.c - captures: beginning, ending.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/handle.h"
#include "base/host.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/memory.h"
#include "npu/runtime.h"
#include "npu/stream.h"

/* ── Which line a stream goes into ────────────────────────────────────────────────────────── */

static struct blyi_line *line_of(const struct blyi_stream *stream, enum blyi_divert_mode mode)
{
    struct blyi_divert *divert = blyi_queue_divert(stream);
    return divert != NULL && divert->mode == mode ? BLYI_CONTAINER(divert, struct blyi_line, divert)
                                                  : NULL;
}

struct blyi_line *blyi_capture_line_locked(const struct blyi_stream *stream)
{
    return line_of(stream, BLYI_DIVERT_CAPTURE);
}

struct blyi_line *blyi_build_line_locked(const struct blyi_stream *stream)
{
    return line_of(stream, BLYI_DIVERT_BUILD);
}

void blyi_line_divert_locked(struct blyi_line *line, struct blyi_stream *stream)
{
    blyi_queue_ref(stream);
    line->captured = stream;
    /* Release: who finds it finds the line. */
    __atomic_store_n(&stream->divert, &line->divert, __ATOMIC_RELEASE);
}

static void let_go_locked(struct blyi_line *line)
{
    struct blyi_stream *stream = line->captured;
    line->captured = NULL;
    if (stream == NULL)
        return;
    __atomic_store_n(&stream->divert, NULL, __ATOMIC_RELEASE);
    blyi_queue_unref(stream);
}

void blyi_capture_invalidate_locked(struct blyi_graph *graph, const char *why)
{
    if (graph->invalid)
        return;
    graph->invalid = true;
    snprintf(graph->why, sizeof(graph->why), "%s", why);
}

bly_status blyi_capture_valid_locked(const struct blyi_graph *graph)
{
    if (!graph->invalid)
        return BLY_OK;
    return blyi_fail(BLY_E_CAPTURE_INVALID, "the capture of graph %" PRIu32 " became invalid: %s",
                     graph->id, graph->why);
}

bly_status blyi_capture_refuse(const struct blyi_stream *stream, const char *what)
{
    bly_status status = BLY_OK;
    if (likely(blyi_queue_divert(stream) == NULL))
        return BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line != NULL)
        status = blyi_fail(BLY_E_CAPTURING,
                           "stream %" PRIu32 " is being captured into graph %" PRIu32
                           ": it cannot be %s",
                           stream->id, line->graph->id, what);
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

/* ── Begin ────────────────────────────────────────────────────────────────────────────────── */

/* Stream and context of a call on a capture; the stream is pinned. */
static bly_status pin(void *handle, struct blyi_context_here *here, struct blyi_stream **stream)
{
    bly_status status = blyi_context_look(here, 0);
    if (status == BLY_OK)
        status = blyi_stream_pin_own(handle, stream);
    return status;
}

static bly_status check_stream(const struct blyi_stream *stream)
{
    if (stream->is_default)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "stream %" PRIu32 " is a default stream: it cannot be captured",
                         stream->id);
    if (stream->flags & (BLYI_STREAM_CPU_SCHEDULE | BLYI_STREAM_DEVICE_USE_ONLY))
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "stream %" PRIu32 " (flags 0x%" PRIx32 ") cannot be captured", stream->id,
                         stream->flags);
    return BLY_OK;
}

static bly_status check_free_locked(const struct blyi_stream *stream)
{
    const struct blyi_divert *divert = blyi_queue_divert(stream);
    if (divert == NULL)
        return BLY_OK;
    if (divert->mode == BLYI_DIVERT_CAPTURE)
        return blyi_fail(BLY_E_CAPTURING,
                         "stream %" PRIu32 " is being captured into graph %" PRIu32 " already",
                         stream->id, blyi_capture_line_locked(stream)->graph->id);
    if (divert->mode == BLYI_DIVERT_UPDATE)
        return blyi_fail(BLY_E_GROUP_STATE,
                         "stream %" PRIu32 " is updating a task group: it cannot be captured",
                         stream->id);
    return blyi_fail(BLY_E_GRAPH_STREAM, "stream %" PRIu32 " belongs to a graph", stream->id);
}

static bly_status check_body_locked(const struct blyi_graph *body,
                                    const struct blyi_context_here *here)
{
    if (body->parent == NULL)
        return blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " is no body of a condition", body->id);
    if (blyi_graph_state(body) != BLYI_GRAPH_BODY)
        return blyi_fail(BLY_E_GRAPH_CAPTURING, "graph %" PRIu32 " has been captured already",
                         body->id);
    if (body->context != here->context || body->generation != here->generation)
        return blyi_fail(BLY_E_GRAPH_CONTEXT, "graph %" PRIu32 " belongs to another context",
                         body->id);
    return BLY_OK;
}

static bly_status begin_locked(const struct blyi_context_here *here, struct blyi_stream *stream,
                               struct blyi_graph *graph, enum blyi_capture_mode mode, uint32_t site)
{
    struct blyi_line *line;
    bly_status status = blyi_line_make_locked(graph, here, site, &line);
    if (status != BLY_OK)
        return status;
    graph->origin = line;
    line->divert.mode = BLYI_DIVERT_CAPTURE;
    __atomic_store_n(&graph->state, BLYI_GRAPH_CAPTURING, __ATOMIC_RELEASE);
    blyi_capture_enter_locked(graph, mode);
    blyi_line_divert_locked(line, stream);
    return BLY_OK;
}

bly_status blyi_capture_begin(void *handle, void *body_handle, enum blyi_capture_mode mode,
                              uint32_t site)
{
    struct blyi_context_here here;
    struct blyi_stream *stream;
    struct blyi_graph *body = NULL, *graph = NULL;
    bly_status status = pin(handle, &here, &stream);
    if (status != BLY_OK)
        return status;
    if ((unsigned)mode >= BLYI_CAPTURE_MODES)
        status = blyi_fail(BLY_E_INVALID, "capture mode %d is not in 0 .. 2", (int)mode);
    if (status == BLY_OK)
        status = check_stream(stream);
    if (status == BLY_OK && body_handle != NULL)
        status = blyi_graph_pin(body_handle, &body);
    if (status == BLY_OK)
        status = blyi_engine_need(here.card->id, BLYI_ENGINE_COPY);
    if (status == BLY_OK) {
        blyi_lock_take(&blyi_graphs_lock);
        status = check_free_locked(stream);
        if (status == BLY_OK && body != NULL)
            status = check_body_locked(body, &here);
        if (status == BLY_OK && body == NULL)
            status = blyi_graph_make(&here, site, &graph);
        if (status == BLY_OK)
            status = begin_locked(&here, stream, body != NULL ? body : graph, mode, site);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (status == BLY_OK && graph != NULL)
        BLYI_PROBE(GRAPH_CREATE, .card = here.card->id, .event = graph->id, .site = site);
    if (status != BLY_OK && graph != NULL) {
        char why[BLYI_FAIL_MAX];
        snprintf(why, sizeof(why), "%s", blyi_fail_text());
        blyi_graph_end(graph, false);
        (void)blyi_fail(status, "%s", why);
    }
    if (body != NULL)
        blyi_graph_unpin(body);
    blyi_stream_unpin(stream);
    return status;
}

/* ── End ──────────────────────────────────────────────────────────────────────────────────── */

/* How far each line is known to have run once `line` has run up to `n`: through the waits that
 * stand there, and those of the lines that they wait for. */
static void cover(const struct blyi_line *line, uint32_t n, uint32_t covered[])
{
    uint32_t from = covered[line->number];
    if (n <= from)
        return;
    covered[line->number] = n;
    for (uint32_t i = from; i < n; i++) {
        const struct blyi_node *node = blyi_node_at(line, i);
        if (node->task.kind == BLYI_TASK_WAIT && node->after != NULL)
            cover(node->after, node->after_index + 1, covered);
    }
}

static bly_status check_joined_locked(struct blyi_graph *graph)
{
    bly_status status = BLY_OK;
    uint32_t *covered = blyi_host_calloc(graph->n_lines, sizeof(*covered));
    if (covered == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "graph %" PRIu32 ": no host memory for %" PRIu32 " lines", graph->id,
                         graph->n_lines);
    cover(graph->origin, graph->origin->n_nodes, covered);
    BLYI_LIST_FOR(node, &graph->lines)
    {
        const struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        uint32_t left = line->n_nodes - covered[line->number];
        if (left != 0 && line != graph->origin && status == BLY_OK)
            status = blyi_fail(BLY_E_UNJOINED,
                               "graph %" PRIu32 ": the last %" PRIu32 " of %" PRIu32
                               " tasks captured from stream %" PRIu32
                               " are not waited for, through events, by stream %" PRIu32
                               ", where the capture began",
                               graph->id, left, line->n_nodes, line->captured->id,
                               graph->origin->captured->id);
    }
    blyi_host_free(covered);
    return status;
}

static bly_status check_complete_locked(struct blyi_graph *graph)
{
    bly_status status = blyi_capture_valid_locked(graph);
    if (status == BLY_OK && graph->n_open != 0)
        status = blyi_fail(BLY_E_GROUP_STATE, "graph %" PRIu32 ": a task group was not ended",
                           graph->id);
    if (status == BLY_OK && !blyi_condition_all_ready_locked(graph))
        status = blyi_fail(BLY_E_CAPTURE_OPEN,
                           "graph %" PRIu32 ": not every body of its conditions was captured",
                           graph->id);
    return status == BLY_OK ? check_joined_locked(graph) : status;
}

void blyi_capture_finish_locked(struct blyi_graph *graph, enum blyi_graph_state state)
{
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        line->group = NULL;
        let_go_locked(line);
    }
    graph->n_open = 0;
    blyi_capture_leave_locked(graph);
    __atomic_store_n(&graph->state, state, __ATOMIC_RELEASE);
}

static bly_status check_end_locked(const struct blyi_stream *stream, bool wants,
                                   struct blyi_line **out)
{
    struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line == NULL)
        return blyi_fail(BLY_E_NOT_CAPTURING, "stream %" PRIu32 " is not being captured",
                         stream->id);
    struct blyi_graph *graph = line->graph;
    if (line != graph->origin)
        return blyi_fail(BLY_E_CAPTURE_ORIGIN,
                         "the capture of graph %" PRIu32 " began on stream %" PRIu32
                         ", not on stream %" PRIu32,
                         graph->id, graph->origin->captured->id, stream->id);
    if (!wants && graph->parent == NULL)
        return blyi_fail(BLY_E_INVALID, "the place for graph %" PRIu32 " is NULL", graph->id);
    if (graph->mode != BLYI_CAPTURE_RELAXED && graph->thread != (uint32_t)blyi_own_tid())
        return blyi_fail(BLY_E_CAPTURE_THREAD,
                         "the capture of graph %" PRIu32 " was begun by thread %" PRIu32
                         ", not by thread %" PRId32,
                         graph->id, graph->thread, blyi_own_tid());
    *out = line;
    return BLY_OK;
}

bly_status blyi_capture_end(void *handle, void **out)
{
    struct blyi_context_here here;
    struct blyi_stream *stream;
    struct blyi_line *line;
    struct blyi_graph *dropped = NULL;
    bly_status status = pin(handle, &here, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = check_end_locked(stream, out != NULL, &line);
    if (status == BLY_OK) {
        struct blyi_graph *graph = line->graph;
        bool is_body = graph->parent != NULL;
        status = check_complete_locked(graph);
        if (status == BLY_OK && out != NULL)
            *out = graph->handle;
        if (status != BLY_OK && is_body)
            blyi_capture_invalidate_locked(graph->parent, blyi_fail_text());
        if (status != BLY_OK && !is_body) {
            dropped = graph;
            blyi_graph_ref(dropped);
        }
        /* Gone at once: others may have its handle, and a run must not slip in. */
        blyi_capture_finish_locked(graph, dropped != NULL ? BLYI_GRAPH_GONE : BLYI_GRAPH_READY);
    }
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_stream_unpin(stream);
    if (dropped != NULL) {
        char why[BLYI_FAIL_MAX];
        snprintf(why, sizeof(why), "%s", blyi_fail_text());
        blyi_graph_end(dropped, false);
        blyi_graph_unref(dropped);
        (void)blyi_fail(status, "%s", why);
    }
    return status;
}

bly_status blyi_capture_info(void *handle, enum blyi_capture_status *status_out, void **graph)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_line *line = blyi_capture_line_locked(stream);
    if (status_out != NULL)
        *status_out = line == NULL           ? BLYI_CAPTURE_NONE
                      : line->graph->invalid ? BLYI_CAPTURE_INVALIDATED
                                             : BLYI_CAPTURE_ACTIVE;
    if (graph != NULL)
        *graph = line != NULL ? line->graph->handle : NULL;
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_stream_unpin(stream);
    return BLY_OK;
}

void blyi_capture_cancel(struct blyi_context *context)
{
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL) {
        blyi_lock_take(&blyi_graphs_lock);
        struct blyi_line *line = blyi_capture_line_locked(stream);
        if (line != NULL) {
            blyi_capture_invalidate_locked(line->graph, "its context was destroyed");
            blyi_capture_finish_locked(line->graph, BLYI_GRAPH_GONE);
        }
        blyi_update_cancel_locked(stream);
        blyi_lock_drop(&blyi_graphs_lock);
    }
}
