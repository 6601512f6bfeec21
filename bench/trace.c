/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - what recording costs: a probe alone, and calls of programs with it beside the same
 * calls without.
 *
 * A bound of a probe is what no recorder can do without: a stamp of time, a number that all
 * threads share, and as many bytes written to memory.
 *
 * With --events KIND ROWS it records that many rows of 20,000 events (record, alloc, ring) and does
 * nothing else: scripts/bench.sh --instructions counts what that takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <belay/trace.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/stamp.h"
#include "bench/bench.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/memory.h"
#include "npu/round.h"
#include "npu/stream.h"

#define EVENTS 20000 /* between two looks at the clock */

static char path[64];

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), blyi_fail_text());
}

static void record_into(uint64_t ring)
{
    bly_trace_opts opts = bly_trace_opts_default();
    opts.ring = ring;
    must(bly_trace_start(path, &opts), "start");
}

static void stop(void)
{
    must(bly_trace_stop(), "stop");
    unlink(path);
}

/* ── A probe alone ────────────────────────────────────────────────────────────────────────── */

static void emit_pairs(uint32_t site)
{
    for (uint64_t i = 0; i < EVENTS / 2; i++) {
        uint64_t address = (i % 512 + 1) << 21;
        BLYI_PROBE(ALLOC, .card = 0, .address = address, .size = 1 * MiB, .asked = 1 * MiB,
                   .rounded = 1 * MiB + 32, .backed = 2 * MiB, .site = site);
        BLYI_PROBE(FREE, .card = 0, .address = address, .size = 1 * MiB, .asked = 1 * MiB,
                   .rounded = 1 * MiB + 32, .backed = 2 * MiB, .site = site);
    }
}

/* As calls emit them: with a stamp at their beginning, too. */
static void emit_calls(uint32_t site)
{
    for (uint64_t i = 0; i < EVENTS / 2; i++) {
        uint64_t address = (i % 512 + 1) << 21, began_ns = blyi_probe_began(BLYI_PROBE_ALLOC);
        BLYI_PROBE(ALLOC, .card = 0, .address = address, .size = 1 * MiB, .asked = 1 * MiB,
                   .rounded = 1 * MiB + 32, .backed = 2 * MiB, .site = site, .began_ns = began_ns);
        began_ns = blyi_probe_began(BLYI_PROBE_FREE);
        BLYI_PROBE(FREE, .card = 0, .address = address, .size = 1 * MiB, .asked = 1 * MiB,
                   .rounded = 1 * MiB + 32, .backed = 2 * MiB, .site = site, .began_ns = began_ns);
    }
}

static void emit_records(uint32_t site)
{
    for (uint32_t i = 0; i < EVENTS; i++)
        BLYI_PROBE(RECORD, .card = 0, .stream = 1, .event = i, .site = site);
}

static uint64_t shared_number, written[8 * EVENTS];

static void bare(uint32_t words)
{
    uint64_t *to = written;
    for (uint32_t i = 0; i < EVENTS; i++, to += words) {
        to[0] = __atomic_add_fetch(&shared_number, 1, __ATOMIC_SEQ_CST);
        to[1] = blyi_stamp_ns();
        for (uint32_t k = 2; k < words; k++)
            to[k] = i;
        __atomic_store_n(&shared_number, shared_number, __ATOMIC_RELEASE);
    }
}

static double ns_each(uint64_t start)
{
    return (double)(bench_ns() - start) / EVENTS;
}

static void measure_probe(const struct bench *bench, const char *what, void (*emit)(uint32_t),
                          uint32_t words, uint64_t ring, double most_ns)
{
    static struct bench_samples ours, bound;
    uint32_t site = blyi_site_intern((const void *)(uintptr_t)&measure_probe);
    ours.n = bound.n = 0;
    record_into(ring);
    emit(site);
    for (int rep = 0; rep < (bench->quick ? 11 : 101); rep++) {
        uint64_t start = bench_ns();
        emit(site);
        bench_add(&ours, ns_each(start));
        start = bench_ns();
        bare(words);
        bench_add(&bound, ns_each(start));
    }
    stop();
    bench_row(bench, &(struct bench_row){what, "ns", &ours, &bound, BENCH_OURS_AT_MOST, most_ns});
}

/* ── Calls with it and without ────────────────────────────────────────────────────────────── */

static void *stream;
static struct blyi_card *card;

static double trips_us(void)
{
    uint64_t start = bench_ns();
    for (int i = 0; i < 200; i++) {
        must(blyi_stream_nop(stream), "nop");
        must(blyi_stream_sync(stream, 0), "sync");
    }
    return (double)(bench_ns() - start) / 1e3 / 200;
}

static double row_us(void)
{
    uint64_t start = bench_ns();
    for (int i = 0; i < 1000; i++)
        must(blyi_stream_nop(stream), "nop");
    must(blyi_stream_sync(stream, 0), "sync");
    return (double)(bench_ns() - start) / 1e3 / 1000;
}

static double mallocs_us(void)
{
    uint64_t start = bench_ns();
    for (int i = 0; i < 100; i++) {
        struct blyi_mem_request request = {.asked = 2 * MiB,
                                           .rounded = 2 * MiB,
                                           .policy = BLYI_MEM_HUGE_FIRST,
                                           .site = 1,
                                           .module = BLYI_MODULE_APPLICATION};
        void *block;
        must(blyi_mem_alloc(card, &request, &block), "alloc");
        must(blyi_mem_free(block, 1), "free");
    }
    return (double)(bench_ns() - start) / 1e3 / 100;
}

static void measure_call(const struct bench *bench, const char *what, double (*call)(void),
                         uint64_t ring)
{
    static struct bench_samples with, without;
    with.n = without.n = 0;
    (void)call();
    for (int rep = 0; rep < (bench->quick ? 11 : 61); rep++) {
        bench_add(&without, call());
        record_into(ring);
        (void)call(); /* the first events of a recording are not what is measured */
        bench_add(&with, call());
        stop();
    }
    bench_row(bench, &(struct bench_row){what, "us", &with, &without, BENCH_RATIO_AT_MOST, 1.05});
}

/* For scripts/bench.sh --instructions: so many rows of EVENTS and nothing else. */
static int only_events(const char *which, const char *rows)
{
    uint32_t site = blyi_site_intern((const void *)(uintptr_t)&measure_probe);
    void (*emit)(uint32_t) = strcmp(which, "record") == 0 ? emit_records : emit_pairs;
    record_into(strcmp(which, "ring") == 0 ? 10000 : 0);
    for (int i = atoi(rows); i > 0; i--)
        emit(site);
    stop();
    return 0;
}

int main(int argc, char **argv)
{
    struct bench bench;
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%.40s/belay-bench-%d", folder ? folder : "/tmp", (int)getpid());
    setenv("BELAY_SYMBOLIZER", "/nonexistent", 1); /* names at the end are not what is measured */
    setenv("BELAY_STATE", "private", 0);           /* nobody else's card */
    if (argc == 4 && strcmp(argv[1], "--events") == 0)
        return only_events(argv[2], argv[3]);
    bench_begin(&bench, "trace", argc, argv);
    bench_pin(0);
    bench_section(&bench, "one event, recorded; bound: stamp, shared number, as many bytes");
    measure_probe(&bench, "event record, all kept", emit_records, 3, 0, 25);
    measure_probe(&bench, "event record, ring of 10000", emit_records, 3, 10000, 25);
    measure_probe(&bench, "alloc and free, all kept", emit_pairs, 5, 0, 25);
    measure_probe(&bench, "alloc and free with times, all kept", emit_calls, 6, 0, 50);
    measure_probe(&bench, "alloc and free, ring of 10000", emit_pairs, 5, 10000, 25);

    void *context;
    must(blyi_context_create(0, 0, &context), "context");
    must(blyi_stream_create(0, 0, 0, &stream), "stream");
    must(blyi_card_open(0, &card), "card");
    bench_pin_others(1);
    bench_section(&bench, "calls while all is recorded; bound: the same without recording");
    measure_call(&bench, "an empty task and its synchronisation", trips_us, 0);
    measure_call(&bench, "a row of 1000 empty tasks", row_us, 0);
    measure_call(&bench, "2 MiB allocated and freed", mallocs_us, 0);
    measure_call(&bench, "2 MiB allocated and freed, ring of 10000", mallocs_us, 10000);
    bench_end(&bench);
    return 0;
}
