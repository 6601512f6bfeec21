/* SPDX-License-Identifier: Apache-2.0
 *
 * free.c - blocks back into their pool, by pointer alone.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "base/fail.h"
#include "pool/again.h"
#include "pool/front_inside.h"
#include "pool/own.h"
#include "pool/pool.h"
#include "pool/regions.h"
#include "pool/told.h"

static struct blyi_depot *depot_of(const struct blyi_span *span)
{
    return __atomic_load_n(&span->arena->front, __ATOMIC_RELAXED);
}

/* Into the cache, if it is one of the slab's depot and the address is a slot's that is handed out
 * and of which nobody noted a use. */
static inline __attribute__((always_inline)) bool push(struct blyi_cache *cache,
                                                       struct blyi_slab *slab, uintptr_t address)
{
    bool kept = false;
    blyi_cache_enter(cache);
    if (likely(blyi_cache_is_at(cache, slab->depot))) {
        uint64_t slot = blyi_slab_slot(slab, address);
        if (likely(slot < slab->n)) {
            uint16_t state = blyi_slab_state(slab, slot);
            kept = likely(BLYI_SLOT_PLAIN(state)) &&
                   blyi_cache_push(cache, blyi_cache_bin(cache, slab->bin), address,
                                   &slab->state[slot], state);
        }
    }
    blyi_cache_leave(cache);
    return kept;
}

/* A slot that nobody noted a use of, and that the thread's last cache did not take. */
static void free_slot(const struct blyi_spot *spot, struct blyi_cache *cache)
{
    struct blyi_slab *slab = spot->slab;
    struct blyi_depot *depot = slab->depot;
    struct blyi_parcel slot = {spot->address, slab};
    uint64_t waste = blyi_slab_state(slab, spot->slot);
    uint64_t size = blyi_slab_slot_size(slab);
    if (slab->region != BLY_POOL_ANY) {
        blyi_region_count(depot->pool, slab->region, size, size - waste, -1);
        cache = NULL;
    } else if (cache->depot != depot) {
        cache = blyi_cache_need(depot, blyi_arena_stream(depot->arena), depot->front->small);
    }
    blyi_slab_set_state(slab, spot->slot, BLYI_SLOT_FREE);
    if (cache != NULL) {
        blyi_word_add(&cache->waste, -waste);
        blyi_cache_spill(cache, &slot);
        return;
    }
    blyi_lock_take_quick(&depot->lock);
    blyi_depot_add(&depot->waste, -waste);
    blyi_lock_drop_quick(&depot->lock);
    blyi_depot_put(depot, &slot, 1);
}

static bly_status free_span(const struct blyi_spot *spot)
{
    if (!blyi_span_claim(spot->span))
        return blyi_spot_live(spot, spot->address, "free");
    if (unlikely(blyi_own_leaves(spot->span)))
        blyi_arena_end(spot->span);
    else
        blyi_arena_give(spot->span);
    return BLY_OK;
}

bly_status blyi_front_free(void *block)
{
    struct blyi_spot spot;
    bool deferred = false;
    if (block == NULL)
        return BLY_OK;
    if (!blyi_spot_find((uintptr_t)block, &spot))
        return blyi_spot_none((uintptr_t)block, "free");
    struct blyi_cache *cache = blyi_cache_at(depot_of(spot.span));
    bly_status status = BLY_OK;
    /* A thread that has a cache of it knows that the pool is there. */
    if (cache->depot == NULL)
        status = blyi_pool_check(blyi_spot_pool(&spot));
    if (status == BLY_OK)
        status = blyi_spot_live(&spot, (uintptr_t)block, "free");
    if (status == BLY_OK && unlikely(spot.span->borrower != NULL))
        status = blyi_note_use(&spot, spot.span->borrower);
    if (status == BLY_OK && blyi_spot_has_note(&spot))
        status = blyi_note_free(&spot, &deferred);
    if (status != BLY_OK || deferred)
        return status;
    if (spot.slab == NULL)
        return free_span(&spot);
    if (!push(blyi_cache_last, spot.slab, spot.address))
        free_slot(&spot, cache);
    return BLY_OK;
}

/* A large block of the thread's last arena that nobody else uses. */
static inline bool is_plain(struct blyi_span *span, uintptr_t address)
{
    return likely(BLYI_READ(span->address) == address) &&
           likely(blyi_cache_is_at(blyi_cache_last, depot_of(span))) &&
           likely(BLYI_READ(span->n_uses) == 0) && likely(BLYI_READ(span->borrower) == NULL);
}

/* A slot of the thread's last depot that is handed out, and of which nobody noted a use: its bin
 * is full, or it lies before what begins in its page. */
static inline bool free_full(struct blyi_cache *cache, blyi_page page, uintptr_t address)
{
    struct blyi_slab *slab = blyi_page_slab(page);
    if (!blyi_page_is_slab(page) || !blyi_cache_is_at(cache, slab->depot) ||
        slab->region != BLY_POOL_ANY)
        return false;
    uint64_t slot = blyi_slab_slot(slab, address);
    if (slot >= slab->n)
        return false;
    uint16_t state = blyi_slab_state(slab, slot);
    if (!BLYI_SLOT_PLAIN(state))
        return false;
    if (!push(cache, slab, address)) {
        blyi_slab_set_state(slab, slot, BLYI_SLOT_FREE);
        blyi_word_take(&cache->waste, state);
        blyi_cache_spill(cache, &(struct blyi_parcel){address, slab});
    }
    return true;
}

static __attribute__((noinline)) bly_status free_other(void *block, blyi_page page)
{
    struct blyi_cache *cache = blyi_cache_last;
    uintptr_t address = (uintptr_t)block;
    if (likely(free_full(cache, page, address)) ||
        free_full(cache, blyi_pages_entry(address - BLYI_PAGE), address))
        return BLY_OK;
    return blyi_front_free(block);
}

static __attribute__((noinline)) bly_status free_large(void *block, blyi_page page)
{
    struct blyi_span *span = (struct blyi_span *)page;
    if (likely(page != 0) && likely(is_plain(span, (uintptr_t)block)) &&
        likely(blyi_again_give(span)))
        return BLY_OK;
    return free_other(block, page);
}

static __attribute__((noinline)) bly_status free_told(void *block, const void *pc)
{
    blyi_told_free(block, BLYI_TOLD_OWN, NULL, pc);
    return blyi_front_free(block);
}

bly_status bly_pool_free(void *block)
{
    if (unlikely(blyi_pool_told()))
        return free_told(block, __builtin_return_address(0));
    blyi_page page = blyi_pages_entry((uintptr_t)block);
    if (unlikely(!blyi_page_is_slab(page)))
        return free_large(block, page);
    if (likely(push(blyi_cache_last, blyi_page_slab(page), (uintptr_t)block)))
        return BLY_OK;
    return free_other(block, page);
}

bly_status bly_pool_free_batch(size_t n, void *const *blocks)
{
    bly_status first = BLY_OK;
    if (n > 0 && blocks == NULL)
        return blyi_fail(BLY_E_INVALID, "blocks is NULL");
    for (size_t i = 0; i < n; i++) {
        bly_status status = bly_pool_free(blocks[i]);
        first = first == BLY_OK ? status : first;
    }
    return first;
}

/* A live block, and the arena of a stream in its pool, which is written on success only. */
static bly_status find_use(void *block, bly_stream stream, struct blyi_spot *spot,
                           struct blyi_arena **arena, const char *verb)
{
    if (!blyi_spot_find((uintptr_t)block, spot))
        return blyi_spot_none((uintptr_t)block, verb);
    bly_status status = blyi_pool_check(blyi_spot_pool(spot));
    if (status == BLY_OK)
        status = blyi_spot_live(spot, (uintptr_t)block, verb);
    return status == BLY_OK ? blyi_arena_of(blyi_spot_pool(spot), stream, arena) : status;
}

bly_status blyi_front_note(void *block, bly_stream stream)
{
    struct blyi_spot spot;
    struct blyi_arena *arena = NULL;
    bly_status status = find_use(block, stream, &spot, &arena, "note a use of");
    /* Its own stream's work comes before its free as it is; no stream's comes before nothing. */
    if (arena != NULL && arena != blyi_spot_arena(&spot) && stream != NULL)
        status = blyi_note_use(&spot, arena);
    return status;
}

bly_status bly_pool_use(void *block, bly_stream stream)
{
    bly_status status = blyi_front_note(block, stream);
    if (status == BLY_OK && unlikely(blyi_probe_on(BLYI_PROBE_USE)))
        blyi_told_use(block, stream);
    return status;
}

bly_status bly_pool_free_on(void *block, bly_stream stream)
{
    const void *pc = __builtin_return_address(0);
    bly_status status = block == NULL ? BLY_OK : blyi_front_note(block, stream);
    if (status == BLY_OK && unlikely(blyi_pool_told()))
        blyi_told_free(block, BLYI_TOLD_ON, stream, pc);
    return status == BLY_OK ? blyi_front_free(block) : status;
}
