/* SPDX-License-Identifier: Apache-2.0
 *
 * depot.c - slabs of an arena, shared by threads.
 */
#include "pool/depot.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "pool/front_inside.h"

/* Where sizes do not come again: so many classes further up, a slot serves. */
#define LARGER_MOST 2u

static struct blyi_depot *depot_new(struct blyi_front *front, struct blyi_arena *arena)
{
    struct blyi_depot *depot = blyi_host_calloc(1, sizeof(*depot));
    if (depot == NULL)
        return NULL;
    depot->arena = arena;
    depot->pool = blyi_arena_pool(arena);
    depot->front = front;
    depot->metadata = sizeof(*depot);
    blyi_lock_init_quick(&depot->lock, BLYI_RANK_FRONT);
    blyi_map_init(&depot->notes);
    for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
        blyi_list_init(&depot->unused[class]);
        for (unsigned region = 0; region < BLY_POOL_REGIONS; region++)
            blyi_list_init(&depot->partial[region][class]);
    }
    return depot;
}

bly_status blyi_depot_of(struct blyi_front *front, struct blyi_arena *arena,
                         struct blyi_depot **out)
{
    void **place = blyi_arena_front(arena);
    struct blyi_depot *depot = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (depot == NULL) {
        blyi_lock_take(&blyi_caches_lock);
        depot = *place;
        if (depot == NULL && (depot = depot_new(front, arena)) != NULL) {
            blyi_list_push_back(&front->depots, &depot->link);
            __atomic_store_n(place, depot, __ATOMIC_RELEASE);
        }
        blyi_lock_drop(&blyi_caches_lock);
    }
    if (depot == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "pool: no host memory for the slabs of a stream");
    *out = depot;
    return BLY_OK;
}

void blyi_depot_destroy(struct blyi_depot *depot)
{
    size_t cursor = 0;
    uint64_t key;
    void *note;
    blyi_slab_drop(depot->pages);
    while (blyi_map_next(&depot->notes, &cursor, &key, &note))
        blyi_host_free(note);
    blyi_map_fini(&depot->notes);
    blyi_lock_fini(&depot->lock);
    blyi_host_free(depot);
}

/* Slots that leave their slab, or, below 0, come back. */
static void count_out(struct blyi_depot *depot, uint64_t n, uint64_t size)
{
    blyi_depot_add(&depot->n_out, n);
    blyi_depot_add(&depot->home_bytes, -(n * size));
    __atomic_fetch_add(&depot->front->out, n * size, __ATOMIC_RELAXED);
}

/* Slots of the slabs that are there. Those with few slots at home come first, so that the others
 * may empty. */
static unsigned take_locked(struct blyi_depot *depot, struct blyi_list *partial,
                            struct blyi_parcel *slots, unsigned max)
{
    unsigned n = 0;
    while (n < max && !blyi_list_empty(partial)) {
        struct blyi_slab *slab = BLYI_CONTAINER(partial->next, struct blyi_slab, link);
        uint64_t size = blyi_slab_slot_size(slab);
        unsigned before = n;
        for (; n < max && slab->n_home > 0; n++)
            slots[n] = (struct blyi_parcel){slab->base + blyi_slab_take(slab) * size, slab};
        count_out(depot, n - before, size);
        if (slab->n_home == 0)
            blyi_list_remove(&slab->link);
    }
    return n;
}

/* By how much a slot of a class is aligned, up to the quantum. */
static uint64_t alignment(unsigned class)
{
    uint64_t size = blyi_class_size(class) | BLYI_QUANTUM;
    return size & -size;
}

/* A slot of the next class, or the one after it, that would else stay free. */
static unsigned take_larger_locked(struct blyi_depot *depot, bly_pool_region region, unsigned class,
                                   struct blyi_parcel *slot)
{
    unsigned n = 0;
    bly_assert(class < BLYI_CLASSES);
    for (unsigned i = 1; n == 0 && i <= LARGER_MOST && class + i < BLYI_CLASSES; i++)
        if (alignment(class + i) >= alignment(class))
            n = take_locked(depot, &depot->partial[region][class + i], slot, 1);
    return n;
}

/* Without the lock: what a slab had to say is in its record no more. */
static void let_go(struct blyi_depot *depot, struct blyi_slab *slab)
{
    struct blyi_list *top = BLYI_READ(depot->gone);
    do
        slab->link.next = top;
    while (!__atomic_compare_exchange_n(&depot->gone, &top, &slab->link, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

static void collect_locked(struct blyi_depot *depot)
{
    struct blyi_list *at = __atomic_exchange_n(&depot->gone, NULL, __ATOMIC_ACQUIRE);
    while (at != NULL) {
        struct blyi_slab *slab = BLYI_CONTAINER(at, struct blyi_slab, link);
        at = at->next;
        blyi_list_push_back(&depot->unused[slab->class], &slab->link);
    }
}

/* A record for a slab; NULL: no host memory. */
static struct blyi_slab *record_locked(struct blyi_depot *depot, unsigned class)
{
    struct blyi_list *unused = &depot->unused[class];
    if (blyi_list_empty(unused) && BLYI_READ(depot->gone) != NULL)
        collect_locked(depot);
    if (blyi_list_empty(unused))
        blyi_depot_add(&depot->metadata, blyi_slab_make(&depot->pages, depot, class, unused));
    if (blyi_list_empty(unused))
        return NULL;
    struct blyi_slab *slab = BLYI_CONTAINER(unused->next, struct blyi_slab, link);
    blyi_list_remove(&slab->link);
    return slab;
}

static bly_status make_slab(struct blyi_depot *depot, bly_pool_region region, unsigned class,
                            unsigned n_slots, struct blyi_slab *slab)
{
    if (slab == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "pool: no host memory to describe a slab");
    blyi_slab_reset(slab, region, n_slots);
    struct blyi_want want = {.asked = blyi_class_size(class),
                             .size = blyi_class_size(class) * slab->n,
                             .align = BLYI_QUANTUM,
                             .zone = blyi_zone_index(depot->pool, region, false),
                             .slab = slab};
    struct blyi_span *span;
    bly_status status = blyi_arena_take(depot->arena, &want, &span);
    if (unlikely(status != BLY_OK))
        let_go(depot, slab);
    return status;
}

/* Most of what the stream has are slots: what is free of them weighs more than that short slabs
 * lie between long blocks. */
static bool has_slots_most(const struct blyi_depot *depot)
{
    return BLYI_READ(depot->slab_bytes) > BLYI_READ(depot->pool->is.blocks_live);
}

bly_status blyi_depot_take(struct blyi_depot *depot, bly_pool_region region, unsigned class,
                           struct blyi_parcel *slots, unsigned max, unsigned *n)
{
    struct blyi_list *partial = &depot->partial[region][class];
    bool is_varied = blyi_variety_is_most(&depot->pool->slots);
    struct blyi_slab *slab = NULL;
    blyi_lock_take_quick(&depot->lock);
    *n = take_locked(depot, partial, slots, max);
    if (*n == 0 && is_varied)
        *n = take_larger_locked(depot, region, class, slots);
    if (*n == 0)
        slab = record_locked(depot, class);
    blyi_lock_drop_quick(&depot->lock);
    if (*n > 0)
        return BLY_OK;
    unsigned n_slots = is_varied && has_slots_most(depot) ? blyi_class_slots_least(class)
                                                          : blyi_class_slots(class);
    bly_status status = make_slab(depot, region, class, n_slots, slab);
    if (status != BLY_OK)
        return status;
    blyi_lock_take_quick(&depot->lock);
    blyi_list_push_front(partial, &slab->link);
    blyi_depot_add(&depot->slab_bytes, slab->span->size);
    blyi_depot_add(&depot->home_bytes, slab->span->size);
    *n = take_locked(depot, partial, slots, max);
    blyi_lock_drop_quick(&depot->lock);
    return BLY_OK;
}

/* The slab when no slot of it is out any more. */
static struct blyi_slab *put_locked(struct blyi_depot *depot, const struct blyi_parcel *slot)
{
    struct blyi_slab *slab = slot->slab;
    uint64_t size = blyi_slab_slot_size(slab);
    uint64_t index = blyi_slab_slot(slab, slot->address);
    bool fresh = blyi_slab_put(slab, index);
    bly_check_msg(fresh, "slot 0x%" PRIxPTR " came home twice", slot->address);
    count_out(depot, -UINT64_C(1), size);
    if (slab->n_home == slab->n) {
        blyi_list_remove(&slab->link);
        blyi_depot_add(&depot->home_bytes, -(size * slab->n));
        blyi_depot_add(&depot->slab_bytes, -(size * slab->n));
        return slab;
    }
    if (slab->n_home == 1)
        blyi_list_push_front(&depot->partial[slab->region][slab->class], &slab->link);
    return NULL;
}

void blyi_depot_put(struct blyi_depot *depot, const struct blyi_parcel *slots, unsigned n)
{
    struct blyi_list empty = BLYI_LIST_INIT(empty);
    blyi_lock_take_quick(&depot->lock);
    for (unsigned i = 0; i < n; i++) {
        struct blyi_slab *slab = put_locked(depot, &slots[i]);
        if (slab != NULL)
            blyi_list_push_back(&empty, &slab->link);
    }
    blyi_lock_drop_quick(&depot->lock);
    if (likely(blyi_list_empty(&empty)))
        return;
    BLYI_LIST_FOR_SAFE(node, &empty)
    {
        struct blyi_slab *slab = BLYI_CONTAINER(node, struct blyi_slab, link);
        blyi_arena_give(slab->span);
        let_go(depot, slab);
    }
}

static bool slab_audit(const struct blyi_slab *slab, const struct blyi_depot *depot)
{
    unsigned bits =
        (unsigned)(__builtin_popcountll(slab->home[0]) + __builtin_popcountll(slab->home[1]));
    bool good = bits == slab->n_home && bits > 0 && bits < slab->n && slab->depot == depot &&
                slab->base == slab->span->address &&
                slab->span->size == slab->n * blyi_slab_slot_size(slab);
    for (uint64_t i = 0; i < slab->n; i++)
        good = good && ((slab->home[i / 64] >> i % 64 & 1) == 0 ||
                        blyi_slab_state(slab, i) == BLYI_SLOT_FREE);
    return good;
}

bool blyi_depot_audit_locked(const struct blyi_depot *depot)
{
    uint64_t home = 0;
    for (unsigned region = 0; region < BLY_POOL_REGIONS; region++)
        for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
            const struct blyi_list *partial = &depot->partial[region][class];
            if (!blyi_list_audit(partial))
                return false;
            BLYI_LIST_FOR(node, partial)
            {
                const struct blyi_slab *slab = BLYI_CONTAINER(node, struct blyi_slab, link);
                if (slab->class != class || slab->region != region || !slab_audit(slab, depot))
                    return false;
                home += slab->n_home * blyi_slab_slot_size(slab);
            }
        }
    return home == depot->home_bytes && home <= depot->slab_bytes && blyi_map_audit(&depot->notes);
}
