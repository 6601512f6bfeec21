/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint.c - checkpoint schedules: how long they take to find, how many match the known
 * best persistent times, how much faster the others are, and whether they can be packed.
 *
 * The chains and answers of ../shared/planner are used where that folder is; a made-up chain
 * of 100 stages always.
 */
#include <belay/checkpoint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"

#define FOLDER "../shared/planner"

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct tally {
    int answers, matched, feasible, faster, packed;
    double worst_ms, worst_all_ms, gain_sum, gain_max;
};

/* One budget; want: the best persistent time, 0: not known, UINT64_MAX: infeasible. */
static void measure(const struct bench *bench, const bly_chain *chain, const char *name,
                    uint64_t budget, uint64_t want, struct tally *tally)
{
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_schedule persistent = {0}, best = {0};
    opts.unpacked = 1;
    opts.persistent = 1;
    double start = cpu_ms();
    bly_status status = bly_checkpoint(chain, budget, &opts, &persistent);
    double took = cpu_ms() - start;
    uint64_t got = status == BLY_OK ? persistent.time_ns : UINT64_MAX;

    opts = bly_ckpt_opts_default();
    start = cpu_ms();
    bly_status packed = bly_checkpoint(chain, budget, &opts, &best);
    double took_all = cpu_ms() - start;

    tally->answers++;
    tally->matched += want == 0 || got == want;
    tally->worst_ms = took > tally->worst_ms ? took : tally->worst_ms;
    tally->worst_all_ms = took_all > tally->worst_all_ms ? took_all : tally->worst_all_ms;
    if (status == BLY_OK) {
        double gain = packed == BLY_OK && best.time_ns < got
                          ? 100 * (1 - (double)best.time_ns / (double)got)
                          : 0;
        tally->feasible++;
        tally->packed += packed == BLY_OK;
        tally->faster += gain > 0;
        tally->gain_sum += gain;
        tally->gain_max = gain > tally->gain_max ? gain : tally->gain_max;
        bench_note(bench,
                   "%-24s %6llu units: persistent %9llu us%s in %5.1f ms, packed %9llu us "
                   "(%.2f %% less) in %5.1f ms, peak %llu, packed %llu",
                   name, (unsigned long long)(budget / chain->unit),
                   (unsigned long long)(got / 1000), want == 0 || got == want ? "" : " (WRONG)",
                   took, (unsigned long long)(best.time_ns / 1000), gain, took_all,
                   (unsigned long long)(best.peak / chain->unit),
                   (unsigned long long)(best.packed_peak / chain->unit));
    }
    bly_ckpt_schedule_release(&persistent);
    bly_ckpt_schedule_release(&best);
}

static void report(const struct bench *bench, const struct tally *tally)
{
    bench_note(bench, "%d of %d answers matched; at most %.1f ms of CPU each", tally->matched,
               tally->answers, tally->worst_ms);
    bench_note(bench,
               "%d of %d feasible ones packed within the budget; %d of them faster than any "
               "persistent schedule, by at most %.2f %%; at most %.1f ms of CPU each",
               tally->packed, tally->feasible, tally->faster, tally->gain_max, tally->worst_all_ms);
}

static void known_answers(const struct bench *bench)
{
    struct tally tally = {0};
    FILE *file = fopen(FOLDER "/answers.tsv", "r");
    if (file == NULL) {
        bench_note(bench, "no %s/answers.tsv: run from the root of the tree, beside that folder",
                   FOLDER);
        return;
    }
    for (char line[1024]; fgets(line, sizeof(line), file) != NULL;) {
        char name[128], path[512], time[32];
        unsigned long long units;
        if (line[0] == '#' || sscanf(line, "%127s %*s %llu %*s %31s", name, &units, time) != 3)
            continue;
        bly_chain chain;
        snprintf(path, sizeof(path), FOLDER "/chains/%s.chain.csv", name);
        if (bly_chain_read(path, &chain) != BLY_OK)
            bench_cannot("%s", bly_last_error());
        uint64_t want =
            strcmp(time, "INFEASIBLE") == 0 ? UINT64_MAX : strtoull(time, NULL, 10) * 1000;
        measure(bench, &chain, name, units * chain.unit, want, &tally);
        bly_chain_release(&chain);
    }
    fclose(file);
    report(bench, &tally);
}

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1du >> 11) % n;
}

/* Stages that all differ, with sizes of whole mebibytes: nothing can be shared. */
static void random_chain(const struct bench *bench, size_t n)
{
    bly_chain_stage stages[100];
    bly_chain chain = {n, stages, 1 << 20, 1 << 20};
    for (size_t i = 0; i < n; i++) {
        uint64_t output = (1 + random_below(60)) << 20;
        stages[i] = (bly_chain_stage){.forward_ns = 1000 * (1 + random_below(1000)),
                                      .output = output,
                                      .saved = output + (random_below(600) << 20),
                                      .gradient = output,
                                      .forward_temp = random_below(60) << 20,
                                      .backward_temp = random_below(60) << 20};
        stages[i].backward_ns = 2 * stages[i].forward_ns;
    }
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    bly_ckpt_front front;
    double start = cpu_ms();
    if (bly_checkpoint_front(&chain, &opts, &front) != BLY_OK)
        bench_cannot("%s", bly_last_error());
    size_t faster = 0;
    for (size_t i = 0; i < front.n; i++)
        faster += front.points[i].time_ns < front.points[i].persistent_ns;
    bench_note(bench,
               "%zu different stages: front of %zu points in %.0f ms of CPU, %s; faster than "
               "persistent at %zu of them",
               n, front.n, cpu_ms() - start, front.exact ? "exact" : "thinned", faster);
    bly_ckpt_front_release(&front);
}

int main(int argc, char **argv)
{
    struct bench bench;
    bench_begin(&bench, "checkpoint", argc, argv);
    bench_section(&bench, "known answers: best persistent schedules, then any, packed");
    known_answers(&bench);
    bench_section(&bench, "chains of stages that all differ");
    for (size_t n = 25; n <= (bench.quick ? 50 : 100); n *= 2)
        random_chain(&bench, n);
    bench_end(&bench);
    return 0;
}
