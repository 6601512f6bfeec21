/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_crowd.c - a thousand to a million blocks live, one replaced at random at a time.
 */
#include <stdlib.h>

#include "bench/pool_bench.h"

static void fill(const struct peer *peer, void **blocks, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        blocks[i] = peer->alloc((size_t)512 << pool_random(state) % 5);
}

static void replace(const struct peer *peer, void **blocks, size_t n, long rounds, uint64_t *state)
{
    for (long i = 0; i < rounds; i++) {
        void **place = &blocks[pool_random(state) % n];
        peer->free(*place);
        *place = peer->alloc((size_t)512 << pool_random(state) % 5);
    }
}

static double crowd_ns(const struct peer *peer, void **blocks, size_t n, long rounds)
{
    uint64_t state = POOL_SEED;
    fill(peer, blocks, n, &state);
    uint64_t start = bench_ns();
    replace(peer, blocks, n, rounds, &state);
    double ns = (double)(bench_ns() - start) / (double)rounds;
    for (size_t i = 0; i < n; i++)
        peer->free(blocks[i]);
    return ns;
}

void pool_measure_crowd(const struct bench *bench)
{
    static const struct {
        const char *what;
        size_t n;
    } crowds[] = {{"1e3 blocks", 1000},
                  {"1e4 blocks", 10000},
                  {"1e5 blocks", 100000},
                  {"1e6 blocks", 1000000}};
    size_t n_crowds = BLYI_COUNT(crowds) - (bench->quick ? 1 : 0);
    void **blocks = malloc(crowds[n_crowds - 1].n * sizeof(*blocks));
    bench_section(bench, "blocks of 512 B to 8 KiB, one replaced at random: a free and an "
                         "allocation");
    for (size_t c = 0; blocks != NULL && c < n_crowds; c++) {
        struct bench_samples ns[PEERS_MAX + 1] = {{0}};
        for (int rep = 0; rep < 3; rep++)
            for (size_t a = 0; a < pool_n_peers; a++)
                bench_add(&ns[a], crowd_ns(&pool_peers[a], blocks, crowds[c].n, 200000));
        pool_rows(bench, crowds[c].what, "ns", ns, BENCH_OURS_AT_MOST, 400);
    }
    free(blocks);
}

void pool_run_crowd(const struct peer *peer, size_t n, long rounds)
{
    uint64_t state = POOL_SEED;
    void **blocks = malloc(n * sizeof(*blocks));
    if (blocks == NULL)
        bench_cannot("no memory for %zu addresses", n);
    fill(peer, blocks, n, &state);
    replace(peer, blocks, n, rounds, &state);
    free(blocks);
}
