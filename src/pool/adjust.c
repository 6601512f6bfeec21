/* SPDX-License-Identifier: Apache-2.0
 *
 * adjust.c - what can be changed while a pool is used.
 */
#include "pool/adjust.h"

#include "pool/front.h"
#include "pool/pool.h"

void blyi_pool_set_threshold(bly_pool *pool, uint64_t bytes)
{
    blyi_lock_take(&pool->lock);
    pool->opts.threshold = bytes;
    blyi_lock_drop(&pool->lock);
}

void blyi_pool_set_exact(bly_pool *pool, uint64_t wait_ns)
{
    blyi_lock_take(&pool->lock);
    if (pool->opts.split == 0)
        pool->policy.slack = 0;
    pool->policy.wait_slack = UINT32_MAX;
    pool->policy.ahead = 1;
    pool->policy.wait_ns = wait_ns;
    blyi_lock_drop(&pool->lock);
}

void blyi_pool_set_reuse(bly_pool *pool, uint32_t bits, bool on)
{
    blyi_lock_take(&pool->lock);
    pool->opts.reuse = on ? pool->opts.reuse | bits : pool->opts.reuse & ~bits;
    blyi_lock_drop(&pool->lock);
}

uint32_t blyi_pool_reuse(bly_pool *pool)
{
    blyi_lock_take(&pool->lock);
    uint32_t bits = pool->opts.reuse;
    blyi_lock_drop(&pool->lock);
    return bits;
}

void blyi_pool_reset_peaks(bly_pool *pool, bool reserved, bool live)
{
    if (live)
        blyi_front_reset_peak(pool->front);
    blyi_lock_take(&pool->lock);
    if (reserved)
        pool->is.held_peak = 0;
    blyi_lock_drop(&pool->lock);
}
