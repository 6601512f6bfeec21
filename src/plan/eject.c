/* SPDX-License-Identifier: Apache-2.0
 *
 * eject.c - guided ejection: each item has a price that rises every time it could not be
 * placed; an item goes where the sum of prices of those it displaces is least.
 *
 * The price of a place [o, o + size) is the price of all met items that start below its end,
 * less that of those that end at or below its start: two sorted lists and running sums give
 * all candidates in one walk. Both lists are picked out of all that is placed, which is kept
 * sorted by start (the shelf) and by end, without a branch on what nobody can foresee.
 */
#include "plan/eject.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/sort.h"

#define PRICE_FIXED ((uint64_t)1 << 48)

/* Start or end of a piece that the item being placed meets in time. */
struct mark {
    int64_t at;
    uint64_t before; /* price of all marks below */
};

#define MARKS_SPARE                                                                                \
    4 /* marks above everything, so that a walk need not ask where the list ends                   \
       */

/* A piece that is placed, in the list by end. */
struct placed {
    int64_t end;
    uint32_t first, last;
    uint32_t item;
};

struct blyi_eject {
    const struct blyi_pack *pack;
    struct blyi_shelf shelf;
    struct placed *by_end; /* what is on the shelf */
    uint64_t *price;
    uint32_t *pool; /* items without a place */
    size_t n_pool;
    struct mark *starts, *ends; /* of what the item being placed meets, in order */
    size_t n_met;
    struct blyi_sort_key *keys; /* room to sort all of them, twice */
};

struct best_place {
    uint64_t price;
    int64_t offset;
    uint64_t ties;
};

bly_status blyi_eject_create(const struct blyi_pack *pack, struct blyi_eject **eject)
{
    size_t pieces = 1 + (pack->piece_at != NULL ? pack->piece_at[pack->n] : pack->n);
    struct blyi_eject *e = blyi_host_calloc(1, sizeof(*e));
    if (e == NULL)
        goto fail;
    e->pack = pack;
    e->price = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*e->price));
    e->pool = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*e->pool));
    e->starts = blyi_host_alloc((pieces + MARKS_SPARE) * sizeof(*e->starts));
    e->ends = blyi_host_alloc((pieces + MARKS_SPARE) * sizeof(*e->ends));
    e->by_end = blyi_host_alloc(pieces * sizeof(*e->by_end));
    e->keys = blyi_host_alloc(2 * pieces * sizeof(*e->keys));
    if (!e->price || !e->pool || !e->starts || !e->ends || !e->by_end || !e->keys ||
        blyi_shelf_init(&e->shelf, pack) != BLY_OK)
        goto fail;
    *eject = e;
    return BLY_OK;

fail:
    blyi_eject_destroy(e);
    return blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory for it",
                     pack->n);
}

void blyi_eject_destroy(struct blyi_eject *e)
{
    if (e == NULL)
        return;
    blyi_shelf_fini(&e->shelf);
    blyi_host_free(e->price);
    blyi_host_free(e->pool);
    blyi_host_free(e->starts);
    blyi_host_free(e->ends);
    blyi_host_free(e->by_end);
    blyi_host_free(e->keys);
    blyi_host_free(e);
}

/* First of what is placed that ends at or above `end`. */
static size_t find_end(const struct blyi_eject *e, int64_t end, size_t n)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (e->by_end[mid].end < end)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void put(struct blyi_eject *e, uint32_t item, int64_t offset)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(e->pack, item, &count, &own);
    size_t n = e->shelf.n;
    for (uint32_t c = 0; c < count; c++, n++) {
        size_t at = find_end(e, offset + p[c].hi, n);
        memmove(e->by_end + at + 1, e->by_end + at, (n - at) * sizeof(*e->by_end));
        e->by_end[at] = (struct placed){offset + p[c].hi, p[c].first, p[c].last, item};
    }
    blyi_shelf_put(&e->shelf, item, offset);
}

static void take(struct blyi_eject *e, uint32_t item)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(e->pack, item, &count, &own);
    size_t n = e->shelf.n;
    for (uint32_t c = 0; c < count; c++) {
        size_t at = find_end(e, e->shelf.offset[item] + p[c].hi, n);
        while (e->by_end[at].item != item)
            at++;
        n--;
        memmove(e->by_end + at, e->by_end + at + 1, (n - at) * sizeof(*e->by_end));
    }
    blyi_shelf_take(&e->shelf, item);
}

/* Writes a mark for each and keeps those that are met. */
static void collect_met(struct blyi_eject *e, uint32_t item)
{
    struct blyi_shelf_wish w = blyi_shelf_wish_of(e->pack, item);
    struct mark *start = e->starts, *end = e->ends;
    const uint64_t *price = e->price;
    uint64_t started = 0, ended = 0;
    const struct blyi_shelf_entry *by_start = e->shelf.entries, *stop = by_start + e->shelf.n;
    for (const struct blyi_shelf_entry *on = by_start; on < stop; on++) {
        bool meets = blyi_shelf_meets(&w, on->first, on->last);
        *start = (struct mark){on->start, started};
        started += price[on->item] & -(uint64_t)meets;
        start += meets;
    }
    const struct placed *by_end = e->by_end, *last = by_end + e->shelf.n;
    for (const struct placed *on = by_end; on < last; on++) {
        bool meets = blyi_shelf_meets(&w, on->first, on->last);
        *end = (struct mark){on->end, ended};
        ended += price[on->item] & -(uint64_t)meets;
        end += meets;
    }
    e->n_met = (size_t)(start - e->starts);
    for (int x = 0; x < MARKS_SPARE; x++)
        start[x] = end[x] = (struct mark){INT64_MAX, started};
}

/* First mark from `at` on that is not below the limit. Mostly it is one of the next few, and which
 * one nobody can foresee: so they are counted, not branched on. */
static size_t pass(const struct mark *marks, size_t at, int64_t limit)
{
    for (;;) {
        const struct mark *m = &marks[at];
        size_t below = (size_t)(m[0].at < limit) + (size_t)(m[1].at < limit) +
                       (size_t)(m[2].at < limit) + (size_t)(m[3].at < limit);
        at += below;
        if (below < MARKS_SPARE)
            return at;
    }
}

/* One of the cheapest places, each as likely. */
static void take_place(struct best_place *best, struct blyi_rand *rand, int64_t offset,
                       uint64_t price)
{
    best->ties = price < best->price ? 1 : best->ties + 1;
    if (best->ties > 1 && blyi_rand_below(rand, best->ties) != 0)
        return;
    best->price = price;
    best->offset = offset;
}

static inline void consider(struct best_place *best, struct blyi_rand *rand, int64_t offset,
                            uint64_t price)
{
    if (price <= best->price)
        take_place(best, rand, offset, price);
}

/* Places on top of what is met, rising. */
static void walk_tops(const struct blyi_eject *e, uint32_t item, int64_t capacity,
                      struct blyi_rand *rand, struct best_place *best)
{
    int64_t size = e->pack->items[item].size;
    size_t s = 0, d = 0;
    for (size_t c = 0; c <= e->n_met; c++) {
        int64_t offset = c == 0 ? 0 : blyi_pack_align(e->pack, item, e->ends[c - 1].at);
        if (offset + size > capacity)
            break;
        s = pass(e->starts, s, offset + size);
        d = pass(e->ends, d, offset + 1);
        consider(best, rand, offset, e->starts[s].before - e->ends[d].before);
    }
}

/* Places right below what is met and below the capacity, rising. */
static void walk_bottoms(const struct blyi_eject *e, uint32_t item, int64_t capacity,
                         struct blyi_rand *rand, struct best_place *best)
{
    int64_t size = e->pack->items[item].size;
    size_t s = 0, d = 0;
    for (size_t c = 0; c <= e->n_met; c++) {
        int64_t end = c < e->n_met ? e->starts[c].at : capacity, offset = end - size;
        if (end > capacity)
            break;
        if (offset < 0 || blyi_pack_align(e->pack, item, offset) != offset)
            continue;
        s = pass(e->starts, s, end);
        d = pass(e->ends, d, offset + 1);
        consider(best, rand, offset, e->starts[s].before - e->ends[d].before);
    }
}

/* Takes away everything that the item meets at `offset`. */
static void displace(struct blyi_eject *e, uint32_t item, int64_t offset)
{
    struct blyi_shelf_wish w = blyi_shelf_wish_of(e->pack, item);
    int64_t end = offset + e->pack->items[item].size;
    const struct blyi_shelf_entry *on = e->shelf.entries, *stop = on + e->shelf.n;
    size_t from = e->n_pool;
    for (; on < stop && on->start < end; on++) {
        if (on->end <= offset || !blyi_shelf_meets(&w, on->first, on->last))
            continue;
        size_t known = from; /* another piece of it may be in the way, too */
        while (known < e->n_pool && e->pool[known] != on->item)
            known++;
        e->pool[known] = on->item;
        e->n_pool += known == e->n_pool;
    }
    for (size_t x = from; x < e->n_pool; x++)
        take(e, e->pool[x]);
}

static void begin(struct blyi_eject *e, int64_t capacity, const int64_t *offset)
{
    const struct blyi_pack *pack = e->pack;
    blyi_shelf_load(&e->shelf, offset, capacity, e->keys);
    for (size_t x = 0; x < e->shelf.n; x++)
        e->keys[x] = (struct blyi_sort_key){(uint64_t)e->shelf.entries[x].end, (uint32_t)x};
    blyi_sort_keys(e->keys, e->keys + e->shelf.n, e->shelf.n);
    for (size_t x = 0; x < e->shelf.n; x++) {
        const struct blyi_shelf_entry *on = &e->shelf.entries[e->keys[x].value];
        e->by_end[x] = (struct placed){on->end, on->first, on->last, on->item};
    }
    e->n_pool = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        e->price[i] = blyi_pack_is_fixed(pack, i) ? PRICE_FIXED : 1;
        if (e->shelf.offset[i] == BLYI_PACK_FREE)
            e->pool[e->n_pool++] = i;
    }
}

bool blyi_eject_run(struct blyi_eject *e, int64_t capacity, struct blyi_rand *rand, uint64_t *steps,
                    struct blyi_stop *stop, int64_t *offset)
{
    begin(e, capacity, offset);
    while (e->n_pool > 0) {
        if (*steps == 0 || blyi_stop_poll(stop))
            return false;
        --*steps;
        uint32_t item = e->pool[--e->n_pool];
        struct best_place best = {PRICE_FIXED - 1, BLYI_PACK_FREE, 0};
        collect_met(e, item);
        walk_tops(e, item, capacity, rand, &best);
        walk_bottoms(e, item, capacity, rand, &best);
        if (best.offset == BLYI_PACK_FREE)
            return false;
        if (best.price > 0) {
            e->price[item]++;
            displace(e, item, best.offset);
        }
        put(e, item, best.offset);
    }
    memcpy(offset, e->shelf.offset, e->pack->n * sizeof(*offset));
    return true;
}
