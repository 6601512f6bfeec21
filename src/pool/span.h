/* SPDX-License-Identifier: Apache-2.0
 *
 * span.h - what is counted where a span begins and ends. Under the pool's lock.
 */
#ifndef BLYI_SPAN_H
#define BLYI_SPAN_H

#include "pool/pool.h"
#include "pool/regions.h"

/* Of a span for so many bytes. */
static inline uint64_t blyi_span_size(uint64_t asked)
{
    return blyi_align_up(asked < BLYI_SPAN_MIN ? BLYI_SPAN_MIN : asked, BLYI_QUANTUM);
}

/* A block is one more that lives (1) or one less (-1). */
static inline void blyi_span_count(bly_pool *pool, const struct blyi_span *span, uint64_t sign)
{
    struct blyi_pool_figures *is = &pool->is;
    blyi_word_add(sign == 1 ? &is->allocs : &is->frees, 1);
    /* The front looks at them without the lock. */
    blyi_word_add(&is->blocks_live, sign * span->size);
    blyi_word_add(&is->blocks_asked, sign * span->asked);
    if (unlikely(span->region != BLY_POOL_ANY))
        blyi_region_count(pool, span->region, span->size, span->asked, sign == 1 ? 1 : -1);
}

static inline void blyi_span_begin(bly_pool *pool, struct blyi_span *span,
                                   const struct blyi_want *want)
{
    struct blyi_pool_figures *is = &pool->is;
    span->asked = want->asked;
    __atomic_store_n(&span->slab, want->slab, __ATOMIC_RELAXED);
    span->n_uses = 0;
    span->borrower = NULL;
    span->site = want->site;
    span->region = (uint8_t)(want->zone % BLY_POOL_REGIONS);
    span->flags = (uint8_t)want->flags;
    is->live += span->size;
    if (is->live > is->live_peak)
        is->live_peak = is->live;
    if (want->slab == NULL)
        blyi_span_count(pool, span, 1);
}

/* Its figures were taken back when it began to wait, where it did. */
static inline void blyi_span_end(bly_pool *pool, struct blyi_span *span)
{
    struct blyi_pool_figures *is = &pool->is;
    *(span->waits ? &is->waiting : &is->live) -= span->size;
    if (span->slab == NULL && !span->waits)
        blyi_span_count(pool, span, -UINT64_C(1));
    else if (span->slab == NULL)
        blyi_region_wait(pool, span->region, span->size, -1);
    span->waits = false;
}

#endif
