/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - graphs as handles: making, destroying, lines and their streams.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/assert.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/probe.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/roll.h"
#include "npu/runtime.h"
#include "npu/stream.h"
#include "npu/wait.h"

/* How long a destruction waits for runs, as the card's own runtime does. */
#define RUNS_END_NS ((uint64_t)10 * 1000000000u)

struct blyi_lock blyi_graphs_lock = BLYI_LOCK_INIT(BLYI_RANK_GRAPH);
struct blyi_list blyi_graphs = BLYI_LIST_INIT(blyi_graphs);
static uint32_t last_id;

/* ── Structures ───────────────────────────────────────────────────────────────────────────── */

static void free_line(struct blyi_line *line)
{
    for (uint32_t i = 0; i < line->n_blocks; i++)
        blyi_host_free(line->blocks[i]);
    blyi_host_free(line->blocks);
    blyi_queue_unref(line->stream);
    blyi_host_free(line);
}

void blyi_graph_ref(struct blyi_graph *graph)
{
    __atomic_fetch_add(&graph->refs, 1, __ATOMIC_RELAXED);
}

void blyi_graph_unref(struct blyi_graph *graph)
{
    if (!blyi_ref_drop(&graph->refs))
        return;
    BLYI_LIST_FOR_SAFE(node, &graph->lines)
    free_line(BLYI_CONTAINER(node, struct blyi_line, link));
    BLYI_LIST_FOR_SAFE(node, &graph->groups)
    blyi_group_free(BLYI_CONTAINER(node, struct blyi_group, link));
    BLYI_LIST_FOR_SAFE(node, &graph->conditions)
    blyi_condition_free(BLYI_CONTAINER(node, struct blyi_condition, link));
    blyi_host_free(graph->external_waits);
    blyi_host_free(graph->external_records);
    blyi_host_free(graph);
}

static void handle_gone(void *object)
{
    blyi_graph_unref(object);
}

bly_status blyi_graph_make(const struct blyi_context_here *here, uint32_t site,
                           struct blyi_graph **out)
{
    struct blyi_graph *graph = blyi_host_calloc(1, sizeof(*graph));
    if (graph == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a graph (%zu bytes)",
                         sizeof(*graph));
    graph->refs = 2; /* the handle's and the caller's */
    graph->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    graph->site = site;
    graph->context = here->context;
    graph->generation = here->generation;
    graph->card = here->card;
    blyi_list_init(&graph->link);
    blyi_list_init(&graph->lines);
    blyi_list_init(&graph->groups);
    blyi_list_init(&graph->conditions);
    blyi_list_init(&graph->callbacks);
    bly_status status = blyi_handle_create(BLYI_HANDLE_GRAPH, graph, handle_gone, &graph->handle);
    if (status != BLY_OK) {
        blyi_host_free(graph);
        return status;
    }
    blyi_list_push_back(&blyi_graphs, &graph->link);
    *out = graph;
    return BLY_OK;
}

bly_status blyi_stream_make_inside(const struct blyi_context_here *here, uint32_t site,
                                   struct blyi_stream **out)
{
    static struct blyi_divert own = {BLYI_DIVERT_OWN};
    struct blyi_stream *stream;
    void *handle;
    if (!blyi_card_take_stream(here->card))
        return blyi_roll_no_stream(here->card);
    bly_status status =
        blyi_stream_make(here, 0, BLYI_STREAM_INSIDE, site, false, &stream, &handle);
    if (status == BLY_OK && blyi_handle_get(BLYI_HANDLE_STREAM, handle) == NULL)
        status = BLY_E_NO_CONTEXT; /* ended with its context already */
    if (status != BLY_OK) {
        blyi_card_give_stream(here->card);
        return status;
    }
    blyi_queue_ref(stream);
    __atomic_store_n(&stream->divert, &own, __ATOMIC_RELEASE);
    blyi_handle_put(handle);
    *out = stream;
    return BLY_OK;
}

void blyi_stream_end_inside(struct blyi_stream *stream)
{
    /* Its context may end it at the same time. */
    if (__atomic_exchange_n(&stream->closing, 1, __ATOMIC_ACQ_REL) == 0)
        blyi_stream_end(stream, false, false);
}

bly_status blyi_line_add_locked(struct blyi_graph *graph, struct blyi_stream *stream, bool own,
                                struct blyi_line **out)
{
    struct blyi_line *line = blyi_host_calloc(1, sizeof(*line));
    if (line == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a line",
                         graph->id);
    line->graph = graph;
    line->stream = stream;
    line->own = own;
    line->head = true;
    line->number = graph->n_lines++;
    stream->line = line;
    blyi_list_push_back(&graph->lines, &line->link);
    *out = line;
    return BLY_OK;
}

bly_status blyi_line_make_locked(struct blyi_graph *graph, const struct blyi_context_here *here,
                                 uint32_t site, struct blyi_line **out)
{
    struct blyi_stream *stream = NULL;
    bly_status status = blyi_stream_make_inside(here, site, &stream);
    if (stream == NULL)
        return status;
    status = blyi_line_add_locked(graph, stream, true, out);
    if (status != BLY_OK) {
        blyi_stream_end_inside(stream);
        blyi_queue_unref(stream);
    }
    return status;
}

/* ── Handles ──────────────────────────────────────────────────────────────────────────────── */

bly_status blyi_graph_pin(void *handle, struct blyi_graph **out)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    *out = blyi_handle_get(BLYI_HANDLE_GRAPH, handle);
    return *out != NULL ? BLY_OK : BLY_E_HANDLE;
}

bly_status blyi_graph_pin_here(void *handle, struct blyi_graph **out)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status == BLY_OK)
        status = blyi_graph_pin(handle, out);
    if (status == BLY_OK &&
        ((*out)->context != here.context || (*out)->generation != here.generation)) {
        status = blyi_fail(BLY_E_GRAPH_CONTEXT,
                           "graph %" PRIu32 " belongs to another context (card %d) than the "
                           "current one (card %d)",
                           (*out)->id, (*out)->card->id, here.card->id);
        blyi_graph_unpin(*out);
    }
    return status;
}

void blyi_graph_unpin(struct blyi_graph *graph)
{
    blyi_handle_put(graph->handle);
}

/* ── The end ──────────────────────────────────────────────────────────────────────────────── */

static void end_line(struct blyi_line *line)
{
    if (line->own)
        blyi_stream_end_inside(line->stream);
    blyi_lock_take(&blyi_graphs_lock);
    line->stream->line = NULL;
    if (line->captured != NULL) {
        __atomic_store_n(&line->captured->divert, NULL, __ATOMIC_RELEASE);
        blyi_queue_unref(line->captured);
        line->captured = NULL;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    for (uint32_t i = 0; i < line->n_nodes; i++)
        blyi_node_release(blyi_node_at(line, i));
}

static void end_condition(struct blyi_condition *condition)
{
    if (condition->handle != NULL &&
        blyi_handle_remove(BLYI_HANDLE_CONDITION, condition->handle) != BLY_OK)
        blyi_fail_clear();
    for (uint32_t i = 0; condition->bodies != NULL && i < condition->n_bodies; i++)
        blyi_graph_end(condition->bodies[i], false);
    /* Not what the program freed, nor who has its address now. */
    if (condition->word != NULL &&
        (blyi_condition_check(condition) != BLY_OK || blyi_mem_free(condition->word, 0) != BLY_OK))
        blyi_fail_clear();
}

void blyi_graph_end(struct blyi_graph *graph, bool by_reset)
{
    blyi_lock_take(&blyi_graphs_lock);
    bool first = !blyi_list_empty(&graph->link);
    blyi_list_remove(&graph->link);
    /* A body, whose parent's capture has ended in a failure. */
    if (blyi_graph_state(graph) == BLYI_GRAPH_CAPTURING)
        blyi_capture_finish_locked(graph, BLYI_GRAPH_GONE);
    __atomic_store_n(&graph->state, BLYI_GRAPH_GONE, __ATOMIC_RELEASE);
    blyi_lock_drop(&blyi_graphs_lock);
    if (!first)
        return;
    if (blyi_handle_remove(BLYI_HANDLE_GRAPH, graph->handle) != BLY_OK)
        blyi_fail_clear();
    /* Nobody adds to a graph that is GONE, so its lists stand still. */
    BLYI_LIST_FOR(node, &graph->lines)
    end_line(BLYI_CONTAINER(node, struct blyi_line, link));
    BLYI_LIST_FOR(node, &graph->groups)
    {
        void *handle = BLYI_CONTAINER(node, struct blyi_group, link)->handle;
        if (handle != NULL && blyi_handle_remove(BLYI_HANDLE_TASK_GROUP, handle) != BLY_OK)
            blyi_fail_clear();
    }
    BLYI_LIST_FOR(node, &graph->conditions)
    end_condition(BLYI_CONTAINER(node, struct blyi_condition, link));
    if (graph->alone != NULL) {
        blyi_stream_end_inside(graph->alone);
        blyi_queue_unref(graph->alone);
        graph->alone = NULL;
    }
    blyi_graph_call_back(graph);
    BLYI_PROBE(GRAPH_DESTROY, .card = graph->card->id, .event = graph->id, .site = graph->site,
               .aux = by_reset);
    blyi_graph_unref(graph); /* the maker's */
}

static bly_status check_destroy_locked(const struct blyi_graph *graph)
{
    if (graph->parent != NULL)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "graph %" PRIu32 " is a body of graph %" PRIu32 " and ends with it",
                         graph->id, graph->parent->id);
    switch (blyi_graph_state(graph)) {
    case BLYI_GRAPH_CAPTURING:
        return blyi_fail(BLY_E_GRAPH_CAPTURING, "graph %" PRIu32 " is being captured", graph->id);
    case BLYI_GRAPH_GONE:
        return blyi_fail(BLY_E_HANDLE, "graph %" PRIu32 " is being destroyed", graph->id);
    default:
        return BLY_OK;
    }
}

/* GONE, once no run is queued. */
static bly_status take_away(struct blyi_graph *graph)
{
    uint64_t deadline = blyi_wait_deadline(RUNS_END_NS);
    for (;;) {
        uint32_t runs = 0;
        blyi_lock_take(&blyi_graphs_lock);
        bly_status status = check_destroy_locked(graph);
        if (status == BLY_OK)
            runs = __atomic_load_n(&graph->n_queued, __ATOMIC_ACQUIRE);
        if (status == BLY_OK && runs == 0)
            __atomic_store_n(&graph->state, BLYI_GRAPH_GONE, __ATOMIC_RELEASE);
        blyi_lock_drop(&blyi_graphs_lock);
        if (status == BLY_OK && runs == 0)
            blyi_order_acquire(&graph->n_queued);
        if (status != BLY_OK || runs == 0)
            return status;
        if (!blyi_wait_on(&graph->n_queued, runs, deadline))
            return blyi_fail(BLY_E_GRAPH_RUNNING,
                             "graph %" PRIu32 ": %" PRIu32 " run%s not ended within 10 s; it stays",
                             graph->id, runs, runs == 1 ? " has" : "s have");
    }
}

bly_status blyi_graph_destroy(void *handle)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    if (blyi_graph_is_own_run(graph))
        status = blyi_fail(BLY_E_GRAPH_RUNNING,
                           "graph %" PRIu32 " cannot be destroyed by a host function that it runs",
                           graph->id);
    if (status == BLY_OK)
        status = take_away(graph);
    if (status == BLY_OK)
        blyi_graph_end(graph, false);
    blyi_handle_put(handle);
    return status;
}

void blyi_graph_end_all(struct blyi_context *context, bool by_reset)
{
    for (;;) {
        struct blyi_graph *found = NULL;
        blyi_lock_take(&blyi_graphs_lock);
        BLYI_LIST_FOR(node, &blyi_graphs)
        {
            struct blyi_graph *graph = BLYI_CONTAINER(node, struct blyi_graph, link);
            if (graph->context == context && graph->parent == NULL) {
                found = graph;
                blyi_graph_ref(found);
                break;
            }
        }
        blyi_lock_drop(&blyi_graphs_lock);
        if (found == NULL)
            return;
        blyi_graph_end(found, by_reset);
        blyi_graph_unref(found);
    }
}
