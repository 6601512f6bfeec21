/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_execute.c - asking for runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/fail.h"
#include "base/probe.h"
#include "base/sys.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/stream.h"

static bly_status check_locked(const struct blyi_graph *graph)
{
    if (graph->parent != NULL)
        return blyi_fail(BLY_E_INVALID,
                         "graph %" PRIu32 " is a body of graph %" PRIu32 " and runs with it",
                         graph->id, graph->parent->id);
    switch (blyi_graph_state(graph)) {
    case BLYI_GRAPH_READY:
        return BLY_OK;
    case BLYI_GRAPH_GONE:
        return blyi_fail(BLY_E_HANDLE, "graph %" PRIu32 " is being destroyed", graph->id);
    default:
        return blyi_fail(BLY_E_GRAPH_CAPTURING, "graph %" PRIu32 " is being %s", graph->id,
                         graph->built ? "built" : "captured");
    }
}

/* Counts the run, so that the graph stays as it is until that has ended. */
static bly_status take_run(struct blyi_graph *graph)
{
    blyi_lock_take(&blyi_graphs_lock);
    bly_status status = check_locked(graph);
    if (status == BLY_OK)
        __atomic_add_fetch(&graph->n_queued, 1, __ATOMIC_ACQ_REL);
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

void blyi_graph_run_over(struct blyi_graph *graph)
{
    blyi_order_release(&graph->n_queued);
    if (__atomic_sub_fetch(&graph->n_queued, 1, __ATOMIC_ACQ_REL) == 0)
        blyi_sys_futex_wake(&graph->n_queued, INT32_MAX);
}

/* outcome: of a run in the order of nobody; else NULL. */
static bly_status queue(struct blyi_graph *graph, struct blyi_stream *stream, uint32_t site,
                        struct blyi_outcome *outcome)
{
    bool own = outcome != NULL;
    struct blyi_task task = {.kind = BLYI_TASK_GRAPH, .site = site};
    bly_status status = own ? blyi_engine_need(stream->card->id, BLYI_ENGINE_COPY)
                            : blyi_queue_ready(stream, BLYI_TASK_GRAPH);
    if (status == BLY_OK)
        status = take_run(graph);
    if (status != BLY_OK)
        return status;
    status = blyi_crossing_make(graph, stream, outcome, &task.u.graph.run);
    if (status != BLY_OK) {
        blyi_graph_run_over(graph);
        return status;
    }
    blyi_graph_ref(graph);
    task.u.graph.graph = graph;
    task.u.graph.stream = stream;
    blyi_crossing_issue(graph, task.u.graph.run);
    BLYI_PROBE(GRAPH_RUN, .card = stream->card->id, .stream = stream->id, .event = graph->id,
               .site = site);
    if (own)
        blyi_queue_put_own(stream, &task);
    else
        blyi_queue_put(stream, &task);
    return BLY_OK;
}

bly_status blyi_graph_execute(void *handle, void *stream_handle, uint32_t site)
{
    struct blyi_graph *graph;
    struct blyi_stream *stream;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    status = blyi_stream_pin(stream_handle, &stream);
    if (status == BLY_OK) {
        status = queue(graph, stream, site, NULL);
        blyi_stream_unpin(stream);
    }
    blyi_graph_unpin(graph);
    return status;
}

/* The stream on which the graph runs in the order of nobody, made at the first need. */
static bly_status need_alone(struct blyi_graph *graph, uint32_t site, struct blyi_stream **out)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    blyi_lock_take(&blyi_graphs_lock);
    if (status == BLY_OK)
        status = check_locked(graph);
    if (status == BLY_OK && graph->alone == NULL)
        status = blyi_stream_make_inside(&here, site, &graph->alone);
    if (status == BLY_OK) {
        blyi_queue_ref(graph->alone);
        *out = graph->alone;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

/* Several threads may run the graph at once: each hears of its own run. */
static bly_status run_alone(struct blyi_graph *graph, struct blyi_outcome *outcome,
                            uint64_t timeout_ns, uint32_t site)
{
    struct blyi_stream *stream = NULL;
    bly_status status = need_alone(graph, site, &stream);
    if (status != BLY_OK)
        return status;
    status = queue(graph, stream, site, outcome);
    if (status == BLY_OK) {
        status = blyi_queue_await(stream, blyi_queue_issued(stream), timeout_ns);
        if (status == BLY_E_TIMEOUT)
            (void)blyi_fail(status, "graph %" PRIu32 " has not ended within %" PRIu64 " ms",
                            graph->id, timeout_ns / 1000000);
    }
    if (status == BLY_OK) {
        BLYI_PROBE(STREAM_SYNC, .card = stream->card->id, .stream = stream->id);
        if (blyi_queue_take_failure(stream) != BLY_OK)
            blyi_fail_clear(); /* the first of all runs; ours follows */
        if (outcome->status != BLY_OK)
            status = blyi_fail(outcome->status, "%s", outcome->text);
    }
    blyi_queue_unref(stream);
    return status;
}

bly_status blyi_graph_execute_now(void *handle, uint64_t timeout_ns, uint32_t site)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    struct blyi_outcome *outcome = blyi_outcome_make(graph);
    status = outcome != NULL ? run_alone(graph, outcome, timeout_ns, site) : blyi_fail_code();
    if (outcome != NULL)
        blyi_outcome_unref(outcome);
    blyi_graph_unpin(graph);
    return status;
}
