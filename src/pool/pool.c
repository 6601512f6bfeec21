/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c - making and ending pools, and which there are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/pool_blocks.h"
#include "base/size.h"
#include "pool/front.h"
#include "pool/lasting.h"
#include "pool/opts.h"
#include "pool/pool.h"
#include "pool/rows.h"
#include "pool/still.h"
#include "pool/granules.h"
#include "pool/told.h"
#include "pool/trim.h"
#include "pool/trimmer.h"
#include "pool/waiting.h"

#define ENDED_KEPT 64u /* headers of pools that have ended: their addresses are not used again */

static struct blyi_lock pools_lock = BLYI_LOCK_INIT(BLYI_RANK_POOLS);
static struct blyi_map pools;
static bly_pool *ended[ENDED_KEPT];
static uint32_t n_ended, n_made;
uint32_t blyi_pools_live;

bool blyi_pools_each(void (*fn)(void *arg, bly_pool *pool), void *arg, bool quick)
{
    size_t cursor = 0;
    uint64_t key;
    void *pool;
    if (!quick)
        blyi_lock_take(&pools_lock);
    else if (!blyi_lock_try(&pools_lock))
        return false;
    while (blyi_map_next(&pools, &cursor, &key, &pool))
        fn(arg, pool);
    blyi_lock_drop(&pools_lock);
    return true;
}

bly_status blyi_pool_check(bly_pool *pool)
{
    blyi_lock_take(&pools_lock);
    bool there = pool != NULL && blyi_map_get(&pools, (uintptr_t)pool) != NULL;
    blyi_lock_drop(&pools_lock);
    if (unlikely(!there))
        return blyi_fail(BLY_E_HANDLE, "%p is no memory pool, or one that was destroyed",
                         (void *)pool);
    return pool->backend->ops->alive(pool->backend);
}

static bly_status enlist(bly_pool *pool)
{
    blyi_lock_take(&pools_lock);
    bly_status status = blyi_map_put(&pools, (uintptr_t)pool, pool);
    pool->number = ++n_made;
    blyi_lock_drop(&pools_lock);
    if (status != BLY_OK)
        return status;
    __atomic_fetch_add(&blyi_pools_live, 1, __ATOMIC_RELAXED);
    if (pool->name[0] == '\0')
        snprintf(pool->name, sizeof pool->name, "pool%" PRIu32, pool->number);
    pool->reclaimer.name = pool->name;
    pool->reclaimer.reclaim = blyi_trim_reclaim;
    pool->reclaimer.arg = pool;
    blyi_reclaim_add(&pool->reclaimer);
    blyi_rows_offer();
    blyi_lasting_offer();
    blyi_told_offer();
    return BLY_OK;
}

/* The header's memory is freed when as many pools have ended behind it. */
static void bury(bly_pool *pool)
{
    blyi_lock_take(&pools_lock);
    bly_pool **slot = &ended[n_ended++ % ENDED_KEPT];
    bly_pool *oldest = *slot;
    *slot = pool;
    blyi_lock_drop(&pools_lock);
    blyi_host_free(oldest);
}

static void free_arenas(bly_pool *pool)
{
    BLYI_LIST_FOR_SAFE(node, &pool->arenas)
    {
        struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++)
            if (arena->zones[i] != NULL)
                blyi_zone_drop(arena->zones[i]);
        if (arena->lane != NULL)
            pool->backend->ops->let_go(pool->backend, arena->lane);
        blyi_host_free(arena);
    }
    blyi_map_fini(&pool->by_stream);
}

static void init(bly_pool *pool, struct blyi_backend *backend, const bly_pool_opts *opts)
{
    struct blyi_backend_info info;
    backend->ops->describe(backend, &info);
    blyi_lock_init_quick(&pool->lock, BLYI_RANK_POOL);
    pool->backend = backend;
    pool->opts = *opts;
    if (opts->name != NULL)
        snprintf(pool->name, sizeof pool->name, "%s", opts->name);
    pool->opts.name = pool->name;
    pool->device = info.device;
    pool->granule = info.granule;
    pool->total = info.total;
    pool->align_bits = opts->align > 0 ? opts->align - 1 : 0;
    pool->limit = opts->limit > 0 ? opts->limit : UINT64_MAX;
    pool->reserve = blyi_opts_reserve(opts, info.total);
    pool->policy = blyi_opts_policy(opts);
    pool->forks = blyi_lock_forks;
    pool->made_ns = blyi_clock_ns();
    backend->ops->cells(backend, &pool->cells);
    if (pool->cells.held == NULL)
        pool->cells = (struct blyi_cells){&pool->unread[0], &pool->unread[1], &pool->unread[2]};
    pool->plain_forks = opts->prefill == 0 ? pool->forks : UINT32_MAX;
    pool->share = pool->policy.share;
    pool->is.metadata = sizeof *pool;
    blyi_list_init(&pool->arenas);
    blyi_list_init(&pool->idle);
    blyi_list_init(&pool->waiting);
    blyi_list_init(&pool->returning);
    blyi_list_init(&pool->of_trimmer);
    blyi_map_init(&pool->by_stream);
}

bly_status blyi_pool_make(struct blyi_backend *backend, const bly_pool_opts *opts, bly_pool **out)
{
    bly_pool *pool = blyi_host_calloc(1, sizeof *pool);
    if (pool == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a pool");
    init(pool, backend, opts);
    bly_status status = blyi_front_open(pool, opts->small, &pool->front);
    if (status == BLY_OK) {
        status = enlist(pool);
        if (status != BLY_OK) {
            (void)blyi_front_close(pool->front);
            blyi_front_drop(pool->front);
        }
    }
    if (status != BLY_OK) {
        blyi_lock_fini(&pool->lock);
        blyi_host_free(pool);
        return status;
    }
    *out = pool;
    return BLY_OK;
}

/* What is to be held from the start, and the thread that trims. */
static bly_status begin(bly_pool *pool)
{
    char asked[BLYI_SIZE_TEXT];
    bly_status status = BLY_OK;
    if (pool->opts.prefill == 0)
        return blyi_trimmer_add(pool);
    blyi_lock_take(&pool->lock);
    status = blyi_still_wait_locked(pool);
    if (status == BLY_OK)
        status = blyi_granules_prefill(pool, pool->opts.prefill);
    blyi_pool_publish_locked(pool);
    blyi_lock_drop(&pool->lock);
    if (status == BLY_OK)
        return blyi_trimmer_add(pool);
    if (status == BLY_E_NO_MEMORY || status == BLY_E_CAP) {
        blyi_fail(status, "pool %s: no room for %s to hold from the start", pool->name,
                  blyi_size_text(pool->opts.prefill, asked));
        pool->backend->ops->shortage(pool->backend, pool->opts.prefill);
    }
    return status;
}

bly_status bly_pool_create(const bly_pool_opts *asked, bly_pool **pool)
{
    bly_pool_opts opts;
    struct blyi_backend *backend;
    bly_status status = blyi_opts_read(asked, &opts);
    if (status == BLY_OK && pool == NULL)
        status = blyi_fail(BLY_E_INVALID, "pool is NULL");
    if (status == BLY_OK)
        status = blyi_opts_backend(&opts, &backend);
    if (status != BLY_OK)
        return status;
    bly_pool *made = NULL;
    if (opts.prefill > 0)
        status = blyi_still_wait(backend);
    if (status == BLY_OK)
        status = blyi_pool_make(backend, &opts, &made);
    if (status != BLY_OK) {
        backend->ops->close(backend);
        return status;
    }
    status = begin(made);
    if (status == BLY_OK)
        *pool = made;
    else
        (void)bly_pool_destroy(made); /* the sentence stays */
    return status;
}

/* Behind this nothing of the device uses the pool's memory. */
static void wait_for_streams(bly_pool *pool)
{
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        if (arena->lane != NULL && blyi_arena_wait(arena, blyi_arena_mark(arena), 0) != BLY_OK)
            blyi_log(BLYI_LOG_WARN, "pool %s is destroyed: %s", pool->name, blyi_fail_text());
    }
}

bly_status bly_pool_destroy(bly_pool *pool)
{
    bly_status status = blyi_pool_check(pool);
    if (status == BLY_E_HANDLE || status == BLY_E_FORKED)
        return status;
    bly_status may = status == BLY_OK ? blyi_still_wait(pool->backend) : BLY_OK;
    if (may != BLY_OK)
        return may;
    blyi_trimmer_remove(pool);
    blyi_reclaim_remove(&pool->reclaimer);
    blyi_rows_keep(pool);
    blyi_lock_take(&pools_lock);
    blyi_map_remove(&pools, (uintptr_t)pool);
    __atomic_fetch_sub(&blyi_pools_live, 1, __ATOMIC_RELAXED);
    blyi_lock_drop(&pools_lock);
    if (status == BLY_OK)
        (void)blyi_waiting_drain(pool, UINT64_MAX);
    blyi_waiting_drop(pool);
    if (unlikely(blyi_pool_told()))
        blyi_told_end(pool);
    blyi_pool_blocks_ended();
    uint64_t live = blyi_front_close(pool->front);
    if (status == BLY_OK)
        wait_for_streams(pool);
    if (live > 0)
        blyi_log(BLYI_LOG_INFO, "pool %s is destroyed with %" PRIu64 " live blocks", pool->name,
                 live);
    blyi_lock_take(&pool->lock);
    (void)blyi_still_wait_locked(pool); /* it passed: it is not the one that all wait for */
    blyi_granules_drop(pool);
    blyi_pool_tell_others_locked(pool, 0, 0);
    blyi_lock_drop(&pool->lock);
    free_arenas(pool);
    blyi_front_drop(pool->front);
    blyi_records_drop(pool);
    pool->backend->ops->close(pool->backend);
    pool->backend = NULL;
    blyi_lock_fini(&pool->lock);
    bury(pool);
    return BLY_OK;
}
