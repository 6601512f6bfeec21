/* SPDX-License-Identifier: Apache-2.0
 *
 * front.c - blocks out of a pool: small ones from the thread's cache, large ones from the arena.
 *
 * The fast path is bly_pool_alloc() with its inline parts (cache.h, class.h): the thread's last
 * cache serves this pool and stream and has a slot. All else is blyi_front_alloc().
 */
#include "pool/front.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/site.h"
#include "pool/again.h"
#include "pool/budget.h"
#include "pool/front_inside.h"
#include "pool/pool.h"
#include "pool/regions.h"
#include "pool/told.h"

#define SIZE_MOST  (UINT64_C(1) << 48)
#define ALIGN_MOST GiB

/* What a request comes to. */
struct wish {
    uint64_t asked; /* at least 1 */
    uint64_t size;  /* of the slot at least */
    uint64_t align;
    const bly_pool_request *request;
    const void *pc;
    bool small;
};

static bly_status check_request(const bly_pool_request *request)
{
    if (request->size > SIZE_MOST)
        return blyi_fail(BLY_E_INVALID, "a block of %" PRIu64 " bytes: at most %" PRIu64,
                         request->size, SIZE_MOST);
    if (request->align != 0 && (!blyi_is_pow2(request->align) || request->align > ALIGN_MOST))
        return blyi_fail(BLY_E_INVALID, "alignment %" PRIu64 ": a power of two, at most %" PRIu64,
                         request->align, (uint64_t)ALIGN_MOST);
    if ((unsigned)request->region >= BLY_POOL_REGIONS)
        return blyi_fail(BLY_E_INVALID, "region %d: 0 to %d", (int)request->region,
                         BLY_POOL_REGIONS - 1);
    return BLY_OK;
}

#define WHOLE (BLY_POOL_EXPORTABLE | BLYI_POOL_WHOLE)

/* Small ones are aligned to the largest power of two that divides their class and the quantum: a
 * size that is a multiple of the alignment has such a class. */
static struct wish wish_of(const bly_pool *pool, const bly_pool_request *request, const void *pc)
{
    uint64_t asked = request->size == 0 ? 1 : request->size;
    struct wish wish = {.asked = asked, .size = asked, .request = request, .pc = pc};
    wish.align = request->align != 0 ? request->align : BLYI_SLOT_MIN;
    if (wish.align <= BLYI_QUANTUM)
        wish.size = blyi_align_up(asked, wish.align);
    wish.small = wish.align <= BLYI_QUANTUM && wish.size <= pool->front->small &&
                 (request->flags & WHOLE) == 0;
    if (!wish.small && request->align == 0 && pool->opts.align > 0)
        wish.align = pool->opts.align;
    return wish;
}

static void count(struct blyi_cache *cache, struct blyi_depot *depot, uint64_t waste)
{
    if (cache != NULL) {
        blyi_word_add(&cache->waste, waste);
        blyi_word_add(&cache->allocs, 1);
        return;
    }
    blyi_lock_take_quick(&depot->lock);
    blyi_depot_add(&depot->waste, waste);
    blyi_depot_add(&depot->allocs, 1);
    blyi_lock_drop_quick(&depot->lock);
}

/* A slot that the thread does not have at hand; cache NULL: from its depot alone. */
static bly_status alloc_slot(struct blyi_depot *depot, struct blyi_cache *cache,
                             bly_pool_region region, uint64_t size, uint64_t asked, void **block)
{
    unsigned class = blyi_class_of(size), n;
    struct blyi_parcel slot;
    bly_status status = cache != NULL ? blyi_cache_refill(cache, class, &slot)
                                      : blyi_depot_take(depot, region, class, &slot, 1, &n);
    if (status != BLY_OK)
        return status;
    uint64_t slot_size = blyi_slab_slot_size(slot.slab), waste = slot_size - asked;
    uint64_t index = blyi_slab_slot(slot.slab, slot.address);
    blyi_slab_set_state(slot.slab, index, (uint16_t)waste);
    count(cache, depot, waste);
    if (unlikely(region != BLY_POOL_ANY))
        blyi_region_count(depot->pool, region, slot_size, asked, 1);
    blyi_front_peak(depot->front);
    *block = (void *)slot.address;
    return BLY_OK;
}

/* Whether the thread's cache serves this, and nobody wants to be told. */
static inline bool is_at_hand(const struct blyi_cache *cache, const bly_pool *pool,
                              bly_stream stream)
{
    return likely(blyi_cache_serves(cache, pool, stream)) && likely(blyi_ended_none(cache->ended));
}

/* A slot of `unit` steps of sizes and one more, for `size` bytes; 0: the thread has none. `told`:
 * somebody wants to be told, and will be. */
static inline __attribute__((always_inline)) uintptr_t pop(struct blyi_cache *cache, bly_pool *pool,
                                                           bly_stream stream, uint64_t unit,
                                                           uint64_t size, bool told)
{
    uintptr_t address = 0;
    blyi_cache_enter(cache);
    if (told ? blyi_cache_serves(cache, pool, stream) : is_at_hand(cache, pool, stream))
        address = blyi_cache_pop(cache, blyi_cache_bin(cache, blyi_cache_places[unit]), size);
    blyi_cache_leave(cache);
    return address;
}

/* The place that this thread asked from last is likely to be the next, too. */
static uint32_t site_of(const void *pc)
{
    static BLYI_HOT_THREAD_LOCAL struct {
        const void *pc;
        uint32_t site;
    } last;
    if (unlikely(last.pc != pc)) {
        last.site = blyi_site_intern(pc);
        last.pc = pc;
    }
    return last.site;
}

static bly_status alloc_span(struct blyi_depot *depot, struct blyi_want *want, const void *pc,
                             void **block)
{
    struct blyi_span *span;
    want->size = blyi_align_up(want->asked, BLYI_QUANTUM);
    want->site = site_of(pc);
    bly_status status = blyi_arena_take(depot->arena, want, &span);
    if (status != BLY_OK)
        return status;
    __atomic_store_n(&span->live, BLYI_LIFE_LIVE, __ATOMIC_RELAXED);
    blyi_front_peak(depot->front);
    *block = (void *)span->address;
    return BLY_OK;
}

/* A slot, or a span of its own where a slot would be too much. */
static bly_status alloc_small(struct blyi_depot *depot, struct blyi_cache *cache,
                              bly_pool_region region, uint64_t size, uint64_t asked, const void *pc,
                              void **block)
{
    if (likely(!blyi_budget_is_alone(depot->pool, asked)))
        return alloc_slot(depot, cache, region, size, asked, block);
    struct blyi_want want = {.asked = asked, .zone = blyi_zone_index(depot->pool, region, false)};
    return alloc_span(depot, &want, pc, block);
}

/* The depot of a stream, and this thread's cache of it, if it can have one. */
static bly_status find_depot(bly_pool *pool, bly_stream stream, struct blyi_depot **depot,
                             struct blyi_cache **cache)
{
    struct blyi_arena *arena;
    uint64_t ended = blyi_ended_now(); /* before we look */
    *cache = blyi_cache_of(pool, stream);
    *depot = (*cache)->depot;
    if (likely(*depot != NULL && (*cache)->ended == ended))
        return BLY_OK;
    bly_status status = blyi_pool_check(pool);
    if (status == BLY_OK)
        status = blyi_arena_of(pool, stream, &arena);
    if (status == BLY_OK)
        status = blyi_depot_of(pool->front, arena, depot);
    if (status != BLY_OK)
        return status;
    *cache = blyi_cache_need(*depot, stream, pool->front->small);
    if (*cache != NULL)
        (*cache)->ended = ended;
    return BLY_OK;
}

static uint32_t zone_of(const bly_pool *pool, const bly_pool_request *request)
{
    bool own = ((request->flags | pool->opts.flags) & BLY_POOL_EXPORTABLE) != 0;
    return blyi_zone_index(pool, request->region, own);
}

bly_status blyi_front_alloc(bly_pool *pool, const bly_pool_request *request, bly_stream stream,
                            const void *pc, void **block)
{
    struct blyi_depot *depot;
    struct blyi_cache *cache;
    if (unlikely(block == NULL))
        return blyi_fail(BLY_E_INVALID, "block is NULL");
    bly_status status = check_request(request);
    if (status == BLY_OK)
        status = find_depot(pool, stream, &depot, &cache);
    if (status != BLY_OK)
        return status;
    struct wish wish = wish_of(pool, request, pc);
    if (!wish.small) {
        struct blyi_want want = {.asked = wish.asked,
                                 .align = wish.align,
                                 .zone = zone_of(pool, request),
                                 .flags = request->flags};
        return alloc_span(depot, &want, pc, block);
    }
    if (request->region != BLY_POOL_ANY)
        cache = NULL;
    uintptr_t at_hand = 0;
    if (cache != NULL)
        at_hand = pop(cache, pool, stream, (wish.size - 1) / BLYI_SLOT_MIN, wish.asked, true);
    if (at_hand == 0)
        return alloc_small(depot, cache, request->region, wish.size, wish.asked, pc, block);
    *block = (void *)at_hand;
    return BLY_OK;
}

/* For the program: told to probes. */
static bly_status alloc_told(bly_pool *pool, const bly_pool_request *request, bly_stream stream,
                             const void *pc, void **block)
{
    bly_status status = blyi_front_alloc(pool, request, stream, pc, block);
    if (status == BLY_OK && block != NULL && unlikely(blyi_pool_told()))
        blyi_told_alloc(*block, request->size, request->size, pc);
    else if (status == BLY_E_NO_MEMORY || status == BLY_E_CAP || status == BLY_E_HOST_MEMORY)
        blyi_told_refused(pool, request->size, pc, status);
    return status;
}

static __attribute__((noinline)) bly_status alloc_size_told(bly_pool *pool, uint64_t size,
                                                            bly_stream stream, void **block,
                                                            const void *pc)
{
    bly_pool_request request = {.struct_size = sizeof(request), .size = size};
    return alloc_told(pool, &request, stream, pc, block);
}

/* What the thread's last cache serves, but does not have: a slot out of the depot. And all that is
 * rare. */
static __attribute__((noinline)) bly_status alloc_slow(bly_pool *pool, uint64_t size,
                                                       bly_stream stream, void **block,
                                                       const void *pc)
{
    struct blyi_cache *cache = blyi_cache_last;
    if (likely(size - 1 < SIZE_MOST && block != NULL) && is_at_hand(cache, pool, stream)) {
        struct blyi_want want = {.asked = size, .align = pool->opts.align};
        return size > cache->small
                   ? alloc_span(cache->depot, &want, pc, block)
                   : alloc_small(cache->depot, cache, BLY_POOL_ANY, size, size, pc, block);
    }
    return alloc_size_told(pool, size, stream, block, pc);
}

/* What no slot serves. */
static __attribute__((noinline)) bly_status alloc_large(bly_pool *pool, uint64_t size,
                                                        bly_stream stream, void **block,
                                                        const void *pc)
{
    const struct blyi_cache *cache = blyi_cache_last;
    if (likely(size - 1 < SIZE_MOST) && likely(block != NULL) && is_at_hand(cache, pool, stream) &&
        likely(blyi_again_take(cache->depot->arena, size, site_of(pc), block)))
        return BLY_OK;
    return alloc_slow(pool, size, stream, block, pc);
}

bly_status bly_pool_alloc(bly_pool *pool, uint64_t size, bly_stream stream, void **block)
{
    uint64_t unit = (size - 1) / BLYI_SLOT_MIN;
    if (unlikely(unit >= BLYI_BIN_SIZES))
        return alloc_large(pool, size, stream, block, __builtin_return_address(0));
    if (likely(block != NULL)) {
        uintptr_t address = pop(blyi_cache_last, pool, stream, unit, size, false);
        if (likely(address != 0)) {
            *block = (void *)address;
            return BLY_OK;
        }
    }
    return alloc_slow(pool, size, stream, block, __builtin_return_address(0));
}

/* What exists of the caller's request; fields that it does not know are 0. */
static bly_status read_request(const bly_pool_request *from, bly_pool_request *to)
{
    const size_t first = offsetof(bly_pool_request, align);
    if (from == NULL)
        return blyi_fail(BLY_E_INVALID, "request is NULL");
    if (from->struct_size < first || from->struct_size > 4096)
        return blyi_fail(BLY_E_INVALID, "struct_size of the request is %" PRIu32 ": %zu to %zu",
                         from->struct_size, first, sizeof(*from));
    *to = (bly_pool_request){.struct_size = sizeof(*to)};
    __builtin_memcpy(to, from, from->struct_size < sizeof(*to) ? from->struct_size : sizeof(*to));
    if ((to->flags & ~BLY_POOL_EXPORTABLE) != 0)
        return blyi_fail(BLY_E_INVALID, "flags 0x%" PRIx32 ": BLY_POOL_EXPORTABLE alone is known",
                         to->flags);
    return BLY_OK;
}

bly_status bly_pool_alloc_with(bly_pool *pool, const bly_pool_request *request, bly_stream stream,
                               void **block)
{
    bly_pool_request known;
    bly_status status = read_request(request, &known);
    return status == BLY_OK ? alloc_told(pool, &known, stream, __builtin_return_address(0), block)
                            : status;
}

bly_status bly_pool_alloc_batch(bly_pool *pool, size_t n, const uint64_t *sizes, bly_stream stream,
                                void **blocks)
{
    const void *pc = __builtin_return_address(0);
    bly_status status = BLY_OK;
    size_t done = 0;
    if (n > 0 && (sizes == NULL || blocks == NULL))
        return blyi_fail(BLY_E_INVALID, "%s is NULL", sizes == NULL ? "sizes" : "blocks");
    if (n > SIZE_MAX / sizeof(*blocks))
        return blyi_fail(BLY_E_INVALID, "a batch of %zu blocks: at most %zu", n,
                         SIZE_MAX / sizeof(*blocks));
    void **made = n > 0 ? blyi_host_alloc(n * sizeof(*made)) : NULL;
    if (n > 0 && made == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the addresses of %zu blocks", n);
    while (done < n &&
           (status = alloc_size_told(pool, sizes[done], stream, &made[done], pc)) == BLY_OK)
        done++;
    if (status == BLY_OK && n > 0)
        __builtin_memcpy(blocks, made, n * sizeof(*made));
    /* What fails here cannot: they were handed out a moment ago and nobody knows them. */
    while (status != BLY_OK && done > 0) {
        bly_status undone = bly_pool_free(made[--done]);
        bly_assert(undone == BLY_OK);
        (void)undone;
    }
    blyi_host_free(made);
    return status;
}
