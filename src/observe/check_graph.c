/* SPDX-License-Identifier: Apache-2.0
 *
 * check_graph.c - runs of graphs: a run begins lines, whose tasks are told like any stream's, and
 * ends behind the last of them. Runs of one graph come one after the other.
 */
#include "observe/check_work.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/host.h"
#include "base/size.h"

static void join(struct blyi_check *check, struct blyi_vc *to, const struct blyi_vc *from)
{
    if (!blyi_vc_join(to, from))
        blyi_check_stop(check);
}

/* How many runs hold the line: 1 of a run that a stream was given, more of bodies. 0: a line that
 * another line began, beside itself. */
static uint32_t depth_of(const struct blyi_check_stream *by, const struct blyi_check_task *task)
{
    if (task == NULL || task->graph == BLYI_INDIRECT_NONE)
        return 0;
    return task->graph == BLYI_INDIRECT_BODY && by->depth > 0 ? by->depth + 1 : 1;
}

void blyi_check_graph_line_begins(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *by = blyi_check_stream(check, (uint32_t)probe->other, probe->card);
    struct blyi_check_stream *line = blyi_check_stream(check, probe->stream, probe->card);
    struct blyi_check_event *runs = blyi_check_event(check, blyi_check_graph_key(probe->event));
    if (by == NULL || line == NULL || runs == NULL)
        return;
    struct blyi_check_task *task = blyi_task_find(by, probe->asked);
    if (task != NULL) {
        task->has_lines = true;
        blyi_order_runs(check, by, task);
    }
    join(check, &by->vc, &by->arrived);
    join(check, &line->vc, &by->vc);
    join(check, &line->vc, &runs->flag);
    if (!line->is_line)
        check->n_lines++;
    line->is_line = check->tells_lines = true;
    bool is_run = task != NULL && task->graph == BLYI_INDIRECT_GRAPH;
    line->run_moment = is_run ? task->moment : by->run_moment;
    line->run_done = is_run ? task->n_done : by->run_done;
    line->run_unknown_done = is_run ? task->unknown_done : by->run_unknown_done;
    line->depth = depth_of(by, task);
    line->graph = probe->event;
}

void blyi_check_graph_line_ends(struct blyi_check *check, const struct blyi_probe *probe)
{
    struct blyi_check_stream *line = blyi_map_get(&check->streams, probe->stream);
    struct blyi_check_stream *runner =
        blyi_check_stream(check, (uint32_t)probe->other, probe->card);
    struct blyi_check_event *runs = blyi_check_event(check, blyi_check_graph_key(probe->event));
    if (line == NULL || !line->is_line || runner == NULL || runs == NULL)
        return;
    line->is_line = false;
    check->n_lines--;
    join(check, &runner->arrived, &line->vc);
    join(check, &runs->flag, &line->vc);
}

void blyi_check_graph_submitted(struct blyi_check *check, struct blyi_check_task *task,
                                const struct blyi_probe *probe)
{
    task->graph = (uint8_t)probe->aux;
    check->n_graphs += task->graph == BLYI_INDIRECT_GRAPH;
}

/* ── Reads of unwritten bytes in runs of several lines ────────────────────────────────────── */

struct blyi_kept_finding {
    struct blyi_kept_finding *next;
    struct blyi_finding finding;
    uint32_t site, area_site;
    uint64_t unknown; /* of the checker, at the read */
};

void blyi_check_graph_keep(struct blyi_check *check, const struct blyi_finding *finding,
                           uint32_t site, uint32_t area_site)
{
    struct blyi_kept_finding *kept = blyi_host_alloc(sizeof(*kept));
    if (kept == NULL) {
        blyi_check_stop(check);
        return;
    }
    *kept = (struct blyi_kept_finding){check->kept, *finding, site, area_site, check->unknown};
    check->kept = kept;
}

static bool is_of_a_race(const struct blyi_check *check, const struct blyi_kept_finding *kept)
{
    for (size_t i = 0; i < check->n_found; i++) {
        const struct blyi_finding *finding = &check->found[i]->finding;
        if (finding->kind == BLYI_FINDING_RACE &&
            (finding->sites[0].site == kept->site || finding->sites[1].site == kept->site))
            return true;
    }
    return false;
}

static void tell_kept(struct blyi_check *check)
{
    while (check->kept != NULL) {
        struct blyi_kept_finding *kept = check->kept;
        check->kept = kept->next;
        if (kept->unknown == check->unknown && !is_of_a_race(check, kept))
            blyi_found(check, &kept->finding, kept->site, kept->area_site);
        blyi_host_free(kept);
    }
}

void blyi_check_graph_fini(struct blyi_check *check)
{
    while (check->kept != NULL) {
        struct blyi_kept_finding *kept = check->kept;
        check->kept = kept->next;
        blyi_host_free(kept);
    }
}

void blyi_check_graph_forgotten(struct blyi_check *check, const struct blyi_check_task *task)
{
    if (task->kind != BLYI_PROBE_INDIRECT || task->graph != BLYI_INDIRECT_GRAPH)
        return;
    if (--check->n_graphs == 0)
        tell_kept(check);
}

bool blyi_check_graph_may_write(const struct blyi_check *check, uint32_t stream)
{
    const struct blyi_check_stream *own = blyi_map_get(&check->streams, stream);
    if (own == NULL || !own->is_line)
        return check->n_graphs > 0;
    return own->depth == 0 || check->n_graphs > 1 || check->n_lines != own->depth;
}

uint32_t blyi_stream_graph(const struct blyi_check *check, uint32_t id)
{
    const struct blyi_check_stream *stream = blyi_map_get(&check->streams, id);
    return stream != NULL ? stream->graph : 0;
}

bool blyi_check_graph_is_alone(const struct blyi_check *check, uint32_t stream)
{
    const struct blyi_check_stream *own = blyi_map_get(&check->streams, stream);
    return own != NULL && own->is_line && check->n_graphs == 1;
}

const char *blyi_stream_text(const struct blyi_check *check, uint32_t id,
                             char buf[BLYI_STREAM_TEXT])
{
    uint32_t graph = blyi_stream_graph(check, id);
    if (graph != 0)
        snprintf(buf, BLYI_STREAM_TEXT, "stream %" PRIu32 " of graph %" PRIu32, id, graph);
    else
        snprintf(buf, BLYI_STREAM_TEXT, "stream %" PRIu32, id);
    return buf;
}

/* ── Freed memory ─────────────────────────────────────────────────────────────────────────── */

void blyi_check_graph_stale(struct blyi_check *check, const struct blyi_probe *probe)
{
    char size[BLYI_SIZE_TEXT], where[BLYI_STREAM_TEXT];
    const struct blyi_was *was = blyi_was_find(check, probe->address);
    const struct blyi_epoch who = {
        .task = probe->task,
        .stream = probe->stream,
        .site = probe->site,
        .work = blyi_work_of(&(struct blyi_probe){.kind = (enum blyi_probe_kind)probe->aux,
                                                  .aux = probe->page_kind})};
    struct blyi_finding finding = {.kind = BLYI_FINDING_USE_AFTER_FREE,
                                   .card = was != NULL ? was->card : probe->card,
                                   .address = probe->address};
    int n = snprintf(finding.message, sizeof(finding.message),
                     "%s on %s was captured with 0x%" PRIx64, blyi_work_text(who.work),
                     blyi_stream_text(check, probe->stream, where), probe->address);
    if (was != NULL)
        snprintf(finding.message + n, sizeof(finding.message) - (size_t)n,
                 ", %" PRIu64 " bytes into a %s of %s at 0x%" PRIx64 " that was freed before a run",
                 probe->address - was->address, blyi_area_noun((enum blyi_area_kind)was->kind),
                 blyi_size_text(was->size, size), was->address);
    else
        snprintf(finding.message + n, sizeof(finding.message) - (size_t)n,
                 ", which was freed before a run");
    blyi_found_who(check, &finding, &who);
    if (was != NULL && was->free_site != 0)
        blyi_finding_add_site(&finding, BLYI_ROLE_FREE, was->free_site, NULL);
    if (was != NULL)
        blyi_finding_add_site(&finding, BLYI_ROLE_ALLOC, was->alloc_site, NULL);
    snprintf(finding.cure, sizeof(finding.cure),
             "keep the block as long as the graph runs, or capture the graph anew");
    blyi_found(check, &finding, who.site, was != NULL ? was->alloc_site : 0);
}
