/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_bench.h - what the parts of the pool's benchmark share: the allocators, the pool's first;
 * rows of all of them; sizes at random, the same for each.
 */
#ifndef BENCH_POOL_BENCH_H
#define BENCH_POOL_BENCH_H

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/peers.h"

extern struct peer pool_peers[PEERS_MAX + 1];
extern size_t pool_n_peers;

/* One row for each allocator; the first is ours, and has the target, which 0 means none of. */
void pool_rows(const struct bench *bench, const char *what, const char *unit,
               const struct bench_samples *samples, enum bench_target kind, double target);

static inline uint64_t pool_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
#define POOL_SEED 88172645463325252u

/* pool_steady.c: single calls. */
void pool_measure_spread(const struct bench *bench);
/* So many replacements of one block, nothing measured; scripts/bench.sh counts what they take. */
void pool_run_steady(const struct peer *peer, long rounds);

/* pool_threads.c: two threads, frees of another thread. */
void pool_measure_threads(const struct bench *bench);
void pool_measure_cross(const struct bench *bench);

/* pool_crowd.c: many blocks. */
void pool_measure_crowd(const struct bench *bench);
void pool_run_crowd(const struct peer *peer, size_t blocks, long rounds);

#endif
