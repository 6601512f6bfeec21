/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_steady.c - the spread of single calls in a steady state: so many blocks live, one of them
 * replaced at a time.
 */
#include <stdlib.h>

#include "bench/pool_bench.h"

enum { LIVE = 2000, STEPS = 48 };

/* Sizes at random, most of them small; or, as of a job that repeats itself, from a list that was
 * made in the same manner. */
static size_t next_size(uint64_t *state, const size_t *list)
{
    uint64_t bits = pool_random(state);
    if (list != NULL)
        return list[bits % STEPS];
    size_t size = (size_t)512 << bits % 12;
    size += (size_t)(bits >> 32) % size;
    return size < 512 * KiB ? size : 512 * KiB;
}

static void make_list(size_t *list)
{
    uint64_t state = POOL_SEED;
    for (size_t i = 0; i < STEPS; i++)
        list[i] = next_size(&state, NULL);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t clock_takes(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t start = bench_ns(), took = bench_ns() - start;
        least = took < least ? took : least;
    }
    return least;
}

/* The clock's own time is taken off. */
static size_t time_calls(const struct peer *peer, const size_t *list, double *ns, size_t n)
{
    static void *blocks[LIVE];
    uint64_t state = POOL_SEED, clock = clock_takes();
    for (size_t i = 0; i < LIVE; i++)
        blocks[i] = peer->alloc(next_size(&state, list));
    size_t at = 0;
    for (size_t i = 0; i < n / 2; i++) {
        void **place = &blocks[pool_random(&state) % LIVE];
        size_t size = next_size(&state, list);
        uint64_t start = bench_ns();
        peer->free(*place);
        uint64_t middle = bench_ns();
        *place = peer->alloc(size);
        uint64_t end = bench_ns();
        ns[at++] = (double)(middle - start) - (double)clock;
        ns[at++] = (double)(end - middle) - (double)clock;
    }
    for (size_t i = 0; i < LIVE; i++)
        peer->free(blocks[i]);
    qsort(ns, at, sizeof(*ns), by_value);
    return at;
}

static void measure(const struct bench *bench, const size_t *list)
{
    static const struct {
        const char *what;
        double part, target;
    } parts[] = {{"p50", 0.5, 30}, {"p99", 0.99, 100}, {"p99.9", 0.999, 300}};
    struct bench_samples ns[BLYI_COUNT(parts)][PEERS_MAX + 1] = {{{0}}};
    size_t n = bench->quick ? 40000 : 400000;
    double *times = malloc(n * sizeof(*times));
    for (int rep = 0; times != NULL && rep < 5; rep++)
        for (size_t a = 0; a < pool_n_peers; a++) {
            size_t got = time_calls(&pool_peers[a], list, times, n);
            for (size_t p = 0; p < BLYI_COUNT(parts); p++)
                bench_add(&ns[p][a], times[(size_t)(parts[p].part * (double)got)]);
        }
    free(times);
    for (size_t p = 0; p < BLYI_COUNT(parts); p++)
        pool_rows(bench, parts[p].what, "ns", ns[p], BENCH_OURS_AT_MOST, parts[p].target);
}

void pool_measure_spread(const struct bench *bench)
{
    size_t list[STEPS];
    make_list(list);
    bench_section(bench, "single calls, %d blocks of 512 B to 512 KiB live, one replaced at a time",
                  LIVE);
    measure(bench, NULL);
    bench_section(bench, "the same, of %d sizes that come again", STEPS);
    measure(bench, list);
}

void pool_run_steady(const struct peer *peer, long rounds)
{
    static void *blocks[LIVE];
    uint64_t state = POOL_SEED;
    for (size_t i = 0; i < LIVE; i++)
        blocks[i] = peer->alloc(next_size(&state, NULL));
    for (long i = 0; i < rounds; i++) {
        void **place = &blocks[pool_random(&state) % LIVE];
        size_t size = next_size(&state, NULL);
        peer->free(*place);
        *place = peer->alloc(size);
    }
}
