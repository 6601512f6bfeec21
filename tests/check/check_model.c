/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model.c - the checker beside a model that keeps, for each access, the set of all accesses
 * that are before it. Random programs of sets and copies on streams, with events, waits, runs of
 * graphs and a host, are told to both as probes; every race that the checker finds must be one, and
 * where the model finds any, the checker must find some. TEST_SEED=n repeats a run.
 */
#include "check_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Sites are numbers of accesses, from 1: so findings name what they are about. */
static void on_found(void *arg, const struct blyi_finding *finding)
{
    struct model *m = arg;
    if (finding->kind != BLYI_FINDING_RACE)
        return;
    uint32_t a = finding->sites[0].site, b = finding->sites[1].site;
    if (a == 0 || b == 0 || a > TASKS || b > TASKS || !m->races[a][b]) {
        print_error("false: access %" PRIu32 " and %" PRIu32 "\n", a, b);
        m->found_false = true;
    }
}

void note_races(struct model *m, int of)
{
    const struct access *a = &m->all[of];
    for (int i = 0; i < m->n; i++) {
        const struct access *b = &m->all[i];
        if (i == of || !b->is_done || b->event >= 0 || (!a->writes && !b->writes) ||
            a->lo >= b->hi || b->lo >= a->hi || has(&a->before, i) || has(&b->before, of))
            continue;
        m->races[of + 1][i + 1] = m->races[i + 1][of + 1] = true;
        m->n_races++;
    }
}

void pick_range(struct model *m, struct access *a)
{
    a->lo = (uint64_t)below(m, (int)m->length - 1);
    a->hi = a->lo + 1 + (uint64_t)below(m, 15);
    if (a->hi > m->length)
        a->hi = m->length;
    a->writes = below(m, 2) == 0;
}

void tell_access(struct model *m, int i, uint32_t stream, uint64_t number)
{
    const struct access *a = &m->all[i];
    struct blyi_probe probe = {.kind = a->writes ? BLYI_PROBE_SET : BLYI_PROBE_COPY,
                               .card = stream != 0 ? 0 : -1,
                               .stream = stream,
                               .task = number,
                               .site = (uint32_t)i + 1,
                               .size = a->hi - a->lo,
                               .asked = a->hi - a->lo};
    *(a->writes ? &probe.address : &probe.other) = BLOCK + a->lo;
    if (!a->writes)
        probe.address = 16; /* no memory that is followed */
    tell(m, probe);
}

static void submit_access(struct model *m, int s)
{
    int i = m->n++;
    struct access *a = &m->all[i];
    *a = (struct access){.is_task = true, .stream = s, .event = -1, .graph = -1, .host = m->host};
    pick_range(m, a);
    a->number = ++m->number[s];
    m->queue[s][m->last[s]++] = i;
    tell_access(m, i, (uint32_t)s + 1, a->number);
}

static void submit_event(struct model *m, int s, bool record)
{
    int i = m->n, e = below(m, EVENTS);
    if (!record && m->recorded[e] < 0)
        return;
    m->n++;
    struct access *a = &m->all[i];
    *a = (struct access){.is_task = true, .stream = s, .event = e, .graph = -1, .host = m->host};
    a->is_record = record;
    a->is_wait = !record;
    a->waits_for = record ? -1 : m->recorded[e];
    a->number = ++m->number[s];
    m->queue[s][m->last[s]++] = i;
    struct blyi_probe probe = {.kind = record ? BLYI_PROBE_RECORD : BLYI_PROBE_WAIT,
                               .stream = (uint32_t)s + 1,
                               .task = a->number,
                               .event = (uint32_t)e + 1};
    if (record) {
        m->recorded[e] = i;
    } else {
        const struct access *mark = &m->all[a->waits_for];
        probe.other = (uint64_t)mark->stream + 1;
        probe.asked = probe.size = mark->number;
    }
    tell(m, probe);
}

static void submit_run(struct model *m, int s)
{
    int i = m->n++;
    struct access *a = &m->all[i];
    *a = (struct access){
        .is_task = true, .stream = s, .event = EVENTS, .graph = below(m, GRAPHS), .host = m->host};
    a->number = ++m->number[s];
    m->queue[s][m->last[s]++] = i;
    tell(m, (struct blyi_probe){.kind = BLYI_PROBE_INDIRECT,
                                .stream = (uint32_t)s + 1,
                                .task = a->number,
                                .aux = BLYI_INDIRECT_GRAPH});
}

/* Runs the head of a stream, if it may. */
static bool run_one(struct model *m, int s)
{
    if (m->first[s] == m->last[s])
        return false;
    int i = m->queue[s][m->first[s]];
    struct access *a = &m->all[i];
    bool ends = true;
    if (a->is_wait && !m->all[a->waits_for].is_done)
        return false;
    if (a->graph >= 0 && (!run_graph(m, s, a, &ends) || !ends))
        return !ends;
    m->first[s]++;
    join(&m->stream[s], &a->host);
    if (a->is_wait) {
        join(&m->stream[s], &m->all[a->waits_for].before);
        add(&m->stream[s], a->waits_for);
    }
    a->before = m->stream[s];
    a->is_done = true;
    add(&m->stream[s], i);
    if (a->event < 0)
        note_races(m, i);
    tell(m, (struct blyi_probe){
                .kind = BLYI_PROBE_TASK_DONE, .stream = (uint32_t)s + 1, .task = a->number});
    return true;
}

static void host_access(struct model *m)
{
    int i = m->n++;
    struct access *a = &m->all[i];
    *a = (struct access){.stream = -1, .event = -1, .graph = -1};
    pick_range(m, a);
    a->before = m->host;
    a->is_done = true;
    note_races(m, i);
    add(&m->host, i);
    tell_access(m, i, 0, 0);
}

static void host_waits(struct model *m)
{
    int s = below(m, STREAMS);
    if (below(m, 2) == 0) {
        while (run_one(m, s))
            ;
        if (m->first[s] != m->last[s])
            return; /* it cannot end yet */
        join(&m->host, &m->stream[s]);
        tell(m, (struct blyi_probe){.kind = BLYI_PROBE_STREAM_SYNC, .stream = (uint32_t)s + 1});
        return;
    }
    int e = below(m, EVENTS), mark = m->recorded[e];
    if (mark < 0 || !m->all[mark].is_done)
        return;
    join(&m->host, &m->all[mark].before);
    add(&m->host, mark);
    tell(m, (struct blyi_probe){.kind = BLYI_PROBE_EVENT_SYNC,
                                .event = (uint32_t)e + 1,
                                .other = (uint64_t)m->all[mark].stream + 1,
                                .asked = m->all[mark].number,
                                .size = m->all[mark].number});
}

static void step(struct model *m)
{
    switch (below(m, 10)) {
    case 0:
    case 1:
    case 2:
        submit_access(m, below(m, STREAMS));
        break;
    case 3:
        submit_event(m, below(m, STREAMS), true);
        break;
    case 4:
    case 5:
        submit_event(m, below(m, STREAMS), false);
        break;
    case 6:
        host_waits(m);
        break;
    case 7:
        submit_run(m, below(m, STREAMS));
        break;
    case 8:
        if (below(m, 3) == 0)
            host_access(m);
        break;
    default:
        (void)run_one(m, below(m, STREAMS));
        break;
    }
}

static void run_program(uint64_t seed, size_t *n_with, size_t *n_races)
{
    struct model *m = calloc(1, sizeof(*m));
    m->seed = seed;
    for (int e = 0; e < EVENTS; e++)
        m->recorded[e] = -1;
    for (int g = 0; g < GRAPHS; g++)
        m->graphs[g].runner = -1;
    m->length = (uint64_t)16 << below(m, 9); /* the longer, the fewer races */
    const struct blyi_check_opts opts = {
        .groups = BLYI_CHECK_ALL & ~(1u << BLYI_CHECK_AT_UNINIT), .found = on_found, .arg = m};
    assert_int_equal(blyi_check_create(&opts, &m->check), BLY_OK);
    tell(m, (struct blyi_probe){
                .kind = BLYI_PROBE_ALLOC, .address = BLOCK, .size = m->length, .asked = m->length});
    m->n_tasks = 4 + below(m, STEPS - 4);
    while (m->n < m->n_tasks)
        step(m);
    for (bool again = true; again;) {
        again = false;
        for (int s = 0; s < STREAMS; s++)
            again = run_one(m, s) || again;
    }
    size_t n;
    (void)blyi_check_findings(m->check, &n);
    if (m->found_false || (m->n_races > 0) != (n > 0) || !blyi_check_audit(m->check)) {
        print_error("TEST_SEED=%" PRIu64 ": %zu races, %zu found\n", seed, m->n_races, n);
        fail();
    }
    *n_with += m->n_races > 0;
    *n_races += m->n_races;
    blyi_check_destroy(m->check);
    free(m);
}

static void the_model_agrees(void **state)
{
    (void)state;
    const char *text = getenv("TEST_SEED");
    uint64_t first = text != NULL ? strtoull(text, NULL, 10) : 1;
    size_t n_with = 0, n_races = 0;
    for (uint64_t seed = first; seed < first + 3000; seed++)
        run_program(seed * 0x9e3779b97f4a7c15u | 1, &n_with, &n_races);
    print_message("3000 programs, %zu with races, %zu races\n", n_with, n_races);
    assert_true(n_with > 100 && n_with < 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_model_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
