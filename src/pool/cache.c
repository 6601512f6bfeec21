/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c - how thread caches fill and spill.
 */
#include "pool/cache.h"

#include <string.h>

#include "base/assert.h"
#include "base/host.h"
#include "pool/front_inside.h"
#include "pool/grant.h"

#define BIN_BYTES (256 * KiB) /* of the slots of a full bin, about */
#define BIN_MIN   1u
#define BIN_MAX   128u
#define BATCH     16u        /* slots that come or go at once: more would make one call slow */
#define SHIFT     8u         /* one in so many refusals shifts room between bins: */
#define ASKED     16u        /* so many are asked then, */
#define ENOUGH    8u         /* for one that has less entries, if they have larger slots, */
#define STILL     3u         /* or if nothing changed since they were asked so often */
#define AHEAD     (64 * KiB) /* bytes of slots that are fetched before they are asked for */

/* Below the first entry of every bin that has no host memory of its own. */
static struct blyi_bin_entry nothing[2];

uint16_t blyi_cache_places[BLYI_BIN_SIZES];

void blyi_cache_init_places(void)
{
    for (size_t i = 0; i < BLYI_BIN_SIZES; i++)
        blyi_cache_places[i] = BLYI_BIN_PLACE(blyi_class_of((i + 1) * BLYI_SLOT_MIN));
}

static uint32_t room_of(unsigned class)
{
    uint64_t n = BIN_BYTES / blyi_class_size(class);
    return n < BIN_MIN ? BIN_MIN : n > BIN_MAX ? BIN_MAX : (uint32_t)n;
}

static uint32_t count_of(const struct blyi_bin *bin)
{
    return (uint32_t)(bin->top - bin->base);
}

/* Exact for who owns the slots; the owner may ask before, and be told what was a moment ago. */
static uint32_t limit_of(const struct blyi_bin *bin)
{
    ptrdiff_t limit = BLYI_READ(bin->end) - BLYI_READ(bin->base);
    return limit > 0 && limit <= (ptrdiff_t)BIN_MAX ? (uint32_t)limit : 0;
}

static bool is_full(const struct blyi_bin *bin)
{
    return BLYI_READ(bin->top) == BLYI_READ(bin->end);
}

static void set_end(struct blyi_bin *bin, struct blyi_bin_entry *end)
{
    __atomic_store_n(&bin->end, end, __ATOMIC_RELAXED);
}

void blyi_cache_init_bins(struct blyi_cache *cache)
{
    for (unsigned class = 0; class <= BLYI_CLASSES; class ++) {
        struct blyi_bin *bin = &cache->bins[class];
        bin->size = class < BLYI_CLASSES ? (uint32_t)blyi_class_size(class) : 0;
        bin->room = 0;
        bin->seen = bin->still = 0;
        bin->base = &nothing[1];
        set_end(bin, bin->base);
        blyi_bin_set_top(bin, bin->base);
    }
}

void blyi_cache_free_bins(struct blyi_cache *cache)
{
    for (unsigned class = 0; class < BLYI_CLASSES; class ++)
        if (cache->bins[class].room > 0)
            blyi_host_free(cache->bins[class].base - 1);
    blyi_cache_init_bins(cache);
}

uint64_t blyi_cache_parked(const struct blyi_cache *cache, uint64_t *n)
{
    uint64_t bytes = 0;
    *n = 0;
    for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
        const struct blyi_bin *bin = &cache->bins[class];
        const struct blyi_bin_entry *base = BLYI_READ(bin->base), *top = BLYI_READ(bin->top);
        /* A bin that gets its memory meanwhile had nothing. */
        if (top <= base || top - base > (ptrdiff_t)BIN_MAX)
            continue;
        *n += (uint64_t)(top - base);
        bytes += (uint64_t)(top - base) * bin->size;
    }
    return bytes;
}

/* Host memory for entries; without it slots go home one by one. */
static bool have_room(struct blyi_bin *bin, unsigned class)
{
    uint32_t room = room_of(class);
    if (likely(bin->room > 0))
        return true;
    struct blyi_bin_entry *entries = blyi_host_alloc((room + 1) * sizeof(*entries));
    if (entries == NULL)
        return false;
    entries[0] = (struct blyi_bin_entry){0, NULL};
    __atomic_store_n(&bin->base, entries + 1, __ATOMIC_RELAXED);
    blyi_bin_set_top(bin, entries + 1);
    set_end(bin, entries + 1);
    __atomic_store_n(&bin->room, (uint16_t)room, __ATOMIC_RELAXED);
    return true;
}

/* Takes out up to `n` slots, those that are longest in it. */
static unsigned unload(struct blyi_bin *bin, unsigned n, struct blyi_parcel *slots)
{
    unsigned have = count_of(bin);
    n = n < have ? n : have;
    for (unsigned i = 0; i < n; i++) {
        uintptr_t address = bin->base[i].address;
        slots[i] = (struct blyi_parcel){address, blyi_pages_slab(address)};
    }
    if (n > 0)
        memmove(bin->base, bin->base + n, (have - n) * sizeof(*bin->base));
    blyi_bin_set_top(bin, bin->top - n);
    return n;
}

uint64_t blyi_cache_empty(struct blyi_cache *cache)
{
    struct blyi_parcel out[BIN_MAX];
    uint64_t bytes = 0;
    for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
        struct blyi_bin *bin = &cache->bins[class];
        unsigned n = unload(bin, BIN_MAX, out);
        set_end(bin, bin->base);
        bytes += (uint64_t)n * bin->size;
        if (n > 0)
            blyi_depot_put(cache->depot, out, n);
    }
    cache->spare = 0;
    return bytes;
}

/* For longer than a hit: others who want the cache wait until leave(). */
static void enter(struct blyi_cache *cache)
{
    for (;;) {
        blyi_cache_enter(cache);
        if (likely(blyi_cache_is_at(cache, cache->depot)))
            return;
        blyi_cache_leave(cache);
        blyi_lock_take(&blyi_caches_lock);
        blyi_lock_drop(&blyi_caches_lock);
    }
}

static void keep(struct blyi_bin *bin, const struct blyi_parcel *slot)
{
    uint64_t index = blyi_slab_slot(slot->slab, slot->address);
    *bin->top = (struct blyi_bin_entry){slot->address, &slot->slab->state[index]};
    blyi_bin_set_top(bin, bin->top + 1);
}

/* The limit of a bin rises to `wanted`, as far as bytes are granted. */
static void widen(struct blyi_cache *cache, unsigned class, uint32_t wanted)
{
    struct blyi_bin *bin = &cache->bins[class];
    uint32_t limit = limit_of(bin);
    wanted = wanted < room_of(class) ? wanted : room_of(class);
    if (wanted <= limit)
        return;
    uint64_t bytes = blyi_grant(cache, bin->size, (wanted - limit) * (uint64_t)bin->size);
    if (bytes == 0)
        return;
    enter(cache);
    /* Somebody may have emptied the cache meanwhile, and taken back what we were granted. */
    if (have_room(bin, class) && cache->limit >= bytes && limit_of(bin) == limit)
        set_end(bin, bin->end + bytes / bin->size);
    blyi_cache_leave(cache);
}

/* A bin loses room for `bytes`, unused room first. How many slots came out. */
static unsigned narrow(struct blyi_bin *bin, uint64_t bytes, struct blyi_parcel *slots)
{
    uint64_t lost = (bytes + bin->size - 1) / bin->size;
    unsigned n = (unsigned)(lost < limit_of(bin) ? lost : limit_of(bin));
    unsigned unused = limit_of(bin) - count_of(bin), out = n > unused ? n - unused : 0;
    if (out > 0)
        (void)unload(bin, out, slots);
    set_end(bin, bin->end - n);
    return out;
}

/* Room goes where it serves most: a slot of 512 KiB that is kept costs as much as a hundred small
 * ones, and comes again as seldom. And to where something happens. */
static bool gives(struct blyi_bin *victim, const struct blyi_bin *bin)
{
    uint8_t count = (uint8_t)count_of(victim);
    victim->still = victim->seen != count ? 0 : (uint8_t)(victim->still + (victim->still < STILL));
    victim->seen = count;
    return victim != bin && limit_of(victim) > 0 &&
           (victim->still == STILL || (victim->size > bin->size && limit_of(bin) < ENOUGH));
}

/* Room for one more in a bin, at the cost of others in turn: what is asked for changes with time.
 * Slots that came out. */
static unsigned shift_room(struct blyi_cache *cache, unsigned class, struct blyi_parcel *slots)
{
    struct blyi_bin *bin = &cache->bins[class];
    unsigned n = 0;
    if (limit_of(bin) >= room_of(class) || !have_room(bin, class))
        return 0;
    for (unsigned i = 0; i < ASKED && cache->spare < bin->size && n == 0; i++) {
        struct blyi_bin *victim = &cache->bins[cache->victim++ % BLYI_CLASSES];
        uint32_t limit = limit_of(victim);
        if (!gives(victim, bin))
            continue;
        n = narrow(victim, bin->size - cache->spare, slots);
        cache->spare += (limit - limit_of(victim)) * (uint64_t)victim->size;
    }
    if (cache->spare >= bin->size) {
        cache->spare -= bin->size;
        set_end(bin, bin->end + 1);
    }
    return n;
}

/* How many slots to fetch beside the one that is asked for. */
static unsigned ahead_of(struct blyi_cache *cache, unsigned class)
{
    const struct blyi_bin *bin = &cache->bins[class];
    uint32_t ahead = (uint32_t)AHEAD / bin->size;
    ahead = ahead < BATCH ? ahead : BATCH;
    if (ahead > limit_of(bin) && blyi_grant_is_due(cache))
        widen(cache, class, ahead);
    return ahead < limit_of(bin) ? ahead : limit_of(bin);
}

bly_status blyi_cache_refill(struct blyi_cache *cache, unsigned class, struct blyi_parcel *slot)
{
    struct blyi_parcel slots[1 + BATCH];
    struct blyi_bin *bin = &cache->bins[class];
    unsigned n, kept = 1, ahead = ahead_of(cache, class);
    bly_status status = blyi_depot_take(cache->depot, BLY_POOL_ANY, class, slots, 1 + ahead, &n);
    if (status != BLY_OK)
        return status;
    *slot = slots[0];
    if (n == 1)
        return BLY_OK;
    enter(cache);
    while (kept < n && !is_full(bin))
        keep(bin, &slots[kept++]);
    blyi_cache_leave(cache);
    if (kept < n)
        blyi_depot_put(cache->depot, slots + kept, n - kept);
    return BLY_OK;
}

/* Slots that leave a full bin, so that the next ones find room: half of them, but not all. */
static unsigned surplus(const struct blyi_bin *bin)
{
    uint32_t half = limit_of(bin) / 2;
    return half < BATCH ? half : BATCH;
}

void blyi_cache_spill(struct blyi_cache *cache, const struct blyi_parcel *slot)
{
    struct blyi_parcel out[BIN_MAX + 1];
    unsigned class = slot->slab->class, n = 0;
    struct blyi_bin *bin = &cache->bins[class];
    if (is_full(bin) && blyi_grant_is_due(cache))
        widen(cache, class, 2 * limit_of(bin) + 1);
    enter(cache);
    if (is_full(bin) && cache->denied % SHIFT == 1)
        n = shift_room(cache, class, out);
    if (is_full(bin) && n == 0)
        n = unload(bin, surplus(bin), out);
    if (!is_full(bin))
        keep(bin, slot);
    else
        out[n++] = *slot;
    blyi_cache_leave(cache);
    if (n > 0)
        blyi_depot_put(cache->depot, out, n);
}
