/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.h - the live blocks of a pool.
 */
#ifndef BLYI_POOL_WALK_H
#define BLYI_POOL_WALK_H

#include <belay/pool.h>

struct blyi_walked {
    uintptr_t address;
    uint64_t asked, size;
    uint32_t site;   /* 0: of a slab's slot, or unknown */
    uint32_t stream; /* number; 0: of none */
};

/* Calls fn for each, under the pool's lock; it takes no lock of the pool or outside of it. Slots
 * that thread caches hand out meanwhile may be missed. The pool is live, or its card was reset. */
void blyi_pool_walk(bly_pool *pool, void (*fn)(void *arg, const struct blyi_walked *block),
                    void *arg);

#endif
