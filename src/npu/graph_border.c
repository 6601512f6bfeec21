/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_border.c - events that cross the border of a captured graph.
 *
 * An external record counts in a queue of the event's own (`mark`), which nothing runs on: a run
 * that is queued is the event's last record, and ends it when it comes there.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/order.h"
#include "npu/card.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/stream.h"

static struct blyi_lock mark_lock = BLYI_LOCK_INIT(BLYI_RANK_GRAPH_RUN); /* marks, their progress */

static bly_status make_mark(struct blyi_event *event, uint32_t stream_id, struct blyi_stream **out)
{
    bly_status status = blyi_queue_create(event->context, event->card, out);
    if (status == BLY_OK) {
        (*out)->id = stream_id;
        (*out)->flags = BLYI_STREAM_MARK;
    }
    return status;
}

/* The event's first one; under the lock of graphs. */
static bly_status need_mark(struct blyi_event *event, const struct blyi_stream *stream)
{
    blyi_lock_take(&mark_lock);
    bly_status status = event->mark == NULL ? make_mark(event, stream->id, &event->mark) : BLY_OK;
    blyi_lock_drop(&mark_lock);
    return status;
}

static bool crosses(struct blyi_node *const list[], uint32_t n, const struct blyi_event *event)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i]->task.u.event.event == event)
            return true;
    return false;
}

static bly_status external_locked(struct blyi_event *event, struct blyi_stream *stream, bool wait,
                                  uint32_t site)
{
    struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line == NULL)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "flag 1 (external) is for streams that are being captured, and stream "
                         "%" PRIu32 " is not",
                         stream->id);
    struct blyi_graph *graph = line->graph;
    if (graph->parent != NULL)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "graph %" PRIu32 " is a body: its events do not cross its border",
                         graph->id);
    if (crosses(graph->external_waits, graph->n_waits, event) ||
        crosses(graph->external_records, graph->n_records, event))
        return blyi_fail(BLY_E_INVALID,
                         "event %" PRIu32 " crosses the border of graph %" PRIu32 " once already",
                         event->id, graph->id);
    bly_status status = blyi_node_room_locked(line);
    if (status == BLY_OK && !wait)
        status = need_mark(event, stream);
    if (status != BLY_OK)
        return status;
    struct blyi_node *node =
        blyi_node_add_event_locked(line, event, wait ? BLYI_TASK_WAIT : BLYI_TASK_MARK, site);
    node->task.flags = BLYI_TASK_EXTERNAL;
    node->external = wait ? graph->n_waits : graph->n_records;
    status = wait ? blyi_node_list(&graph->external_waits, &graph->n_waits, node)
                  : blyi_node_list(&graph->external_records, &graph->n_records, node);
    if (status != BLY_OK) { /* the node stays, as one that does nothing */
        blyi_node_release(node);
        blyi_capture_invalidate_locked(graph, blyi_fail_text());
    }
    return status;
}

bly_status blyi_capture_external(struct blyi_event *event, struct blyi_stream *stream, bool wait,
                                 uint32_t site)
{
    blyi_lock_take(&blyi_graphs_lock);
    bly_status status = external_locked(event, stream, wait, site);
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

/* ── Runs ─────────────────────────────────────────────────────────────────────────────────── */

/* Whether runs pass in the order of their places: nothing is on its way, or only what the same
 * thread had the same stream do before. */
static bool is_in_order(const struct blyi_event *event, const struct blyi_marker *marker)
{
    return blyi_queue_issued(event->mark) == blyi_queue_completed(event->mark) ||
           (event->marker.graph == marker->graph && event->marker.stream == marker->stream &&
            event->marker.thread == marker->thread);
}

/* A place in the event's mark. Runs of several streams end in any order, and who waits for one of
 * them shall not go on with another: then the next has a mark of its own. */
static bly_status take_place(struct blyi_event *event, const struct blyi_marker *marker,
                             struct blyi_passage *place)
{
    bly_status status = BLY_OK;
    struct blyi_stream *old = NULL;
    blyi_lock_take(&mark_lock);
    if (!is_in_order(event, marker)) {
        struct blyi_stream *fresh;
        status = make_mark(event, event->mark->id, &fresh);
        if (status == BLY_OK) {
            old = event->mark;
            event->mark = fresh;
        }
    }
    if (status == BLY_OK) {
        blyi_queue_ref(event->mark);
        event->marker = *marker;
        place->stream = event->mark;
        place->position = __atomic_fetch_add(&event->mark->issued, 1, __ATOMIC_ACQ_REL);
    }
    blyi_lock_drop(&mark_lock);
    if (old != NULL)
        blyi_queue_unref(old);
    return status;
}

static void pass(struct blyi_passage *place)
{
    if (place->stream == NULL || place->passed)
        return;
    place->passed = true;
    blyi_lock_take(&mark_lock);
    blyi_queue_complete(place->stream, BLY_OK);
    blyi_lock_drop(&mark_lock);
}

static struct blyi_event *event_of(const struct blyi_node *node)
{
    return node->task.u.event.event;
}

static bly_status take_places(struct blyi_graph *graph, const struct blyi_marker *marker,
                              struct blyi_crossing *run)
{
    bly_status status = BLY_OK;
    for (uint32_t i = 0; i < run->n_records && status == BLY_OK; i++)
        status = take_place(event_of(graph->external_records[i]), marker,
                            &run->places[run->n_waits + i]);
    for (uint32_t i = 0; i < run->n_waits && status == BLY_OK; i++)
        if (!blyi_event_last(event_of(graph->external_waits[i]), &run->places[i].stream,
                             &run->places[i].position))
            run->places[i].stream = NULL;
    return status;
}

bly_status blyi_crossing_make(struct blyi_graph *graph, const struct blyi_stream *stream,
                              struct blyi_outcome *outcome, struct blyi_crossing **out)
{
    uint32_t n = graph->n_waits + graph->n_records;
    bool keeps_sources = blyi_graph_has_sources(graph);
    *out = NULL;
    if (n == 0 && outcome == NULL && !keeps_sources)
        return BLY_OK;
    struct blyi_crossing *run = blyi_host_calloc(1, sizeof(*run) + n * sizeof(run->places[0]));
    if (run == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a run",
                         graph->id);
    run->keeps_sources = keeps_sources;
    run->n_waits = graph->n_waits;
    run->n_records = graph->n_records;
    const struct blyi_marker marker = {graph->id, stream->id, blyi_own_tid()};
    bly_status status = take_places(graph, &marker, run);
    if (status != BLY_OK) {
        blyi_crossing_pass_all(run);
        blyi_crossing_free(run);
        return status;
    }
    if (outcome != NULL)
        blyi_outcome_ref(outcome);
    run->outcome = outcome;
    *out = run;
    return BLY_OK;
}

void blyi_crossing_free(struct blyi_crossing *run)
{
    if (run == NULL)
        return;
    for (uint32_t i = 0; i < run->n_waits + run->n_records; i++)
        if (run->places[i].stream != NULL)
            blyi_queue_unref(run->places[i].stream);
    if (run->outcome != NULL)
        blyi_outcome_unref(run->outcome);
    blyi_graph_drop_sources(run);
    blyi_host_free(run);
}

void blyi_crossing_issue(struct blyi_graph *graph, const struct blyi_crossing *run)
{
    for (uint32_t i = 0; run != NULL && i < run->n_records; i++) {
        const struct blyi_passage *place = &run->places[run->n_waits + i];
        blyi_event_set_last(event_of(graph->external_records[i]), place->stream, place->position);
    }
}

void blyi_node_pass(const struct blyi_node *node)
{
    struct blyi_crossing *run = node->line->graph->run;
    pass(&run->places[run->n_waits + node->external]);
}

void blyi_crossing_pass_all(struct blyi_crossing *run)
{
    for (uint32_t i = 0; run != NULL && i < run->n_records; i++)
        pass(&run->places[run->n_waits + i]);
}

/* ── What becomes of a run that somebody waits for ────────────────────────────────────────── */

struct blyi_outcome *blyi_outcome_make(const struct blyi_graph *graph)
{
    struct blyi_outcome *outcome = blyi_host_calloc(1, sizeof(*outcome));
    if (outcome == NULL)
        (void)blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a run",
                        graph->id);
    else
        outcome->refs = 1;
    return outcome;
}

void blyi_outcome_ref(struct blyi_outcome *outcome)
{
    __atomic_fetch_add(&outcome->refs, 1, __ATOMIC_RELAXED);
}

void blyi_outcome_unref(struct blyi_outcome *outcome)
{
    if (blyi_ref_drop(&outcome->refs))
        blyi_host_free(outcome);
}

void blyi_crossing_tell(struct blyi_crossing *run, bly_status status)
{
    if (status == BLY_OK || run == NULL || run->outcome == NULL)
        return;
    run->outcome->status = status;
    snprintf(run->outcome->text, sizeof(run->outcome->text), "%s", blyi_fail_text());
}
