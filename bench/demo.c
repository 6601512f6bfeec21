/* SPDX-License-Identifier: Apache-2.0
 *
 * demo.c - what watching costs a whole program: the detection service of `make demo` recorded and
 * checked, beside the same program left alone; and what its recording takes on disk.
 *
 * Wall time is what users feel; processor time says the same with less noise from other programs.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "bench/bench.h"
#include "observe/trace_reader.h"

#define WAYS 4 /* the first is left alone */

static char path[64];

static const struct way {
    const char *what, *option, *value;
    double target;
} ways[WAYS] = {
    {"left alone", "--trace", "", 0},
    {"recorded, all kept", "--trace", path, 1.03},
    {"recorded, ring of 10000", "--trace-ring", "10000", 1.03},
    {"checked: BELAY_CHECK=all", "--check", "all", 2},
};

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void become(const struct way *way)
{
    int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(1);
    if (strcmp(way->option, "--trace-ring") == 0)
        setenv("BELAY_TRACE", path, 1);
    execl(BELAY_COMMAND, "belay", "run", "--report", "none", "--symbolizer", "/nonexistent",
          way->option, way->value, "--", BELAY_DEMO, (char *)NULL);
    _exit(1);
}

static void run(const struct way *way, double *wall, double *cpu)
{
    struct rusage used;
    int status;
    uint64_t start = bench_ns();
    pid_t pid = fork();
    if (pid == 0)
        become(way);
    if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status != 0)
        bench_cannot("the demo, %s, failed", way->what);
    *wall = (double)(bench_ns() - start) / 1e9;
    *cpu = seconds(used.ru_utime) + seconds(used.ru_stime);
}

static void measure_times(const struct bench *bench)
{
    static struct bench_samples wall[WAYS], cpu[WAYS];
    for (int rep = 0; rep < (bench->quick ? 3 : 9); rep++)
        for (int i = 0; i < WAYS; i++) {
            double w, c;
            run(&ways[i], &w, &c);
            bench_add(&wall[i], w);
            bench_add(&cpu[i], c);
        }
    bench_section(bench, "the demo, processor time; bound: left alone");
    for (int i = 1; i < WAYS; i++)
        bench_row(bench, &(struct bench_row){ways[i].what, "s", &cpu[i], &cpu[0],
                                             BENCH_RATIO_AT_MOST, ways[i].target});
    bench_section(bench, "the demo, wall time; bound: left alone");
    for (int i = 1; i < WAYS; i++)
        bench_row(bench, &(struct bench_row){ways[i].what, "s", &wall[i], &wall[0],
                                             BENCH_RATIO_AT_MOST, ways[i].target});
}

static void measure_size(const struct bench *bench)
{
    static struct bench_samples plain, packed;
    struct blyi_trace *trace;
    double w, c;
    run(&ways[1], &w, &c);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        bench_cannot("no recording at %s", path);
    size_t size = (size_t)ftell(file), room = ZSTD_compressBound(size);
    void *bytes = malloc(size), *small = malloc(room);
    rewind(file);
    if (bytes == NULL || small == NULL || fread(bytes, 1, size, file) != size)
        bench_cannot("%s cannot be read", path);
    fclose(file);
    size_t n = ZSTD_compress(small, room, bytes, size, 3);
    if (ZSTD_isError(n) || blyi_trace_open(path, &trace) != BLY_OK)
        bench_cannot("%s: %s", path, blyi_fail_text());
    double events = (double)blyi_trace_info(trace)->kept;
    bench_add(&plain, (double)size / events);
    bench_add(&packed, (double)n / events);
    bench_section(bench, "its recording, %.0f events, an event", events);
    bench_row(bench, &(struct bench_row){.what = "in the file", .unit = "B", .ours = &plain});
    bench_row(bench, &(struct bench_row){.what = "after zstd -3",
                                         .unit = "B",
                                         .ours = &packed,
                                         .kind = BENCH_OURS_AT_MOST,
                                         .target = 16});
    blyi_trace_close(trace);
    free(bytes);
    free(small);
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "demo", argc, argv);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%.40s/belay-bench-%d", folder ? folder : "/tmp", (int)getpid());
    setenv("BELAY_STATE", "private", 0);
    measure_times(&bench);
    measure_size(&bench);
    unlink(path);
    bench_end(&bench);
    return 0;
}
