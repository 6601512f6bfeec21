/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h - what the benchmarks share: arguments, the machine, clock, CPUs, samples, the table.
 *
 * A figure of ours and its bound are sampled in turn in the same run, so that load from outside
 * meets both. The table has medians and minima; nothing here passes or fails on time.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_SAMPLES_MAX 256

struct bench {
    const char *name;
    bool json;  /* one JSON object a line instead of a table */
    bool quick; /* fewer repetitions, smaller sizes */
};

/* Reads --json and --quick, prints the machine. */
void bench_begin(struct bench *bench, const char *name, int argc, char **argv);
/* The load after the run, to judge the figures by. */
void bench_end(const struct bench *bench);
/* Says why nothing could be measured, and exits with 1. */
_Noreturn void bench_cannot(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

uint64_t bench_ns(void);
void bench_sleep_ms(unsigned ms);
/* How often threads of the process lost their CPU to somebody else so far. */
long bench_preempted(void);

/* CPUs that this process may use; nth counts them from 0 and wraps. */
int bench_cpus(void);
void bench_pin(int nth);
/* Every other thread of the process. */
void bench_pin_others(int nth);

/* Bytes of [address, address + size) that are mapped by huge pages. */
uint64_t bench_huge_bytes(const void *address, size_t size);

struct bench_samples {
    int n;
    double value[BENCH_SAMPLES_MAX];
};
void bench_add(struct bench_samples *samples, double value); /* further ones are dropped */
double bench_median(const struct bench_samples *samples);
double bench_min(const struct bench_samples *samples);
double bench_max(const struct bench_samples *samples);

enum bench_target {
    BENCH_NO_TARGET,
    BENCH_RATIO_AT_MOST,  /* ours / bound, times */
    BENCH_RATIO_AT_LEAST, /* ours / bound, rates */
    BENCH_OVER_AT_MOST,   /* ours - bound */
    BENCH_OURS_AT_MOST,
    BENCH_OURS_AT_LEAST, /* rates */
};

struct bench_row {
    const char *what;
    const char *unit; /* a rate when it ends in "/s": more is better */
    const struct bench_samples *ours;
    const struct bench_samples *bound; /* NULL: none */
    enum bench_target kind;
    double target;
};

/* A line above the rows that follow: what they are and what the bound is. */
void bench_section(const struct bench *bench, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void bench_row(const struct bench *bench, const struct bench_row *row);
void bench_note(const struct bench *bench, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
