/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_line.c - what keeps a line going: its next tasks, jumps, switches.
 *
 * A captured line runs from its first task to its last, so many tasks are put into the ring at
 * once. A built line may jump: its tasks are put one by one.
 */
#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "npu/copy_inside.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"

static void put(struct blyi_line *line, enum blyi_task_kind kind)
{
    struct blyi_task task = {.kind = (uint8_t)kind};
    task.u.line.line = line;
    blyi_queue_put_own(line->stream, &task);
}

static void put_node(struct blyi_line *line, uint32_t index)
{
    struct blyi_node *node = blyi_node_at(line, index);
    struct blyi_task task = {.kind = BLYI_TASK_NODE, .site = node->task.site};
    task.u.node.node = node;
    blyi_queue_put_own(line->stream, &task);
}

void blyi_line_feed(struct blyi_line *line)
{
    uint32_t most = line->graph->built ? 1 : BLYI_FEED_NODES;
    uint32_t first = line->next, end = line->n_nodes;
    if (end - first > most)
        end = first + most;
    /* The ring is empty but for the record that runs now, so there is room. */
    line->next = end;
    for (uint32_t i = first; i < end; i++)
        put_node(line, i);
    /* A built line knows its end only when its task has run. */
    bool more = line->graph->built ? first < end : end < line->n_nodes;
    put(line, more ? BLYI_TASK_FEED : BLYI_TASK_DONE);
}

void blyi_line_stop(struct blyi_line *line)
{
    line->next = line->n_nodes;
}

bly_status blyi_line_jump(struct blyi_task *task, struct blyi_line *line)
{
    struct blyi_node *target;
    bly_status status = blyi_label_choose(task->u.node.node, &target);
    if (status != BLY_OK)
        return status;
    if (target->line == line) {
        line->next = target->index;
        return BLY_OK;
    }
    status = blyi_line_start(target->line, target->index, line->stream);
    blyi_line_stop(line);
    return status;
}

static bool holds(enum blyi_compare compare, int64_t left, int64_t right)
{
    switch (compare) {
    case BLYI_EQ:
        return left == right;
    case BLYI_NE:
        return left != right;
    case BLYI_GT:
        return left > right;
    case BLYI_GE:
        return left >= right;
    case BLYI_LT:
        return left < right;
    case BLYI_LE:
        break;
    }
    return left <= right;
}

static bly_status read_number(const void *address, bool is_64, int64_t *number)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    bly_status status = is_64 ? blyi_copy_range(&wide, address, sizeof(wide), -1)
                              : blyi_copy_range(&narrow, address, sizeof(narrow), -1);
    *number = is_64 ? wide : narrow;
    return status;
}

bly_status blyi_line_switch(struct blyi_task *task, struct blyi_line *line)
{
    const struct blyi_node *node = task->u.node.node;
    int64_t left, right;
    bool is_64 = node->task.spare != 0;
    bly_status status = read_number(node->task.u.copy.src, is_64, &left);
    if (status == BLY_OK)
        status = read_number(node->task.u.copy.dst, is_64, &right);
    if (status != BLY_OK || !holds((enum blyi_compare)node->task.value, left, right))
        return status;
    if (node->target == line) {
        line->next = 0;
        return BLY_OK;
    }
    status = blyi_line_start(node->target, 0, line->stream);
    blyi_line_stop(line);
    return status;
}
