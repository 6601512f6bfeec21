/* SPDX-License-Identifier: Apache-2.0
 *
 * again.h - a large block of the size that its stream freed last, out of its arena and into it:
 * what most calls for large blocks are, and so without a call. "No" is always an answer, also
 * where another thread has the lock: then blyi_arena_take() and blyi_arena_give() do it.
 */
#ifndef BLYI_AGAIN_H
#define BLYI_AGAIN_H

#include "pool/front_inside.h"
#include "pool/recent.h"
#include "pool/span.h"

/* Nothing will be new for other processes but what is idle. */
static inline bool blyi_again_plain(const bly_pool *pool)
{
    return likely(pool->is.held == pool->published.held) &&
           likely(pool->plain_forks == pool->lock.forks);
}

/* A block of no region, handed out. False: no. */
static inline bool blyi_again_take(struct blyi_arena *arena, uint64_t asked, uint32_t site,
                                   void **block)
{
    bly_pool *pool = arena->pool;
    struct blyi_want want = {.asked = asked, .zone = BLY_POOL_ANY, .site = site};
    uint64_t size = blyi_span_size(asked);
    struct blyi_span *span;
    if (unlikely(!blyi_lock_try_quick(&pool->lock)))
        return false;
    if (unlikely(!blyi_again_plain(pool)) || blyi_front_would_peak(pool->front, size) ||
        (span = blyi_recent_take(arena->zones[want.zone], size, pool->align_bits)) == NULL) {
        blyi_lock_drop_quick(&pool->lock);
        return false;
    }
    blyi_span_begin(pool, span, &want);
    blyi_pool_tell_idle_locked(pool, -size);
    __atomic_store_n(&span->live, BLYI_LIFE_LIVE, __ATOMIC_RELAXED);
    *block = (void *)span->address;
    blyi_lock_drop_quick(&pool->lock);
    return true;
}

/* A block that has lived until now, and of which nobody noted a use. False: no. */
static inline bool blyi_again_give(struct blyi_span *span)
{
    struct blyi_arena *arena = span->arena;
    struct blyi_zone *zone = span->extent->zone;
    bly_pool *pool = arena->pool;
    if (unlikely(!blyi_lock_try_quick(&pool->lock)))
        return false;
    if (zone->recent != NULL || span->region != BLY_POOL_ANY || unlikely(!blyi_again_plain(pool)) ||
        unlikely(!blyi_span_claim(span))) {
        blyi_lock_drop_quick(&pool->lock);
        return false;
    }
    blyi_span_end(pool, span);
    span->freed = blyi_arena_mark_locked(arena);
    zone->recent = span;
    blyi_pool_tell_idle_locked(pool, span->size);
    blyi_lock_drop_quick(&pool->lock);
    return true;
}

#endif
