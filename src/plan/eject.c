/* SPDX-License-Identifier: Apache-2.0
 *
 * eject.c - guided ejection: each item has a price that rises every time it could not be
 * placed; an item goes where the sum of prices of those it displaces is least.
 *
 * The price of a place [o, o + size) is the price of all met items that start below its end,
 * less that of those that end at or below its start: two sorted lists and running sums give
 * all candidates in one walk.
 */
#include "plan/eject.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/sort.h"

#define PRICE_FIXED ((uint64_t)1 << 48)

struct blyi_eject {
    const struct blyi_pack *pack;
    struct blyi_shelf shelf;
    uint64_t *price;
    uint32_t *pool; /* items without a place */
    size_t n_pool;
    struct blyi_shelf_entry *met; /* of the item being placed, by start */
    struct blyi_sort_key *ends;   /* the same by end, and room to sort */
    size_t n_met;
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
    e->met = blyi_host_alloc(pieces * sizeof(*e->met));
    e->ends = blyi_host_alloc(2 * pieces * sizeof(*e->ends));
    if (!e->price || !e->pool || !e->met || !e->ends || blyi_shelf_init(&e->shelf, pack) != BLY_OK)
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
    blyi_host_free(e->met);
    blyi_host_free(e->ends);
    blyi_host_free(e);
}

static uint64_t price_of(const struct blyi_eject *e, uint32_t item)
{
    return blyi_pack_is_fixed(e->pack, item) ? PRICE_FIXED : e->price[item];
}

static void collect_met(struct blyi_eject *e, uint32_t item)
{
    struct blyi_shelf_wish w = blyi_shelf_wish_of(e->pack, item);
    e->n_met = 0;
    for (size_t x = 0; x < e->shelf.n; x++) {
        if (!blyi_shelf_meets(&w, &e->shelf.entries[x]))
            continue;
        const struct blyi_shelf_entry *met = &e->shelf.entries[x];
        e->ends[e->n_met] = (struct blyi_sort_key){(uint64_t)met->end, met->item};
        e->met[e->n_met++] = *met;
    }
    blyi_sort_keys(e->ends, e->ends + e->n_met, e->n_met);
}

static void consider(struct best_place *best, struct blyi_rand *rand, int64_t offset,
                     uint64_t price)
{
    if (price > best->price)
        return;
    best->ties = price < best->price ? 1 : best->ties + 1;
    if (best->ties > 1 && blyi_rand_below(rand, best->ties) != 0)
        return;
    best->price = price;
    best->offset = offset;
}

/* One walk over candidates of rising offset: `above` takes places on top of met items, else
 * places right below them. */
static void walk(const struct blyi_eject *e, uint32_t item, int64_t capacity, bool above,
                 struct blyi_rand *rand, struct best_place *best)
{
    const struct blyi_pack *pack = e->pack;
    int64_t size = pack->items[item].size;
    uint64_t started = 0, ended = 0;
    size_t s = 0, d = 0;
    for (size_t c = 0; c <= e->n_met; c++) {
        int64_t offset;
        if (above)
            offset = c == 0 ? 0 : blyi_pack_align(pack, item, (int64_t)e->ends[c - 1].key);
        else
            offset = (c < e->n_met ? e->met[c].start : capacity) - size;
        if (offset < 0 || offset + size > capacity || blyi_pack_align(pack, item, offset) != offset)
            continue;
        for (; s < e->n_met && e->met[s].start < offset + size; s++)
            started += price_of(e, e->met[s].item);
        for (; d < e->n_met && (int64_t)e->ends[d].key <= offset; d++)
            ended += price_of(e, e->ends[d].value);
        consider(best, rand, offset, started - ended);
    }
}

/* Takes away everything that the item meets at `offset`. */
static void displace(struct blyi_eject *e, uint32_t item, int64_t offset)
{
    int64_t end = offset + e->pack->items[item].size;
    for (size_t x = 0; x < e->n_met && e->met[x].start < end; x++) {
        uint32_t k = e->met[x].item;
        if (e->met[x].end <= offset || e->shelf.offset[k] == BLYI_PACK_FREE)
            continue;
        blyi_shelf_take(&e->shelf, k);
        e->pool[e->n_pool++] = k;
    }
}

static void begin(struct blyi_eject *e, int64_t capacity, const int64_t *offset)
{
    const struct blyi_pack *pack = e->pack;
    blyi_shelf_load(&e->shelf, offset, capacity, e->ends);
    e->n_pool = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        e->price[i] = 1;
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
        walk(e, item, capacity, true, rand, &best);
        walk(e, item, capacity, false, rand, &best);
        if (best.offset == BLYI_PACK_FREE)
            return false;
        if (best.price > 0) {
            e->price[item]++;
            displace(e, item, best.offset);
        }
        blyi_shelf_put(&e->shelf, item, best.offset);
    }
    memcpy(offset, e->shelf.offset, e->pack->n * sizeof(*offset));
    return true;
}
