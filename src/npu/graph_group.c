/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_group.c - groups of kernels that may be replaced.
 *
 * Kernels that are launched on an updating stream are queued there as UPDATE tasks: each puts its
 * launch in the place of the next one of the group when that stream comes to it. A run that goes
 * on at the same time takes the launch that it finds when it comes to the kernel.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/stream.h"

/* What a stream diverts to while it updates. */
struct update {
    struct blyi_divert divert;
    struct blyi_group *group; /* its graph is referenced */
    uint32_t next;
};

bly_status blyi_group_add_locked(struct blyi_group *group, struct blyi_node *node)
{
    bly_status status = blyi_node_list(&group->nodes, &group->n, node);
    if (status == BLY_OK)
        node->group = group;
    else
        blyi_capture_invalidate_locked(group->graph, blyi_fail_text());
    return status;
}

void blyi_group_free(struct blyi_group *group)
{
    blyi_host_free(group->nodes);
    blyi_host_free(group);
}

static void handle_gone(void *object)
{
    struct blyi_group *group = object;
    blyi_graph_unref(group->graph);
}

/* The captured stream of a call on groups. */
static bly_status find_line_locked(const struct blyi_stream *stream, struct blyi_line **line)
{
    *line = blyi_capture_line_locked(stream);
    if (*line != NULL)
        return BLY_OK;
    return blyi_fail(BLY_E_NOT_CAPTURING, "stream %" PRIu32 " is not being captured", stream->id);
}

static bly_status begin_locked(struct blyi_line *line)
{
    struct blyi_graph *graph = line->graph;
    bly_status status = blyi_capture_valid_locked(graph);
    if (status != BLY_OK)
        return status;
    if (graph->n_open != 0)
        return blyi_fail(BLY_E_GROUP_STATE, "graph %" PRIu32 ": a task group is open already",
                         graph->id);
    struct blyi_group *group = blyi_host_calloc(1, sizeof(*group));
    if (group == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a task group",
                         graph->id);
    group->graph = graph;
    blyi_list_push_back(&graph->groups, &group->link);
    line->group = group;
    graph->n_open++;
    graph->broken = BLY_OK;
    return BLY_OK;
}

bly_status blyi_group_begin(void *handle)
{
    struct blyi_stream *stream;
    struct blyi_line *line;
    bly_status status = blyi_stream_pin_own(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = find_line_locked(stream, &line);
    if (status == BLY_OK)
        status = begin_locked(line);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_stream_unpin(stream);
    return status;
}

/* The group ends in any case once it was open; *out: its handle. */
static bly_status end_locked(struct blyi_line *line, void **out)
{
    struct blyi_graph *graph = line->graph;
    struct blyi_group *group = line->group;
    if (group == NULL)
        return blyi_fail(BLY_E_GROUP_STATE, "stream %" PRIu32 " has no open task group",
                         line->captured->id);
    line->group = NULL;
    graph->n_open--;
    bly_status status = blyi_capture_valid_locked(graph);
    if (status == BLY_OK && graph->broken != BLY_OK)
        status = blyi_fail(graph->broken,
                           "graph %" PRIu32 ": a task of another stream came into the task group",
                           graph->id);
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_TASK_GROUP, group, handle_gone, &group->handle);
    if (status != BLY_OK)
        return status;
    blyi_graph_ref(graph); /* the handle's */
    *out = group->handle;
    return BLY_OK;
}

bly_status blyi_group_end(void *handle, void **out)
{
    struct blyi_stream *stream;
    struct blyi_line *line;
    bly_status status = blyi_stream_pin_own(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = find_line_locked(stream, &line);
    if (status == BLY_OK)
        status = end_locked(line, out);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_stream_unpin(stream);
    return status;
}

/* ── Updates ──────────────────────────────────────────────────────────────────────────────── */

static struct update *update_of(const struct blyi_stream *stream)
{
    struct blyi_divert *divert = blyi_queue_divert(stream);
    return divert != NULL && divert->mode == BLYI_DIVERT_UPDATE
               ? BLYI_CONTAINER(divert, struct update, divert)
               : NULL;
}

static bly_status check_update_locked(const struct blyi_stream *stream,
                                      const struct blyi_group *group)
{
    const struct blyi_divert *divert = blyi_queue_divert(stream);
    if (divert != NULL && divert->mode == BLYI_DIVERT_CAPTURE)
        return blyi_fail(BLY_E_CAPTURING, "stream %" PRIu32 " is being captured: it cannot update",
                         stream->id);
    if (divert != NULL && divert->mode == BLYI_DIVERT_UPDATE)
        return blyi_fail(BLY_E_GROUP_STATE, "stream %" PRIu32 " is updating a task group already",
                         stream->id);
    if (divert != NULL)
        return blyi_fail(BLY_E_GRAPH_STREAM, "stream %" PRIu32 " belongs to a graph", stream->id);
    if (group->graph->context != stream->context)
        return blyi_fail(BLY_E_GRAPH_CONTEXT,
                         "graph %" PRIu32 " of the task group belongs to another context",
                         group->graph->id);
    if (group->in_update)
        return blyi_fail(BLY_E_GROUP_STATE,
                         "the task group of graph %" PRIu32 " is being updated already",
                         group->graph->id);
    return BLY_OK;
}

static void begin_update_locked(struct blyi_stream *stream, struct blyi_group *group,
                                struct update *update)
{
    update->divert.mode = BLYI_DIVERT_UPDATE;
    update->group = group;
    group->in_update = true;
    blyi_graph_ref(group->graph);
    __atomic_store_n(&stream->divert, &update->divert, __ATOMIC_RELEASE);
}

bly_status blyi_update_begin(void *handle, void *group_handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_group *group = blyi_handle_get(BLYI_HANDLE_TASK_GROUP, group_handle);
    struct update *update = blyi_host_calloc(1, sizeof(*update));
    if (group == NULL)
        status = BLY_E_HANDLE;
    else if (update == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for an update");
    if (status == BLY_OK) {
        blyi_lock_take(&blyi_graphs_lock);
        status = check_update_locked(stream, group);
        if (status == BLY_OK)
            begin_update_locked(stream, group, update);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (status != BLY_OK)
        blyi_host_free(update);
    if (group != NULL)
        blyi_handle_put(group_handle);
    blyi_stream_unpin(stream);
    return status;
}

/* The caller lets go of the graph, and frees the update. */
static struct update *end_update_locked(struct blyi_stream *stream)
{
    struct update *update = update_of(stream);
    if (update == NULL)
        return NULL;
    __atomic_store_n(&stream->divert, NULL, __ATOMIC_RELEASE);
    update->group->in_update = false;
    return update;
}

void blyi_update_cancel_locked(struct blyi_stream *stream)
{
    struct update *update = end_update_locked(stream);
    if (update == NULL)
        return;
    blyi_graph_unref(update->group->graph);
    blyi_host_free(update);
}

static bly_status none_open(const struct blyi_stream *stream)
{
    bly_status status = blyi_capture_refuse(stream, "updating");
    if (status != BLY_OK)
        return status;
    return blyi_fail(BLY_E_GROUP_STATE, "stream %" PRIu32 " is not updating a task group",
                     stream->id);
}

bly_status blyi_update_end(void *handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_own(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    struct update *update = end_update_locked(stream);
    blyi_lock_drop(&blyi_graphs_lock);
    if (update == NULL) {
        status = none_open(stream);
    } else {
        struct blyi_graph *graph = update->group->graph;
        if (blyi_graph_state(graph) == BLYI_GRAPH_GONE)
            status = blyi_fail(BLY_E_HANDLE, "graph %" PRIu32 " of the task group was destroyed",
                               graph->id);
        else if (update->next != update->group->n)
            status = blyi_fail(BLY_E_STATE,
                               "%" PRIu32 " of the %" PRIu32 " kernels of a task group of graph "
                               "%" PRIu32 " were updated",
                               update->next, update->group->n, graph->id);
        blyi_host_free(update);
        blyi_graph_unref(graph);
    }
    blyi_stream_unpin(stream);
    return status;
}

static bly_status next_of_group_locked(struct update *update, const struct blyi_kept *kept,
                                       struct blyi_node **node)
{
    const struct blyi_group *group = update->group;
    if (blyi_graph_state(group->graph) == BLYI_GRAPH_GONE) /* its kernels may be no more */
        return blyi_fail(BLY_E_HANDLE, "graph %" PRIu32 " of the task group was destroyed",
                         group->graph->id);
    if (update->next == group->n)
        return blyi_fail(BLY_E_GRAPH_UPDATE,
                         "the task group of graph %" PRIu32 " has %" PRIu32 " kernels, not more",
                         group->graph->id, group->n);
    struct blyi_node *next = group->nodes[update->next];
    if (next->kept != NULL && next->kept->launch->engine != kept->launch->engine)
        return blyi_fail(BLY_E_GRAPH_UPDATE,
                         "kernel %" PRIu32 " of the task group of graph %" PRIu32
                         " runs on %s, not on %s",
                         update->next, group->graph->id,
                         blyi_kernel_engine_name((bly_engine)next->kept->launch->engine),
                         blyi_kernel_engine_name((bly_engine)kept->launch->engine));
    update->next++;
    *node = next;
    return BLY_OK;
}

bly_status blyi_update_kernel(struct blyi_stream *stream, struct blyi_kept *kept, uint32_t site,
                              bool *taken)
{
    struct blyi_task task = {.kind = BLYI_TASK_UPDATE, .site = site};
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    struct update *update = update_of(stream);
    if (update != NULL) {
        status = next_of_group_locked(update, kept, &task.u.update.node);
        if (status == BLY_OK) {
            task.u.update.graph = update->group->graph;
            blyi_graph_ref(task.u.update.graph);
            *taken = true;
        }
    }
    blyi_lock_drop(&blyi_graphs_lock);
    if (*taken) {
        blyi_kept_ref(kept);
        task.u.update.launch = kept->launch;
        blyi_queue_put_own(stream, &task);
    }
    return status;
}

void blyi_update_run(struct blyi_task *task)
{
    struct blyi_node *node = task->u.update.node;
    blyi_lock_take(&blyi_graphs_lock);
    if (blyi_graph_state(task->u.update.graph) != BLYI_GRAPH_GONE && node->kept != NULL) {
        struct blyi_kept *old = node->kept;
        node->kept = task->u.update.launch->kept;
        node->kept->launch->tell_overflow = old->launch->tell_overflow;
        task->u.update.launch = old->launch; /* let go with the task */
    }
    blyi_lock_drop(&blyi_graphs_lock);
}

void blyi_update_discard(struct blyi_task *task)
{
    blyi_kept_unref(task->u.update.launch->kept);
    blyi_graph_unref(task->u.update.graph);
}
