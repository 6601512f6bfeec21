/* SPDX-License-Identifier: Apache-2.0
 *
 * audit.c - whether all that must hold does (docs/design/pool.md).
 */
#include <inttypes.h>
#include "base/fail.h"
#include "pool/front.h"
#include "pool/pages.h"
#include "pool/pool.h"

struct sums {
    uint64_t spans, recent, waiting, blocks, blocks_live, mapped, chunks, loose;
    struct blyi_region regions[BLY_POOL_REGIONS]; /* held, idle */
    uint64_t touched, lain_in; /* handles, by the spans in them and by themselves */
};

static bly_status broken(const bly_pool *pool, const char *what, uint64_t at, uint64_t a,
                         uint64_t b)
{
    return blyi_fail(BLY_E_STATE, "pool %s: %s at 0x%" PRIx64 ": %" PRIu64 ", not %" PRIu64,
                     pool->name, what, at, a, b);
}

static uint64_t mapped_in(const struct blyi_extent *extent, uintptr_t from, uintptr_t to)
{
    uint64_t granule = extent->zone->arena->pool->granule, sum = 0;
    while (from < to) {
        uintptr_t end = extent->base + (from - extent->base) / granule * granule + granule;
        end = end < to ? end : to;
        if (extent->chunks[(from - extent->base) / granule] != NULL)
            sum += end - from;
        from = end;
    }
    return sum;
}

static bool is_in(const struct blyi_runs *runs, const struct blyi_run_link *link, uint64_t size)
{
    if (link->bin != blyi_runs_bin(size))
        return false;
    for (const struct blyi_run_link *at = runs->heads[link->bin]; at != NULL; at = at->next)
        if (at == link)
            return true;
    return false;
}

static bly_status audit_hole(const bly_pool *pool, const struct blyi_span *hole)
{
    const struct blyi_zone *zone = hole->extent->zone;
    uintptr_t end = hole->address + hole->size;
    uint64_t mapped = mapped_in(hole->extent, hole->address, end);
    if (mapped != hole->mapped)
        return broken(pool, "mapped bytes of a hole", hole->address, hole->mapped, mapped);
    struct blyi_span copy = *hole;
    blyi_hole_measure(&copy);
    for (unsigned i = 0; i < 2; i++)
        if (copy.ends[i] != hole->ends[i])
            return broken(pool, i ? "right run" : "left run", hole->address, hole->ends[i],
                          copy.ends[i]);
    bool all = mapped == hole->size, in = true;
    if (all)
        in = is_in(&zone->closed, &hole->links[0], hole->size);
    for (unsigned i = 0; !all && i < 2; i++)
        if (hole->ends[i] > 0)
            in = in && is_in(&zone->open, &hole->links[i], hole->ends[i]);
    if (!in || (!all && !is_in(&zone->rooms, &hole->links[2], hole->size)))
        return broken(pool, "index of a hole", hole->address, hole->links[0].bin,
                      hole->links[1].bin);
    bool listed = hole->idle.next != &hole->idle;
    if (hole->mapped >= pool->granule && !listed)
        return broken(pool, "hole with a granule, not listed", hole->address, 0, 1);
    return BLY_OK;
}

static bly_status audit_chunks(const bly_pool *pool, const struct blyi_extent *extent,
                               struct sums *sums)
{
    for (uint64_t i = 0; i < extent->n; i++) {
        const struct blyi_chunk *chunk = extent->chunks[i];
        if (chunk == NULL)
            continue;
        if (chunk->extent != extent || chunk->first > i || i >= chunk->first + chunk->count)
            return broken(pool, "granule of another handle", extent->base + i * pool->granule,
                          chunk->first, i);
        sums->chunks += pool->granule;
        sums->regions[extent->zone->region - pool->regions].held += pool->granule;
        sums->loose += chunk->n_spans == 0 ? pool->granule : 0;
        sums->lain_in += chunk->first == i ? chunk->n_spans : 0;
    }
    return BLY_OK;
}

/* Handles that a span lies in, as far as they know it. */
static uint64_t handles_of(const struct blyi_span *span)
{
    const struct blyi_extent *extent = span->extent;
    uint64_t granule = extent->zone->arena->pool->granule, count = 0;
    uint64_t last = (span->address + span->size - 1 - extent->base) / granule;
    for (uint64_t i = (span->address - extent->base) / granule; i <= last;
         i = extent->chunks[i]->first + extent->chunks[i]->count)
        count += extent->chunks[i]->n_spans > 0;
    return count;
}

static bly_status audit_extent(const bly_pool *pool, const struct blyi_extent *extent,
                               struct sums *sums)
{
    uintptr_t at = extent->base;
    const struct blyi_span *before = NULL;
    for (const struct blyi_span *span = extent->leftmost; span != NULL; span = span->after) {
        if (span->address != at || span->before != before || span->extent != extent ||
            span->size == 0)
            return broken(pool, "spans do not tile", span->address, span->address, at);
        if (span->hole) {
            bly_status status = audit_hole(pool, span);
            if (status != BLY_OK)
                return status;
            if (before != NULL && before->hole)
                return broken(pool, "holes side by side", at, 2, 1);
            sums->mapped += span->mapped;
            sums->regions[extent->zone->region - pool->regions].idle += span->mapped;
            if (extent->zone->own && span->mapped != 0 && extent->chunks[0]->count != extent->n)
                return broken(pool, "granules in the handle of a block of its own", at,
                              extent->chunks[0]->count, extent->n);
        } else {
            uint64_t mapped = mapped_in(extent, at, at + span->size);
            if (mapped != span->size)
                return broken(pool, "span without memory", at, mapped, span->size);
            if (blyi_pages_find(at) != span)
                return broken(pool, "span not in the table", at, 0, 1);
            sums->touched += handles_of(span);
            bool recent = span == extent->zone->recent;
            bool block = span->slab == NULL && !span->waits && !recent;
            *(recent ? &sums->recent : &sums->spans) += span->size;
            sums->waiting += span->waits ? span->size : 0;
            sums->blocks += block;
            sums->blocks_live += block ? span->size : 0;
        }
        at += span->size;
        before = span;
    }
    if (at != extent->base + extent->n * pool->granule)
        return broken(pool, "end of an extent", extent->base, at, extent->n * pool->granule);
    return audit_chunks(pool, extent, sums);
}

static bly_status audit_locked(const bly_pool *pool)
{
    struct sums sums = {0};
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        const struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        for (unsigned i = 0; i < BLYI_ZONES; i++) {
            if (arena->zones[i] == NULL)
                continue;
            BLYI_LIST_FOR(at, &arena->zones[i]->extents)
            {
                bly_status status =
                    audit_extent(pool, BLYI_CONTAINER(at, struct blyi_extent, link), &sums);
                if (status != BLY_OK)
                    return status;
            }
        }
    }
    const struct blyi_pool_figures *is = &pool->is;
    const struct {
        const char *what;
        uint64_t told, is;
    } figures[] = {
        {"waiting spans", is->waiting, sums.waiting},
        {"live spans", is->live, sums.spans - sums.waiting},
        {"blocks", is->allocs - is->frees, sums.blocks},
        {"bytes of blocks", is->blocks_live, sums.blocks_live},
        {"handles", is->held, sums.chunks + is->spare},
        {"handles that no span lies in", is->loose, sums.loose},
        {"spans in handles", sums.lain_in, sums.touched},
        {"spans and holes", is->held, sums.spans + sums.recent + sums.mapped + is->spare},
    };
    for (unsigned i = 0; i < BLYI_COUNT(figures); i++)
        if (figures[i].told != figures[i].is)
            return broken(pool, figures[i].what, 0, figures[i].told, figures[i].is);
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++) {
        const struct blyi_region *told = &pool->regions[i], *sum = &sums.regions[i];
        if (told->held != sum->held)
            return broken(pool, "handles of a region", i, told->held, sum->held);
        if (told->idle != sum->idle)
            return broken(pool, "holes of a region", i, told->idle, sum->idle);
    }
    return BLY_OK;
}

bly_status bly_pool_audit(bly_pool *pool)
{
    bly_status status = blyi_pool_check(pool);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&pool->lock);
    status = audit_locked(pool);
    blyi_lock_drop(&pool->lock);
    return status == BLY_OK ? blyi_front_audit(pool->front) : status;
}
