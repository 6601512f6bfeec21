/* SPDX-License-Identifier: Apache-2.0
 *
 * recent.c - freed spans become holes.
 */
#include "pool/recent.h"

#include "pool/chunks.h"
#include "pool/pages.h"

/* Marks the granules that a free touches. */
static void mark_granules(const bly_pool *pool, const struct blyi_span *span)
{
    struct blyi_extent *extent = span->extent;
    uint64_t first = (span->address - extent->base) / pool->granule;
    uint64_t last = (span->address + span->size - 1 - extent->base) / pool->granule;
    for (uint64_t i = first; i <= last; i++)
        if (extent->marks[i] < span->freed) /* a neighbour may have come in between */
            extent->marks[i] = span->freed;
}

/* Takes a hole and the one behind it together; both are in no index. */
static void join(bly_pool *pool, struct blyi_span *hole, struct blyi_span *next)
{
    bool all = hole->mapped == hole->size, all_next = next->mapped == next->size;
    uint64_t left = all ? hole->size + next->ends[0] : hole->ends[0];
    uint64_t right = all_next ? next->size + hole->ends[1] : next->ends[1];
    __atomic_store_n(&hole->size, hole->size + next->size, __ATOMIC_RELAXED);
    hole->mapped += next->mapped;
    hole->ends[0] = left;
    hole->ends[1] = right;
    hole->after = next->after;
    if (next->after != NULL)
        next->after->before = hole;
    blyi_list_remove(&next->idle);
    blyi_record_give(pool, next);
}

/* A freed span becomes a hole, and one with its neighbours. */
static void become_hole(struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    blyi_pages_leave(span);
    mark_granules(pool, span);
    blyi_chunks_leave(span);
    span->hole = true;
    span->mapped = span->ends[0] = span->ends[1] = span->size;
    struct blyi_span *before = span->before, *after = span->after;
    if (before != NULL && before->hole) {
        blyi_hole_leave(before);
        join(pool, before, span);
        span = before;
    }
    if (after != NULL && after->hole) {
        blyi_hole_leave(after);
        join(pool, span, after);
    }
    blyi_hole_enter(span);
    blyi_list_remove(&span->idle);
    if (span->mapped >= pool->granule)
        blyi_hole_rest(span);
}

void blyi_recent_put_slow(struct blyi_span *span)
{
    struct blyi_zone *zone = span->extent->zone;
    if (span->slab != NULL) {
        become_hole(span);
        return;
    }
    blyi_recent_join(zone);
    zone->recent = span;
}

void blyi_recent_join(struct blyi_zone *zone)
{
    struct blyi_span *span = zone->recent;
    if (span == NULL)
        return;
    zone->recent = NULL;
    become_hole(span);
}

void blyi_recent_join_all(bly_pool *pool)
{
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++)
            if (arena->zones[i] != NULL)
                blyi_recent_join(arena->zones[i]);
    }
}
