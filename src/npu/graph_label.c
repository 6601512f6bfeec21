/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_label.c - labels: places in a graph that is built, for tasks that jump there.
 */
#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/context_inside.h"
#include "npu/copy_inside.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/runtime.h"
#include "npu/stream.h"

#define LABELS_MAX 65535u /* of a process */

struct label {
    uint32_t refs; /* its handle, each list */
    void *handle;
    struct blyi_graph *graph; /* where it stands; NULL: nowhere. Compared and referenced */
    struct blyi_node *node;
};

/* Referenced by its handle and by each task that jumps through it. */
struct blyi_label_list {
    uint32_t refs;
    uint32_t n;
    struct label *labels[];
};

static uint32_t n_labels;

static void label_unref(struct label *label)
{
    if (!blyi_ref_drop(&label->refs))
        return;
    __atomic_sub_fetch(&n_labels, 1, __ATOMIC_RELAXED);
    if (label->graph != NULL)
        blyi_graph_unref(label->graph);
    blyi_host_free(label);
}

static void label_gone(void *object)
{
    label_unref(object);
}

bly_status blyi_label_create(void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if (__atomic_add_fetch(&n_labels, 1, __ATOMIC_RELAXED) > LABELS_MAX) {
        __atomic_sub_fetch(&n_labels, 1, __ATOMIC_RELAXED);
        return blyi_fail(BLY_E_STATE, "all %u labels of a process are in use", LABELS_MAX);
    }
    struct label *label = blyi_host_calloc(1, sizeof(*label));
    if (label == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a label");
    if (status == BLY_OK) {
        label->refs = 1;
        status = blyi_handle_create(BLYI_HANDLE_LABEL, label, label_gone, &label->handle);
    }
    if (status != BLY_OK) {
        __atomic_sub_fetch(&n_labels, 1, __ATOMIC_RELAXED);
        blyi_host_free(label);
        return status;
    }
    *handle = label->handle;
    return BLY_OK;
}

bly_status blyi_label_destroy(void *handle)
{
    bly_status status = blyi_runtime_enter();
    return status == BLY_OK ? blyi_handle_remove(BLYI_HANDLE_LABEL, handle) : status;
}

/* The line of a bound stream; its graph is being built. */
static bly_status find_line_locked(const struct blyi_stream *stream, struct blyi_line **line)
{
    *line = blyi_build_line_locked(stream);
    if (*line != NULL)
        return blyi_node_room_locked(*line);
    return blyi_fail(BLY_E_GRAPH_STREAM,
                     "stream %" PRIu32 " is not bound to a graph that is being built", stream->id);
}

static bly_status set_locked(struct label *label, const struct blyi_stream *stream, uint32_t site)
{
    struct blyi_line *line;
    struct blyi_task task = {.kind = BLYI_TASK_NOP, .site = site};
    bly_status status = find_line_locked(stream, &line);
    if (status != BLY_OK)
        return status;
    if (label->graph != NULL)
        return blyi_fail(BLY_E_STATE, "the label is set in graph %" PRIu32 " already",
                         label->graph->id);
    label->graph = line->graph;
    blyi_graph_ref(label->graph);
    label->node = blyi_node_add_locked(line, &task);
    return BLY_OK;
}

bly_status blyi_label_set(void *handle, void *stream_handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_own(stream_handle, &stream);
    if (status != BLY_OK)
        return status;
    struct label *label = blyi_handle_get(BLYI_HANDLE_LABEL, handle);
    if (label == NULL) {
        status = BLY_E_HANDLE;
    } else {
        status = blyi_capture_refuse(stream, "labelled");
        if (status == BLY_OK) {
            blyi_lock_take(&blyi_graphs_lock);
            status = set_locked(label, stream, site);
            blyi_lock_drop(&blyi_graphs_lock);
        }
        blyi_handle_put(handle);
    }
    blyi_stream_unpin(stream);
    return status;
}

/* ── Lists ────────────────────────────────────────────────────────────────────────────────── */

void blyi_label_list_unref(struct blyi_label_list *list)
{
    if (!blyi_ref_drop(&list->refs))
        return;
    for (uint32_t i = 0; i < list->n; i++)
        label_unref(list->labels[i]);
    blyi_host_free(list);
}

static void list_gone(void *object)
{
    blyi_label_list_unref(object);
}

static bly_status fill(struct blyi_label_list *list, void *const labels[], size_t n)
{
    for (; list->n < n; list->n++) {
        struct label *label = blyi_handle_get(BLYI_HANDLE_LABEL, labels[list->n]);
        if (label == NULL)
            return BLY_E_HANDLE;
        __atomic_fetch_add(&label->refs, 1, __ATOMIC_RELAXED);
        list->labels[list->n] = label;
        blyi_handle_put(labels[list->n]);
    }
    return BLY_OK;
}

bly_status blyi_label_list_create(void *const labels[], size_t n, void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if (n == 0 || n > LABELS_MAX)
        return blyi_fail(BLY_E_INVALID, "a list of %zu labels: there are 1 to %u", n, LABELS_MAX);
    struct blyi_label_list *list = blyi_host_calloc(1, sizeof(*list) + n * sizeof(struct label *));
    if (list == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a list of %zu labels", n);
    list->refs = 1;
    status = fill(list, labels, n);
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_LABEL_LIST, list, list_gone, handle);
    if (status != BLY_OK)
        blyi_label_list_unref(list);
    return status;
}

bly_status blyi_label_list_destroy(void *handle)
{
    bly_status status = blyi_runtime_enter();
    return status == BLY_OK ? blyi_handle_remove(BLYI_HANDLE_LABEL_LIST, handle) : status;
}

/* ── Jumps ────────────────────────────────────────────────────────────────────────────────── */

static bly_status add_jump(struct blyi_label_list *list, const void *index,
                           const struct blyi_stream *stream, uint32_t site)
{
    struct blyi_line *line;
    struct blyi_task task = {.kind = BLYI_TASK_JUMP, .site = site};
    task.u.copy.src = index;
    blyi_lock_take(&blyi_graphs_lock);
    bly_status status = find_line_locked(stream, &line);
    if (status == BLY_OK) {
        __atomic_fetch_add(&list->refs, 1, __ATOMIC_RELAXED);
        blyi_node_add_locked(line, &task)->labels = list;
    }
    blyi_lock_drop(&blyi_graphs_lock);
    return status;
}

static bly_status check_jump(const struct blyi_label_list *list, const void *index, uint32_t max)
{
    if (max != list->n)
        return blyi_fail(BLY_E_INVALID,
                         "maxValue %" PRIu32 " is not the %" PRIu32 " labels of the list", max,
                         list->n);
    if (blyi_place_of(index, NULL) != BLYI_PLACE_CARD)
        return blyi_fail(BLY_E_INVALID, "the index at %p is not in card memory", index);
    return BLY_OK;
}

bly_status blyi_label_switch(const void *index, uint32_t max, void *handle, void *stream_handle,
                             uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_own(stream_handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_label_list *list = blyi_handle_get(BLYI_HANDLE_LABEL_LIST, handle);
    if (list == NULL) {
        status = BLY_E_HANDLE;
    } else {
        status = check_jump(list, index, max);
        if (status == BLY_OK)
            status = blyi_capture_refuse(stream, "made to jump");
        if (status == BLY_OK)
            status = add_jump(list, index, stream, site);
        blyi_handle_put(handle);
    }
    blyi_stream_unpin(stream);
    return status;
}

bly_status blyi_label_choose(struct blyi_node *node, struct blyi_node **target)
{
    const struct blyi_label_list *list = node->labels;
    uint32_t index;
    bly_status status = blyi_copy_range(&index, node->task.u.copy.src, sizeof(index), -1);
    if (status != BLY_OK)
        return status;
    if (index >= list->n)
        index = list->n - 1;
    const struct label *label = list->labels[index];
    if (label->graph != node->line->graph)
        return blyi_fail(BLY_E_STATE,
                         "graph %" PRIu32 ": label %" PRIu32 " of the list is not set in it",
                         node->line->graph->id, index);
    *target = label->node;
    return BLY_OK;
}
