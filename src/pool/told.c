/* SPDX-License-Identifier: Apache-2.0
 *
 * told.c - probes of a pool's blocks.
 */
#include "pool/told.h"

#include "base/fail.h"
#include "base/site.h"
#include "pool/front_inside.h"
#include "pool/pool.h"
#include "pool/walk.h"

static uint32_t number_of(const struct blyi_arena *arena)
{
    return __atomic_load_n(&arena->number, __ATOMIC_RELAXED);
}

static uint32_t number_of_stream(bly_pool *pool, bly_stream stream)
{
    struct blyi_arena *arena;
    if (stream == NULL)
        return 0;
    if (blyi_arena_of(pool, stream, &arena) == BLY_OK)
        return number_of(arena);
    blyi_fail_clear(); /* whoever is called next says it */
    return 0;
}

void blyi_told_alloc(const void *block, uint64_t asked, uint64_t rounded, const void *pc)
{
    struct blyi_spot spot;
    if (!blyi_spot_find((uintptr_t)block, &spot))
        return;
    const bly_pool *pool = blyi_spot_pool(&spot);
    BLYI_PROBE(ALLOC, .card = pool->device, .address = spot.address, .size = asked, .asked = asked,
               .rounded = rounded, .backed = blyi_spot_size(&spot), .page_kind = BLYI_PAGE_HUGE,
               .site = blyi_site_intern(pc), .stream = number_of(blyi_spot_arena(&spot)),
               .other = pool->number);
}

void blyi_told_refused(const bly_pool *pool, uint64_t asked, const void *pc, bly_status status)
{
    BLYI_PROBE(ALLOC_FAIL, .card = pool->device, .size = asked, .asked = asked,
               .site = blyi_site_intern(pc), .aux = status, .other = pool->number);
}

void blyi_told_free_refused(const void *address, const void *pc)
{
    struct blyi_spot spot;
    bool found = blyi_spot_find((uintptr_t)address, &spot);
    BLYI_PROBE(FREE_FAIL, .card = found ? blyi_spot_pool(&spot)->device : -1,
               .address = (uintptr_t)address, .site = blyi_site_intern(pc), .aux = BLY_E_INVALID);
}

void blyi_told_free(const void *block, enum blyi_told_order order, bly_stream stream,
                    const void *pc)
{
    struct blyi_spot spot;
    bool found = blyi_spot_find((uintptr_t)block, &spot);
    if (block == NULL)
        return;
    if (!found || spot.address != (uintptr_t)block || blyi_spot_life(&spot) != BLYI_LIFE_LIVE) {
        blyi_told_free_refused(block, pc);
        return;
    }
    bly_pool *pool = blyi_spot_pool(&spot);
    uint64_t asked = blyi_spot_asked(&spot);
    uint32_t on = order == BLYI_TOLD_OWN  ? number_of(blyi_spot_arena(&spot))
                  : order == BLYI_TOLD_ON ? number_of_stream(pool, stream)
                                          : 0;
    BLYI_PROBE(FREE, .card = pool->device, .address = spot.address, .size = asked, .asked = asked,
               .rounded = asked, .backed = blyi_spot_size(&spot), .site = blyi_site_intern(pc),
               .stream = on, .other = pool->number,
               .aux = blyi_spot_has_note(&spot) && blyi_note_has_uses(&spot));
}

void blyi_told_use(const void *block, bly_stream stream)
{
    struct blyi_spot spot;
    if (!blyi_spot_find((uintptr_t)block, &spot) || stream == NULL)
        return;
    bly_pool *pool = blyi_spot_pool(&spot);
    BLYI_PROBE(USE, .card = pool->device, .address = spot.address,
               .stream = number_of_stream(pool, stream), .other = pool->number);
}

static void tell_end(void *arg, const struct blyi_walked *block)
{
    const bly_pool *pool = arg;
    BLYI_PROBE(FREE, .card = pool->device, .address = block->address, .size = block->asked,
               .asked = block->asked, .rounded = block->asked, .backed = block->size,
               .other = pool->number);
}

void blyi_told_end(bly_pool *pool)
{
    if (pool->end_is_told)
        return;
    blyi_pool_walk(pool, tell_end, pool);
}

static void tell_reset(void *arg, const struct blyi_walked *block)
{
    const bly_pool *pool = arg;
    BLYI_PROBE(RESET_FREE, .card = pool->device, .address = block->address, .size = block->asked,
               .asked = block->asked, .rounded = block->asked, .backed = block->size,
               .other = pool->number);
}

void blyi_told_reset(bly_pool *pool)
{
    blyi_pool_walk(pool, tell_reset, pool);
    pool->end_is_told = true;
}

void blyi_told_chunk(const bly_pool *pool, const struct blyi_chunk *chunk, bool mapped)
{
    if (likely(!blyi_probe_on(mapped ? BLYI_PROBE_SEGMENT : BLYI_PROBE_SEGMENT_FREE)))
        return;
    struct blyi_probe probe = {.kind = mapped ? BLYI_PROBE_SEGMENT : BLYI_PROBE_SEGMENT_FREE,
                               .card = pool->device,
                               .address = chunk->extent->base + chunk->first * pool->granule,
                               .size = chunk->count * pool->granule,
                               .stream = number_of(chunk->extent->zone->arena),
                               .other = pool->number};
    blyi_probe_emit_slow(&probe);
}

/* ── Sinks that come late ─────────────────────────────────────────────────────────────────── */

struct late {
    const struct blyi_sink *to;
    const bly_pool *pool;
};

static void tell_live(void *arg, const struct blyi_walked *block)
{
    const struct late *late = arg;
    const struct blyi_probe probe = {.kind = BLYI_PROBE_ALLOC,
                                     .card = late->pool->device,
                                     .address = block->address,
                                     .size = block->asked,
                                     .asked = block->asked,
                                     .rounded = block->asked,
                                     .backed = block->size,
                                     .page_kind = BLYI_PAGE_HUGE,
                                     .site = block->site,
                                     .stream = block->stream,
                                     .other = late->pool->number};
    late->to->probe(late->to->arg, &probe);
}

static void tell_pool(void *arg, bly_pool *pool)
{
    struct late late = {arg, pool};
    if (pool->backend->ops->alive(pool->backend) == BLY_OK)
        blyi_pool_walk(pool, tell_live, &late);
    else
        blyi_fail_clear(); /* its card was reset, or it is the parent's */
}

static void tell_all(const struct blyi_sink *to)
{
    struct blyi_sink copy = *to;
    (void)blyi_pools_each(tell_pool, &copy, false);
}

void blyi_told_offer(void)
{
    static struct blyi_teller teller = {.tell = tell_all};
    static bool offered;
    if (!__atomic_exchange_n(&offered, true, __ATOMIC_RELAXED))
        blyi_probe_add_teller(&teller);
}
