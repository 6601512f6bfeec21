/* SPDX-License-Identifier: Apache-2.0
 *
 * task.c - what an empty task costs: alone, in a row, in system calls, and at rest.
 *
 * Streams are used by their internal names, so that the figures are those of the engine; the
 * bound is a bare ring (ring.h). The caller runs on the first CPU, engine and consumer on the
 * second.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stat.h"
#include "bench/bench.h"
#include "bench/ring.h"
#include "bench/syscalls.h"
#include "npu/context.h"
#include "npu/stream.h"

#define TRIPS      100  /* submit and complete, between two looks at the clock */
#define ROW        1000 /* tasks in a row */
#define BLOCKS     40   /* looks at the clock in a repetition */
#define SHARED     200  /* trips while caller and engine share a CPU */
#define IDLE       64   /* streams */
#define COUNTED    100  /* tasks in a row while system calls are counted */
#define COUNT_RUNS 10

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), blyi_fail_text());
}

/* ── The two sides, behind one pair of functions ──────────────────────────────────────────── */

struct side {
    void (*submit)(void *queue);
    void (*sync)(void *queue);
    void *queue;
};

static void stream_submit(void *stream)
{
    must(blyi_stream_nop(stream), "nop");
}

static void stream_sync(void *stream)
{
    must(blyi_stream_sync(stream, 0), "sync");
}

static void bare_submit(void *ring)
{
    ring_submit(ring);
}

static void bare_sync(void *ring)
{
    ring_sync(ring);
}

/* ns of one trip: the median of many blocks, so that a lost time slice does not count. */
static double trip_ns(const struct side *side)
{
    struct bench_samples blocks = {0};
    for (int block = 0; block <= BLOCKS; block++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < TRIPS; i++) {
            side->submit(side->queue);
            side->sync(side->queue);
        }
        if (block > 0) /* the first wakes the engine and warms the caches */
            bench_add(&blocks, (double)(bench_ns() - start) / TRIPS);
    }
    return bench_median(&blocks);
}

/* ns a task of a row that is queued and then waited for; *submit_ns: of the submission alone. */
static double row_ns(const struct side *side, double *submit_ns)
{
    struct bench_samples whole = {0}, submit = {0};
    for (int block = 0; block <= BLOCKS; block++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < ROW; i++)
            side->submit(side->queue);
        uint64_t queued = bench_ns();
        side->sync(side->queue);
        if (block > 0) {
            bench_add(&whole, (double)(bench_ns() - start) / ROW);
            bench_add(&submit, (double)(queued - start) / ROW);
        }
    }
    *submit_ns = bench_median(&submit);
    return bench_median(&whole);
}

static void measure(const struct bench *bench)
{
    static struct ring ring;
    static struct bench_samples trip[2], row[2], submit[2];
    void *stream;
    must(blyi_stream_create(0, 0, 0, &stream), "stream");
    stream_submit(stream);
    stream_sync(stream);
    bench_pin(0);
    bench_pin_others(1);

    uint64_t wakes = 0;
    for (int rep = 0; rep < (bench->quick ? 5 : 21); rep++) {
        const struct side sides[2] = {{stream_submit, stream_sync, stream},
                                      {bare_submit, bare_sync, &ring}};
        for (int side = 0; side < 2; side++) {
            bench_sleep_ms(2); /* the other side's thread goes to sleep or is gone */
            if (side == 1 && !ring_open(&ring, 1))
                bench_cannot("no thread for the ring");
            uint64_t before = blyi_stat_read(BLYI_STAT_engine_wakes);
            double submit_ns;
            bench_add(&trip[side], trip_ns(&sides[side]));
            bench_add(&row[side], row_ns(&sides[side], &submit_ns));
            bench_add(&submit[side], submit_ns);
            wakes += blyi_stat_read(BLYI_STAT_engine_wakes) - before;
            if (side == 1)
                ring_close(&ring);
        }
    }
    bench_section(bench, "empty task; bound: a bare spinning ring of 64-byte records");
    bench_row(bench, &(struct bench_row){"submit, complete", "ns", &trip[0], &trip[1],
                                         BENCH_RATIO_AT_MOST, 4});
    bench_row(bench, &(struct bench_row){"1000 in a row, a task", "ns", &row[0], &row[1],
                                         BENCH_OURS_AT_MOST, 150});
    bench_row(bench, &(struct bench_row){"of that, the submission", "ns", &submit[0], &submit[1],
                                         BENCH_NO_TARGET, 0});
    bench_note(bench, "engine woken %lu times during the %d repetitions", (unsigned long)wakes,
               trip[0].n);
    must(blyi_stream_destroy(stream, false), "destroy");
}

/* Each must give the CPU to the other, so spinning is time lost. */
static void measure_shared(const struct bench *bench)
{
    struct bench_samples trip = {0};
    void *stream;
    must(blyi_stream_create(0, 0, 0, &stream), "stream");
    bench_pin_others(0);
    for (int i = 0; i < SHARED; i++) {
        uint64_t start = bench_ns();
        stream_submit(stream);
        stream_sync(stream);
        bench_add(&trip, (double)(bench_ns() - start));
    }
    bench_row(bench, &(struct bench_row){"submit, complete, on one CPU", "ns", &trip, NULL,
                                         BENCH_NO_TARGET, 0});
    must(blyi_stream_destroy(stream, false), "destroy");
    bench_pin_others(1);
}

/* ── System calls ─────────────────────────────────────────────────────────────────────────── */

enum { AWAKE, TRIP, ASLEEP };

/* The engine stays awake for long, so that a traced stop does not send it to sleep. */
static void counted_work(void)
{
    void *stream;
    setenv("BELAY_SPIN_US", "200000", 1);
    must(blyi_device_set(0, 0), "device");
    must(blyi_stream_create(0, 0, 0, &stream), "stream");
    for (int run = 0; run < COUNT_RUNS; run++) {
        stream_submit(stream);
        stream_sync(stream);
        syscalls_begin(AWAKE);
        for (int i = 0; i < COUNTED; i++)
            stream_submit(stream);
        syscalls_end();
        stream_sync(stream);

        syscalls_begin(TRIP);
        for (int i = 0; i < COUNTED; i++) {
            stream_submit(stream);
            stream_sync(stream);
        }
        syscalls_end();
    }
    bench_sleep_ms(500);
    syscalls_begin(ASLEEP);
    stream_submit(stream);
    syscalls_end();
    stream_sync(stream);
}

static void count(const struct bench *bench)
{
    struct syscalls_window windows[SYSCALLS_WINDOWS];
    if (!syscalls_count(counted_work, windows)) {
        bench_note(bench, "system calls not counted: a child cannot be traced here");
        return;
    }
    struct bench_samples awake = {0}, trip = {0}, asleep = {0};
    bench_add(&awake, (double)windows[AWAKE].count);
    bench_add(&trip, (double)windows[TRIP].count);
    bench_add(&asleep, (double)windows[ASLEEP].count);
    bench_section(bench, "system calls of the caller, counted by tracing it");
    bench_row(bench, &(struct bench_row){"1000 submissions, engine awake", "calls", &awake, NULL,
                                         BENCH_OURS_AT_MOST, 0});
    bench_row(bench, &(struct bench_row){"1000 trips, engine awake", "calls", &trip, NULL,
                                         BENCH_NO_TARGET, 0});
    bench_row(bench, &(struct bench_row){"1 submission, engine asleep", "calls", &asleep, NULL,
                                         BENCH_NO_TARGET, 0});
}

/* ── Rest ─────────────────────────────────────────────────────────────────────────────────── */

static double process_cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static void rest(const struct bench *bench)
{
    void *streams[IDLE];
    for (int i = 0; i < IDLE; i++) {
        must(blyi_stream_create(0, 0, 0, &streams[i]), "stream");
        stream_submit(streams[i]);
    }
    for (int i = 0; i < IDLE; i++)
        stream_sync(streams[i]);
    bench_sleep_ms(100); /* engines spin out and sleep */

    unsigned seconds = bench->quick ? 2 : 10;
    double before = process_cpu_us();
    bench_sleep_ms(seconds * 1000);
    struct bench_samples used = {0};
    bench_add(&used, process_cpu_us() - before);

    char what[64];
    snprintf(what, sizeof(what), "%d idle streams for %u s, CPU time", IDLE, seconds);
    bench_section(bench, "at rest");
    bench_row(bench,
              &(struct bench_row){what, "us", &used, NULL, BENCH_OURS_AT_MOST, 100.0 * seconds});
    for (int i = 0; i < IDLE; i++)
        must(blyi_stream_destroy(streams[i], false), "destroy");
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "task", argc, argv);
    if (bench_cpus() < 2)
        bench_cannot("two CPUs are needed, this process may use one");
    setenv("BELAY_STREAMS", "128", 0);
    count(&bench); /* forks, so it comes before the runtime is up */
    must(blyi_device_set(0, 0), "device");
    measure(&bench);
    measure_shared(&bench);
    rest(&bench);
    bench_end(&bench);
    return 0;
}
