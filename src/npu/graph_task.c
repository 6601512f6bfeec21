/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_task.c - what a program can learn of a graph's streams and tasks.
 */
#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/memory.h"
#include "npu/runtime.h"
#include "npu/stream.h"

/* ── Lists ────────────────────────────────────────────────────────────────────────────────── */

static bly_status check_there_locked(const struct blyi_graph *graph)
{
    if (blyi_graph_state(graph) != BLYI_GRAPH_GONE)
        return BLY_OK;
    return blyi_fail(BLY_E_HANDLE, "graph %" PRIu32 " was destroyed", graph->id);
}

static bly_status too_short(const struct blyi_graph *graph, uint32_t room, uint32_t n,
                            const char *what)
{
    return blyi_fail(BLY_E_TOO_SHORT,
                     "graph %" PRIu32 " has %" PRIu32 " %s, the array has room for %" PRIu32,
                     graph->id, n, what, room);
}

bly_status blyi_graph_streams(void *handle, void *streams[], uint32_t *n)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    uint32_t count = graph->n_lines - graph->n_unbound, i = 0;
    status = check_there_locked(graph);
    if (status == BLY_OK && streams != NULL && *n < count)
        status = too_short(graph, *n, count, "streams");
    if (status == BLY_OK && streams != NULL)
        BLYI_LIST_FOR(node, &graph->lines)
        {
            const struct blyi_line *line = BLYI_CONTAINER(node, struct blyi_line, link);
            if (line->stream->line == line)
                streams[i++] = line->stream->handle;
        }
    if (status == BLY_OK)
        *n = count;
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_graph_unpin(graph);
    return status;
}

static void handle_gone(void *object)
{
    struct blyi_node *node = object;
    blyi_graph_unref(node->line->graph);
}

static bly_status need_handle(struct blyi_node *node)
{
    if (node->handle != NULL)
        return BLY_OK;
    bly_status status =
        blyi_handle_create(BLYI_HANDLE_GRAPH_TASK, node, handle_gone, &node->handle);
    if (status == BLY_OK)
        blyi_graph_ref(node->line->graph);
    return status;
}

static bly_status check_line_locked(const struct blyi_stream *stream)
{
    const struct blyi_line *line = stream->line;
    if (line == NULL)
        return blyi_fail(BLY_E_INVALID, "stream %" PRIu32 " executes no graph", stream->id);
    if (line->graph->parent != NULL)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "stream %" PRIu32 " executes graph %" PRIu32
                         ", a body, whose tasks are not told",
                         stream->id, line->graph->id);
    return check_there_locked(line->graph);
}

static bly_status list_tasks_locked(const struct blyi_line *line, void *tasks[], uint32_t *n)
{
    if (tasks != NULL && *n < line->n_nodes)
        return too_short(line->graph, *n, line->n_nodes, "tasks on that stream");
    for (uint32_t i = 0; tasks != NULL && i < line->n_nodes; i++) {
        bly_status status = need_handle(blyi_node_at(line, i));
        if (status != BLY_OK)
            return status;
    }
    for (uint32_t i = 0; tasks != NULL && i < line->n_nodes; i++)
        tasks[i] = blyi_node_at(line, i)->handle;
    *n = line->n_nodes;
    return BLY_OK;
}

bly_status blyi_graph_tasks(void *handle, void *tasks[], uint32_t *n)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = check_line_locked(stream);
    if (status == BLY_OK)
        status = list_tasks_locked(stream->line, tasks, n);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_stream_unpin(stream);
    return status;
}

/* ── One task ─────────────────────────────────────────────────────────────────────────────── */

bly_status blyi_node_take(void *handle, struct blyi_node **node)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    *node = blyi_handle_get(BLYI_HANDLE_GRAPH_TASK, handle);
    if (*node == NULL)
        return BLY_E_HANDLE;
    blyi_lock_take(&blyi_graphs_lock);
    status = check_there_locked((*node)->line->graph);
    if (status != BLY_OK) {
        blyi_lock_drop(&blyi_graphs_lock);
        blyi_handle_put(handle);
    }
    return status;
}

void blyi_node_give(void *handle)
{
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_handle_put(handle);
}

enum blyi_graph_task blyi_node_kind(const struct blyi_node *node)
{
    switch ((enum blyi_task_kind)node->task.kind) {
    case BLYI_TASK_KERNEL:
        return node->kept->launch->engine <= BLY_ENGINE_CUBE ? BLYI_GRAPH_KERNEL : BLYI_GRAPH_OTHER;
    case BLYI_TASK_RECORD:
    case BLYI_TASK_MARK:
        return BLYI_GRAPH_RECORD;
    case BLYI_TASK_WAIT:
        return BLYI_GRAPH_WAIT;
    case BLYI_TASK_RESET:
        return BLYI_GRAPH_RESET;
    case BLYI_TASK_VALUE_WRITE:
        return BLYI_GRAPH_WRITE;
    case BLYI_TASK_VALUE_WAIT:
        return BLYI_GRAPH_VALUE_WAIT;
    default:
        return BLYI_GRAPH_OTHER;
    }
}

bly_status blyi_graph_task_kind(void *handle, enum blyi_graph_task *kind)
{
    struct blyi_node *node;
    bly_status status = blyi_node_take(handle, &node);
    if (status != BLY_OK)
        return status;
    *kind = blyi_node_kind(node);
    blyi_node_give(handle);
    return BLY_OK;
}

bly_status blyi_graph_task_number(void *handle, uint32_t *number)
{
    struct blyi_node *node;
    bly_status status = blyi_node_take(handle, &node);
    if (status != BLY_OK)
        return status;
    if (node->line->graph->built)
        status =
            blyi_fail(BLY_E_UNSUPPORTED, "graph %" PRIu32 " was built: its tasks have no number",
                      node->line->graph->id);
    else
        *number = node->number;
    blyi_node_give(handle);
    return status;
}

static void tell_kernel(const struct blyi_kept *kept, struct blyi_graph_params *params)
{
    struct blyi_launch *launch = kept->launch;
    bool on_card = launch->card_args != NULL;
    params->u.kernel.function = launch->function;
    params->u.kernel.args =
        on_card ? (void *)(uintptr_t)launch->card_args : blyi_launch_args(launch);
    params->u.kernel.args_size = launch->args_size;
    params->u.kernel.n_blocks = launch->n_blocks;
    params->u.kernel.args_on_card = on_card;
}

bly_status blyi_graph_task_params(void *handle, struct blyi_graph_params *params)
{
    struct blyi_node *node;
    bly_status status = blyi_node_take(handle, &node);
    if (status != BLY_OK)
        return status;
    struct blyi_graph_params found = {.kind = blyi_node_kind(node)};
    const struct blyi_task *task = &node->task;
    found.group = node->group != NULL ? node->group->handle : NULL;
    switch (found.kind) {
    case BLYI_GRAPH_OTHER:
        status = blyi_fail(BLY_E_INVALID,
                           "task %" PRIu32 " of graph %" PRIu32
                           " is of a kind that has no parameters to tell",
                           node->number, node->line->graph->id);
        break;
    case BLYI_GRAPH_KERNEL:
        tell_kernel(node->kept, &found);
        break;
    case BLYI_GRAPH_RECORD:
    case BLYI_GRAPH_WAIT:
    case BLYI_GRAPH_RESET:
        found.u.event.event = task->u.event.event->handle;
        found.u.event.flags = task->u.event.event->flags;
        found.u.event.external = (task->flags & BLYI_TASK_EXTERNAL) != 0;
        break;
    case BLYI_GRAPH_WRITE:
    case BLYI_GRAPH_VALUE_WAIT:
        found.u.value.address = task->u.value.address;
        found.u.value.value = task->u.value.value;
        found.u.value.condition = task->value;
        break;
    }
    if (status == BLY_OK)
        *params = found;
    blyi_node_give(handle);
    return status;
}
