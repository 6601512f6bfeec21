/* SPDX-License-Identifier: Apache-2.0
 *
 * zone.c - addresses of an arena: extents, and the holes in them.
 */
#include <inttypes.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"
#include "base/stamp.h"
#include "pool/chunks.h"
#include "pool/pages.h"
#include "pool/pool.h"

#define FIRST_SHARE 16u        /* of the card, as long as there are no more zones, */
#define FIRST_LEAST (4 * GiB)  /* at least: addresses of a zone at first; */
#define LATER_LEAST (64 * MiB) /* of one of many */
#define NS_IN_MS    1000000u

bly_status blyi_zone_make(struct blyi_arena *arena, uint32_t index, struct blyi_zone **out)
{
    const bly_pool *pool = arena->pool;
    struct blyi_zone *zone = blyi_host_calloc(1, sizeof *zone);
    if (zone == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to describe an arena",
                         arena->pool->name);
    zone->arena = arena;
    zone->region = &arena->pool->regions[index % BLY_POOL_REGIONS];
    zone->own = index == blyi_zone_index(pool, index % BLY_POOL_REGIONS, true);
    blyi_list_init(&zone->extents);
    arena->pool->is.metadata += sizeof *zone;
    arena->pool->n_zones++;
    arena->zones[index] = zone;
    *out = zone;
    return BLY_OK;
}

/* Others may look at a record while it changes (arena.h). */
static void place(struct blyi_span *span, uintptr_t address, uint64_t size)
{
    __atomic_store_n(&span->address, address, __ATOMIC_RELAXED);
    __atomic_store_n(&span->size, size, __ATOMIC_RELAXED);
}

static struct blyi_span *make_hole(struct blyi_extent *extent, uintptr_t address, uint64_t size)
{
    struct blyi_arena *arena = extent->zone->arena;
    struct blyi_span *hole = blyi_record_take(arena->pool);
    place(hole, address, size);
    __atomic_store_n(&hole->slab, NULL, __ATOMIC_RELAXED);
    hole->arena = arena;
    hole->extent = extent;
    hole->hole = true;
    hole->waits = false;
    hole->before = hole->after = NULL;
    hole->mapped = hole->ends[0] = hole->ends[1] = 0;
    return hole;
}

/* A little of the card, and less the more zones there are: that may be thousands. */
static uint64_t first_wish(const bly_pool *pool)
{
    uint64_t first = pool->total / FIRST_SHARE;
    first = first > FIRST_LEAST ? first : FIRST_LEAST;
    if (pool->n_zones > FIRST_SHARE)
        first = first / pool->n_zones * FIRST_SHARE;
    return first > LATER_LEAST ? first : LATER_LEAST;
}

/* Addresses for an extent: as much as is wished, `least` at least. */
static bly_status reserve(const struct blyi_zone *zone, uint64_t wish, uint64_t least,
                          uint64_t *size, uintptr_t *base)
{
    bly_pool *pool = zone->arena->pool;
    const struct blyi_backend_ops *ops = pool->backend->ops;
    char text[BLYI_SIZE_TEXT];
    bly_status status = BLY_E_NO_MEMORY;
    for (wish = blyi_align_up(wish, pool->granule); wish > least;
         wish = blyi_align_down(wish / 2, pool->granule)) {
        status = ops->reserve(pool->backend, wish, base);
        if (status != BLY_E_NO_MEMORY)
            break;
    }
    if (status == BLY_E_NO_MEMORY) {
        wish = least;
        status = ops->reserve(pool->backend, wish, base);
    } else if (status == BLY_OK) {
        blyi_fail_clear();
    }
    *size = wish;
    if (status == BLY_E_NO_MEMORY)
        return blyi_fail(BLY_E_SYSTEM,
                         "pool %s: no addresses are left for %s: its arenas have reserved what the "
                         "process has",
                         pool->name, blyi_size_text(least, text));
    return status;
}

static void free_extent(struct blyi_extent *extent)
{
    if (extent == NULL)
        return;
    blyi_host_free(extent->chunks);
    blyi_host_free(extent->marks);
    blyi_host_free(extent);
}

/* In addresses that are reserved. NULL: no host memory. */
static struct blyi_extent *make_extent(struct blyi_zone *zone, uintptr_t from, uint64_t reserved,
                                       uintptr_t base, uint64_t bytes)
{
    struct blyi_extent *extent = blyi_host_calloc(1, sizeof *extent);
    if (extent == NULL)
        return NULL;
    extent->zone = zone;
    extent->from = from;
    extent->reserved = reserved;
    extent->base = base;
    extent->n = bytes / zone->arena->pool->granule;
    extent->chunks = blyi_host_calloc(extent->n, sizeof(void *));
    extent->marks = blyi_host_calloc(extent->n, sizeof *extent->marks);
    if (extent->chunks != NULL && extent->marks != NULL && blyi_pages_cover(base, bytes) == BLY_OK)
        return extent;
    free_extent(extent);
    return NULL;
}

static bly_status no_host_memory(const bly_pool *pool)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to describe addresses",
                     pool->name);
}

static uint64_t described_by(const struct blyi_extent *extent)
{
    return sizeof *extent + extent->n * (sizeof(void *) + sizeof(blyi_mark));
}

/* `size` bytes at a multiple of `align`; all of what is reserved where that is UINT64_MAX. */
static bly_status add_extent(struct blyi_zone *zone, uint64_t wish, uint64_t least, uint64_t size,
                             uint64_t align)
{
    bly_pool *pool = zone->arena->pool;
    uint64_t reserved;
    uintptr_t from;
    if (!blyi_records_need(pool, 1))
        return no_host_memory(pool);
    bly_status status = reserve(zone, wish, least, &reserved, &from);
    if (status != BLY_OK)
        return status;
    uintptr_t base = blyi_align_up(from, align);
    uint64_t bytes = size == UINT64_MAX ? reserved : size;
    struct blyi_extent *extent = make_extent(zone, from, reserved, base, bytes);
    if (extent == NULL) {
        pool->backend->ops->unreserve(pool->backend, from, reserved);
        return no_host_memory(pool);
    }
    blyi_list_push_back(&zone->extents, &extent->link);
    zone->reserved += reserved;
    pool->is.metadata += described_by(extent);

    struct blyi_span *hole = make_hole(extent, base, bytes);
    extent->leftmost = hole;
    blyi_hole_enter(hole);
    return BLY_OK;
}

bly_status blyi_zone_grow(struct blyi_zone *zone, uint64_t size)
{
    bly_pool *pool = zone->arena->pool;
    uint64_t first = first_wish(pool), wish = first > zone->reserved ? first : zone->reserved;
    return add_extent(zone, wish, blyi_align_up(size, pool->granule), UINT64_MAX, pool->granule);
}

bly_status blyi_zone_add(struct blyi_zone *zone, uint64_t size, uint64_t align)
{
    uint64_t granule = zone->arena->pool->granule;
    uint64_t least = align > granule ? size + align - granule : size;
    return add_extent(zone, least, least, size, align > granule ? align : granule);
}

void blyi_zone_remove(struct blyi_extent *extent)
{
    struct blyi_zone *zone = extent->zone;
    bly_pool *pool = zone->arena->pool;
    blyi_list_remove(&extent->link);
    zone->reserved -= extent->reserved;
    pool->is.metadata -= described_by(extent);
    blyi_record_give(pool, extent->leftmost);
    pool->backend->ops->unreserve(pool->backend, extent->from, extent->reserved);
    free_extent(extent);
}

void blyi_zone_drop(struct blyi_zone *zone)
{
    bly_pool *pool = zone->arena->pool;
    BLYI_LIST_FOR_SAFE(node, &zone->extents)
    {
        struct blyi_extent *extent = BLYI_CONTAINER(node, struct blyi_extent, link);
        for (struct blyi_span *span = extent->leftmost; span != NULL; span = span->after)
            if (!span->hole) /* alive, or a slab with free slots */
                blyi_pages_leave(span);
        pool->backend->ops->unreserve(pool->backend, extent->from, extent->reserved);
        free_extent(extent);
    }
    blyi_host_free(zone);
}

void blyi_hole_enter(struct blyi_span *hole)
{
    struct blyi_zone *zone = hole->extent->zone;
    zone->region->idle += hole->mapped;
    if (hole->mapped == hole->size) {
        blyi_runs_add(&zone->closed, &hole->links[0], hole->size);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if (hole->ends[i] != 0)
            blyi_runs_add(&zone->open, &hole->links[i], hole->ends[i]);
    blyi_runs_add(&zone->rooms, &hole->links[2], hole->size);
}

void blyi_hole_leave(struct blyi_span *hole)
{
    struct blyi_zone *zone = hole->extent->zone;
    zone->region->idle -= hole->mapped;
    if (hole->mapped == hole->size) {
        blyi_runs_remove(&zone->closed, &hole->links[0]);
        return;
    }
    for (unsigned i = 0; i < 2; i++)
        if (hole->ends[i] != 0)
            blyi_runs_remove(&zone->open, &hole->links[i]);
    blyi_runs_remove(&zone->rooms, &hole->links[2]);
}

/* End of the mapped stretch that begins at `from`, at most `to`. */
static uintptr_t run_up(const struct blyi_extent *extent, uintptr_t from, uintptr_t to)
{
    uint64_t granule = extent->zone->arena->pool->granule;
    while (from < to) {
        const struct blyi_chunk *chunk = extent->chunks[(from - extent->base) / granule];
        if (chunk == NULL)
            return from;
        from = extent->base + (chunk->first + chunk->count) * granule;
    }
    return to;
}

/* Begin of the mapped stretch that ends at `to`, at least `from`. */
static uintptr_t run_down(const struct blyi_extent *extent, uintptr_t from, uintptr_t to)
{
    uint64_t granule = extent->zone->arena->pool->granule;
    while (from < to) {
        const struct blyi_chunk *chunk = extent->chunks[(to - 1 - extent->base) / granule];
        if (chunk == NULL)
            return to;
        to = extent->base + chunk->first * granule;
    }
    return from;
}

void blyi_hole_measure(struct blyi_span *hole)
{
    uintptr_t end = hole->address + hole->size;
    if (hole->mapped == hole->size) {
        hole->ends[0] = hole->ends[1] = hole->size;
        return;
    }
    hole->ends[0] = run_up(hole->extent, hole->address, end) - hole->address;
    hole->ends[1] = end - run_down(hole->extent, hole->address, end);
}

static uint64_t mapped_in(const struct blyi_extent *extent, uintptr_t from, uintptr_t to)
{
    uint64_t granule = extent->zone->arena->pool->granule, sum = 0;
    while (from < to) {
        uintptr_t end = run_up(extent, from, to);
        sum += end - from;
        from = end < to ? end + granule : to; /* runs end at granules */
    }
    return sum;
}

/* A new record for the part of a hole below `address`, which becomes the rest of it. */
static struct blyi_span *split(struct blyi_span *hole, uintptr_t address)
{
    struct blyi_span *left = make_hole(hole->extent, hole->address, address - hole->address);
    left->before = hole->before;
    left->after = hole;
    if (hole->before != NULL)
        hole->before->after = left;
    else
        hole->extent->leftmost = left;
    hole->before = left;
    place(hole, address, hole->size - left->size);
    return left;
}

void blyi_hole_rest(struct blyi_span *hole)
{
    const bly_pool *pool = hole->arena->pool;
    hole->idle_since = pool->tick;
    hole->idle_ms = (uint32_t)((blyi_stamp_ns() - pool->made_ns) / NS_IN_MS);
    blyi_list_push_back(&hole->arena->pool->idle, &hole->idle);
}

/* Keeps a hole among those with granules to spare where it has one. */
static void settle_idle(struct blyi_span *hole)
{
    bly_pool *pool = hole->arena->pool;
    bool listed = !blyi_list_empty(&hole->idle);
    if (hole->mapped < pool->granule && listed)
        blyi_list_remove(&hole->idle);
}

struct blyi_span *blyi_hole_carve(struct blyi_span *hole, uintptr_t address, uint64_t size)
{
    uintptr_t end = hole->address + hole->size;
    bool rest_left = address > hole->address, rest_right = address + size < end;
    struct blyi_span *span = hole;
    blyi_hole_leave(hole);
    if (rest_left) {
        struct blyi_span *left = split(hole, address);
        left->mapped =
            rest_right ? mapped_in(left->extent, left->address, address) : hole->mapped - size;
        hole->mapped -= left->mapped;
        blyi_hole_measure(left);
        if (!blyi_list_empty(&hole->idle)) /* as long idle as what it was part of */
            blyi_list_insert_before(&hole->idle, &left->idle);
        left->idle_since = hole->idle_since;
        left->idle_ms = hole->idle_ms;
        settle_idle(left);
        blyi_hole_enter(left);
    }
    if (rest_right) {
        span = split(hole, address + size);
        hole->mapped -= size;
        hole->ends[0] = hole->ends[0] > size && !rest_left ? hole->ends[0] - size : 0;
        if (rest_left)
            blyi_hole_measure(hole);
        else if (hole->ends[1] > hole->size)
            hole->ends[1] = hole->size;
        settle_idle(hole);
        blyi_hole_enter(hole);
    } else {
        blyi_list_remove(&hole->idle);
    }
    span->hole = false;
    blyi_chunks_hold(span);
    return span;
}
