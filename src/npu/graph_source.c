/* SPDX-License-Identifier: Apache-2.0
 *
 * graph_source.c - pinned sources of a graph's copies, kept as a run is queued: what changes them
 * until the copy has run is told as of any other copy (source.h).
 *
 * The run has the bytes; a copy takes its own when a line comes to it, once. Bodies of conditions
 * run any number of times, so theirs are not kept.
 */
#include "base/host.h"
#include "base/probe.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/source.h"

struct blyi_run_source {
    struct blyi_run_source *next;
    const struct blyi_node *node;
    void *bytes;
};

static bool is_kept(const struct blyi_node *node)
{
    return node->task.kind == BLYI_TASK_COPY && !node->disabled &&
           blyi_place_of(node->task.u.copy.src, NULL) == BLYI_PLACE_PINNED;
}

/* The block may have been freed since the capture: the run will say so. */
static void *bytes_of(const struct blyi_node *node)
{
    const void *source = node->task.u.copy.src;
    void *bytes = NULL;
    if (blyi_pinned_hold(source, node->task.u.copy.size)) {
        bytes = blyi_source_copy(source, node->task.u.copy.size);
        blyi_pinned_release(source);
    }
    return bytes;
}

bool blyi_graph_has_sources(const struct blyi_graph *graph)
{
    if (!blyi_probe_on(BLYI_PROBE_SOURCE_CHANGED))
        return false;
    BLYI_LIST_FOR(link, &graph->lines)
    {
        const struct blyi_line *line = BLYI_CONTAINER(link, struct blyi_line, link);
        for (uint32_t i = 0; i < line->n_nodes; i++)
            if (is_kept(blyi_node_at(line, i)))
                return true;
    }
    return false;
}

static void keep(struct blyi_crossing *run, const struct blyi_node *node)
{
    void *bytes = bytes_of(node);
    struct blyi_run_source *source = bytes ? blyi_host_alloc(sizeof(*source)) : NULL;
    if (source == NULL) {
        blyi_source_free(bytes);
        return;
    }
    *source = (struct blyi_run_source){run->sources, node, bytes};
    run->sources = source;
}

void blyi_graph_keep_sources(const struct blyi_task *task)
{
    struct blyi_crossing *run = task->u.graph.run;
    if (run == NULL || !run->keeps_sources)
        return;
    BLYI_LIST_FOR(link, &task->u.graph.graph->lines)
    {
        const struct blyi_line *line = BLYI_CONTAINER(link, struct blyi_line, link);
        for (uint32_t i = 0; i < line->n_nodes; i++)
            if (is_kept(blyi_node_at(line, i)))
                keep(run, blyi_node_at(line, i));
    }
}

/* Lines of a run take theirs at the same time, each its own. */
void *blyi_graph_take_source(const struct blyi_node *node)
{
    const struct blyi_crossing *run = node->line->graph->run;
    void *bytes = NULL;
    for (struct blyi_run_source *at = run ? run->sources : NULL; at != NULL; at = at->next) {
        if (at->node != node)
            continue;
        bytes = at->bytes;
        at->bytes = NULL;
        break;
    }
    return bytes;
}

void blyi_graph_drop_sources(struct blyi_crossing *run)
{
    while (run->sources != NULL) {
        struct blyi_run_source *source = run->sources;
        run->sources = source->next;
        blyi_source_free(source->bytes);
        blyi_host_free(source);
    }
}
