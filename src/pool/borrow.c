/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/borrow.h"

#include "base/fail.h"
#include "pool/budget.h"
#include "pool/recent.h"

#define LENDERS 8u /* that are asked, where memory is short */

/* Behind the last free in a place. */
static blyi_mark mark_of(const struct blyi_place *place, uint64_t size)
{
    const struct blyi_extent *extent = place->hole->extent;
    uint64_t granule = extent->zone->arena->pool->granule;
    uint64_t first = (place->address - extent->base) / granule;
    uint64_t last = (place->address + size - 1 - extent->base) / granule;
    blyi_mark mark = 0;
    for (uint64_t i = first; i <= last; i++)
        mark = extent->marks[i] > mark ? extent->marks[i] : mark;
    return mark;
}

/* Whether the borrower may have it, by what is allowed. */
static bool may_have(const struct blyi_arena *borrower, struct blyi_loan *loan, uint32_t reuse)
{
    struct blyi_backend *backend = borrower->pool->backend;
    const struct blyi_arena *lender = loan->lender;
    loan->to_be_ordered = false;
    if (blyi_arena_passed_locked(lender, loan->mark))
        return (reuse & (BLY_POOL_REUSE_OPPORTUNISTIC | BLY_POOL_REUSE_DEPENDENCIES)) != 0;
    if ((reuse & BLY_POOL_REUSE_EVENTS) != 0 &&
        backend->ops->knows(backend, borrower->lane, lender->lane, loan->mark - lender->base))
        return true;
    loan->to_be_ordered = true;
    return (reuse & BLY_POOL_REUSE_DEPENDENCIES) != 0;
}

bool blyi_borrow_find(struct blyi_zone *zone, const struct blyi_want *want,
                      struct blyi_place *place, struct blyi_loan *loan)
{
    struct blyi_arena *borrower = zone->arena;
    bly_pool *pool = borrower->pool;
    blyi_recent_join(zone);
    if (borrower->lane == NULL || blyi_place_fit(zone, want, place))
        return false;
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        loan->lender = BLYI_CONTAINER(node, struct blyi_arena, link);
        struct blyi_zone *theirs = loan->lender->zones[want->zone];
        if (loan->lender == borrower || loan->lender->lane == NULL || theirs == NULL)
            continue;
        blyi_recent_join(theirs);
        if (!blyi_place_fit(theirs, want, place))
            continue;
        loan->mark = mark_of(place, want->size);
        if (may_have(borrower, loan, pool->opts.reuse))
            return true;
    }
    return false;
}

/* A place there that is cheaper, and all work on it has ended. */
static bool is_better(struct blyi_zone *there, const struct blyi_want *want,
                      struct blyi_price *price, struct blyi_place *place)
{
    struct blyi_price offer = *price;
    struct blyi_place other;
    blyi_recent_join(there);
    if (!blyi_place_cheaper(there, want, &offer, &other) ||
        !blyi_arena_passed_locked(there->arena, mark_of(&other, want->size)))
        return false;
    *price = offer;
    *place = other;
    return true;
}

bool blyi_borrow_tightest(struct blyi_zone *zone, const struct blyi_want *want,
                          struct blyi_place *place)
{
    const struct blyi_arena *borrower = zone->arena;
    struct blyi_price price = BLYI_PRICE_ANY;
    unsigned left = LENDERS;
    bool found = blyi_place_cheaper(zone, want, &price, place);
    if (!found || want->slab != NULL || borrower->lane == NULL ||
        !blyi_budget_is_varied(borrower->pool))
        return found || blyi_place_sure(zone, want, place);
    BLYI_LIST_FOR(node, &borrower->pool->arenas)
    {
        const struct blyi_arena *lender = BLYI_CONTAINER(node, struct blyi_arena, link);
        struct blyi_zone *there = lender->zones[want->zone];
        if (lender != borrower && lender->lane != NULL && there != NULL && left-- > 0)
            (void)is_better(there, want, &price, place);
    }
    return true;
}

bool blyi_borrow_order(struct blyi_arena *borrower, const struct blyi_loan *loan)
{
    struct blyi_backend *backend = borrower->pool->backend;
    if (!loan->to_be_ordered)
        return true;
    bly_status status = backend->ops->order(backend, borrower->lane, loan->lender->lane,
                                            loan->mark - loan->lender->base);
    if (status != BLY_OK)
        blyi_fail_clear();
    return status == BLY_OK;
}
