/* SPDX-License-Identifier: Apache-2.0
 *
 * own.c - blocks with an extent and a handle each: found, made, ended.
 */
#include "pool/own.h"

#include "base/assert.h"
#include "pool/chunks.h"
#include "pool/pages.h"

#define PROBES  64u /* of a bin: below 64 granules all of one have one size */
#define DROPPED 2u  /* empty extents, where one is made: so their number stays bounded */

void blyi_own_round(const bly_pool *pool, struct blyi_want *want)
{
    want->size = blyi_align_up(want->size, pool->granule);
    want->align = want->align > pool->granule ? want->align : pool->granule;
}

/* An entry of just the wanted size. */
static bool find(const struct blyi_runs *runs, const struct blyi_want *want,
                 struct blyi_place *place)
{
    unsigned left = PROBES;
    const struct blyi_run_link *link = runs->heads[blyi_runs_bin(want->size)];
    for (; link != NULL && left > 0; link = link->next, left--) {
        struct blyi_span *hole = blyi_run_span(link);
        if (hole->size != want->size || (hole->address & (want->align - 1)) != 0)
            continue;
        *place = (struct blyi_place){.hole = hole, .address = hole->address, .run = hole->size};
        return true;
    }
    return false;
}

bool blyi_own_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                  struct blyi_place *place)
{
    return find(&zone->closed, want, place);
}

bool blyi_own_room(const struct blyi_zone *zone, const struct blyi_want *want,
                   struct blyi_place *place)
{
    return find(&zone->rooms, want, place);
}

bly_status blyi_own_grow(struct blyi_zone *zone, const struct blyi_want *want)
{
    for (unsigned i = 0; i < DROPPED; i++) {
        uint32_t bin = blyi_runs_up(&zone->rooms, 0);
        if (bin >= BLYI_RUNS_BINS)
            break;
        struct blyi_span *hole = blyi_run_span(zone->rooms.heads[bin]);
        bly_assert(hole->mapped == 0);
        blyi_hole_leave(hole);
        blyi_zone_remove(hole->extent);
    }
    return blyi_zone_add(zone, want->size, want->align);
}

void blyi_own_release(struct blyi_span *span)
{
    struct blyi_extent *extent = span->extent;
    bly_pool *pool = span->arena->pool;
    struct blyi_chunk *chunk = extent->chunks[0];
    bly_assert(extent->zone->own && chunk->count == extent->n);
    blyi_pages_leave(span);
    blyi_chunks_leave(span);
    blyi_chunk_unmap(pool, chunk, span);
    blyi_chunk_drop(pool, chunk);
    pool->is.unmaps++;
    span->hole = true;
    blyi_zone_remove(extent);
}
