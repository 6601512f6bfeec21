/* SPDX-License-Identifier: Apache-2.0
 *
 * budget.h - how much a pool may hold, and in how long handles. Under its lock.
 */
#ifndef BLYI_BUDGET_H
#define BLYI_BUDGET_H

#include "pool/pool.h"

/* Granules that a pool holds before slots are too dear for it. */
#define BLYI_ALONE_LEAST 64u

static inline uint64_t blyi_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What may be held with so much slack above the highest bytes that lived, in 1/10000. */
uint64_t blyi_budget(const bly_pool *pool, uint64_t live, uint32_t slack);
/* Whether `size` bytes more would take handles into use that the budget has no room for, wherever
 * idle ones come from: places have to be chosen by what they cost. */
bool blyi_budget_is_short(const bly_pool *pool, uint64_t size);

/* Beyond this slack, idle memory that has to be waited for. */
uint32_t blyi_budget_wait_slack(const bly_pool *pool);
/* A block was served, behind a wait for what others have queued or not. */
static inline void blyi_budget_note_wait(bly_pool *pool, bool waited)
{
    pool->waited -= pool->waited / 1024;
    pool->waited += waited ? 1024 : 0;
}
/* Whether most of what the pool holds is idle behind work that is queued: `queued` bytes. */
static inline bool blyi_budget_is_queued(const bly_pool *pool, uint64_t queued)
{
    return queued >= blyi_figures_used(&pool->is) / 2;
}
/* Then, whether memory of the card shall be had rather than waited for: waits have been many, and
 * the card has room for `bytes` more. */
bool blyi_budget_may_grow(const bly_pool *pool, uint64_t bytes);

/* Whether the sizes that are asked for do not come again. */
static inline bool blyi_budget_is_varied(const bly_pool *pool)
{
    return blyi_variety_is_high(&pool->variety) || blyi_variety_is_most(&pool->slots);
}
/* A size that slots serve, and no thread has one at hand: whether a span of its own is better, as
 * its size is not likely to come again. Without the lock. */
static inline bool blyi_budget_is_alone(bly_pool *pool, uint64_t asked)
{
    blyi_variety_note(&pool->slots, (uint32_t)asked);
    return asked > BLYI_SPAN_MIN && blyi_variety_is_most(&pool->slots) &&
           BLYI_READ(pool->is.held) >= BLYI_ALONE_LEAST * pool->granule;
}

/* Granules of a fresh handle for a block of `own` granules, of `count` that are to be mapped. */
uint64_t blyi_handle_length(const bly_pool *pool, uint64_t own, uint64_t count);
/* The same behind the block, for what may come. */
uint64_t blyi_handle_ahead(const bly_pool *pool, uint64_t own);
/* Idle granules are there that cannot go, as their handles reach into what lives: smaller handles
 * from now on, at once where a request would fail. */
void blyi_handles_shorten(bly_pool *pool, uint64_t short_of, bool fails);

#endif
