/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_drop.c - runs as others see them: dropped with their stream, stopped, stuck, or one's own.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"

static void drop_lines_locked(struct blyi_graph *graph)
{
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        line->n_drops++;
        blyi_stream_drop_mark(line->stream);
    }
}

/* The stream of the run's nth line, referenced; NULL: there is none, or the stream runs nothing. */
static struct blyi_stream *nth_line(const struct blyi_stream *stream, uint32_t n)
{
    struct blyi_stream *found = NULL;
    blyi_lock_take(&blyi_runs_lock);
    struct blyi_graph *graph = stream->run_in;
    if (graph != NULL && graph->runner == stream)
        BLYI_LIST_FOR(node, &graph->lines)
        {
            struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
            if (line->number == n) {
                found = line->stream;
                blyi_queue_ref(found);
            }
        }
    blyi_lock_drop(&blyi_runs_lock);
    return found;
}

struct blyi_stream *blyi_graph_waits_for(const struct blyi_stream *stream, uint32_t n)
{
    struct blyi_stream *runner = NULL;
    if (likely(__atomic_load_n(&stream->run_in, __ATOMIC_ACQUIRE) == NULL))
        return NULL;
    blyi_lock_take(&blyi_runs_lock);
    const struct blyi_graph *graph = stream->run_in;
    if (graph != NULL && graph->runner != stream && n == 0) {
        runner = graph->runner;
        blyi_queue_ref(runner);
    }
    blyi_lock_drop(&blyi_runs_lock);
    return runner != NULL ? runner : nth_line(stream, n);
}

/* Out of the list; the caller hands it to an engine. */
static bool leave_list_locked(struct blyi_graph *graph, struct blyi_stream *stream)
{
    struct blyi_stream *before = NULL, *at = graph->first;
    while (at != NULL && at != stream) {
        before = at;
        at = at->next;
    }
    if (at == NULL)
        return false;
    if (before == NULL)
        graph->first = at->next;
    else
        before->next = at->next;
    if (graph->last == at)
        graph->last = before;
    __atomic_store_n(&stream->run_in, NULL, __ATOMIC_RELEASE);
    return true;
}

/* What the marked lines wait for: bodies that they run end too. */
static void drop_rest(const struct blyi_stream *stream)
{
    struct blyi_stream *line;
    for (uint32_t n = 0; (line = nth_line(stream, n)) != NULL; n++) {
        blyi_stream_drop_rest(line);
        blyi_queue_unref(line);
    }
}

void blyi_graph_drop_run(struct blyi_stream *stream)
{
    bool waits = false, runs = false;
    if (likely(__atomic_load_n(&stream->run_in, __ATOMIC_SEQ_CST) == NULL))
        return;
    blyi_lock_take(&blyi_runs_lock);
    struct blyi_graph *graph = stream->run_in;
    if (graph != NULL && graph->runner == stream) {
        runs = graph->n_active > 0; /* else it is about to go on by itself */
        if (runs) {
            graph->dropped = true;
            drop_lines_locked(graph);
        }
    } else if (graph != NULL) {
        waits = leave_list_locked(graph, stream);
    }
    blyi_lock_drop(&blyi_runs_lock);
    if (waits)
        blyi_engine_push(stream);
    if (runs)
        drop_rest(stream);
}

bool blyi_graph_stop_kernels(struct blyi_stream *stream)
{
    bool stopped = false;
    struct blyi_stream *line;
    if (likely(__atomic_load_n(&stream->run_in, __ATOMIC_RELAXED) == NULL))
        return false;
    for (uint32_t n = 0; (line = nth_line(stream, n)) != NULL; n++) {
        stopped |= blyi_kernel_stop(line);
        blyi_queue_unref(line);
    }
    return stopped;
}

bool blyi_graph_is_inside(const struct blyi_stream *line, const struct blyi_stream *stream)
{
    bool inside = false;
    blyi_lock_take(&blyi_runs_lock);
    while (line != NULL && line->line != NULL && !inside) {
        line = line->line->graph->runner;
        inside = line == stream;
    }
    blyi_lock_drop(&blyi_runs_lock);
    return inside;
}

bool blyi_graph_is_own_run(const struct blyi_graph *graph)
{
    bool own = false;
    blyi_lock_take(&blyi_runs_lock);
    for (const struct blyi_callback_frame *at = blyi_callback_frames(); at != NULL; at = at->outer)
        for (const struct blyi_stream *line = at->stream;
             line != NULL && line->line != NULL && !own; line = line->line->graph->runner)
            own = line->line->graph == graph;
    blyi_lock_drop(&blyi_runs_lock);
    return own;
}

static bool is_stuck_locked(struct blyi_stream *stream)
{
    const struct blyi_graph *graph = stream->run_in;
    if (graph == NULL || graph->n_active == 0)
        return false;
    bool stuck = false, moves = false;
    BLYI_LIST_FOR(node, &graph->lines)
    {
        struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
        if (!line->active)
            continue;
        if (blyi_block_is_stuck(line->stream) || is_stuck_locked(line->stream))
            stuck = true;
        else if (!blyi_block_is_blocked(line->stream) && line->stream->run_in == NULL)
            moves = true;
    }
    return stuck && !moves;
}

bool blyi_graph_is_stuck(struct blyi_stream *stream)
{
    if (likely(__atomic_load_n(&stream->run_in, __ATOMIC_RELAXED) == NULL))
        return false;
    blyi_lock_take(&blyi_runs_lock);
    bool stuck = is_stuck_locked(stream);
    blyi_lock_drop(&blyi_runs_lock);
    return stuck;
}

bly_status blyi_graph_abort(void *handle)
{
    struct blyi_graph *graph;
    struct blyi_stream *runner = NULL;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    if (!graph->built)
        status = blyi_fail(BLY_E_UNSUPPORTED,
                           "graph %" PRIu32 " was captured: runs of such graphs are not aborted",
                           graph->id);
    if (status == BLY_OK) {
        blyi_lock_take(&blyi_runs_lock);
        if (graph->runner != NULL && graph->n_active > 0) {
            runner = graph->runner;
            blyi_queue_ref(runner);
            graph->aborted = true;
            drop_lines_locked(graph);
        }
        blyi_lock_drop(&blyi_runs_lock);
    }
    if (runner != NULL) {
        drop_rest(runner);
        blyi_graph_stop_kernels(runner);
        blyi_queue_unref(runner);
    }
    blyi_graph_unpin(graph);
    return status;
}
