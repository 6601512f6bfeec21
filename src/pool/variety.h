/* SPDX-License-Identifier: Apache-2.0
 *
 * variety.h - whether the sizes that a pool is asked for come again. A step that repeats asks for
 * the sizes it gave back, and what lies free fits; where no size comes twice, places are reused in
 * part, and long handles stay for the sake of what is left in them.
 */
#ifndef BLYI_VARIETY_H
#define BLYI_VARIETY_H

#include <stdbool.h>
#include <stdint.h>

#define BLYI_VARIETY_BITS 9u

struct blyi_variety {
    uint32_t seen[1u << BLYI_VARIETY_BITS]; /* the last size of so many sets: its low bits */
    uint32_t fresh; /* in 1/65536: how many of the last requests had a new size */
};

/* Relaxed, as the front has no lock: a request that is missed does not matter. */
static inline void blyi_variety_note(struct blyi_variety *variety, uint32_t size)
{
    uint32_t *seen = &variety->seen[size * UINT32_C(2654435769) >> (32 - BLYI_VARIETY_BITS)];
    uint32_t fresh = __atomic_load_n(&variety->fresh, __ATOMIC_RELAXED);
    fresh -= fresh / 16;
    fresh += __atomic_load_n(seen, __ATOMIC_RELAXED) == size ? 0 : 65536 / 16;
    __atomic_store_n(&variety->fresh, fresh, __ATOMIC_RELAXED);
    __atomic_store_n(seen, size, __ATOMIC_RELAXED);
}

/* One request of four is of a new size. */
static inline bool blyi_variety_is_high(const struct blyi_variety *variety)
{
    return __atomic_load_n(&variety->fresh, __ATOMIC_RELAXED) > 65536 / 4;
}

/* One of two. */
static inline bool blyi_variety_is_most(const struct blyi_variety *variety)
{
    return __atomic_load_n(&variety->fresh, __ATOMIC_RELAXED) > 65536 / 2;
}

#endif
