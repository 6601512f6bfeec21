/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_divert.c - submissions to streams that are captured, built from, or being used to update.
 */
#include <inttypes.h>
#include <stdio.h>
#include "base/fail.h"
#include "npu/copy_indirect.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/notify.h"
#include "npu/pinned.h"
#include "npu/report.h"

/* Another line of the same graph has an open task group: its tasks come one after another. */
static bly_status check_group_locked(const struct blyi_line *line, enum blyi_task_kind kind)
{
    struct blyi_graph *graph = line->graph;
    if (line->group != NULL && kind != BLYI_TASK_KERNEL)
        return blyi_fail(BLY_E_TASK_KIND, "graph %" PRIu32 ": a task group holds kernels alone",
                         graph->id);
    if (graph->n_open == 0 || line->group != NULL)
        return BLY_OK;
    graph->broken = blyi_fail(BLY_E_GROUP_BROKEN,
                              "graph %" PRIu32 ": a task group is open on another stream than "
                              "stream %" PRIu32,
                              graph->id, line->captured->id);
    return graph->broken;
}

static bly_status check_line_locked(struct blyi_line *line, enum blyi_task_kind kind)
{
    struct blyi_graph *graph = line->graph;
    if (kind == BLYI_TASK_GRAPH)
        return blyi_fail(BLY_E_CAPTURING,
                         "stream %" PRIu32 " goes into graph %" PRIu32
                         ": a graph in a graph is for conditions",
                         line->captured->id, graph->id);
    bly_status status = blyi_capture_valid_locked(graph);
    if (status == BLY_OK)
        status = check_group_locked(line, kind);
    return status == BLY_OK ? blyi_node_room_locked(line) : status;
}

bly_status blyi_divert_check(struct blyi_stream *stream, enum blyi_task_kind kind)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    struct blyi_divert *divert = blyi_queue_divert(stream);
    if (divert != NULL)
        switch (divert->mode) {
        case BLYI_DIVERT_CAPTURE:
        case BLYI_DIVERT_BUILD:
            status = check_line_locked(BLYI_CONTAINER(divert, struct blyi_line, divert), kind);
            break;
        case BLYI_DIVERT_BUILT:
            status = blyi_fail(BLY_E_GRAPH_STREAM,
                               "stream %" PRIu32 " is bound to graph %" PRIu32
                               ", which is built: it takes no more tasks",
                               stream->id, stream->line->graph->id);
            break;
        case BLYI_DIVERT_OWN:
            status =
                blyi_fail(BLY_E_GRAPH_STREAM,
                          "stream %" PRIu32 " is a graph's own: it takes no tasks", stream->id);
            break;
        case BLYI_DIVERT_UPDATE:
            if (kind != BLYI_TASK_KERNEL)
                status = blyi_fail(BLY_E_TASK_KIND,
                                   "stream %" PRIu32 " is updating a task group: it takes kernels "
                                   "alone",
                                   stream->id);
            break;
        }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

bly_status blyi_divert_refuse_end(const struct blyi_stream *stream)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_divert *divert = blyi_queue_divert(stream);
    if (divert != NULL)
        switch (divert->mode) {
        case BLYI_DIVERT_CAPTURE:
            status = blyi_fail(BLY_E_CAPTURING,
                               "stream %" PRIu32 " is being captured: it cannot be destroyed",
                               stream->id);
            break;
        case BLYI_DIVERT_BUILD:
        case BLYI_DIVERT_BUILT:
            status = blyi_fail(BLY_E_GRAPH_STREAM,
                               "stream %" PRIu32 " is bound to graph %" PRIu32
                               ": it cannot be destroyed",
                               stream->id, stream->line->graph->id);
            break;
        case BLYI_DIVERT_OWN:
            status = blyi_fail(BLY_E_GRAPH_STREAM,
                               "stream %" PRIu32 " is a graph's own and ends with it", stream->id);
            break;
        case BLYI_DIVERT_UPDATE:
            status = blyi_fail(BLY_E_GROUP_STATE,
                               "stream %" PRIu32 " is updating a task group: it cannot be "
                               "destroyed",
                               stream->id);
            break;
        }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

static uint64_t rows_span(const struct blyi_task *task, uint64_t pitch)
{
    uint64_t span;
    if (__builtin_mul_overflow(pitch, task->u.copy2d.height - 1, &span) ||
        __builtin_add_overflow(span, task->u.copy2d.width, &span))
        return 1; /* left to the task to fail on */
    return span;
}

/* The blocks that the task works on; the node holds no memory. */
static void find_owned(struct blyi_node *node)
{
    struct blyi_task *task = &node->task;
    const void *dst = task->u.copy.dst, *src = task->u.copy.src;
    uint64_t dspan = 0, sspan = 0;
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_COPY:
        dspan = sspan = task->u.copy.size;
        break;
    case BLYI_TASK_COPY2D:
        dspan = rows_span(task, task->u.copy2d.dpitch);
        sspan = rows_span(task, task->u.copy2d.spitch);
        break;
    case BLYI_TASK_SET:
        dst = task->u.set.dst;
        dspan = task->u.set.size;
        break;
    case BLYI_TASK_REDUCE:
        dst = task->u.reduce.dst;
        src = task->u.reduce.src;
        dspan = sspan = task->u.reduce.size;
        break;
    case BLYI_TASK_COPY_INDIRECT: /* the words; where they lead is looked up when it runs */
        dst = task->u.indirect.dst_word;
        src = task->u.indirect.src_word;
        dspan = dst != NULL ? sizeof(void *) : 0;
        sspan = dst != NULL ? sizeof(void *) : BLYI_COPY_DESC_SIZE;
        break;
    case BLYI_TASK_VALUE_WRITE:
    case BLYI_TASK_VALUE_WAIT:
        dst = task->u.value.address;
        dspan = sizeof(uint64_t);
        break;
    default:
        break;
    }
    if (dspan != 0)
        node->n_owned = blyi_owned_add(node->owned, node->n_owned, dst, dspan);
    if (sspan != 0)
        node->n_owned = blyi_owned_add(node->owned, node->n_owned, src, sspan);
}

/* What only work in a ring has. */
static void strip(struct blyi_task *task)
{
    if (task->flags & BLYI_TASK_HOLDS_DST)
        blyi_pinned_release(task->u.copy.dst);
    if (task->flags & BLYI_TASK_HOLDS_SRC)
        blyi_pinned_release(task->u.copy.src);
    task->flags &= (uint8_t) ~(BLYI_TASK_HOLDS_DST | BLYI_TASK_HOLDS_SRC);
    if (task->kind == BLYI_TASK_NOTIFY_RECORD)
        __atomic_sub_fetch(&task->u.notify.notify->n_records, 1, __ATOMIC_RELAXED);
    if (task->kind == BLYI_TASK_CALLBACK)
        blyi_report_keep(task->u.callback.report);
}

/* The call has succeeded already as far as it can tell, so the capture fails instead. */
static void lose(struct blyi_line *line)
{
    char why[BLYI_FAIL_MAX];
    snprintf(why, sizeof(why), "%s", blyi_fail_text());
    blyi_capture_invalidate_locked(line->graph, why);
    blyi_fail_clear();
}

bool blyi_graph_divert(struct blyi_stream *stream, const struct blyi_task *task)
{
    bool lost = false;
    /* Events and runs do not come here but by a capture that begins at the same time. */
    bool is_event = task->kind == BLYI_TASK_RECORD || task->kind == BLYI_TASK_WAIT ||
                    task->kind == BLYI_TASK_RESET || task->kind == BLYI_TASK_GRAPH;
    struct blyi_node *node = NULL;
    blyi_lock_take(&blyi_graphs_lock);
    struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line == NULL)
        line = blyi_build_line_locked(stream);
    /* The capture may have begun, or others used up the room, since blyi_divert_check(). */
    if (line != NULL && !is_event && blyi_node_room_locked(line) != BLY_OK) {
        lose(line);
        lost = true;
    } else if (line != NULL && !is_event) {
        node = blyi_node_add_locked(line, task);
        find_owned(node);
        strip(&node->task);
    }
    bool diverted = blyi_queue_divert(stream) != NULL;
    blyi_lock_drop(&blyi_graphs_lock);
    if (lost) {
        struct blyi_task mine = *task;
        blyi_queue_discard(&mine);
    }
    if (node != NULL || lost)
        return true;
    if (!diverted)
        return false;
    /* The call had begun before the stream was diverted: its task stands before what follows. */
    blyi_queue_put_own(stream, task);
    return true;
}

bly_status blyi_graph_divert_kernel(struct blyi_stream *stream, struct blyi_kept *kept,
                                    uint32_t site, bool *taken)
{
    struct blyi_task task = {.kind = BLYI_TASK_KERNEL, .site = site};
    bly_status status = BLY_OK;
    bool updates = false;
    task.u.kernel.launch = kept->launch;
    blyi_lock_take(&blyi_graphs_lock);
    const struct blyi_divert *divert = blyi_queue_divert(stream);
    struct blyi_line *line = blyi_capture_line_locked(stream);
    if (line == NULL)
        line = blyi_build_line_locked(stream);
    if (line != NULL) {
        bool on_core =
            kept->launch->engine == BLY_ENGINE_VECTOR || kept->launch->engine == BLY_ENGINE_CUBE;
        if (line->group != NULL && !on_core)
            status = blyi_fail(BLY_E_TASK_KIND,
                               "graph %" PRIu32 ": a task group holds kernels of vector and cube "
                               "cores alone",
                               line->graph->id);
        if (status == BLY_OK)
            status = blyi_node_room_locked(line);
        struct blyi_node *node = status == BLY_OK ? blyi_node_add_locked(line, &task) : NULL;
        if (node != NULL) {
            blyi_kept_ref(kept);
            node->kept = kept;
            *taken = true;
            if (line->group != NULL)
                status = blyi_group_add_locked(line->group, node);
        }
    } else if (divert != NULL) {
        updates = divert->mode == BLYI_DIVERT_UPDATE;
        if (!updates)
            status =
                blyi_fail(BLY_E_GRAPH_STREAM,
                          "stream %" PRIu32 " belongs to a graph: it takes no tasks", stream->id);
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return updates ? blyi_update_kernel(stream, kept, site, taken) : status;
}
