/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_change.c - changes of a graph's tasks: kept with each, made by one call.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"

static bly_status check_change_locked(const struct blyi_graph *graph)
{
    if (graph->built || graph->parent != NULL)
        return blyi_fail(BLY_E_UNSUPPORTED, "graph %" PRIu32 " is %s: its tasks are not changed",
                         graph->id, graph->built ? "built" : "a body");
    if (blyi_graph_state(graph) != BLYI_GRAPH_READY ||
        __atomic_load_n(&graph->n_queued, __ATOMIC_ACQUIRE) != 0)
        return blyi_fail(BLY_E_GRAPH_UPDATE, "graph %" PRIu32 " is being captured or runs",
                         graph->id);
    return BLY_OK;
}

/* What will become of the task, made at its first change. */
static bly_status change_locked(struct blyi_node *node, struct blyi_change **change)
{
    bly_status status = check_change_locked(node->line->graph);
    if (status == BLY_OK && node->change == NULL) {
        node->change = blyi_host_calloc(1, sizeof(*node->change));
        if (node->change == NULL)
            status = blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a change",
                               node->line->graph->id);
    }
    *change = node->change;
    return status;
}

static bly_status other_kind(const struct blyi_node *node)
{
    return blyi_fail(BLY_E_INVALID, "task %" PRIu32 " of graph %" PRIu32 " is of another kind",
                     node->number, node->line->graph->id);
}

bly_status blyi_graph_task_set_kernel(void *handle, const struct blyi_kernel_call *call)
{
    struct blyi_node *node;
    struct blyi_change *change;
    struct blyi_kept *kept;
    bly_status status = blyi_kernel_keep(call, &kept);
    if (status != BLY_OK)
        return status;
    status = blyi_node_take(handle, &node);
    if (status == BLY_OK) {
        status = blyi_node_kind(node) == BLYI_GRAPH_KERNEL ? change_locked(node, &change)
                                                           : other_kind(node);
        if (status == BLY_OK) {
            /* As the captured stream said. */
            kept->launch->tell_overflow = node->kept->launch->tell_overflow;
            struct blyi_kept *old = change->kept;
            change->kept = kept;
            kept = old;
        }
        blyi_node_give(handle);
    }
    if (kept != NULL)
        blyi_kept_unref(kept);
    return status;
}

bly_status blyi_graph_task_set_value(void *handle, bool wait, void *address, uint64_t value,
                                     uint32_t condition)
{
    struct blyi_node *node;
    struct blyi_change *change;
    if (((uintptr_t)address & 7) != 0)
        return blyi_fail(BLY_E_ALIGN, "the word at %p is not aligned to 8 bytes", address);
    if (blyi_place_of(address, NULL) != BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_INVALID, "the word at %p is no card memory", address);
    bly_status status = blyi_node_take(handle, &node);
    if (status != BLY_OK)
        return status;
    if (blyi_node_kind(node) != (wait ? BLYI_GRAPH_VALUE_WAIT : BLYI_GRAPH_WRITE))
        status = other_kind(node);
    else
        status = change_locked(node, &change);
    if (status == BLY_OK) {
        change->task = node->task;
        change->task.value = (uint8_t)condition;
        change->task.u.value.address = address;
        change->task.u.value.value = value;
    }
    blyi_node_give(handle);
    return status;
}

bly_status blyi_graph_task_disable(void *handle)
{
    struct blyi_node *node;
    struct blyi_change *change;
    bly_status status = blyi_node_take(handle, &node);
    if (status != BLY_OK)
        return status;
    if (blyi_node_kind(node) == BLYI_GRAPH_OTHER)
        status =
            blyi_fail(BLY_E_INVALID,
                      "task %" PRIu32 " of graph %" PRIu32 " is of a kind that cannot be disabled",
                      node->number, node->line->graph->id);
    else
        status = change_locked(node, &change);
    if (status == BLY_OK)
        change->disable = true;
    blyi_node_give(handle);
    return status;
}

static void apply(struct blyi_node *node)
{
    struct blyi_change *change = node->change;
    node->disabled |= change->disable;
    if (change->kept != NULL) {
        blyi_kept_unref(node->kept);
        node->kept = change->kept;
    }
    if (change->task.kind != BLYI_TASK_NOP) {
        node->task = change->task;
        node->checked = 0;
        node->n_owned =
            blyi_owned_add(node->owned, 0, node->task.u.value.address, sizeof(uint64_t));
    }
    blyi_host_free(change);
    node->change = NULL;
}

bly_status blyi_graph_update(void *handle)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = check_change_locked(graph);
    if (status == BLY_OK)
        BLYI_LIST_FOR(at, &graph->lines)
        {
            const struct blyi_line *line = BLYI_CONTAINER(at, struct blyi_line, link);
            for (uint32_t i = 0; i < line->n_nodes; i++)
                if (blyi_node_at(line, i)->change != NULL)
                    apply(blyi_node_at(line, i));
        }
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_graph_unpin(graph);
    return status;
}
