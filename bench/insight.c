/* SPDX-License-Identifier: Apache-2.0
 *
 * insight.c - how long a recording of a million events takes to be explained. The bound is what no
 * explanation can do without: reading every event once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "bench/bench.h"
#include "observe/trace_writer.h"

#define EVENTS 1000000u
#define SITES  500u
#define LIVE   4096u

static char path[64], page[64];
static uint64_t state = 20240229;

static uint64_t below(uint64_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 0x2545f4914f6cdd1du >> 11) % n;
}

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), blyi_fail_text());
}

/* Steps of 1000 events: blocks at places that are used again, copies, tags, a pool's segments. */
static void write_trace(uint32_t events)
{
    struct blyi_tracewriter *w;
    struct blyi_trace *trace = NULL;
    static uint64_t size[LIVE];
    static uint32_t site[SITES];
    char text[64];
    struct blyi_tracewriter_opts opts = {.path = path, .program = "bench"};
    must(blyi_tracewriter_new(&opts, &w), "new");
    for (uint32_t i = 0; i < SITES; i++) {
        snprintf(text, sizeof(text), "function_%u", i);
        site[i] = blyi_tracewriter_source(w, text, "program.c", i);
    }
    memset(size, 0, sizeof(size));
    for (uint32_t i = 0; i < events; i++) {
        uint64_t slot = below(LIVE), address = (slot + 1) << 24;
        struct blyi_trace_event e = {.probe = {.time_ns = i * 1000, .address = address}};
        if (i % 1000 == 0) {
            snprintf(text, sizeof(text), "step %u", i / 1000);
            e.probe.kind = BLYI_PROBE_MARK;
            e.probe.event = blyi_tracewriter_name(w, text);
        } else if (i < LIVE) {
            e.probe.kind = BLYI_PROBE_SEGMENT;
            e.probe.address = (uint64_t)(i + 1) << 24;
            e.probe.asked = e.probe.size = 1 << 23;
        } else if (i % 8 == 0 && size[slot] > 0) {
            e.probe.kind = BLYI_PROBE_SET;
            e.probe.asked = e.probe.size = 64;
        } else {
            bool makes = size[slot] == 0;
            e.probe.kind = makes ? BLYI_PROBE_ALLOC : BLYI_PROBE_FREE;
            size[slot] = makes ? 512 + below(1 << 20) : size[slot];
            e.probe.asked = e.probe.size = size[slot];
            e.probe.rounded = size[slot] + 32;
            e.probe.backed = (size[slot] + 4127) & ~(uint64_t)4095;
            e.probe.site = site[below(SITES)];
            size[slot] = makes ? size[slot] : 0;
        }
        blyi_tracewriter_event(w, &e);
    }
    must(blyi_tracewriter_finish(w, 0, (uint64_t)events * 1000, &trace), "finish");
    blyi_trace_close(trace);
}

static double reading_ms(void)
{
    uint64_t start = bench_ns();
    struct blyi_trace *trace;
    struct blyi_trace_event event;
    must(blyi_trace_open(path, &trace), "open");
    while (blyi_trace_next(trace, &event))
        ;
    blyi_trace_close(trace);
    return (double)(bench_ns() - start) / 1e6;
}

/* The command as a user meets it, start of the process included. */
static double command_ms(const char *command)
{
    char line[4400];
    bool is_page = strcmp(command, "view") == 0;
    snprintf(line, sizeof(line), "'%s' %s %s %s %s", BELAY_COMMAND, command, path,
             is_page ? "-o" : ">/dev/null", is_page ? page : "");
    uint64_t start = bench_ns();
    if (system(line) != 0)
        bench_cannot("%s failed", line);
    return (double)(bench_ns() - start) / 1e6;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *command;
        double target;
    } rows[] = {{"report", 1000}, {"diagnose", 2000}, {"view", 5000}};
    struct stat about = {0};
    struct bench bench;
    bench_begin(&bench, "insight", argc, argv);
    uint32_t events = bench.quick ? EVENTS / 10 : EVENTS;
    snprintf(path, sizeof(path), "/tmp/belay-bench-%d.trace", (int)getpid());
    snprintf(page, sizeof(page), "/tmp/belay-bench-%d.html", (int)getpid());
    write_trace(events);
    bench_section(&bench, "%u events explained; bound: reading them", events);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct bench_samples ours, bound;
        ours.n = bound.n = 0;
        for (int rep = 0; rep < 5; rep++) {
            bench_add(&bound, reading_ms());
            bench_add(&ours, command_ms(rows[i].command));
        }
        bench_row(&bench, &(struct bench_row){rows[i].command, "ms", &ours, &bound,
                                              BENCH_OURS_AT_MOST, rows[i].target});
    }
    if (stat(page, &about) == 0)
        bench_note(&bench, "the page has %lld bytes (at most 20 MB)", (long long)about.st_size);
    unlink(page);
    unlink(path);
    bench_end(&bench);
    return 0;
}
