/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c - spans out of the addresses of a stream, and back.
 */
#include <inttypes.h>
#include <sched.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"
#include "pool/borrow.h"
#include "pool/class.h"
#include "pool/budget.h"
#include "pool/front.h"
#include "pool/own.h"
#include "pool/pages.h"
#include "pool/place.h"
#include "pool/recent.h"
#include "pool/regions.h"
#include "pool/granules.h"
#include "pool/pool.h"
#include "pool/span.h"
#include "pool/split.h"
#include "pool/still.h"
#include "pool/timeline.h"
#include "pool/waiting.h"

#define DUE_LOOKED_AT 4 /* blocks that wait, and still must: one each for a few streams */

bly_pool *blyi_arena_pool(const struct blyi_arena *arena)
{
    return arena->pool;
}

bly_stream blyi_arena_stream(const struct blyi_arena *arena)
{
    return arena->stream;
}

void **blyi_arena_front(struct blyi_arena *arena)
{
    return &arena->front;
}

/* How short memory is: what has been tried for a request. */
enum pressure { CALM, TIGHT, LAST };

static bly_status no_record(const bly_pool *pool)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to describe a block", pool->name);
}

/* What has been tried for a request, and what is tried now. */
struct attempt {
    const struct blyi_want *want;
    enum pressure pressure;
    bool is_dear;              /* the budget is short: the place is chosen by what it costs */
    bool waited;               /* for what other streams have queued */
    uint64_t too_large;        /* an idle block that was not to be split; 0: there was none */
    struct blyi_effort effort; /* from the first growth on */
    struct blyi_need need;
};

static bool find_mapped(const struct blyi_zone *zone, struct attempt *attempt,
                        struct blyi_place *place)
{
    const struct blyi_want *want = attempt->want;
    uint64_t refused;
    if (likely(!zone->own))
        return blyi_place_fit(zone, want, place);
    if (likely(!blyi_split_is_whole(zone->arena->pool, want)))
        return blyi_own_fit(zone, want, place);
    bool found = blyi_split_fit(zone, want, place, &refused);
    if (refused > 0)
        attempt->too_large = refused;
    return found;
}

static bool find_growth(struct blyi_zone *zone, const struct attempt *attempt,
                        struct blyi_place *place)
{
    if (unlikely(zone->own))
        return blyi_own_room(zone, attempt->want, place);
    return attempt->is_dear ? blyi_borrow_tightest(zone, attempt->want, place)
                            : blyi_place_growth(zone, attempt->want, place);
}

/* A place with memory behind all of it. Statuses of blyi_granules_cover(). */
static bly_status grow(struct blyi_zone *zone, struct attempt *attempt, struct blyi_place *place)
{
    bly_pool *pool = zone->arena->pool;
    const struct blyi_want *want = attempt->want;
    if (attempt->effort.began_ns == 0)
        attempt->effort = blyi_effort_begin(pool);
    if (!find_growth(zone, attempt, place)) {
        bly_status status =
            zone->own ? blyi_own_grow(zone, want) : blyi_zone_grow(zone, blyi_place_room(want));
        if (status != BLY_OK)
            return status;
        if (!blyi_records_need(pool, 2))
            return no_record(pool);
        bool found = find_growth(zone, attempt, place);
        bly_check(found);
    }
    struct blyi_span *hole = place->hole;
    attempt->need = (struct blyi_need){.hole = hole,
                                       .from = place->address,
                                       .to = place->address + want->size,
                                       .end = place->end,
                                       .own = zone->own,
                                       .is_dear = attempt->is_dear,
                                       .live = pool->is.live + want->size};
    blyi_hole_leave(hole);
    bly_status status = blyi_granules_cover(pool, &attempt->need);
    blyi_hole_measure(hole);
    blyi_hole_enter(hole);
    if (hole->mapped >= pool->granule && blyi_list_empty(&hole->idle))
        blyi_hole_rest(hole);
    return status;
}

static bly_status try_take(struct blyi_zone *zone, struct attempt *attempt, struct blyi_span **span)
{
    bly_pool *pool = zone->arena->pool;
    const struct blyi_want *want = attempt->want;
    struct blyi_place place;
    bly_status status = BLY_OK;
    if (unlikely(!blyi_records_need(pool, 2)))
        return no_record(pool);
    blyi_recent_join(zone);
    if (want->slab == NULL && want->asked > BLYI_SLOT_MAX)
        blyi_variety_note(&pool->variety, (uint32_t)want->asked);
    attempt->is_dear =
        !zone->own && (attempt->pressure != CALM || blyi_budget_is_short(pool, want->size));
    if (attempt->is_dear || !find_mapped(zone, attempt, &place))
        status = grow(zone, attempt, &place);
    if (status != BLY_OK)
        return status;
    *span = blyi_hole_carve(place.hole, place.address, zone->own ? place.hole->size : want->size);
    blyi_span_begin(pool, *span, want);
    blyi_pages_enter(*span);
    if (unlikely((*span)->arena != zone->arena))
        (*span)->borrower = zone->arena;
    return BLY_OK;
}

/* Behind need->mark there is memory. Where the wait is in vain, the arena's is not waited for again
 * until it has passed. */
static void wait_for(bly_pool *pool, const struct blyi_need *need)
{
    struct blyi_arena *arena = need->arena;
    bly_assert(arena != NULL);
    uint64_t limit_ns = need->is_last ? pool->policy.wait_ns : pool->policy.patience_ns;
    pool->is.waits++;
    blyi_lock_drop(&pool->lock);
    bly_status status = blyi_arena_wait(arena, need->mark, limit_ns);
    if (status != BLY_OK)
        blyi_fail_clear();
    blyi_lock_take(&pool->lock);
    if (status != BLY_OK)
        arena->stuck = need->mark;
}

/* What can be had without waiting: free slots, blocks whose uses have passed. */
static void gather(bly_pool *pool)
{
    blyi_lock_drop(&pool->lock);
    (void)blyi_front_flush(pool->front);
    (void)blyi_waiting_poll(pool, SIZE_MAX);
    blyi_lock_take(&pool->lock);
}

/* And with: everything that no block holds. */
static void flush(bly_pool *pool, uint64_t size)
{
    bool waits = !blyi_list_empty(&pool->waiting);
    pool->is.flushes += waits;
    pool->n_relieved++;
    blyi_lock_drop(&pool->lock);
    if (waits)
        blyi_waiting_drain(pool, UINT64_MAX);
    (void)pool->backend->ops->relieve(pool->backend, size);
    blyi_lock_take(&pool->lock);
    pool->n_relieved--;
}

/* Another thread has taken blocks off the list of those that wait, and is about to give them back.
 */
static void let_return(bly_pool *pool)
{
    blyi_lock_drop(&pool->lock);
    sched_yield();
    blyi_lock_take(&pool->lock);
}

/* So that nothing grows for want of what is due. */
static void take_back_due(bly_pool *pool)
{
    if (likely(blyi_list_empty(&pool->waiting)))
        return;
    blyi_lock_drop(&pool->lock);
    (void)blyi_waiting_poll(pool, DUE_LOOKED_AT);
    blyi_lock_take(&pool->lock);
}

/* The next attempt is made with more pressure, or behind what could be waited for. False: all has
 * been tried. */
static bool may_try_again(bly_pool *pool, struct attempt *attempt, bly_status status)
{
    if (status == BLY_E_TIMEOUT) {
        attempt->waited |= attempt->need.queued;
        wait_for(pool, &attempt->need);
    } else if (status != BLY_E_NO_MEMORY && status != BLY_E_CAP) {
        return false;
    } else if (attempt->pressure == LAST) {
        if (blyi_list_empty(&pool->returning))
            return false;
        let_return(pool);
    } else if (attempt->pressure++ == CALM) {
        gather(pool);
    } else {
        flush(pool, attempt->want->size);
    }
    return true;
}

static bly_status take_locked(bly_pool *pool, struct blyi_zone *zone, const struct blyi_want *want,
                              struct blyi_span **span)
{
    struct attempt attempt = {.want = want, .pressure = CALM};
    uint64_t of_reserve = 0;
    bly_status status;
    take_back_due(pool);
    do {
        attempt.need.arena = NULL;
        pool->reserve_open = attempt.pressure == LAST;
        pool->of_reserve = 0;
        status = blyi_still_wait_locked(pool);
        if (status == BLY_OK)
            status = try_take(zone, &attempt, span);
        pool->reserve_open = false;
        of_reserve += pool->of_reserve;
    } while (unlikely(status != BLY_OK) && may_try_again(pool, &attempt, status));
    if (status == BLY_OK)
        blyi_budget_note_wait(pool, attempt.waited);
    if (status == BLY_OK)
        pool->is.reserve_used += of_reserve;
    if (unlikely(attempt.too_large > 0))
        blyi_split_note(pool, want->size, attempt.too_large);
    if (attempt.effort.began_ns != 0)
        blyi_timeline_request(pool, &attempt.effort, want->size, attempt.pressure != CALM,
                              status == BLY_OK);
    return status;
}

/* Memory that lies in another stream's arena. */
static bool borrow(struct blyi_zone *zone, const struct blyi_want *want, struct blyi_span **span,
                   struct blyi_loan *loan)
{
    bly_pool *pool = zone->arena->pool;
    struct blyi_place place;
    if (likely(pool->opts.reuse == 0) || want->slab != NULL || zone->own ||
        !blyi_records_need(pool, 2) || !blyi_borrow_find(zone, want, &place, loan))
        return false;
    *span = blyi_hole_carve(place.hole, place.address, want->size);
    blyi_span_begin(pool, *span, want);
    blyi_pages_enter(*span);
    (*span)->borrower = zone->arena;
    return true;
}

/* The lock is held at first, and no longer when it returns. */
static bly_status take_and_drop(struct blyi_arena *arena, struct blyi_want want,
                                struct blyi_span **span)
{
    bly_pool *pool = arena->pool;
    struct blyi_loan loan;
    uint64_t held = pool->is.held;
    if (unlikely(blyi_split_is_whole(pool, &want)))
        want.zone = blyi_zone_index(pool, (bly_pool_region)(want.zone % BLY_POOL_REGIONS), true);
    for (bool may_borrow = true;;) {
        bly_status status = blyi_still_wait_locked(pool);
        struct blyi_zone *zone = arena->zones[want.zone];
        if (status == BLY_OK && zone == NULL)
            status = blyi_zone_make(arena, want.zone, &zone);
        if (status == BLY_OK && unlikely(zone->own))
            blyi_own_round(pool, &want);
        bool borrowed = status == BLY_OK && may_borrow && borrow(zone, &want, span, &loan);
        if (status == BLY_OK && !borrowed)
            status = take_locked(pool, zone, &want, span);
        if (unlikely(status == BLY_E_NO_MEMORY || status == BLY_E_CAP) &&
            blyi_still_may_change(pool))
            blyi_granules_give(pool, held, pool->opts.prefill); /* what was taken for it in vain */
        blyi_pool_publish_locked(pool);
        blyi_lock_drop_quick(&pool->lock);
        if (unlikely(status == BLY_E_NO_MEMORY || status == BLY_E_CAP))
            return blyi_shortage(arena, &want, status);
        if (!borrowed || blyi_borrow_order(arena, &loan))
            return status;
        blyi_arena_give(*span); /* the streams could not be ordered */
        may_borrow = false;
        blyi_lock_take_quick(&pool->lock);
    }
}

#define WHOLE (BLY_POOL_EXPORTABLE | BLYI_POOL_WHOLE)

static uint64_t size_of(const bly_pool *pool, const struct blyi_want *want)
{
    uint64_t size = blyi_span_size(want->size);
    return want->flags & WHOLE ? blyi_align_up(size, pool->granule) : size;
}

static uint64_t align_of(const bly_pool *pool, const struct blyi_want *want)
{
    uint64_t least = want->flags & WHOLE ? pool->granule : BLYI_QUANTUM;
    return want->align > least ? want->align : least;
}

bly_status blyi_arena_take(struct blyi_arena *arena, const struct blyi_want *asked,
                           struct blyi_span **span)
{
    bly_pool *pool = arena->pool;
    uint64_t size = size_of(pool, asked), align = align_of(pool, asked);
    blyi_lock_take_quick(&pool->lock);
    struct blyi_span *recent =
        asked->slab != NULL ? NULL : blyi_recent_take(arena->zones[asked->zone], size, align - 1);
    if (likely(recent != NULL)) {
        blyi_span_begin(pool, recent, asked);
        blyi_pool_publish_locked(pool);
        blyi_lock_drop_quick(&pool->lock);
        *span = recent;
        return BLY_OK;
    }
    struct blyi_want want = *asked;
    want.size = size;
    want.align = align;
    if (unlikely(size > pool->total ||
                 size > pool->limit)) { /* not looked for, granule by granule */
        blyi_lock_drop_quick(&pool->lock);
        return blyi_shortage(arena, &want, BLY_E_NO_MEMORY);
    }
    return take_and_drop(arena, want, span);
}

void blyi_arena_retire(struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    blyi_lock_take(&pool->lock);
    pool->is.live -= span->size;
    pool->is.waiting += span->size;
    if (span->slab == NULL) {
        blyi_span_count(pool, span, -UINT64_C(1));
        blyi_region_wait(pool, span->region, span->size, 1);
    }
    span->waits = true;
    blyi_lock_drop(&pool->lock);
}

void blyi_arena_give(struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    blyi_lock_take_quick(&pool->lock);
    blyi_span_end(pool, span);
    span->freed = blyi_arena_mark_locked(span->arena);
    blyi_recent_put(span);
    blyi_pool_publish_locked(pool);
    blyi_lock_drop_quick(&pool->lock);
}

void blyi_arena_end(struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    blyi_lock_take(&pool->lock);
    if (unlikely(blyi_still_wait_locked(pool) != BLY_OK)) {
        blyi_lock_drop(&pool->lock); /* its memory is away, and so it is nobody else's */
        blyi_fail_clear();
        blyi_arena_give(span);
        return;
    }
    blyi_span_end(pool, span);
    blyi_own_release(span);
    blyi_pool_publish_locked(pool);
    blyi_lock_drop(&pool->lock);
}
