/* SPDX-License-Identifier: Apache-2.0
 *
 * rand.h - splitmix64: the planner's only source of chance, from the caller's seed.
 */
#ifndef BLYI_PLAN_RAND_H
#define BLYI_PLAN_RAND_H

#include <stdint.h>

struct blyi_rand {
    uint64_t state;
};

static inline void blyi_rand_init(struct blyi_rand *r, uint64_t seed)
{
    r->state = seed;
}

static inline uint64_t blyi_rand_next(struct blyi_rand *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Below `limit`, which is above 0. */
static inline uint64_t blyi_rand_below(struct blyi_rand *r, uint64_t limit)
{
    return blyi_rand_next(r) % limit;
}

/* In [0, 1). */
static inline double blyi_rand_unit(struct blyi_rand *r)
{
    return (double)(blyi_rand_next(r) >> 11) * 0x1p-53;
}

#endif
