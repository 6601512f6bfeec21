/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - plans: peak over the lower bound, CPU seconds of one core, memory per buffer.
 *
 * The instances and peers' times of ../shared/planner are used where that folder is; families
 * that are made up here always. Times of MiniMalloc are those of results.tsv, taken on another
 * day of the same kind of machine.
 */
#include <belay/plan.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "bench/bench.h"
#include "bench/plan_gen.h"

#define FOLDER   "../shared/planner"
#define CAPACITY 1048576 /* of MiniMalloc's benchmark */

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* capacity 0: as low as the deadline allows. Returns CPU seconds. */
static double measure(const struct bench *bench, const char *name, const bly_plan_buffer *buffers,
                      size_t n, uint64_t capacity, uint64_t deadline_ns, double peer_s)
{
    bly_plan_opts opts = bly_plan_opts_default();
    bly_plan_result result;
    char note[64] = "";
    opts.n_threads = 1;
    opts.deadline_ns = deadline_ns;
    if (capacity != 0)
        opts.capacity = &capacity;
    double start = cpu_s();
    bly_status status = bly_plan(buffers, n, &opts, &result);
    double took = cpu_s() - start;
    if (status != BLY_OK) {
        bench_note(bench, "%-28s %8.3f s  %s", name, took, bly_last_error());
        return took;
    }
    if (peer_s > 0)
        snprintf(note, sizeof(note), "%.3f of MiniMalloc's %.2f s", took / peer_s, peer_s);
    bench_note(bench, "%-28s %8zu buffers %8.3f s  peak %13llu  %.5f of the bound%s  %s  %s", name,
               n, took, (unsigned long long)result.peak,
               result.lower_bound > 0 ? 1 + result.gap : 1.0, result.optimal ? ", optimal" : "",
               result.solver, note);
    bly_plan_release(&result);
    return took;
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

static void shared_instances(const struct bench *bench)
{
    struct dirent **files;
    size_t length;
    int n = scandir(FOLDER "/instances", &files, is_csv, alphasort);
    char *results = read_file(FOLDER "/results.tsv", &length);
    double ours = 0, peers = 0;
    bench_section(bench,
                  "instances of %s; MiniMalloc's at capacity %d, the others as low as 1 s "
                  "(10,000 buffers: 2 s) allows",
                  FOLDER, CAPACITY);
    if (n < 0)
        bench_note(bench, "the folder is absent: skipped");
    for (int f = 0; f < n; f++) {
        char path[512], name[256];
        snprintf(path, sizeof(path), FOLDER "/instances/%s", files[f]->d_name);
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(files[f]->d_name, "."), files[f]->d_name);
        char *text = read_file(path, &length);
        bly_plan_input input;
        if (text != NULL && bly_plan_parse(text, length, path, &input) == BLY_OK) {
            int at_capacity = strncmp(name, "minimalloc_", 11) == 0 && input.n > 10;
            double peer = peer_seconds(results, name);
            uint64_t seconds = at_capacity ? 10 : input.n == 10000 || input.n == 9488 ? 2 : 1;
            double took = measure(bench, name, input.buffers, input.n, at_capacity ? CAPACITY : 0,
                                  seconds * 1000000000u, peer);
            ours += at_capacity ? took : 0;
            peers += at_capacity ? peer : 0;
            bly_plan_input_release(&input);
        }
        free(text);
        free(files[f]);
    }
    if (peers > 0)
        bench_note(bench, "MiniMalloc's instances together: %.2f s, %.3f of its %.2f s", ours,
                   ours / peers, peers);
    if (n >= 0)
        free(files);
    free(results);
}

static void families(const struct bench *bench)
{
    static const char *const names[] = {"mixed", "serve", "train"};
    bench_section(bench, "made-up families, 1 s each");
    for (size_t f = 0; f < 3; f++) {
        for (size_t n = 10000; n <= (bench->quick ? 100000u : 1000000u); n *= 10) {
            struct blyi_host_stats before, after;
            bly_plan_buffer *buffers = plan_gen(names[f], n, 1);
            if (buffers == NULL)
                bench_cannot("no memory for %zu buffers", n);
            blyi_host_stats(&before);
            measure(bench, names[f], buffers, n, 0, 1000000000u, 0);
            blyi_host_stats(&after);
            if (n == 1000000)
                bench_note(bench, "%-28s %8.0f bytes a buffer at most so far", "",
                           (double)(after.peak_bytes - before.live_bytes) / (double)n);
            free(buffers);
        }
    }
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "plan", argc, argv);
    families(&bench);
    shared_instances(&bench);
    bench_end(&bench);
    return 0;
}
