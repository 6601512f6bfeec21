/* SPDX-License-Identifier: Apache-2.0
 *
 * trim.c - memory goes back: when asked to, when others are short, and after some time.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "pool/front.h"
#include "pool/granules.h"
#include "pool/recent.h"
#include "pool/still.h"
#include "pool/timeline.h"
#include "pool/trim.h"
#include "pool/victims.h"
#include "pool/waiting.h"

/* What was freed last is idle from here on, for those who ask for how long; no more, as this is at
 * each wait for a stream. */
#define ZONES_JOINED 64u

/* Until at most `keep` bytes are held, and at least `least`; of what waits no more. */
static uint64_t give(bly_pool *pool, enum blyi_flush_kind kind, uint64_t keep, uint64_t least)
{
    uint64_t began_ns = blyi_clock_ns();
    (void)blyi_front_flush(pool->front);
    blyi_lock_take(&pool->lock);
    uint64_t before = pool->is.held, unmaps = pool->is.unmaps;
    if (likely(blyi_still_may_change(pool)))
        blyi_granules_give(pool, keep, least);
    uint64_t bytes = before - pool->is.held;
    blyi_timeline_give(pool, kind, began_ns, bytes, pool->is.unmaps - unmaps);
    blyi_pool_publish_locked(pool);
    blyi_lock_drop(&pool->lock);
    return bytes;
}

uint64_t blyi_trim_reclaim(void *arg, int card, uint64_t bytes)
{
    bly_pool *pool = arg;
    uint64_t held = blyi_pool_held(pool), keep = held > bytes ? held - bytes : 0;
    if (card != pool->device || !blyi_still_may_change(pool))
        return 0;
    (void)blyi_waiting_poll(pool, SIZE_MAX);
    return give(pool, BLYI_FLUSH_RECLAIM, keep > pool->opts.prefill ? keep : pool->opts.prefill,
                pool->opts.prefill);
}

bly_status bly_pool_trim(bly_pool *pool, uint64_t keep, uint64_t *released)
{
    bly_status status = blyi_pool_check(pool);
    if (status == BLY_OK)
        status = blyi_still_wait(pool->backend);
    if (status != BLY_OK)
        return status;
    blyi_waiting_settle(pool);
    uint64_t bytes = give(pool, BLYI_FLUSH_TRIM, keep, 0);
    if (released != NULL)
        *released = bytes;
    return BLY_OK;
}

bly_status bly_pool_poll(bly_pool *pool)
{
    bly_status status = blyi_pool_check(pool);
    if (status == BLY_OK)
        blyi_waiting_settle(pool);
    return status;
}

void blyi_trim_tick(bly_pool *pool)
{
    if (!blyi_still_may_change(pool))
        return;
    (void)blyi_waiting_poll(pool, SIZE_MAX);
    blyi_lock_take(&pool->lock);
    uint64_t began_ns = blyi_clock_ns(), before = pool->is.held, unmaps = pool->is.unmaps;
    pool->tick++;
    if (likely(blyi_still_may_change(pool)))
        blyi_granules_give_old(pool, pool->tick - 2, pool->opts.prefill);
    blyi_timeline_give(pool, BLYI_FLUSH_AGE, began_ns, before - pool->is.held,
                       pool->is.unmaps - unmaps);
    blyi_pool_publish_locked(pool);
    blyi_lock_drop(&pool->lock);
}

uint64_t blyi_trim_releasable_locked(const bly_pool *pool)
{
    const struct blyi_need nothing = {.hole = NULL};
    uint64_t bytes = pool->is.spare;
    BLYI_LIST_FOR(node, &pool->idle)
    {
        struct blyi_span *hole = BLYI_CONTAINER(node, struct blyi_span, idle);
        struct blyi_victims victims = blyi_victims_of(hole, &nothing);
        const struct blyi_chunk *chunk;
        while ((chunk = blyi_victims_next(&victims)) != NULL)
            if (blyi_arena_passed_locked(hole->arena, blyi_chunk_mark(chunk)))
                bytes += chunk->count * pool->granule;
    }
    return bytes;
}

static void keep_threshold(void *arg, bly_pool *pool)
{
    (void)arg;
    if (!blyi_still_may_change(pool)) /* it goes at the next wait: this one must not wait */
        return;
    (void)blyi_waiting_poll(pool, SIZE_MAX);
    blyi_lock_take(&pool->lock);
    if (pool->n_zones <= ZONES_JOINED)
        blyi_recent_join_all(pool);
    uint64_t held = pool->is.held, idle = held - blyi_figures_used(&pool->is);
    uint64_t threshold = pool->opts.threshold, keep = held - idle + threshold;
    blyi_lock_drop(&pool->lock);
    if (idle <= threshold || pool->backend->ops->alive(pool->backend) != BLY_OK)
        return;
    keep = keep > pool->opts.prefill ? keep : pool->opts.prefill;
    give(pool, BLYI_FLUSH_THRESHOLD, keep, keep);
}

void blyi_pools_synced_slow(void)
{
    bly_status before = blyi_fail_code();
    (void)blyi_pools_each(keep_threshold, NULL, false);
    if (before == BLY_OK)
        blyi_fail_clear();
}
