/* SPDX-License-Identifier: Apache-2.0
 *
 * info.c - figures of a pool.
 */
#include <string.h>
#include "base/fail.h"
#include "pool/front.h"
#include "pool/pool.h"
#include "pool/recent.h"
#include "pool/regions.h"
#include "pool/split.h"
#include "pool/trim.h"

static uint64_t largest_of(const struct blyi_zone *zone)
{
    uint64_t largest = 0;
    const struct blyi_runs *both[] = {&zone->closed, &zone->open};
    for (unsigned i = 0; i < 2; i++) {
        uint32_t bin = blyi_runs_down(both[i], BLYI_RUNS_BINS - 1);
        if (bin >= BLYI_RUNS_BINS)
            continue;
        for (const struct blyi_run_link *link = both[i]->heads[bin]; link; link = link->next) {
            uint64_t run = blyi_run_span(link)->ends[link->end];
            largest = run > largest ? run : largest;
        }
    }
    return largest;
}

static uint64_t largest_locked(const bly_pool *pool)
{
    uint64_t largest = 0;
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        const struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++) {
            uint64_t run = arena->zones[i] != NULL ? largest_of(arena->zones[i]) : 0;
            largest = run > largest ? run : largest;
        }
    }
    return largest;
}

void blyi_pool_fill_info(bly_pool *pool, bly_pool_info *info,
                         bly_pool_region_info regions[BLY_POOL_REGIONS])
{
    struct blyi_region held[BLY_POOL_REGIONS];
    bly_pool_info all = {.struct_size = info->struct_size, .device = pool->device};
    blyi_lock_take(&pool->lock);
    blyi_recent_join_all(pool); /* so that pieces are told as large as they are */
    const struct blyi_pool_figures *is = &pool->is;
    all.reserved = is->held;
    all.reserved_peak = is->held_peak > is->held ? is->held_peak : is->held;
    all.live = is->blocks_live;
    all.live_peak = is->live_peak;
    all.asked = is->blocks_asked;
    all.idle = is->held - blyi_figures_used(is);
    all.waiting = is->waiting;
    all.blocks = is->allocs - is->frees;
    all.allocs = is->allocs;
    all.frees = is->frees;
    all.maps = is->maps;
    all.unmaps = is->unmaps;
    all.handle_ops = is->handle_ops;
    all.waits = is->waits;
    all.flushes = is->flushes;
    all.largest = largest_locked(pool);
    all.metadata = is->metadata;
    all.releasable = blyi_trim_releasable_locked(pool);
    all.limit = pool->opts.limit;
    all.threshold = pool->opts.threshold;
    all.reserve = pool->reserve;
    all.reserve_used = is->reserve_used;
    all.refused = is->refused;
    all.split = pool->opts.split;
    all.split_refused = pool->split.refused;
    all.split_refused_bytes = pool->split.bytes;
    all.split_idle_least = pool->split.idle_least;
    all.split_idle_most = pool->split.idle_most;
    all.split_without = blyi_split_without(pool);
    uint64_t slabs = is->live - is->blocks_live;
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++) /* the others change without the lock */
        held[i] =
            (struct blyi_region){.held = pool->regions[i].held, .idle = pool->regions[i].idle};
    blyi_lock_drop(&pool->lock);
    blyi_front_add_info(pool->front, slabs, &all);
    if (regions != NULL)
        blyi_regions_fill(pool, &all, held, regions);
    *info = all;
}

bly_status bly_pool_get_info(bly_pool *pool, bly_pool_info *info)
{
    bly_pool_info all = {.struct_size = sizeof all};
    if (info == NULL)
        return blyi_fail(BLY_E_INVALID, "info is NULL");
    bly_status status = blyi_pool_check(pool);
    if (status != BLY_OK)
        return status;
    blyi_pool_fill_info(pool, &all, NULL);
    all.struct_size = info->struct_size;
    memcpy(info, &all, info->struct_size < sizeof all ? info->struct_size : sizeof all);
    return BLY_OK;
}

void blyi_pool_tell_others_locked(bly_pool *pool, uint64_t held, uint64_t idle)
{
    const struct blyi_cells *cells = &pool->cells;
    struct blyi_published *was = &pool->published;
    uint64_t beyond = held > pool->opts.prefill ? held - pool->opts.prefill : 0;
    struct blyi_published now = {held, idle, idle < beyond ? idle : beyond};
    if (pool->lock.forks != pool->forks) /* of a child: they are its parent's */
        return;
    __atomic_fetch_add(cells->idle, now.idle - was->idle, __ATOMIC_RELAXED);
    __atomic_fetch_add(cells->spare, now.spare - was->spare, __ATOMIC_RELAXED);
    if (now.held != was->held)
        __atomic_fetch_add(cells->held, now.held - was->held, __ATOMIC_RELAXED);
    *was = now;
}
