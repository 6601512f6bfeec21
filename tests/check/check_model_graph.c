/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model_graph.c - runs of graphs in the model: lines that begin with what the run knew, and
 * whose end the run waits for.
 */
#include "check_model.h"

static uint32_t stream_of(int g, int l)
{
    return (uint32_t)(STREAMS + 1 + 2 * g + l);
}

static void tell_line(struct model *m, int g, int l, int s, uint64_t task)
{
    tell(m, (struct blyi_probe){.kind = task != 0 ? BLYI_PROBE_LINE_BEGIN : BLYI_PROBE_LINE_END,
                                .stream = stream_of(g, l),
                                .event = (uint32_t)g + 1,
                                .other = (uint64_t)s + 1,
                                .asked = task});
}

static int draw(struct model *m, int g, int l, bool is_event)
{
    struct model_line *line = &m->graphs[g].lines[l];
    int i = m->n++;
    m->all[i] = (struct access){.stream = STREAMS + 2 * g + l,
                                .event = is_event ? EVENTS : -1,
                                .graph = -1,
                                .number = ++line->number};
    if (!is_event)
        pick_range(m, &m->all[i]);
    line->queue[line->last++] = i;
    return i;
}

static void begin(struct model *m, int g, int s, struct access *run)
{
    struct model_graph *graph = &m->graphs[g];
    bool has_room = m->n + 8 < TASKS;
    graph->runner = s;
    graph->record = -1;
    graph->arrived = (struct set){{0}};
    join(&m->stream[s], &run->host);
    for (int l = 0; l < 2; l++) {
        struct model_line *line = &graph->lines[l];
        line->set = m->stream[s];
        join(&line->set, &graph->runs);
        line->first = line->last = 0;
        line->goes_on = true;
        tell_line(m, g, l, s, run->number);
    }
    for (int l = 0; has_room && l < 2; l++) {
        bool crosses = l == 0 ? below(m, 2) == 0 : graph->record >= 0;
        if (l == 1 && crosses)
            m->all[draw(m, g, l, true)].is_wait = true;
        draw(m, g, l, false);
        if (l == 0 && crosses) {
            graph->record = draw(m, g, l, true);
            m->all[graph->record].is_record = true;
        }
        if (below(m, 2) == 0)
            draw(m, g, l, false);
    }
}

/* Told when the line comes to it: a wait perhaps before its record. */
static void tell_task(struct model *m, int g, int l, int i)
{
    const struct access *a = &m->all[i];
    struct blyi_probe probe = {
        .stream = stream_of(g, l), .task = a->number, .event = (uint32_t)(EVENTS + 1 + g)};
    if (a->event < 0) {
        tell_access(m, i, stream_of(g, l), a->number);
        return;
    }
    probe.kind = a->is_record ? BLYI_PROBE_RECORD : BLYI_PROBE_WAIT;
    if (a->is_wait) {
        probe.other = stream_of(g, 0);
        probe.asked = m->all[m->graphs[g].record].number;
    }
    tell(m, probe);
}

static bool run_line(struct model *m, int g, int l, int s)
{
    struct model_graph *graph = &m->graphs[g];
    struct model_line *line = &graph->lines[l];
    if (!line->goes_on)
        return false;
    if (line->first == line->last) {
        line->goes_on = false;
        join(&graph->arrived, &line->set);
        join(&graph->runs, &line->set);
        tell_line(m, g, l, s, 0);
        return true;
    }
    int i = line->queue[line->first];
    struct access *a = &m->all[i];
    if (!a->is_told)
        tell_task(m, g, l, i);
    a->is_told = true;
    if (a->is_wait && !m->all[graph->record].is_done)
        return false;
    line->first++;
    if (a->is_wait) {
        join(&line->set, &m->all[graph->record].before);
        add(&line->set, graph->record);
    }
    a->before = line->set;
    a->is_done = true;
    add(&line->set, i);
    if (a->event < 0)
        note_races(m, i);
    tell(m, (struct blyi_probe){
                .kind = BLYI_PROBE_TASK_DONE, .stream = stream_of(g, l), .task = a->number});
    return true;
}

bool run_graph(struct model *m, int s, struct access *run, bool *ends)
{
    int g = run->graph;
    struct model_graph *graph = &m->graphs[g];
    *ends = false;
    if (graph->runner >= 0 && graph->runner != s) {
        *ends = true; /* not its turn */
        return false;
    }
    if (graph->runner < 0) {
        begin(m, g, s, run);
        return true;
    }
    int l = below(m, 2);
    if (run_line(m, g, l, s) || run_line(m, g, 1 - l, s))
        return true;
    join(&m->stream[s], &graph->arrived);
    graph->runner = -1;
    *ends = true;
    return true;
}
