/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - the front's own life, its figures, what must hold.
 *
 * Slots handed out are what is in slabs, less what is at home, parked or waiting: nothing is
 * counted twice, and nothing on the fast path.
 */
#include <inttypes.h>
#include <pthread.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "pool/front_inside.h"
#include "pool/grant.h"
#include "pool/pool.h"
#include "pool/regions.h"

/* A look goes through all thread caches, so somebody looks again when so much more lives, one in so
 * many bytes: a pool that grows looks a few thousand times in all. */
#define LOOK_SHARE 1024u

struct sum {
    uint64_t slabs, home, parked, waiting; /* bytes */
    uint64_t out, n_parked, n_waiting;     /* slots */
    uint64_t allocs, waste, metadata;
};

bly_status blyi_front_open(bly_pool *pool, uint64_t small, struct blyi_front **out)
{
    static pthread_once_t places = PTHREAD_ONCE_INIT;
    (void)pthread_once(&places, blyi_cache_init_places);
    struct blyi_front *front = blyi_host_calloc(1, sizeof(*front));
    if (front == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the thread caches of a pool");
    front->pool = pool;
    front->small = small > 0 ? small : (uint64_t)blyi_option_int(BLYI_OPT_POOL_SMALL);
    bly_assert(front->small <= BLYI_SLOT_MAX);
    blyi_list_init(&front->depots);
    blyi_list_init(&front->caches);
    *out = front;
    return BLY_OK;
}

static void add_depot(struct sum *sum, const struct blyi_depot *depot)
{
    sum->slabs += BLYI_READ(depot->slab_bytes);
    sum->home += BLYI_READ(depot->home_bytes);
    sum->waiting += BLYI_READ(depot->waiting_bytes);
    sum->out += BLYI_READ(depot->n_out);
    sum->n_waiting += BLYI_READ(depot->n_waiting);
    sum->allocs += BLYI_READ(depot->allocs);
    sum->waste += BLYI_READ(depot->waste);
    sum->metadata += BLYI_READ(depot->metadata);
}

static void add_cache(struct sum *sum, const struct blyi_cache *cache)
{
    uint64_t n;
    sum->parked += blyi_cache_parked(cache, &n);
    sum->n_parked += n;
    sum->allocs += BLYI_READ(cache->allocs);
    sum->waste += BLYI_READ(cache->waste);
    sum->metadata += sizeof(*cache);
    for (unsigned class = 0; class < BLYI_CLASSES; class ++)
        sum->metadata += BLYI_READ(cache->bins[class].room) * sizeof(struct blyi_bin_entry);
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static uint64_t live_of(const struct sum *sum)
{
    return less(sum->slabs, sum->home + sum->parked + sum->waiting);
}

static uint64_t blocks_of(const struct sum *sum)
{
    return less(sum->out, sum->n_parked + sum->n_waiting);
}

static struct sum sum_locked(const struct blyi_front *front)
{
    struct sum sum = {.metadata = sizeof(*front)};
    BLYI_LIST_FOR(node, &front->depots)
    {
        add_depot(&sum, BLYI_CONTAINER(node, struct blyi_depot, link));
    }
    BLYI_LIST_FOR(node, &front->caches)
    {
        add_cache(&sum, BLYI_CONTAINER(node, struct blyi_cache, of_front));
    }
    return sum;
}

static struct sum sum_of(const struct blyi_front *front)
{
    blyi_lock_take(&blyi_caches_lock);
    struct sum sum = sum_locked(front);
    blyi_lock_drop(&blyi_caches_lock);
    return sum;
}

uint64_t blyi_front_close(struct blyi_front *front)
{
    struct sum sum = sum_of(front);
    blyi_cache_disown(front);
    return blocks_of(&sum);
}

void blyi_front_drop(struct blyi_front *front)
{
    BLYI_LIST_FOR_SAFE(node, &front->depots)
    {
        blyi_depot_destroy(BLYI_CONTAINER(node, struct blyi_depot, link));
    }
    blyi_host_free(front);
}

uint64_t blyi_front_flush(struct blyi_front *front)
{
    return blyi_grant_flush(front);
}

void blyi_front_peak_to(uint64_t *peak, uint64_t value)
{
    uint64_t old = BLYI_READ(*peak);
    while (value > old && !__atomic_compare_exchange_n(peak, &old, value, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

static void look(struct blyi_front *front, const struct sum *sum, uint64_t live, uint64_t asked)
{
    uint64_t all = live + live_of(sum);
    blyi_front_peak_to(&front->live_peak, all);
    blyi_front_peak_to(&front->asked_peak, asked + less(live_of(sum), sum->waste));
    blyi_front_peak_to(&front->pool->regions[BLY_POOL_ANY].live_peak,
                       less(all, blyi_regions_named(front->pool)));
}

void blyi_front_aim(struct blyi_front *front)
{
    uint64_t all = BLYI_READ(front->raw_all);
    uint64_t any = BLYI_READ(front->raw_any) + blyi_regions_named(front->pool);
    __atomic_store_n(&front->raw_peak, any < all ? any : all, __ATOMIC_RELAXED);
}

void blyi_front_raise(struct blyi_front *front, uint64_t raw)
{
    const struct blyi_pool_figures *is = &front->pool->is;
    uint64_t next = raw + raw / LOOK_SHARE;
    blyi_front_peak_to(&front->raw_all, next);
    blyi_front_peak_to(&front->raw_any, less(next, blyi_regions_named(front->pool)));
    blyi_front_aim(front);
    struct sum sum = sum_of(front);
    look(front, &sum, BLYI_READ(is->blocks_live), BLYI_READ(is->blocks_asked));
}

void blyi_front_reset_peak(struct blyi_front *front)
{
    uint64_t *peaks[] = {&front->live_peak, &front->asked_peak, &front->raw_all, &front->raw_any,
                         &front->raw_peak};
    for (unsigned i = 0; i < BLYI_COUNT(peaks); i++)
        __atomic_store_n(peaks[i], 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++)
        __atomic_store_n(&front->pool->regions[i].live_peak, 0, __ATOMIC_RELAXED);
}

void blyi_front_add_info(struct blyi_front *front, uint64_t slab_bytes, bly_pool_info *info)
{
    struct sum sum = sum_of(front);
    look(front, &sum, info->live, info->asked);
    /* Other threads go on meanwhile: the parts never exceed the whole. */
    uint64_t parked = sum.home + sum.parked, waiting = sum.waiting;
    parked = parked < slab_bytes ? parked : slab_bytes;
    waiting = waiting < slab_bytes - parked ? waiting : slab_bytes - parked;
    info->parked += parked;
    info->waiting += waiting;
    info->live += slab_bytes - parked - waiting;
    info->asked += less(slab_bytes - parked - waiting, sum.waste);
    info->blocks += blocks_of(&sum);
    info->allocs += sum.allocs;
    info->frees += less(sum.allocs, blocks_of(&sum));
    info->metadata += sum.metadata;
    info->live_peak = BLYI_READ(front->live_peak);
    info->asked_peak = BLYI_READ(front->asked_peak);
}

bly_status blyi_front_audit(struct blyi_front *front)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_caches_lock);
    struct sum sum = sum_locked(front);
    if (sum.home + sum.parked + sum.waiting > sum.slabs)
        status = blyi_fail(BLY_E_STATE,
                           "slabs of %" PRIu64 " bytes, but %" PRIu64 " at home, %" PRIu64
                           " in thread caches, %" PRIu64 " waiting",
                           sum.slabs, sum.home, sum.parked, sum.waiting);
    BLYI_LIST_FOR(node, &front->depots)
    {
        struct blyi_depot *depot = BLYI_CONTAINER(node, struct blyi_depot, link);
        blyi_lock_take_quick(&depot->lock);
        if (!blyi_depot_audit_locked(depot))
            status = blyi_fail(BLY_E_STATE, "the slabs of stream %p do not agree",
                               blyi_arena_stream(depot->arena));
        blyi_lock_drop_quick(&depot->lock);
    }
    uint64_t granted = 0;
    BLYI_LIST_FOR(node, &front->caches)
    {
        granted += BLYI_CONTAINER(node, struct blyi_cache, of_front)->limit;
    }
    if (granted != front->granted)
        status = blyi_fail(BLY_E_STATE, "thread caches have limits of %" PRIu64 ", not %" PRIu64,
                           granted, front->granted);
    uintptr_t twice = blyi_grant_find_twice_locked(front);
    if (twice != 0)
        status = blyi_fail(BLY_E_STATE,
                           "the slot at 0x%" PRIxPTR " is kept by two thread caches, or handed out "
                           "while one keeps it: two threads freed it at once",
                           twice);
    blyi_lock_drop(&blyi_caches_lock);
    return status;
}

bly_status bly_pool_find(const void *address, bly_pool_block *block)
{
    struct blyi_spot spot;
    if (block == NULL)
        return blyi_fail(BLY_E_INVALID, "block is NULL");
    if (!blyi_spot_find((uintptr_t)address, &spot))
        return blyi_spot_none((uintptr_t)address, "find a block at");
    bly_status status = blyi_spot_live(&spot, spot.address, "find a block at");
    if (status != BLY_OK)
        return status;
    bly_pool_block all = {.struct_size = block->struct_size,
                          .region = spot.span->region,
                          .pool = blyi_spot_pool(&spot),
                          .address = (void *)spot.address,
                          .asked = blyi_spot_asked(&spot),
                          .size = blyi_spot_size(&spot),
                          .stream = blyi_arena_stream(blyi_spot_arena(&spot))};
    __builtin_memcpy(block, &all,
                     block->struct_size < sizeof(all) ? block->struct_size : sizeof(all));
    return BLY_OK;
}
