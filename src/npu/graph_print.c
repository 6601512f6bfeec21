/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_print.c - what is in a graph, as lines of the log and as a trace for chrome://tracing:
 * a process for the graph, a thread for each line, a microsecond for each task.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/site.h"
#include "npu/card.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel_inside.h"
#include "npu/notify.h"

static const char *kind_name(const struct blyi_node *node)
{
    switch ((enum blyi_task_kind)node->task.kind) {
    case BLYI_TASK_NOP:
        return "NOP";
    case BLYI_TASK_COPY:
        return "MEMCPY";
    case BLYI_TASK_COPY2D:
        return "MEMCPY_2D";
    case BLYI_TASK_COPY_INDIRECT:
        return "MEMCPY_INDIRECT";
    case BLYI_TASK_SET:
        return "MEMSET";
    case BLYI_TASK_RECORD:
    case BLYI_TASK_MARK:
        return "EVENT_RECORD";
    case BLYI_TASK_WAIT:
        return "EVENT_WAIT";
    case BLYI_TASK_RESET:
        return "EVENT_RESET";
    case BLYI_TASK_HOST_FUNC:
        return "HOST_FUNC";
    case BLYI_TASK_CALLBACK:
        return "CALLBACK";
    case BLYI_TASK_KERNEL:
        return "KERNEL";
    case BLYI_TASK_NOTIFY_RECORD:
        return "NOTIFY_RECORD";
    case BLYI_TASK_NOTIFY_WAIT:
        return "NOTIFY_WAIT";
    case BLYI_TASK_VALUE_WRITE:
        return "VALUE_WRITE";
    case BLYI_TASK_VALUE_WAIT:
        return "VALUE_WAIT";
    case BLYI_TASK_REDUCE:
        return "REDUCE";
    case BLYI_TASK_BODY:
        return "CONDITION";
    case BLYI_TASK_JUMP:
        return "LABEL_SWITCH";
    case BLYI_TASK_SWITCH:
        return "STREAM_SWITCH";
    case BLYI_TASK_ACTIVATE:
        return "STREAM_ACTIVE";
    case BLYI_TASK_END:
        return "END";
    default:
        return "OTHER";
    }
}

static void list_locked(FILE *out, const struct blyi_graph *graph)
{
    fprintf(out, "graph %" PRIu32 " '%s' on card %d: %" PRIu32 " tasks on %" PRIu32 " streams\n",
            graph->id, graph->name, graph->card->id, graph->n_nodes, graph->n_lines);
    BLYI_LIST_FOR(at, &graph->lines)
    {
        const struct blyi_line *line = BLYI_CONTAINER(at, struct blyi_line, link);
        for (uint32_t i = 0; i < line->n_nodes; i++) {
            const struct blyi_node *node = blyi_node_at(line, i);
            fprintf(out, "graph %" PRIu32 ", stream %" PRIu32 ", task %" PRIu32 ": %s%s\n",
                    graph->id, line->stream->id, node->number, kind_name(node),
                    node->disabled ? " (disabled)" : "");
        }
    }
}

bly_status blyi_graph_log(void *handle)
{
    struct blyi_graph *graph;
    char *text = NULL, *rest;
    size_t length = 0;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    /* In memory first: who listens to the log is called without the lock. */
    FILE *memory = open_memstream(&text, &length);
    if (memory != NULL) {
        blyi_lock_take(&blyi_graphs_lock);
        list_locked(memory, graph);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (memory == NULL || fclose(memory) != 0)
        status = blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory to print it",
                           graph->id);
    else
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            blyi_log(BLYI_LOG_INFO, "%s", line);
    free(text);
    blyi_graph_unpin(graph);
    return status;
}

static void print_address(struct blyi_json *json, const char *key, const void *address)
{
    char text[32];
    snprintf(text, sizeof(text), "%p", address);
    blyi_json_text(json, key, text);
}

/* The argument block as words. */
static void print_args(struct blyi_json *json, struct blyi_launch *launch)
{
    char text[32];
    const char *args = blyi_launch_args(launch);
    if (launch->card_args != NULL) {
        print_address(json, "args on card", launch->card_args);
        return;
    }
    blyi_json_begin_array(json, "args");
    for (uint32_t at = 0; at < launch->args_size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = launch->args_size - at;
        memcpy(&word, args + at, left < sizeof(word) ? left : sizeof(word));
        snprintf(text, sizeof(text), "0x%016" PRIx64, word);
        blyi_json_text(json, NULL, text);
    }
    blyi_json_end_array(json);
}

static void print_operands(struct blyi_json *json, const struct blyi_node *node, bool verbose)
{
    const struct blyi_task *task = &node->task;
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_COPY:
        print_address(json, "dst", task->u.copy.dst);
        print_address(json, "src", task->u.copy.src);
        blyi_json_uint(json, "size", task->u.copy.size);
        break;
    case BLYI_TASK_COPY_INDIRECT:
        if (task->u.indirect.dst_word == NULL) {
            print_address(json, "descriptor", task->u.indirect.src_word);
            break;
        }
        print_address(json, "dst at", task->u.indirect.dst_word);
        print_address(json, "src at", task->u.indirect.src_word);
        blyi_json_uint(json, "size", task->u.indirect.size);
        break;
    case BLYI_TASK_SET:
        print_address(json, "dst", task->u.set.dst);
        blyi_json_uint(json, "size", task->u.set.size);
        blyi_json_uint(json, "value", task->value);
        break;
    case BLYI_TASK_RECORD:
    case BLYI_TASK_WAIT:
    case BLYI_TASK_RESET:
    case BLYI_TASK_MARK:
        blyi_json_uint(json, "event", task->u.event.event->id);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
    case BLYI_TASK_NOTIFY_WAIT:
        blyi_json_uint(json, "notify", task->u.notify.notify->id);
        break;
    case BLYI_TASK_KERNEL:
        blyi_json_text(json, "kernel", blyi_kernel_name(node->kept->launch));
        blyi_json_uint(json, "blocks", node->kept->launch->n_blocks);
        if (verbose)
            print_args(json, node->kept->launch);
        break;
    case BLYI_TASK_VALUE_WRITE:
    case BLYI_TASK_VALUE_WAIT:
        print_address(json, "address", task->u.value.address);
        blyi_json_uint(json, "value", task->u.value.value);
        break;
    default:
        break;
    }
}

static void print_node(struct blyi_json *json, const struct blyi_node *node, bool verbose)
{
    char site[BLYI_SITE_TEXT];
    const struct blyi_line *line = node->line;
    blyi_json_begin_object(json, NULL);
    blyi_json_text(json, "name", kind_name(node));
    blyi_json_text(json, "ph", "X");
    blyi_json_uint(json, "pid", line->graph->id);
    blyi_json_uint(json, "tid", line->stream->id);
    blyi_json_uint(json, "ts", node->number);
    blyi_json_uint(json, "dur", 1);
    blyi_json_begin_object(json, "args");
    blyi_json_uint(json, "model id", line->graph->id);
    blyi_json_uint(json, "stream id", line->stream->id);
    blyi_json_uint(json, "task id", node->number);
    blyi_json_text(json, "task type", kind_name(node));
    blyi_json_text(json, "site", blyi_site_text(node->task.site, site));
    if (node->disabled)
        blyi_json_bool(json, "disabled", true);
    print_operands(json, node, verbose);
    blyi_json_end_object(json);
    blyi_json_end_object(json);
}

static void print_graph_locked(struct blyi_json *json, const struct blyi_graph *graph, bool verbose)
{
    BLYI_LIST_FOR(at, &graph->lines)
    {
        const struct blyi_line *line = BLYI_CONTAINER(at, struct blyi_line, link);
        for (uint32_t i = 0; i < line->n_nodes; i++)
            print_node(json, blyi_node_at(line, i), verbose);
    }
    BLYI_LIST_FOR(at, &graph->conditions)
    {
        const struct blyi_condition *condition = BLYI_CONTAINER(at, struct blyi_condition, link);
        for (uint32_t i = 0; condition->bodies != NULL && i < condition->n_bodies; i++)
            print_graph_locked(json, condition->bodies[i], verbose);
    }
}

static bly_status print(struct blyi_graph *graph, const char *path, bool verbose)
{
    struct blyi_json json;
    char *text = NULL;
    size_t length = 0;
    /* In memory first: no file is written with the lock held, or in part. */
    FILE *memory = open_memstream(&text, &length);
    if (memory == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory to print it",
                         graph->id);
    blyi_json_init(&json, memory);
    blyi_json_begin_array(&json, NULL);
    blyi_lock_take(&blyi_graphs_lock);
    print_graph_locked(&json, graph, verbose);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_json_end_array(&json);
    fputc('\n', memory);
    bool good = fclose(memory) == 0;
    FILE *out = good ? fopen(path, "we") : NULL;
    if (out != NULL) {
        good = fwrite(text, 1, length, out) == length;
        good = fclose(out) == 0 && good;
    }
    free(text);
    if (out != NULL && good)
        return BLY_OK;
    return blyi_fail(BLY_E_IO, "graph %" PRIu32 " cannot be printed into %s: %s", graph->id, path,
                     strerror(errno));
}

bly_status blyi_graph_print(void *handle, const char *path, bool verbose)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(handle, &graph);
    if (status != BLY_OK)
        return status;
    status = print(graph, path, verbose);
    blyi_graph_unpin(graph);
    return status;
}
