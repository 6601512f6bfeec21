/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.c - what a pool may hold, and the lengths of handles. Figures of bench/pool_traces led to
 * the numbers here.
 */
#include "pool/budget.h"

/* Above the budget by so many granules, and so much slack more: handles are too large. */
#define FAR       4u
#define FAR_SLACK 25u
/* Until something has to move, handles are twice as long, if a policy has not shorter ones. */
#define FIRST_SHARE 64u
/* A handle is at most one in so many of what may still be had. */
#define LEFT_SHARE 256u
/* Four of the last thousand blocks; so much of the card stays free. */
#define WAITED_OFTEN 4096u
#define ROOM_SHARE   4u
/* Where sizes do not come again places seldom do, and each move would wait: a little more is held
 * than waited for. Not where no slack is wanted, or the limit is the only one. */
#define VARIED_SLACK 400u
#define SLACK_MOST   100000u
/* Granules that a small pool may waste before places are chosen by cost. */
#define SHORT_LEAST 8u
/* Free in handles that are in use, one in so many and so many granules, before they must be short:
 * then one in so many of a block is a handle. */
#define WASTE_SHARE 30u
#define WASTE_LEAST 16u
#define OWN_SHARE   8u

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

uint64_t blyi_budget(const bly_pool *pool, uint64_t live, uint32_t slack)
{
    uint64_t peak = live > pool->is.live_peak ? live : pool->is.live_peak;
    if (slack == UINT32_MAX)
        return pool->limit;
    uint64_t budget = peak + peak / 10000 * slack + peak % 10000 * slack / 10000;
    if (budget < pool->opts.prefill)
        budget = pool->opts.prefill;
    return blyi_lesser(pool->limit, blyi_align_up(budget, pool->granule));
}

/* Bytes of handles that a span lies in. */
static uint64_t taken(const bly_pool *pool)
{
    return pool->is.held - pool->is.spare - pool->is.loose;
}

bool blyi_budget_is_short(const bly_pool *pool, uint64_t size)
{
    uint64_t most = blyi_budget(pool, pool->is.live + size, pool->policy.slack);
    if (!blyi_variety_is_high(&pool->variety))
        most = sum(most, SHORT_LEAST * pool->granule);
    return taken(pool) + size > most;
}

uint32_t blyi_budget_wait_slack(const bly_pool *pool)
{
    uint32_t slack = pool->policy.wait_slack;
    if (slack > 0 && slack < SLACK_MOST && blyi_variety_is_high(&pool->variety))
        slack += VARIED_SLACK;
    return slack;
}

bool blyi_budget_may_grow(const bly_pool *pool, uint64_t bytes)
{
    struct blyi_backend_info info;
    if (pool->waited < WAITED_OFTEN || pool->policy.wait_slack > pool->policy.slack)
        return false;
    pool->backend->ops->describe(pool->backend, &info);
    return info.free >= info.total / ROOM_SHARE + bytes;
}

/* Whether handles must be short: sizes do not come again, or much is free in handles that are in
 * use. */
static bool must_be_short(const bly_pool *pool)
{
    uint64_t used = blyi_figures_used(&pool->is);
    return blyi_variety_is_high(&pool->variety) ||
           taken(pool) > used + used / WASTE_SHARE + WASTE_LEAST * pool->granule;
}

/* Granules of a handle at most, of what is held. */
static uint64_t by_share(const bly_pool *pool)
{
    uint64_t share = pool->share;
    if (pool->is.unmaps == 0 && share == UINT64_C(2) * FIRST_SHARE)
        share /= 2;
    return pool->is.held / pool->granule / share;
}

uint64_t blyi_handle_length(const bly_pool *pool, uint64_t own, uint64_t count)
{
    uint64_t all = blyi_lesser(pool->limit, pool->total);
    uint64_t left = all > pool->is.held ? (all - pool->is.held) / pool->granule : 0;
    uint64_t most = must_be_short(pool) ? own / OWN_SHARE : by_share(pool);
    most = blyi_lesser(blyi_lesser(most, pool->policy.handle_most), left / LEFT_SHARE);
    return most > 0 ? blyi_lesser(most, count) : 1;
}

uint64_t blyi_handle_ahead(const bly_pool *pool, uint64_t own)
{
    uint64_t most = pool->policy.ahead_handle;
    if (must_be_short(pool))
        most = blyi_lesser(most, own / OWN_SHARE);
    return most > 0 ? most : 1;
}

void blyi_handles_shorten(bly_pool *pool, uint64_t short_of, bool fails)
{
    const struct blyi_policy *policy = &pool->policy;
    uint32_t slack = policy->slack == UINT32_MAX ? UINT32_MAX : policy->slack + FAR_SLACK;
    uint64_t far = sum(blyi_budget(pool, 0, slack), FAR * pool->granule);
    if (pool->is.held - blyi_figures_used(&pool->is) < short_of * pool->granule)
        return;
    uint32_t most = fails ? policy->share_least : pool->is.held > far ? policy->share_far : 0;
    if (pool->share < most)
        pool->share *= 2;
}
