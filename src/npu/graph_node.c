/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_node.c - the tasks that a graph holds, and how one of them stands in a ring again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/site.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/memory.h"
#include "npu/notify.h"
#include "npu/pinned.h"
#include "npu/report.h"
#include "npu/told.h"

bly_status blyi_node_room_locked(struct blyi_line *line)
{
    if (likely(line->n_nodes < line->n_blocks * BLYI_NODE_BLOCK))
        return BLY_OK;
    struct blyi_node **blocks =
        blyi_host_realloc(line->blocks, (line->n_blocks + 1) * sizeof(struct blyi_node *));
    if (blocks != NULL) {
        line->blocks = blocks;
        blocks[line->n_blocks] = blyi_host_calloc(BLYI_NODE_BLOCK, sizeof(struct blyi_node));
    }
    if (blocks == NULL || blocks[line->n_blocks] == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "graph %" PRIu32 ": no host memory for more than %" PRIu32 " tasks",
                         line->graph->id, line->graph->n_nodes);
    line->n_blocks++;
    return BLY_OK;
}

struct blyi_node *blyi_node_add_locked(struct blyi_line *line, const struct blyi_task *task)
{
    bly_assert(line->n_nodes < line->n_blocks * BLYI_NODE_BLOCK);
    struct blyi_node *node = blyi_node_at(line, line->n_nodes);
    node->task = *task;
    node->line = line;
    node->index = line->n_nodes++;
    node->number = line->graph->n_nodes++;
    return node;
}

bly_status blyi_node_list(struct blyi_node ***list, uint32_t *n, struct blyi_node *node)
{
    struct blyi_node **longer = blyi_host_realloc(*list, (*n + 1) * sizeof(struct blyi_node *));
    if (longer == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory",
                         node->line->graph->id);
    longer[(*n)++] = node;
    *list = longer;
    return BLY_OK;
}

static void drop_change(struct blyi_change *change)
{
    if (change == NULL)
        return;
    if (change->kept != NULL)
        blyi_kept_unref(change->kept);
    blyi_host_free(change);
}

void blyi_node_release(struct blyi_node *node)
{
    switch ((enum blyi_task_kind)node->task.kind) {
    case BLYI_TASK_RECORD:
    case BLYI_TASK_WAIT:
    case BLYI_TASK_RESET:
    case BLYI_TASK_MARK:
        blyi_event_unref(node->task.u.event.event);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
    case BLYI_TASK_NOTIFY_WAIT:
        blyi_notify_unref(node->task.u.notify.notify);
        break;
    case BLYI_TASK_CALLBACK:
        blyi_report_free(node->task.u.callback.report);
        break;
    case BLYI_TASK_KERNEL:
        blyi_kept_unref(node->kept);
        break;
    case BLYI_TASK_JUMP:
        blyi_label_list_unref(node->labels);
        break;
    default:
        break;
    }
    node->task.kind = BLYI_TASK_NOP;
    drop_change(node->change);
    node->change = NULL;
    if (node->handle != NULL && blyi_handle_remove(BLYI_HANDLE_GRAPH_TASK, node->handle) != BLY_OK)
        blyi_fail_clear();
    node->handle = NULL;
}

uint64_t blyi_node_position(const struct blyi_line *line, uint32_t index)
{
    return line->base + 1 + index + index / BLYI_FEED_NODES;
}

/* ── In a ring ────────────────────────────────────────────────────────────────────────────── */

/* The sentence of this thread, as one of the graph's task. */
static bly_status refuse(const struct blyi_stream *stream, const struct blyi_node *node,
                         bly_status status)
{
    char why[BLYI_FAIL_MAX], site[BLYI_SITE_TEXT];
    snprintf(why, sizeof(why), "%s", blyi_fail_text());
    if (status == BLY_E_FAULT && node->task.kind == BLYI_TASK_KERNEL)
        status = blyi_kernel_engine_status((bly_engine)node->kept->launch->engine);
    (void)blyi_fail(status,
                    "graph %" PRIu32 ", task %" PRIu32 " did not run: %s; on stream %" PRIu32
                    ", captured at %s",
                    node->line->graph->id, node->number, why, stream->id,
                    blyi_site_text(node->task.site, site));
    return status;
}

/* Pinned memory is held until the task has ended, as behind a submission. */
static void hold(struct blyi_task *task)
{
    uint64_t size = task->kind == BLYI_TASK_COPY2D ? 1 : task->u.copy.size;
    if (task->kind == BLYI_TASK_SET)
        size = task->u.set.size;
    if (blyi_place_of(task->u.copy.dst, NULL) == BLYI_PLACE_PINNED &&
        blyi_pinned_hold(task->u.copy.dst, size))
        task->flags |= BLYI_TASK_HOLDS_DST;
    if (task->kind != BLYI_TASK_SET && blyi_place_of(task->u.copy.src, NULL) == BLYI_PLACE_PINNED &&
        blyi_pinned_hold(task->u.copy.src, size))
        task->flags |= BLYI_TASK_HOLDS_SRC;
}

static void unhold(struct blyi_task *task)
{
    if (task->flags & BLYI_TASK_HOLDS_DST)
        blyi_pinned_release(task->u.copy.dst);
    if (task->flags & BLYI_TASK_HOLDS_SRC)
        blyi_pinned_release(task->u.copy.src);
}

static bly_status become_copy(struct blyi_node *node, struct blyi_task *task, const void **lost)
{
    hold(task); /* before the check: what is found then cannot go away */
    bly_status status = blyi_owned_check(node->owned, node->n_owned, &node->checked, lost);
    if (unlikely(status != BLY_OK))
        unhold(task);
    else if (task->kind == BLYI_TASK_COPY)
        task->u.copy.kept = task->flags & BLYI_TASK_HOLDS_SRC ? blyi_graph_take_source(node) : NULL;
    return status;
}

/* An update may put another launch there at the same time. */
static struct blyi_kept *take_kept(struct blyi_node *node)
{
    bool shared = node->group != NULL;
    if (shared)
        blyi_lock_take(&blyi_graphs_lock);
    struct blyi_kept *kept = node->kept;
    blyi_kept_ref(kept);
    if (shared)
        blyi_lock_drop(&blyi_graphs_lock);
    return kept;
}

static bly_status become_kernel(struct blyi_node *node, struct blyi_task *task, const void **lost)
{
    struct blyi_kept *kept = take_kept(node);
    bly_status status = blyi_owned_check(kept->owned, kept->n_owned, &kept->checked, lost);
    if (unlikely(status != BLY_OK)) {
        blyi_kept_unref(kept);
        return status;
    }
    kept->launch->expired = false;
    task->u.kernel.launch = kept->launch;
    return BLY_OK;
}

static void become_wait(const struct blyi_node *node, struct blyi_task *task)
{
    struct blyi_event *event = task->u.event.event;
    __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&event->n_waits, 1, __ATOMIC_RELAXED);
    task->u.event.after = NULL;
    if (node->after != NULL) {
        task->u.event.after = node->after->stream;
        task->u.event.of = node->after->stream->id;
        task->u.event.position = blyi_node_position(node->after, node->after_index);
    } else if (task->flags & BLYI_TASK_EXTERNAL) {
        const struct blyi_crossing *run = node->line->graph->run;
        task->u.event.after = run->places[node->external].stream;
        task->u.event.position = run->places[node->external].position;
        if (task->u.event.after != NULL)
            task->u.event.of = blyi_event_of(task->u.event.after);
    }
    if (task->u.event.after != NULL)
        blyi_queue_ref(task->u.event.after);
}

/* *lost: of E_FAULT, the address that was freed. */
static bly_status become(const struct blyi_stream *stream, struct blyi_task *task,
                         const void **lost)
{
    struct blyi_node *node = task->u.node.node;
    /* All but the ticket. */
    memcpy((char *)task + sizeof(task->ticket), (const char *)&node->task + sizeof(task->ticket),
           sizeof(*task) - sizeof(task->ticket));
    if (unlikely(node->disabled)) {
        task->kind = BLYI_TASK_NOP;
        return BLY_OK;
    }
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_COPY:
    case BLYI_TASK_COPY2D:
    case BLYI_TASK_SET:
        return become_copy(node, task, lost);
    case BLYI_TASK_KERNEL:
        return become_kernel(node, task, lost);
    case BLYI_TASK_WAIT:
        become_wait(node, task);
        break;
    case BLYI_TASK_RECORD:
        if (!task->u.event.event->modern)
            __atomic_fetch_add(&task->u.event.event->refs, 1, __ATOMIC_RELAXED);
        break;
    case BLYI_TASK_RESET:
        __atomic_fetch_add(&task->u.event.event->refs, 1, __ATOMIC_RELAXED);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
        __atomic_add_fetch(&task->u.notify.notify->n_records, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&task->u.notify.notify->refs, 1, __ATOMIC_RELAXED);
        break;
    case BLYI_TASK_NOTIFY_WAIT:
        __atomic_add_fetch(&task->u.notify.notify->refs, 1, __ATOMIC_RELAXED);
        break;
    case BLYI_TASK_CALLBACK:
        return blyi_report_again(node->task.u.callback.report, (struct blyi_stream *)stream,
                                 &task->u.callback.report);
    case BLYI_TASK_BODY:
        task->u.graph.graph = NULL;
        task->u.graph.node = node;
        break;
    case BLYI_TASK_JUMP:
    case BLYI_TASK_SWITCH:
    case BLYI_TASK_ACTIVATE:
    case BLYI_TASK_MARK:
        task->u.node.node = node;
        break;
    default:
        if (node->n_owned != 0)
            return blyi_owned_check(node->owned, node->n_owned, &node->checked, lost);
        break;
    }
    return BLY_OK;
}

bly_status blyi_node_become(const struct blyi_stream *stream, struct blyi_task *task)
{
    const struct blyi_node *node = task->u.node.node;
    const void *lost = NULL;
    bly_status status = become(stream, task, &lost);
    if (unlikely(status != BLY_OK)) {
        if (lost != NULL)
            blyi_task_tell_stale(stream, task, lost);
        status = refuse(stream, node, status);
        task->kind = BLYI_TASK_NOP;
        task->flags = 0;
        return status;
    }
    if (blyi_told_wanted())
        blyi_task_tell(stream, task, blyi_queue_completed(stream));
    if (task->kind == BLYI_TASK_RECORD && task->u.event.event->modern)
        task->kind = BLYI_TASK_NOP; /* only other lines wait for it: by its position */
    return BLY_OK;
}
