/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c - which caches a thread has. Found by pool and stream, or by depot: the one used last,
 * else in two small tables, else in the thread's list.
 *
 * Threads and pools come and go in any order: a thread that ends empties its caches; a pool that
 * ends disowns its own, which their threads use again for the next pool. In the child of a fork
 * nobody has a cache.
 */
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/host.h"
#include "pool/front_inside.h"
#include "pool/grant.h"

#define TABLE 64u

struct blyi_thread {
    struct blyi_list caches; /* under blyi_caches_lock */
    struct blyi_cache *by_stream[TABLE];
    struct blyi_cache *by_depot[TABLE];
};

struct blyi_lock blyi_caches_lock = BLYI_LOCK_INIT(BLYI_RANK_CACHES);

/* Serves nothing: no pool has its key, and no size is below `small`. */
static struct blyi_cache nobody = {.pool_key = (bly_pool *)(void *)&nobody};

BLYI_HOT_THREAD_LOCAL struct blyi_cache *blyi_cache_last = &nobody;
static BLYI_HOT_THREAD_LOCAL struct blyi_thread *here;
/* Ended already: what is freed by later destructors goes home. */
static BLYI_HOT_THREAD_LOCAL bool ended;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void unlink_locked(struct blyi_cache *cache)
{
    blyi_list_remove(&cache->of_front);
    cache->depot->front->n_caches--;
    blyi_grant_end_locked(cache);
}

/* Figures of a cache that ends live on in its depot. */
static void settle(struct blyi_cache *cache)
{
    struct blyi_depot *depot = cache->depot;
    blyi_lock_take_quick(&depot->lock);
    blyi_depot_add(&depot->allocs, cache->allocs);
    blyi_depot_add(&depot->waste, cache->waste);
    blyi_lock_drop_quick(&depot->lock);
}

static void end_cache_locked(struct blyi_cache *cache)
{
    if (cache->depot != NULL) {
        (void)blyi_cache_empty(cache);
        settle(cache);
        unlink_locked(cache);
    }
    blyi_list_remove(&cache->of_thread);
    blyi_cache_free_bins(cache);
    blyi_host_free(cache);
}

static void end_thread(void *arg)
{
    struct blyi_thread *thread = arg;
    ended = true;
    here = NULL;
    blyi_cache_last = &nobody;
    blyi_lock_take(&blyi_caches_lock);
    BLYI_LIST_FOR_SAFE(node, &thread->caches)
    {
        end_cache_locked(BLYI_CONTAINER(node, struct blyi_cache, of_thread));
    }
    blyi_lock_drop(&blyi_caches_lock);
    blyi_host_free(thread);
}

/* Slots of the parent's threads are not ours to hand out: every call goes the slow way, where the
 * pool says that it is the parent's. */
static void forget_in_child(void)
{
    here = NULL;
    ended = true;
    blyi_cache_last = &nobody;
    if (key_made)
        (void)pthread_setspecific(key, NULL); /* nor to give back when the thread ends */
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, end_thread) == 0;
    (void)pthread_atfork(NULL, NULL, forget_in_child);
}

static struct blyi_thread *thread_here(void)
{
    if (likely(here != NULL) || ended)
        return here;
    pthread_once(&once, make_key);
    struct blyi_thread *thread = key_made ? blyi_host_calloc(1, sizeof(*thread)) : NULL;
    if (thread == NULL)
        return NULL;
    blyi_list_init(&thread->caches);
    if (pthread_setspecific(key, thread) != 0) {
        blyi_host_free(thread);
        return NULL;
    }
    return here = thread;
}

static unsigned spread(const void *a, const void *b)
{
    uint64_t x = ((uint64_t)(uintptr_t)a >> 4) * UINT64_C(0x9e3779b97f4a7c15) ^
                 (uint64_t)(uintptr_t)b * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (unsigned)(x >> 40) % TABLE;
}

/* Also while others empty it. */
static bool serves(const struct blyi_cache *cache, const bly_pool *pool, bly_stream stream)
{
    return cache != NULL && BLYI_READ(cache->pool) == pool && BLYI_READ(cache->stream) == stream &&
           BLYI_READ(cache->depot) != NULL;
}

/* Only this thread adds to its list and removes from it, so it may read it without the lock. */
struct blyi_cache *blyi_cache_of(bly_pool *pool, bly_stream stream)
{
    struct blyi_thread *thread = here;
    if (serves(blyi_cache_last, pool, stream))
        return blyi_cache_last;
    if (thread == NULL)
        return &nobody;
    struct blyi_cache **place = &thread->by_stream[spread(pool, stream)];
    if (serves(*place, pool, stream))
        return blyi_cache_last = *place;
    BLYI_LIST_FOR(node, &thread->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_thread);
        if (serves(cache, pool, stream))
            return blyi_cache_last = *place = cache;
    }
    return &nobody;
}

struct blyi_cache *blyi_cache_at(const struct blyi_depot *depot)
{
    struct blyi_thread *thread = here;
    if (BLYI_READ(blyi_cache_last->depot) == depot)
        return blyi_cache_last;
    if (thread == NULL)
        return &nobody;
    struct blyi_cache **place = &thread->by_depot[spread(depot, NULL)];
    if (*place != NULL && BLYI_READ((*place)->depot) == depot)
        return blyi_cache_last = *place;
    BLYI_LIST_FOR(node, &thread->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_thread);
        if (BLYI_READ(cache->depot) == depot)
            return blyi_cache_last = *place = cache;
    }
    return &nobody;
}

static struct blyi_cache *spare_locked(struct blyi_thread *thread)
{
    BLYI_LIST_FOR(node, &thread->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_thread);
        if (cache->depot == NULL)
            return cache;
    }
    struct blyi_cache *cache = blyi_host_calloc(1, sizeof(*cache));
    if (cache != NULL) {
        blyi_cache_init_bins(cache);
        blyi_list_push_back(&thread->caches, &cache->of_thread);
    }
    return cache;
}

struct blyi_cache *blyi_cache_need(struct blyi_depot *depot, bly_stream stream, uint64_t small)
{
    struct blyi_cache *cache = blyi_cache_at(depot);
    if (cache != &nobody) {
        /* The arena may have passed on to another stream. */
        __atomic_store_n(&cache->stream, stream, __ATOMIC_RELAXED);
        return cache;
    }
    struct blyi_thread *thread = thread_here();
    if (thread == NULL)
        return NULL;
    blyi_lock_take(&blyi_caches_lock);
    cache = spare_locked(thread);
    if (cache != NULL) {
        cache->thread = thread;
        cache->small = small;
        cache->allocs = cache->waste = cache->seen = cache->limit = cache->spare = 0;
        cache->denied = cache->victim = 0;
        cache->stream = stream;
        __atomic_store_n(&cache->depot, depot, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->pool, depot->pool, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->pool_key, depot->pool, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->depot_key, depot, __ATOMIC_RELAXED);
        blyi_list_push_back(&depot->front->caches, &cache->of_front);
        depot->front->n_caches++;
    }
    blyi_lock_drop(&blyi_caches_lock);
    return cache != NULL ? blyi_cache_last = cache : NULL;
}

void blyi_cache_disown(struct blyi_front *front)
{
    blyi_lock_take(&blyi_caches_lock);
    BLYI_LIST_FOR_SAFE(node, &front->caches)
    {
        struct blyi_cache *cache = BLYI_CONTAINER(node, struct blyi_cache, of_front);
        /* Acquire: all that the owner did. */
        bly_check(__atomic_load_n(&cache->busy, __ATOMIC_ACQUIRE) == 0);
        unlink_locked(cache);
        __atomic_store_n(&cache->pool_key, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->depot_key, NULL, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->depot, NULL, __ATOMIC_RELAXED);
        blyi_cache_free_bins(cache);
    }
    blyi_lock_drop(&blyi_caches_lock);
}
