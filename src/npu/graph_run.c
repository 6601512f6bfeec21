/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_run.c - runs: who runs a graph, who waits for his turn, and how a run ends.
 *
 *      stream at a GRAPH task ──> runner ──> FEED on each line's stream ── nodes ── DONE
 *          (no owner meanwhile)     ▲                                             │
 *          goes on <── last line ───┼─────────────────────────────────────────────┘
 *      others at GRAPH tasks ──> in a list, without an owner; one becomes runner next
 *
 * A stream that runs a graph or waits to is owned by nobody but the graph: whoever takes it out
 * hands it to an engine, and its task is looked at afresh. Its task is marked BEGUN once lines
 * were started for it. One lock, rank GRAPH_RUN.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/copy_inside.h"
#include "npu/engine.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/told.h"

struct blyi_lock blyi_runs_lock = BLYI_LOCK_INIT(BLYI_RANK_GRAPH_RUN);

/* ── Lines ────────────────────────────────────────────────────────────────────────────────── */

static void put_feed(struct blyi_line *line)
{
    struct blyi_task task = {.kind = BLYI_TASK_FEED};
    task.u.line.line = line;
    blyi_queue_put_own(line->stream, &task);
}

/* One of those that keep the run going has ended; the last one hands its runner on. */
static void end_one(struct blyi_graph *graph, struct blyi_line *line)
{
    struct blyi_stream *runner = NULL;
    blyi_line_tell_end(line, graph->runner); /* which stays as long as a line is active */
    blyi_lock_take(&blyi_runs_lock);
    line->active = false;
    if (--graph->n_active == 0)
        runner = graph->runner;
    blyi_lock_drop(&blyi_runs_lock);
    if (runner != NULL)
        blyi_engine_push(runner);
}

bly_status blyi_line_start(struct blyi_line *line, uint32_t node, const struct blyi_stream *by)
{
    blyi_lock_take(&blyi_runs_lock);
    bool starts = !line->active;
    if (starts) {
        line->active = true;
        line->next = node;
        line->graph->n_active++; /* the caller's own line is one, so the run goes on */
    }
    blyi_lock_drop(&blyi_runs_lock);
    if (!starts)
        return blyi_fail(BLY_E_STATE,
                         "graph %" PRIu32 ": stream %" PRIu32 " was activated while its tasks run",
                         line->graph->id, line->stream->id);
    blyi_line_tell_begin(line, by);
    put_feed(line);
    return BLY_OK;
}

/* Starts the lines that run from the beginning. True: all have ended already. */
static bool start(struct blyi_graph *graph, const struct blyi_stream *runner)
{
    blyi_lock_take(&blyi_runs_lock);
    graph->n_active = 1; /* ours, so that the run does not end while we start it */
    graph->ended = false;
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        line->base = blyi_queue_issued(line->stream);
        line->next = 0;
        line->active = line->head;
        graph->n_active += line->head;
    }
    blyi_lock_drop(&blyi_runs_lock);
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        if (!line->head)
            continue;
        blyi_line_tell_begin(line, runner);
        put_feed(line);
    }
    blyi_lock_take(&blyi_runs_lock);
    bool over = --graph->n_active == 0;
    blyi_lock_drop(&blyi_runs_lock);
    return over;
}

/* ── Runners ──────────────────────────────────────────────────────────────────────────────── */

enum turn { TURN_OURS, TURN_LATER, TURN_DROPPED };

/* The stream runs the graph from now on, or waits in its list. */
static enum turn take_turn(struct blyi_graph *graph, struct blyi_stream *stream)
{
    enum turn turn = TURN_OURS;
    blyi_lock_take(&blyi_runs_lock);
    /* Who drops the stream's tasks says so first, and then looks where it waits. */
    if (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) {
        turn = TURN_DROPPED;
    } else if (graph->runner != NULL && graph->runner != stream) {
        turn = TURN_LATER;
        __atomic_store_n(&stream->run_in, graph, __ATOMIC_SEQ_CST);
        stream->next = NULL;
        if (graph->first == NULL)
            graph->first = stream;
        else
            graph->last->next = stream;
        graph->last = stream;
    } else {
        __atomic_store_n(&stream->run_in, graph, __ATOMIC_SEQ_CST);
        graph->runner = stream;
    }
    blyi_lock_drop(&blyi_runs_lock);
    return turn;
}

static void let_lines_go_locked(struct blyi_graph *graph)
{
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        for (; line->n_drops > 0; line->n_drops--)
            blyi_stream_drop_end(line->stream);
    }
}

/* The stream is not the runner any more; the next one is. */
static void give_turn(struct blyi_graph *graph, struct blyi_stream *stream)
{
    struct blyi_stream *next = NULL;
    blyi_lock_take(&blyi_runs_lock);
    if (graph->runner == stream) {
        let_lines_go_locked(graph);
        next = graph->first;
        if (next != NULL)
            graph->first = next->next;
        graph->runner = next;
        graph->run = NULL;
        graph->aborted = false;
        graph->dropped = false;
        __atomic_store_n(&stream->run_in, NULL, __ATOMIC_RELEASE);
    }
    blyi_lock_drop(&blyi_runs_lock);
    if (next != NULL)
        blyi_engine_push(next);
}

/* The first failure of the run's lines; the sentence of this thread is its. */
static bly_status failure_of(struct blyi_graph *graph)
{
    char text[BLYI_FAIL_MAX];
    bly_status first = BLY_OK;
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        bly_status status = blyi_queue_take_failure(line->stream);
        if (status != BLY_OK && first == BLY_OK) {
            first = status;
            snprintf(text, sizeof(text), "%s", blyi_fail_text());
        }
    }
    if (first != BLY_OK)
        return blyi_fail(first, "%s", text);
    if (graph->aborted)
        return blyi_fail(BLY_E_GRAPH_ABORTED, "the run of graph %" PRIu32 " was aborted",
                         graph->id);
    if (graph->built && !graph->ended && !graph->dropped)
        return blyi_fail(BLY_E_STATE,
                         "graph %" PRIu32 ": all of its streams have stopped, and none came to the "
                         "end task",
                         graph->id);
    return BLY_OK;
}

/* ── Tasks ────────────────────────────────────────────────────────────────────────────────── */

static bool run_graph(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct blyi_graph *graph = task->u.graph.graph;
    if ((task->flags & BLYI_TASK_BEGUN) == 0) {
        switch (take_turn(graph, stream)) {
        case TURN_LATER:
            return false;
        case TURN_DROPPED:
            return true;
        case TURN_OURS:
            break;
        }
        *status = blyi_condition_assign(graph);
        if (*status != BLY_OK) {
            blyi_crossing_tell(task->u.graph.run, *status);
            return true;
        }
        graph->run = task->u.graph.run;
        task->flags |= BLYI_TASK_BEGUN;
        if (!start(graph, stream))
            return false;
    }
    *status = failure_of(graph);
    blyi_crossing_tell(task->u.graph.run, *status);
    return true;
}

/* A condition: runs bodies as long as its word says so. */
static bool run_body(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct blyi_condition *condition = task->u.graph.node->condition;
    for (;;) {
        struct blyi_graph *body = task->u.graph.graph;
        if (task->flags & BLYI_TASK_BEGUN) {
            *status = failure_of(body);
            task->flags &= (uint8_t)~BLYI_TASK_BEGUN;
            task->u.graph.graph = NULL;
            give_turn(body, stream);
            if (*status != BLY_OK || condition->kind != BLYI_CONDITION_WHILE)
                return true;
        }
        *status = blyi_condition_choose(condition, &body);
        if (*status != BLY_OK || body == NULL || take_turn(body, stream) != TURN_OURS)
            return true;
        task->u.graph.graph = body;
        task->u.graph.stream = stream;
        task->flags |= BLYI_TASK_BEGUN;
        if (!start(body, stream))
            return false;
    }
}

bly_status blyi_graph_dropped(struct blyi_task *task)
{
    if ((task->kind != BLYI_TASK_GRAPH && task->kind != BLYI_TASK_BODY) ||
        (task->flags & BLYI_TASK_BEGUN) == 0)
        return BLY_OK;
    bly_status status = failure_of(task->u.graph.graph);
    if (task->kind == BLYI_TASK_GRAPH)
        blyi_crossing_tell(task->u.graph.run, status);
    return status;
}

static void reach_end(const struct blyi_stream *stream)
{
    struct blyi_graph *graph = stream->line->graph;
    blyi_lock_take(&blyi_runs_lock);
    graph->ended = true;
    blyi_lock_drop(&blyi_runs_lock);
}

bool blyi_graph_run(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_GRAPH:
        return run_graph(stream, task, status);
    case BLYI_TASK_BODY:
        return run_body(stream, task, status);
    case BLYI_TASK_FEED:
        task->flags |= BLYI_TASK_BEGUN;
        blyi_line_feed(task->u.line.line);
        break;
    case BLYI_TASK_UPDATE:
        blyi_update_run(task);
        break;
    case BLYI_TASK_JUMP:
        *status = blyi_line_jump(task, stream->line);
        break;
    case BLYI_TASK_SWITCH:
        *status = blyi_line_switch(task, stream->line);
        break;
    case BLYI_TASK_ACTIVATE:
        *status = blyi_line_start(task->u.node.node->target, 0, stream);
        break;
    case BLYI_TASK_END:
        reach_end(stream);
        break;
    default: /* DONE and MARK do all when they are discarded: then also if they do not run */
        break;
    }
    return true;
}

static void discard_graph(struct blyi_task *task)
{
    struct blyi_graph *graph = task->u.graph.graph;
    blyi_crossing_pass_all(task->u.graph.run);
    give_turn(graph, task->u.graph.stream);
    blyi_crossing_free(task->u.graph.run);
    blyi_graph_run_over(graph);
    blyi_graph_unref(graph);
}

void blyi_graph_discard(struct blyi_task *task)
{
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_GRAPH:
        discard_graph(task);
        break;
    case BLYI_TASK_BODY:
        if (task->flags & BLYI_TASK_BEGUN)
            give_turn(task->u.graph.graph, task->u.graph.stream);
        break;
    case BLYI_TASK_FEED:
        if ((task->flags & BLYI_TASK_BEGUN) == 0)
            end_one(task->u.line.line->graph, task->u.line.line);
        break;
    case BLYI_TASK_DONE:
        end_one(task->u.line.line->graph, task->u.line.line);
        break;
    case BLYI_TASK_MARK:
        blyi_node_pass(task->u.node.node);
        break;
    case BLYI_TASK_UPDATE:
        blyi_update_discard(task);
        break;
    default:
        break;
    }
}
