/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_condition.c - words of card memory that choose which graph runs.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/copy_inside.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/round.h"
#include "npu/stream.h"
#include "npu/told.h"

void blyi_condition_free(struct blyi_condition *condition)
{
    for (uint32_t i = 0; condition->bodies != NULL && i < condition->n_bodies; i++)
        blyi_graph_unref(condition->bodies[i]);
    blyi_host_free(condition->bodies);
    blyi_host_free(condition);
}

static void handle_gone(void *object)
{
    struct blyi_condition *condition = object;
    blyi_graph_unref(condition->graph);
}

static bly_status make_word(const struct blyi_graph *graph, uint32_t site, uint64_t **word)
{
    static const uint64_t zero = 0;
    void *address;
    struct blyi_mem_request request = {.asked = sizeof(**word),
                                       .rounded = BLYI_ROUND_UNIT,
                                       .policy = BLYI_MEM_HUGE_FIRST,
                                       .site = site,
                                       .module = BLYI_MODULE_APPLICATION};
    bly_status status = blyi_mem_alloc(graph->card, &request, &address);
    if (status != BLY_OK)
        return status;
    status = blyi_copy_range(address, &zero, sizeof(zero), -1);
    if (status != BLY_OK) {
        char why[BLYI_FAIL_MAX];
        snprintf(why, sizeof(why), "%s", blyi_fail_text());
        (void)blyi_mem_free(address, site);
        return blyi_fail(status, "%s", why);
    }
    blyi_set_tell(NULL, address, sizeof(zero), site);
    *word = address;
    return BLY_OK;
}

static bly_status check_capturing_locked(const struct blyi_graph *graph)
{
    if (graph->built)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "graph %" PRIu32 " is built, not captured: it has no conditions",
                         graph->id);
    if (blyi_graph_state(graph) != BLYI_GRAPH_CAPTURING)
        return blyi_fail(BLY_E_INVALID, "graph %" PRIu32 " is not being captured", graph->id);
    return BLY_OK;
}

/* Takes the word when it succeeds. */
static bly_status add_condition_locked(struct blyi_graph *graph, struct blyi_condition *condition)
{
    bly_status status = check_capturing_locked(graph);
    if (status == BLY_OK)
        status =
            blyi_handle_create(BLYI_HANDLE_CONDITION, condition, handle_gone, &condition->handle);
    if (status == BLY_OK) {
        blyi_graph_ref(graph); /* the handle's */
        blyi_list_push_back(&graph->conditions, &condition->link);
    }
    return status;
}

static bly_status create(struct blyi_graph *graph, uint32_t value, bool assign, uint32_t site,
                         void **handle)
{
    uint64_t *word = NULL;
    struct blyi_condition *condition = blyi_host_calloc(1, sizeof(*condition));
    if (condition == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "graph %" PRIu32 ": no host memory for a condition",
                         graph->id);
    bly_status status = make_word(graph, site, &word);
    if (status == BLY_OK) {
        condition->graph = graph;
        condition->word = word;
        condition->n_owned = blyi_owned_add(condition->owned, 0, word, sizeof(*word));
        condition->value = value;
        condition->assign = assign;
        blyi_lock_take(&blyi_graphs_lock);
        status = add_condition_locked(graph, condition);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (status == BLY_OK) {
        *handle = condition->handle;
        return BLY_OK;
    }
    if (word != NULL) {
        char why[BLYI_FAIL_MAX];
        snprintf(why, sizeof(why), "%s", blyi_fail_text());
        (void)blyi_mem_free(word, site);
        (void)blyi_fail(status, "%s", why);
    }
    blyi_host_free(condition);
    return status;
}

bly_status blyi_condition_create(void *graph_handle, uint32_t value, bool assign, uint32_t site,
                                 void **handle)
{
    struct blyi_graph *graph;
    bly_status status = blyi_graph_pin_here(graph_handle, &graph);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&blyi_graphs_lock);
    status = check_capturing_locked(graph);
    blyi_lock_drop(&blyi_graphs_lock);
    if (status == BLY_OK)
        status = create(graph, value, assign, site, handle);
    blyi_graph_unpin(graph);
    return status;
}

bly_status blyi_condition_word(void *handle, uint64_t **word)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    struct blyi_condition *condition = blyi_handle_get(BLYI_HANDLE_CONDITION, handle);
    if (condition == NULL)
        return BLY_E_HANDLE;
    *word = condition->word;
    blyi_handle_put(handle);
    return BLY_OK;
}

/* ── The task ─────────────────────────────────────────────────────────────────────────────── */

static bly_status check_size(enum blyi_condition_kind kind, uint32_t size)
{
    bool fits = kind == BLYI_CONDITION_IF      ? size == 1 || size == 2
                : kind == BLYI_CONDITION_WHILE ? size == 1
                                               : size > 0;
    if (fits)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID, "a condition of kind %d with %" PRIu32 " bodies: %s", (int)kind,
                     size,
                     kind == BLYI_CONDITION_IF      ? "IF has 1 or 2"
                     : kind == BLYI_CONDITION_WHILE ? "WHILE has 1"
                                                    : "SWITCH has at least 1");
}

static bly_status check_add_locked(const struct blyi_condition *condition,
                                   const struct blyi_stream *stream, struct blyi_line **line)
{
    *line = blyi_capture_line_locked(stream);
    if (*line == NULL)
        return blyi_fail(BLY_E_NOT_CAPTURING, "stream %" PRIu32 " is not being captured",
                         stream->id);
    if ((*line)->graph != condition->graph)
        return blyi_fail(BLY_E_INVALID,
                         "the condition belongs to graph %" PRIu32 ", stream %" PRIu32
                         " is captured into graph %" PRIu32,
                         condition->graph->id, stream->id, (*line)->graph->id);
    if (condition->bodies != NULL)
        return blyi_fail(BLY_E_INVALID,
                         "the condition of graph %" PRIu32 " has its task already: each has one",
                         condition->graph->id);
    return blyi_node_room_locked(*line);
}

/* Graphs that end with the parent; on failure none is left. */
static bly_status make_bodies_locked(struct blyi_graph *parent, struct blyi_graph **bodies,
                                     uint32_t size, uint32_t site, uint32_t *n)
{
    const struct blyi_context_here here = {
        .context = parent->context, .card = parent->card, .generation = parent->generation};
    for (*n = 0; *n < size; ++*n) {
        bly_status status = blyi_graph_make(&here, site, &bodies[*n]);
        if (status != BLY_OK)
            return status;
        bodies[*n]->parent = parent;
        blyi_graph_ref(bodies[*n]); /* the condition's */
    }
    return BLY_OK;
}

static bly_status add_locked(struct blyi_condition *condition, enum blyi_condition_kind kind,
                             uint32_t size, struct blyi_graph **bodies,
                             const struct blyi_stream *stream, uint32_t site, uint32_t *n)
{
    struct blyi_line *line;
    struct blyi_task task = {.kind = BLYI_TASK_BODY, .site = site};
    bly_status status = check_add_locked(condition, stream, &line);
    if (status == BLY_OK)
        status = make_bodies_locked(condition->graph, bodies, size, site, n);
    if (status != BLY_OK)
        return status;
    condition->kind = kind;
    condition->n_bodies = size;
    condition->bodies = bodies;
    blyi_node_add_locked(line, &task)->condition = condition;
    return BLY_OK;
}

static bly_status add(struct blyi_condition *condition, enum blyi_condition_kind kind,
                      uint32_t size, void *handles[], struct blyi_stream *stream, uint32_t site)
{
    uint32_t n = 0;
    struct blyi_graph **bodies = blyi_host_calloc(size, sizeof(struct blyi_graph *));
    if (bodies == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %" PRIu32 " bodies", size);
    bly_status status = blyi_divert_check(stream, BLYI_TASK_BODY);
    if (status == BLY_OK) {
        blyi_lock_take(&blyi_graphs_lock);
        status = add_locked(condition, kind, size, bodies, stream, site, &n);
        blyi_lock_drop(&blyi_graphs_lock);
    }
    if (status == BLY_OK) {
        for (uint32_t i = 0; i < size; i++)
            handles[i] = bodies[i]->handle;
        return BLY_OK;
    }
    char why[BLYI_FAIL_MAX];
    snprintf(why, sizeof(why), "%s", blyi_fail_text());
    for (uint32_t i = 0; i < n; i++) {
        blyi_graph_end(bodies[i], false);
        blyi_graph_unref(bodies[i]);
    }
    blyi_host_free(bodies);
    return blyi_fail(status, "%s", why);
}

bly_status blyi_condition_add(void *handle, enum blyi_condition_kind kind, uint32_t size,
                              void *bodies[], void *stream_handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(stream_handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_condition *condition = blyi_handle_get(BLYI_HANDLE_CONDITION, handle);
    if (condition == NULL) {
        status = BLY_E_HANDLE;
    } else {
        status = check_size(kind, size);
        if (status == BLY_OK)
            status = add(condition, kind, size, bodies, stream, site);
        blyi_handle_put(handle);
    }
    blyi_stream_unpin(stream);
    return status;
}

/* ── Runs ─────────────────────────────────────────────────────────────────────────────────── */

bool blyi_condition_all_ready_locked(const struct blyi_graph *graph)
{
    BLYI_LIST_FOR(node, &graph->conditions)
    {
        const struct blyi_condition *condition = BLYI_CONTAINER(node, struct blyi_condition, link);
        for (uint32_t i = 0; condition->bodies != NULL && i < condition->n_bodies; i++)
            if (blyi_graph_state(condition->bodies[i]) != BLYI_GRAPH_READY)
                return false;
    }
    return true;
}

bly_status blyi_condition_check(struct blyi_condition *condition)
{
    return blyi_owned_check(condition->owned, condition->n_owned, &condition->checked, NULL);
}

bly_status blyi_condition_assign(struct blyi_graph *graph)
{
    bly_status status = BLY_OK;
    BLYI_LIST_FOR(node, &graph->conditions)
    {
        struct blyi_condition *condition = BLYI_CONTAINER(node, struct blyi_condition, link);
        if (condition->assign && status == BLY_OK)
            status = blyi_condition_check(condition);
        if (condition->assign && status == BLY_OK)
            status = blyi_copy_range(condition->word, &condition->value, sizeof(uint64_t), -1);
        for (uint32_t i = 0; condition->bodies != NULL && i < condition->n_bodies; i++)
            if (status == BLY_OK)
                status = blyi_condition_assign(condition->bodies[i]);
    }
    return status;
}

bly_status blyi_condition_choose(struct blyi_condition *condition, struct blyi_graph **body)
{
    uint64_t word;
    bly_status status = blyi_condition_check(condition);
    if (status == BLY_OK)
        status = blyi_copy_range(&word, condition->word, sizeof(word), -1);
    if (status != BLY_OK)
        return status;
    uint64_t index = 0;
    switch (condition->kind) {
    case BLYI_CONDITION_IF:
        index = word != 0 ? 0 : 1;
        break;
    case BLYI_CONDITION_WHILE:
        index = word != 0 ? 0 : 1; /* there is no body 1 */
        break;
    case BLYI_CONDITION_SWITCH:
        index = word;
        break;
    }
    *body = index < condition->n_bodies ? condition->bodies[index] : NULL;
    return BLY_OK;
}
