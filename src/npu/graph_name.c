/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_name.c - what a program attaches to a graph: callbacks of its end, a name; its number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "npu/graph_inside.h"
#include "npu/pinned.h"

struct on_destroy {
    struct blyi_list link;
    void (*fn)(void *);
    void *arg;
};

void blyi_graph_call_back(struct blyi_graph *graph)
{
    for (;;) {
        struct on_destroy *call = NULL;
        blyi_lock_take(&blyi_graphs_lock);
        if (!blyi_list_empty(&graph->callbacks)) {
            call = BLYI_CONTAINER(graph->callbacks.next, struct on_destroy, link);
            blyi_list_remove(&call->link);
        }
        blyi_lock_drop(&blyi_graphs_lock);
        if (call == NULL)
            return;
        call->fn(call->arg);
        blyi_host_free(call);
    }
}

bly_status blyi_graph_on_destroy(void *handle, void (*fn)(void *), void *arg)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin(handle, &graph);
    if (status != BLY_OK)
        return status;
    struct on_destroy *call = blyi_host_alloc(sizeof(*call));
    if (call == NULL) {
        status = blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a callback",
                           graph->id);
    } else {
        *call = (struct on_destroy){.fn = fn, .arg = arg};
        blyi_lock_take(&blyi_graphs_lock);
        blyi_list_push_back(&graph->callbacks, &call->link);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    blyi_graph_unpin(graph);
    return status;
}

static void free_buffer(void *buffer)
{
    if (blyi_pinned_free(buffer, 0) != BLY_OK)
        blyi_fail_clear();
}

bool blyi_graph_keep_buffer(void *handle, void *buffer)
{
    struct blyi_stream *stream;
    struct on_destroy *call = NULL;
    bool kept = false;
    if (blyi_stream_pin_own(handle, &stream) != BLY_OK)
        return false;
    if (unlikely(blyi_queue_divert(stream) != NULL) &&
        (call = blyi_host_alloc(sizeof(*call))) != NULL) {
        *call = (struct on_destroy){.fn = free_buffer, .arg = buffer};
        blyi_lock_take(&blyi_graphs_lock);
        struct blyi_line *line = blyi_capture_line_locked(stream);
        if (line == NULL)
            line = blyi_build_line_locked(stream);
        kept = line != NULL;
        if (kept)
            blyi_list_push_back(&line->graph->callbacks, &call->link);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (!kept)
        blyi_host_free(call);
    blyi_stream_unpin(stream);
    return kept;
}

bly_status blyi_graph_off_destroy(void *handle, void (*fn)(void *))
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin(handle, &graph);
    if (status != BLY_OK)
        return status;
    struct on_destroy *found = NULL;
    blyi_lock_take(&blyi_graphs_lock);
    BLYI_LIST_FOR_SAFE(node, &graph->callbacks)
    {
        struct on_destroy *call = BLYI_CONTAINER(node, struct on_destroy, link);
        if (call->fn == fn && found == NULL) {
            found = call;
            blyi_list_remove(node);
        }
    }
    blyi_lock_drop(&blyi_graphs_lock);
    if (found == NULL)
        status = blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " has no such callback", graph->id);
    blyi_host_free(found);
    blyi_graph_unpin(graph);
    return status;
}

bly_status blyi_graph_set_name(void *handle, const char *name)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin(handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    size_t length = strnlen(name, BLYI_GRAPH_NAME);
    memcpy(graph->name, name, length);
    graph->name[length] = '\0';
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_graph_unpin(graph);
    return BLY_OK;
}

bly_status blyi_graph_name(void *handle, size_t size, char *name)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin(handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    snprintf(name, size, "%s", graph->name);
    blyi_lock_drop(&blyi_graphs_lock);
    blyi_graph_unpin(graph);
    return BLY_OK;
}

bly_status blyi_graph_id(void *handle, uint32_t *id)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin(handle, &graph);
    if (status != BLY_OK)
        return status;
    *id = graph->id;
    blyi_graph_unpin(graph);
    return BLY_OK;
}
