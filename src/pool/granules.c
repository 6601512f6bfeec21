/* SPDX-License-Identifier: Apache-2.0
 *
 * granules.c - granules of a pool: fresh ones from the backend, or idle ones of any arena. All
 * under the pool's lock.
 */
#include "pool/granules.h"

#include "base/assert.h"
#include "base/fail.h"
#include "pool/budget.h"
#include "pool/chunks.h"
#include "pool/recent.h"
#include "pool/told.h"
#include "pool/victims.h"

/* Whether a handle may go now. Of those that may not, the last that is needed for `count` granules
 * is left in *need: what comes before it in its arena has passed when that has. */
static bool may_go(const struct blyi_chunk *chunk, uint64_t count, struct blyi_need *need,
                   uint64_t *busy)
{
    struct blyi_arena *arena = chunk->extent->zone->arena;
    blyi_mark mark = blyi_chunk_mark(chunk);
    if (blyi_arena_passed_locked(arena, mark))
        return true;
    bool stuck = arena->stuck != 0 && !blyi_arena_passed_locked(arena, arena->stuck);
    if (!stuck && *busy < count && (need->arena == NULL || need->arena == arena)) {
        need->mark = need->arena == NULL || mark > need->mark ? mark : need->mark;
        need->arena = arena;
    }
    *busy += chunk->count;
    return false;
}

/* Granules of a hole go to the spare, `count` if it has so many. */
static uint64_t steal_from(bly_pool *pool, struct blyi_span *hole, uint64_t count,
                           struct blyi_need *need, uint64_t *busy)
{
    struct blyi_victims victims = blyi_victims_of(hole, need);
    struct blyi_chunk *chunk;
    uint64_t got = 0, last = UINT64_MAX;
    bool is_out = hole == need->hole;
    while (got < count && (chunk = blyi_victims_next(&victims)) != NULL) {
        if (!may_go(chunk, count - got, need, busy))
            continue;
        if (!is_out)
            blyi_hole_leave(hole);
        is_out = true;
        pool->is.unmaps += chunk->first + chunk->count != last;
        last = chunk->first;
        got += chunk->count;
        blyi_chunk_unmap(pool, chunk, hole);
        blyi_spare_put(pool, chunk);
    }
    if (is_out && hole != need->hole) {
        blyi_hole_measure(hole);
        blyi_hole_enter(hole);
    }
    if (hole->mapped < pool->granule)
        blyi_list_remove(&hole->idle);
    return got;
}

/* The least recently freed first. */
static uint64_t steal(bly_pool *pool, uint64_t count, struct blyi_need *need, uint64_t *busy)
{
    uint64_t got = 0;
    *busy = 0;
    need->arena = NULL;
    blyi_recent_join_all(pool);
    BLYI_LIST_FOR_SAFE(node, &pool->idle)
    {
        if (got >= count)
            break;
        got +=
            steal_from(pool, BLYI_CONTAINER(node, struct blyi_span, idle), count - got, need, busy);
    }
    return got;
}

/* Granules that may be had at once, spare or from the card. */
static uint64_t in_reach(const bly_pool *pool, uint64_t most)
{
    uint64_t room = most > pool->is.held ? most - pool->is.held : 0;
    return (room + pool->is.spare) / pool->granule;
}

/* Sees to it that `count` granules are in reach of `most` bytes. */
static bly_status provide(bly_pool *pool, uint64_t count, struct blyi_need *need, uint64_t most)
{
    const struct blyi_policy *policy = &pool->policy;
    need->cap = blyi_lesser(most, blyi_budget(pool, need->live, policy->slack));
    uint64_t busy, there = in_reach(pool, need->cap);
    if (there >= count)
        return BLY_OK;
    there += steal(pool, count - there, need, &busy);
    if (there >= count)
        return BLY_OK;
    need->cap = blyi_lesser(most, blyi_budget(pool, need->live, blyi_budget_wait_slack(pool)));
    if (in_reach(pool, need->cap) >= count)
        return BLY_OK;
    need->cap = most;
    need->queued = need->arena != NULL && need->arena != need->hole->arena &&
                   blyi_budget_is_queued(pool, busy * pool->granule);
    if (need->queued && in_reach(pool, most) >= count &&
        blyi_budget_may_grow(pool, (count - there) * pool->granule))
        return BLY_OK;
    need->is_last = in_reach(pool, most) < count;
    if (need->arena != NULL)
        return BLY_E_TIMEOUT;
    blyi_handles_shorten(pool, count - there, need->is_last);
    return need->is_last ? BLY_E_NO_MEMORY : BLY_OK;
}

/* Handles went whole, and with the last one more than was meant: that comes back. */
static void refill(bly_pool *pool, uint64_t least)
{
    struct blyi_chunk *chunk;
    uint64_t count = pool->is.held < least ? (least - pool->is.held) / pool->granule : 0;
    for (uint64_t n; count > 0; count -= n) {
        n = blyi_lesser(count, BLYI_HANDLE_MOST);
        if (blyi_chunk_add(pool, n, &chunk) != BLY_OK)
            break;
        blyi_spare_put(pool, chunk);
    }
}

/* Granules of what will be handed out. */
static uint64_t own(const bly_pool *pool, const struct blyi_need *need)
{
    return (need->to - need->from) / pool->granule;
}

/* Whether a spare handle is at most half as long as a fresh one would be, and others make up the
 * rest: they had better become one, or moving to and fro cuts everything into the shortest. */
static bool is_cut_up(const bly_pool *pool, const struct blyi_chunk *chunk, uint64_t fresh)
{
    return UINT64_C(2) * chunk->count <= fresh &&
           pool->is.spare + chunk->count * pool->granule >= fresh * pool->granule;
}

/* The spare handle and shorter ones go, to make room for one of `count` granules. */
static void drop_short(bly_pool *pool, struct blyi_chunk *chunk, uint64_t count)
{
    uint64_t got = 0;
    while (chunk != NULL) {
        got += chunk->count;
        blyi_chunk_drop(pool, chunk);
        chunk = got < count ? blyi_spare_take(pool, count) : NULL;
    }
}

/* A handle of at most `count` granules: a spare one, or a fresh one in place of others. */
static bly_status obtain(bly_pool *pool, uint64_t count, const struct blyi_need *need,
                         struct blyi_chunk **out)
{
    uint64_t held = pool->is.held, fresh = blyi_handle_length(pool, own(pool, need), count);
    struct blyi_chunk *chunk = blyi_spare_take(pool, count);
    if (chunk != NULL && (need->is_dear || !is_cut_up(pool, chunk, fresh))) {
        *out = chunk;
        return BLY_OK;
    }
    drop_short(pool, chunk, fresh);
    while (pool->is.held + fresh * pool->granule > need->cap &&
           (chunk = blyi_spare_take(pool, BLYI_HANDLE_MOST)) != NULL)
        blyi_chunk_drop(pool, chunk);
    bly_status status = blyi_chunk_add(pool, fresh, out);
    if (status == BLY_OK) /* what was held from the start stays held */
        refill(pool, blyi_lesser(held, pool->opts.prefill));
    return status;
}

/* A handle of just so many. */
static bly_status obtain_own(bly_pool *pool, uint64_t count, uint64_t cap, struct blyi_chunk **out)
{
    struct blyi_chunk *chunk;
    uint64_t held = pool->is.held;
    *out = blyi_spare_take_just(pool, count);
    if (*out != NULL)
        return BLY_OK;
    while (pool->is.held + count * pool->granule > cap &&
           (chunk = blyi_spare_take(pool, BLYI_HANDLE_MOST)) != NULL)
        blyi_chunk_drop(pool, chunk);
    bly_status status = blyi_chunk_add(pool, count, out);
    if (status == BLY_OK)
        refill(pool, blyi_lesser(held, pool->opts.prefill));
    return status;
}

/* Maps `count` granules from `at` on that are not mapped. */
static bly_status fill(bly_pool *pool, struct blyi_need *need, uint64_t at, uint64_t count)
{
    bool shared = need->hole->extent->base + at * pool->granule < need->from;
    while (count > 0) {
        bly_status status;
        uint64_t most = shared ? 1 : count; /* a granule that others share stays alone */
        struct blyi_chunk *chunk;
        status = need->own ? obtain_own(pool, count, need->cap, &chunk)
                           : obtain(pool, most, need, &chunk);
        if (status == BLY_OK) {
            status = blyi_chunk_map(pool, chunk, need->hole, at);
            if (status != BLY_OK)
                blyi_spare_put(pool, chunk);
        }
        if (status != BLY_OK)
            return status;
        at += chunk->count;
        count -= chunk->count;
        shared = false;
    }
    return BLY_OK;
}

/* Granules from `at` to `end`, at most, that are not mapped. */
static uint64_t gap(const struct blyi_extent *extent, uint64_t at, uint64_t end)
{
    uint64_t first = at;
    while (at < end && extent->chunks[at] == NULL)
        at++;
    return at - first;
}

/* A little more behind a block that has grown at the end of its hole, while that is within the
 * budget. It is idle, and may be taken elsewhere. */
static void map_ahead(bly_pool *pool, const struct blyi_need *need, uint64_t at, uint64_t grown)
{
    struct blyi_span *hole = need->hole;
    uint64_t ahead = pool->policy.ahead, most = blyi_handle_ahead(pool, own(pool, need));
    uint64_t budget = blyi_budget(pool, need->live, pool->policy.slack);
    uint64_t end = (hole->address + hole->size - hole->extent->base) / pool->granule;
    uint64_t count = (grown + ahead - 1) / ahead * ahead - grown;
    if (need->end != 0 || pool->is.spare > 0 || at >= end)
        return;
    count = gap(hole->extent, at,
                at + blyi_lesser(blyi_lesser(count, in_reach(pool, budget)), end - at));
    while (count > 0) {
        struct blyi_chunk *chunk;
        if (blyi_chunk_add(pool, blyi_lesser(count, most), &chunk) != BLY_OK)
            break;
        if (blyi_chunk_map(pool, chunk, hole, at) != BLY_OK) {
            blyi_spare_put(pool, chunk);
            break;
        }
        at += chunk->count;
        count -= chunk->count;
    }
    blyi_fail_clear();
}

bly_status blyi_granules_cover(bly_pool *pool, struct blyi_need *need)
{
    const struct blyi_extent *extent = need->hole->extent;
    uint64_t first = (blyi_align_down(need->from, pool->granule) - extent->base) / pool->granule;
    uint64_t end = (blyi_align_up(need->to, pool->granule) - extent->base) / pool->granule;
    uint64_t missing = 0, left, most = pool->limit;
    for (uint64_t i = first; i < end; i++)
        missing += extent->chunks[i] == NULL;
    left = missing;
    bly_status status = provide(pool, left, need, most);
    for (uint64_t at = first; status == BLY_OK && at < end;) {
        uint64_t count = gap(extent, at, end);
        if (count == 0) {
            at = extent->chunks[at]->first + extent->chunks[at]->count;
            continue;
        }
        uint64_t before = need->hole->mapped;
        status = fill(pool, need, at, count);
        pool->is.maps += need->hole->mapped > before;
        left -= (need->hole->mapped - before) / pool->granule;
        if (status != BLY_E_NO_MEMORY && status != BLY_E_CAP)
            continue;
        most = blyi_lesser(most, pool->is.held); /* the card has no more */
        bly_status other = provide(pool, left, need, most);
        if (other != BLY_E_NO_MEMORY)
            status = other;
    }
    if (status == BLY_OK)
        map_ahead(pool, need, end, missing);
    return status;
}

static void drop_spare(bly_pool *pool, uint64_t keep)
{
    struct blyi_chunk *chunk;
    while (pool->is.held > keep && (chunk = blyi_spare_take(pool, BLYI_HANDLE_MOST)) != NULL)
        blyi_chunk_drop(pool, chunk);
}

void blyi_granules_give_old(bly_pool *pool, uint32_t before, uint64_t keep)
{
    struct blyi_need nothing = {.hole = NULL};
    uint64_t busy = 0, least = blyi_lesser(pool->is.held, keep);
    blyi_recent_join_all(pool);
    if ((int32_t)(before - pool->spare_since) > 0)
        drop_spare(pool, keep);
    BLYI_LIST_FOR_SAFE(node, &pool->idle)
    {
        struct blyi_span *hole = BLYI_CONTAINER(node, struct blyi_span, idle);
        if ((int32_t)(before - hole->idle_since) <= 0 || pool->is.held <= keep)
            break;
        (void)steal_from(pool, hole, (pool->is.held - keep) / pool->granule, &nothing, &busy);
        drop_spare(pool, keep);
    }
    refill(pool, least);
}

void blyi_granules_give(bly_pool *pool, uint64_t keep, uint64_t least)
{
    struct blyi_need nothing = {.hole = NULL};
    uint64_t busy;
    least = blyi_lesser(pool->is.held, blyi_lesser(keep, least));
    do
        drop_spare(pool, keep);
    while (pool->is.held > keep &&
           steal(pool, (pool->is.held - keep + pool->granule - 1) / pool->granule, &nothing,
                 &busy) > 0);
    refill(pool, least);
}

static void drop_extent(bly_pool *pool, struct blyi_extent *extent)
{
    for (uint64_t i = 0; i < extent->n; i++) {
        struct blyi_chunk *chunk = extent->chunks[i];
        if (chunk == NULL)
            continue;
        blyi_told_chunk(pool, chunk, false);
        pool->backend->ops->unmap(pool->backend, extent->base + chunk->first * pool->granule,
                                  chunk->count * pool->granule);
        i = chunk->first + chunk->count - 1;
        chunk->extent = NULL;
        blyi_chunk_drop(pool, chunk);
    }
}

void blyi_granules_drop(bly_pool *pool)
{
    struct blyi_chunk *chunk;
    while ((chunk = blyi_spare_take(pool, BLYI_HANDLE_MOST)) != NULL)
        blyi_chunk_drop(pool, chunk);
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++)
            if (arena->zones[i] != NULL)
                BLYI_LIST_FOR(at, &arena->zones[i]->extents)
        drop_extent(pool, BLYI_CONTAINER(at, struct blyi_extent, link));
    }
}

bly_status blyi_granules_prefill(bly_pool *pool, uint64_t bytes)
{
    uint64_t count = (bytes + pool->granule - 1) / pool->granule;
    bly_status status = BLY_OK;
    while (status == BLY_OK && count > 0) {
        struct blyi_chunk *chunk;
        uint64_t n = blyi_lesser(count, pool->policy.ahead_handle);
        status = blyi_chunk_add(pool, n, &chunk);
        if (status == BLY_OK)
            blyi_spare_put(pool, chunk);
        count -= n;
    }
    return status;
}
