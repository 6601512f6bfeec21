/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - plans: peak over the lower bound, CPU seconds of one core, memory per buffer.
 *
 *     plan [--seeds N] [--made N] [--cpu] [--folder DIR] [--only NAME] [--json] [--quick]
 *
 * With several seeds a row has the median and the worst of each figure. DIR/instances/NAME.csv
 * are used where that folder is; families that are made up here always, with --made from that
 * many seeds of the generator. Times of MiniMalloc are those of DIR/results.tsv, taken on another
 * day of the same kind of machine. CPU seconds are the user's. With --cpu deadlines
 * are in them, too: what a quiet core gives, whatever else runs on this one.
 */
#include <belay/plan.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "bench/bench.h"
#include "bench/plan_gen.h"

#define CAPACITY  1048576 /* of MiniMalloc's benchmark */
#define SEEDS_MAX 100
#define NS_PER_S  ((uint64_t)1000000000)

struct suite {
    struct bench bench;
    const char *folder, *only; /* only: names that contain it; NULL: all */
    uint64_t seeds, made;
};

static bool by_cpu;

/* Instead of the C library's: the planner, linked in statically, asks here what time it is. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!by_cpu || clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, now);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    *now = (struct timespec){used.ru_utime.tv_sec, used.ru_utime.tv_usec * 1000};
    return 0;
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
}

/* One instance over all seeds. */
struct runs {
    struct bench_samples cpu, wall, ratio;
    uint64_t peak, bound; /* least peak, largest bound */
    uint64_t failed, optimal;
    char solver[32], error[256];
};

static void run_once(struct runs *runs, const bly_plan_buffer *buffers, size_t n,
                     const bly_plan_opts *opts)
{
    bly_plan_result result;
    double cpu = cpu_s(), wall = (double)bench_ns();
    bly_status status = bly_plan(buffers, n, opts, &result);
    bench_add(&runs->cpu, cpu_s() - cpu);
    bench_add(&runs->wall, ((double)bench_ns() - wall) / 1e9);
    if (status != BLY_OK) {
        runs->failed++;
        snprintf(runs->error, sizeof(runs->error), "%s", bly_last_error());
        return;
    }
    bench_add(&runs->ratio, 1 + result.gap);
    if (runs->peak == 0 || result.peak < runs->peak) {
        runs->peak = result.peak;
        snprintf(runs->solver, sizeof(runs->solver), "%s", result.solver);
    }
    runs->bound = result.lower_bound > runs->bound ? result.lower_bound : runs->bound;
    runs->optimal += result.optimal != 0;
    bly_plan_release(&result);
}

struct limits {
    uint64_t capacity; /* 0: as low as the deadline allows */
    uint64_t deadline_ns;
};

static void run_seeds(const struct suite *suite, struct runs *runs, const bly_plan_buffer *buffers,
                      size_t n, const struct limits *limits)
{
    bly_plan_opts opts = bly_plan_opts_default();
    opts.n_threads = 1;
    opts.deadline_ns = limits->deadline_ns;
    if (limits->capacity != 0)
        opts.capacity = &limits->capacity;
    for (opts.seed = 0; opts.seed < suite->seeds; opts.seed++)
        run_once(runs, buffers, n, &opts);
}

static void print_runs(const struct suite *suite, const char *name, const struct runs *runs,
                       size_t n, double peer_s)
{
    char note[64] = "";
    double took = bench_median(&runs->cpu);
    if (peer_s > 0)
        snprintf(note, sizeof(note), "%.3f of MiniMalloc's %.2f s", took / peer_s, peer_s);
    bench_note(
        &suite->bench,
        "%-24s %7zu  cpu %6.3f worst %6.3f  wall %6.3f worst %6.3f s  %.5f worst %.5f of the "
        "bound  peak %llu, %llu of %d optimal  %s  %s",
        name, n, took, bench_max(&runs->cpu), bench_median(&runs->wall), bench_max(&runs->wall),
        bench_median(&runs->ratio), bench_max(&runs->ratio), (unsigned long long)runs->peak,
        (unsigned long long)runs->optimal, runs->cpu.n, runs->solver, note);
    if (runs->failed > 0)
        bench_note(&suite->bench, "%-24s %llu of %d runs failed: %s", name,
                   (unsigned long long)runs->failed, runs->cpu.n, runs->error);
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    *length = text == NULL ? 0 : fread(text, 1, (size_t)size, file);
    fclose(file);
    if (text != NULL)
        text[*length] = '\0';
    return text;
}

/* minimalloc_cpu_ms of an instance; 0: not known. */
static double peer_seconds(const char *results, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = results; line != NULL && *line != '\0';) {
        const char *field = line;
        if (strncmp(line, name, length) == 0 && line[length] == '\t') {
            for (int tab = 0; tab < 9 && field != NULL; tab++) {
                field = strchr(field, '\t');
                field = field == NULL ? NULL : field + 1;
            }
            return field == NULL || *field == '\t' ? 0 : strtod(field, NULL) / 1000;
        }
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return 0;
}

static int is_csv(const struct dirent *entry)
{
    return strstr(entry->d_name, ".csv") != NULL;
}

static bool wanted(const struct suite *suite, const char *name)
{
    return suite->only == NULL || strstr(name, suite->only) != NULL;
}

static void folder_instances(const struct suite *suite)
{
    struct dirent **files;
    size_t length;
    char path[1024], name[256];
    snprintf(path, sizeof(path), "%s/instances", suite->folder);
    int n = scandir(path, &files, is_csv, alphasort);
    snprintf(path, sizeof(path), "%s/results.tsv", suite->folder);
    char *results = read_file(path, &length);
    double ours = 0, peers = 0;
    bench_section(&suite->bench,
                  "instances of %s; MiniMalloc's at capacity %d, the others as low as 1 s "
                  "(10,000 buffers: 2 s) allows",
                  suite->folder, CAPACITY);
    if (n < 0)
        bench_note(&suite->bench, "the folder is absent: skipped");
    for (int f = 0; f < n; f++) {
        snprintf(path, sizeof(path), "%s/instances/%s", suite->folder, files[f]->d_name);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(files[f]->d_name, "."), files[f]->d_name);
        char *text = wanted(suite, name) ? read_file(path, &length) : NULL;
        bly_plan_input input;
        if (text != NULL && bly_plan_parse(text, length, path, &input) == BLY_OK) {
            bool at_capacity = strncmp(name, "minimalloc_", 11) == 0 && input.n > 10;
            double peer = peer_seconds(results, name);
            uint64_t seconds = at_capacity ? 10 : input.n == 10000 || input.n == 9488 ? 2 : 1;
            struct limits limits = {at_capacity ? CAPACITY : 0, seconds * NS_PER_S};
            struct runs runs = {0};
            run_seeds(suite, &runs, input.buffers, input.n, &limits);
            print_runs(suite, name, &runs, input.n, peer);
            ours += at_capacity && peer > 0 ? bench_median(&runs.cpu) : 0;
            peers += at_capacity ? peer : 0;
            bly_plan_input_release(&input);
        }
        free(text);
        free(files[f]);
    }
    if (peers > 0)
        bench_note(&suite->bench, "MiniMalloc's instances together: %.2f s, %.3f of its %.2f s",
                   ours, ours / peers, peers);
    if (n >= 0)
        free(files);
    free(results);
}

/* The same family from several seeds of the generator counts as one. */
static void family(const struct suite *suite, const char *kind, size_t n, uint64_t deadline_ns)
{
    struct blyi_host_stats before, after;
    char name[64];
    snprintf(name, sizeof(name), "%s_%zu", kind, n);
    if (!wanted(suite, name))
        return;
    struct limits limits = {0, deadline_ns};
    struct runs runs = {0};
    blyi_host_stats(&before);
    for (uint64_t made = 1; made <= suite->made; made++) {
        bly_plan_buffer *buffers = plan_gen(kind, n, made);
        if (buffers == NULL)
            bench_cannot("no memory for %zu buffers", n);
        run_seeds(suite, &runs, buffers, n, &limits);
        free(buffers);
    }
    blyi_host_stats(&after);
    print_runs(suite, name, &runs, n, 0);
    if (n == 1000000)
        bench_note(&suite->bench, "%-24s %8.0f bytes a buffer at most so far", "",
                   (double)(after.peak_bytes - before.live_bytes) / (double)n);
}

static void families(const struct suite *suite)
{
    static const char *const kinds[] = {"mixed", "serve", "train"};
    bench_section(&suite->bench, "made-up families: 1 s each, 100,000 buffers 0.2 s");
    for (size_t f = 0; f < 3; f++) {
        family(suite, kinds[f], 10000, NS_PER_S);
        family(suite, kinds[f], 100000, NS_PER_S / 5);
        if (!suite->bench.quick)
            family(suite, kinds[f], 1000000, NS_PER_S);
    }
}

/* Takes what only this benchmark knows out of the arguments. */
static int read_options(struct suite *suite, int argc, char **argv)
{
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        bool last = i + 1 == argc;
        if (strcmp(argv[i], "--seeds") == 0 && !last)
            suite->seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--made") == 0 && !last)
            suite->made = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--cpu") == 0)
            by_cpu = true;
        else if (strcmp(argv[i], "--folder") == 0 && !last)
            suite->folder = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && !last)
            suite->only = argv[++i];
        else
            argv[kept++] = argv[i];
    }
    if (suite->seeds < 1 || suite->made < 1 || suite->seeds * suite->made > SEEDS_MAX)
        bench_cannot("--seeds and --made take 1 to %d, multiplied", SEEDS_MAX);
    return kept;
}

int main(int argc, char **argv)
{
    struct suite suite = {.folder = "../shared/planner", .seeds = 1, .made = 1};
    argc = read_options(&suite, argc, argv);
    bench_begin(&suite.bench, "plan", argc, argv);
    families(&suite);
    folder_instances(&suite);
    bench_end(&suite.bench);
    return 0;
}
