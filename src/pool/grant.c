/* SPDX-License-Identifier: Apache-2.0
 *
 * grant.c - limits of thread caches, and emptying the caches of other threads.
 */
#include "pool/grant.h"

#include <pthread.h>
#include <sched.h>

#include "base/assert.h"
#include "base/barrier.h"
#include "base/fail.h"
#include "pool/front_inside.h"
#include "pool/pool.h"

#define BOUND_PART 500u
#define FEW_PART   64u /* of what a pool holds, while that is few: */
#define FEW_LEAST  (2 * MiB)
#define FEW_MOST   (4 * MiB)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool can_stop;

static void look_for_barrier(void)
{
    can_stop = blyi_barrier_ready() && blyi_barrier_all();
}

bool blyi_grant_can_stop(void)
{
    pthread_once(&once, look_for_barrier);
    return can_stop;
}

static uint64_t bound_of(const struct blyi_front *front)
{
    uint64_t held = blyi_pool_held(front->pool);
    uint64_t bound = held / BOUND_PART, few = held / FEW_PART;
    few = few < FEW_LEAST ? FEW_LEAST : few > FEW_MOST ? FEW_MOST : few;
    return bound < few ? few : bound;
}

static void set_limit_locked(struct blyi_cache *cache, uint64_t limit)
{
    cache->depot->front->granted += limit - cache->limit;
    cache->limit = limit;
}

static bool is_mine(const struct blyi_cache *cache)
{
    return cache->thread == blyi_cache_last->thread;
}

static void hide_locked(struct blyi_cache *cache)
{
    cache->hidden = true;
    __atomic_store_n(&cache->pool_key, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&cache->depot_key, NULL, __ATOMIC_RELAXED);
}

static void show_locked(struct blyi_cache *cache)
{
    cache->hidden = false;
    /* Release: what we did to the cache. */
    __atomic_store_n(&cache->pool_key, cache->pool, __ATOMIC_RELEASE);
    __atomic_store_n(&cache->depot_key, cache->depot, __ATOMIC_RELEASE);
}

/* The hidden ones are ours afterwards. */
static void stop_owners_locked(struct blyi_front *front)
{
    /* Every thread that runs now passes a barrier: who is not busy behind it finds no key. It
     * cannot fail once it has worked. */
    if (blyi_grant_can_stop())
        (void)blyi_barrier_all();
    BLYI_LIST_FOR(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        /* Acquire: what the owner did. */
        while (cache->hidden && __atomic_load_n(&cache->busy, __ATOMIC_ACQUIRE) != 0)
            sched_yield();
    }
}

static uint64_t empty_hidden_locked(struct blyi_front *front)
{
    uint64_t bytes = 0;
    stop_owners_locked(front);
    BLYI_LIST_FOR(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        if (!cache->hidden)
            continue;
        bytes += blyi_cache_empty(cache);
        set_limit_locked(cache, 0);
        show_locked(cache);
    }
    return bytes;
}

/* Takes back what caches of other threads have that did nothing since the last look, or more than
 * two shares: they begin anew. */
static void collect_locked(struct blyi_front *front, uint64_t share)
{
    unsigned n = 0;
    BLYI_LIST_FOR(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        bool idle = BLYI_READ(cache->allocs) == cache->seen;
        cache->seen = BLYI_READ(cache->allocs);
        if (cache->limit == 0 || (!idle && cache->limit <= 2 * share) || is_mine(cache))
            continue;
        hide_locked(cache);
        n++;
    }
    if (n > 0)
        (void)empty_hidden_locked(front);
}

static uint64_t left_locked(const struct blyi_front *front, uint64_t bound)
{
    return bound > front->granted ? bound - front->granted : 0;
}

uint64_t blyi_grant(struct blyi_cache *cache, uint64_t unit, uint64_t wanted)
{
    struct blyi_front *front = cache->depot->front;
    blyi_lock_take(&blyi_caches_lock);
    uint64_t bound = bound_of(front), left = left_locked(front, bound);
    bly_assert(unit > 0 && front->n_caches > 0); /* `cache` is one */
    if (left < unit && blyi_grant_can_stop()) {
        collect_locked(front, bound / front->n_caches);
        left = left_locked(front, bound);
    }
    uint64_t bytes = (wanted < left ? wanted : left) / unit * unit;
    set_limit_locked(cache, cache->limit + bytes);
    blyi_lock_drop(&blyi_caches_lock);
    cache->denied = bytes == 0;
    return bytes;
}

void blyi_grant_end_locked(struct blyi_cache *cache)
{
    set_limit_locked(cache, 0);
}

static void hide_all_locked(struct blyi_front *front)
{
    BLYI_LIST_FOR(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        if (blyi_grant_can_stop() || is_mine(cache))
            hide_locked(cache);
    }
}

uint64_t blyi_grant_flush(struct blyi_front *front)
{
    blyi_lock_take(&blyi_caches_lock);
    hide_all_locked(front);
    uint64_t bytes = empty_hidden_locked(front);
    blyi_lock_drop(&blyi_caches_lock);
    return bytes;
}

/* Of a cache that is ours; `seen` has what others keep. */
static uintptr_t find_twice(struct blyi_cache *cache, struct blyi_map *seen)
{
    for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
        const struct blyi_bin *bin = &cache->bins[class];
        for (const struct blyi_bin_entry *at = bin->base; at < bin->top; at++) {
            bool free = BLYI_READ(*at->state) == BLYI_SLOT_FREE;
            if (!free || blyi_map_get(seen, at->address) != NULL)
                return at->address;
            if (blyi_map_put(seen, at->address, cache) != BLY_OK)
                blyi_fail_clear(); /* no host memory: what is kept twice may be missed */
        }
    }
    return 0;
}

uintptr_t blyi_grant_find_twice_locked(struct blyi_front *front)
{
    uintptr_t twice = 0;
    struct blyi_map seen;
    blyi_map_init(&seen);
    hide_all_locked(front);
    stop_owners_locked(front);
    BLYI_LIST_FOR(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        if (!cache->hidden)
            continue;
        if (twice == 0)
            twice = find_twice(cache, &seen);
        show_locked(cache);
    }
    blyi_map_fini(&seen);
    return twice;
}
