/* SPDX-License-Identifier: Apache-2.0
 *
 * grant.h - what each thread cache may park, so that all of a pool together stay below a bound: one
 * 500th of what the pool holds, or one 64th where that is 2 to 4 MiB, and 2 MiB at least. Also who
 * may empty whose cache.
 */
#ifndef BLYI_GRANT_H
#define BLYI_GRANT_H

#include "pool/cache.h"

/* Whether to ask for a grant: one in so many times while it is denied. */
#define BLYI_DENIED_LOOK 64u
static inline bool blyi_grant_is_due(struct blyi_cache *cache)
{
    return cache->denied == 0 || cache->denied++ % BLYI_DENIED_LOOK == 0;
}
/* Bytes that the cache may park more: a multiple of `unit`, at most `wanted` and as the bound
 * allows, at the cost of caches that are idle or have more than two shares. 0: not now. No lock of
 * rank CACHES or above is held. */
uint64_t blyi_grant(struct blyi_cache *cache, uint64_t unit, uint64_t wanted);
/* A cache ends: what it was granted is free. Under blyi_caches_lock. */
void blyi_grant_end_locked(struct blyi_cache *cache);
/* All caches of the front are emptied and have no limit; those of other threads only where the
 * system can stop them (blyi_grant_can_stop). Bytes that went home. */
uint64_t blyi_grant_flush(struct blyi_front *front);
bool blyi_grant_can_stop(void);
/* A slot that two of the caches keep, or one keeps that is handed out, as when two threads freed it
 * at once; 0: none. Of other threads' caches as above. Under blyi_caches_lock. */
uintptr_t blyi_grant_find_twice_locked(struct blyi_front *front);

#endif
