/* SPDX-License-Identifier: Apache-2.0
 *
 * chunks.c - handles: from the card and back, mapped and spare.
 */
#include "pool/chunks.h"

#include "base/assert.h"
#include "base/fail.h"
#include "pool/told.h"

static void set_held(bly_pool *pool, uint64_t held)
{
    __atomic_store_n(&pool->is.held, held, __ATOMIC_RELAXED);
    if (held > pool->is.held_peak)
        pool->is.held_peak = held;
}

/* How many of so many bytes would come out of the reserve. */
static uint64_t out_of_reserve(const bly_pool *pool, uint64_t bytes)
{
    struct blyi_backend_info info;
    if (likely(pool->reserve == 0))
        return 0;
    pool->backend->ops->describe(pool->backend, &info);
    uint64_t beside = info.free > pool->reserve ? info.free - pool->reserve : 0;
    return bytes > beside ? bytes - beside : 0;
}

bly_status blyi_chunk_add(bly_pool *pool, uint64_t count, struct blyi_chunk **out)
{
    struct blyi_chunk *chunk = blyi_chunk_take(pool);
    if (chunk == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to describe a handle",
                         pool->name);
    const struct blyi_backend_ops *ops = pool->backend->ops;
    uint64_t reserved = out_of_reserve(pool, count * pool->granule);
    if (unlikely(reserved > 0 && !pool->reserve_open)) {
        blyi_chunk_give(pool, chunk);
        return BLY_E_NO_MEMORY;
    }
    bly_status status = ops->create(pool->backend, count * pool->granule, &chunk->handle);
    if (status != BLY_OK) {
        blyi_chunk_give(pool, chunk);
        return status;
    }
    pool->of_reserve += reserved;
    chunk->extent = NULL;
    chunk->count = (uint32_t)count;
    set_held(pool, pool->is.held + count * pool->granule);
    *out = chunk;
    return BLY_OK;
}

void blyi_chunk_drop(bly_pool *pool, struct blyi_chunk *chunk)
{
    bly_assert(chunk->extent == NULL);
    pool->backend->ops->release(pool->backend, chunk->handle);
    set_held(pool, pool->is.held - chunk->count * pool->granule);
    blyi_chunk_give(pool, chunk);
}

bly_status blyi_chunk_map(bly_pool *pool, struct blyi_chunk *chunk, struct blyi_span *hole,
                          uint64_t first)
{
    struct blyi_extent *extent = hole->extent;
    bly_status status = pool->backend->ops->map(pool->backend, extent->base + first * pool->granule,
                                                chunk->count * pool->granule, chunk->handle);
    if (status != BLY_OK)
        return status;
    chunk->extent = extent;
    chunk->first = (uint32_t)first;
    for (uint32_t i = 0; i < chunk->count; i++) {
        extent->chunks[first + i] = chunk;
        extent->marks[first + i] = 0; /* nothing has used it here */
    }
    chunk->n_spans = 0;
    pool->is.loose += chunk->count * pool->granule;
    hole->mapped += chunk->count * pool->granule;
    extent->zone->region->held += chunk->count * pool->granule;
    pool->is.handle_ops++;
    blyi_told_chunk(pool, chunk, true);
    return BLY_OK;
}

void blyi_chunk_unmap(bly_pool *pool, struct blyi_chunk *chunk, struct blyi_span *hole)
{
    struct blyi_extent *extent = chunk->extent;
    bly_assert(chunk->n_spans == 0);
    pool->is.loose -= chunk->count * pool->granule;
    blyi_told_chunk(pool, chunk, false);
    pool->backend->ops->unmap(pool->backend, extent->base + chunk->first * pool->granule,
                              chunk->count * pool->granule);
    for (uint32_t i = 0; i < chunk->count; i++)
        extent->chunks[chunk->first + i] = NULL;
    hole->mapped -= chunk->count * pool->granule;
    pool->is.unmapped += chunk->count * pool->granule;
    extent->zone->region->held -= chunk->count * pool->granule;
    chunk->extent = NULL;
    pool->is.handle_ops++;
}

/* The handles of a span, from the first on: *at is a granule of its extent. NULL: no more. */
static struct blyi_chunk *next_of(const struct blyi_span *span, uint64_t *at)
{
    const struct blyi_extent *extent = span->extent;
    uint64_t granule = span->arena->pool->granule;
    if (*at > (span->address + span->size - 1 - extent->base) / granule)
        return NULL;
    struct blyi_chunk *chunk = extent->chunks[*at];
    *at = chunk->first + chunk->count;
    return chunk;
}

void blyi_chunks_hold(const struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    uint64_t at = (span->address - span->extent->base) / pool->granule;
    for (struct blyi_chunk *chunk; (chunk = next_of(span, &at)) != NULL;)
        if (chunk->n_spans++ == 0)
            pool->is.loose -= chunk->count * pool->granule;
}

void blyi_chunks_leave(const struct blyi_span *span)
{
    bly_pool *pool = span->arena->pool;
    uint64_t at = (span->address - span->extent->base) / pool->granule;
    for (struct blyi_chunk *chunk; (chunk = next_of(span, &at)) != NULL;)
        if (--chunk->n_spans == 0)
            pool->is.loose += chunk->count * pool->granule;
}

void blyi_spare_put(bly_pool *pool, struct blyi_chunk *chunk)
{
    if (chunk->count > BLYI_HANDLE_MOST) { /* of one block (own.h): for no other */
        blyi_chunk_drop(pool, chunk);
        return;
    }
    chunk->next = pool->spare[chunk->count - 1];
    pool->spare[chunk->count - 1] = chunk;
    pool->spare_counts |= UINT64_C(1) << (chunk->count - 1);
    pool->is.spare += chunk->count * pool->granule;
    pool->spare_since = pool->tick;
}

struct blyi_chunk *blyi_spare_take(bly_pool *pool, uint64_t most)
{
    uint64_t counts = pool->spare_counts;
    if (most < BLYI_HANDLE_MOST)
        counts &= (UINT64_C(1) << most) - 1;
    if (counts == 0)
        return NULL;
    unsigned i = 63u - (unsigned)__builtin_clzll(counts);
    struct blyi_chunk *chunk = pool->spare[i];
    pool->spare[i] = chunk->next;
    if (chunk->next == NULL)
        pool->spare_counts &= ~(UINT64_C(1) << i);
    pool->is.spare -= chunk->count * pool->granule;
    return chunk;
}

struct blyi_chunk *blyi_spare_take_just(bly_pool *pool, uint64_t count)
{
    if (count > BLYI_HANDLE_MOST || (pool->spare_counts >> (count - 1) & 1) == 0)
        return NULL;
    return blyi_spare_take(pool, count); /* the longest of at most that */
}
