/* SPDX-License-Identifier: Apache-2.0
 *
 * shelf.c - a sorted array of entries, one per piece of a buffer.
 */
#include "plan/shelf.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

bly_status blyi_shelf_init(struct blyi_shelf *shelf, const struct blyi_pack *pack)
{
    size_t pieces = pack->piece_at != NULL ? pack->piece_at[pack->n] : pack->n;
    shelf->pack = pack;
    shelf->n = 0;
    shelf->entries = blyi_host_alloc((pieces + 1) * sizeof(*shelf->entries));
    shelf->offset = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*shelf->offset));
    if (shelf->entries == NULL || shelf->offset == NULL) {
        blyi_shelf_fini(shelf);
        return blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory for it",
                         pack->n);
    }
    blyi_shelf_reset(shelf);
    return BLY_OK;
}

void blyi_shelf_fini(struct blyi_shelf *shelf)
{
    blyi_host_free(shelf->entries);
    blyi_host_free(shelf->offset);
    memset(shelf, 0, sizeof(*shelf));
}

static void append(struct blyi_shelf *shelf, uint32_t item, int64_t offset)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(shelf->pack, item, &count, &own);
    for (uint32_t c = 0; c < count; c++)
        shelf->entries[shelf->n++] = (struct blyi_shelf_entry){offset + p[c].lo, offset + p[c].hi,
                                                               p[c].first, p[c].last, item};
    shelf->offset[item] = offset;
}

void blyi_shelf_load(struct blyi_shelf *shelf, const int64_t *offset, int64_t capacity,
                     struct blyi_sort_key *keys)
{
    const struct blyi_pack *pack = shelf->pack;
    shelf->n = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        shelf->offset[i] = BLYI_PACK_FREE;
        if (blyi_pack_is_fixed(pack, i))
            append(shelf, i, pack->fixed[i]);
        else if (offset[i] != BLYI_PACK_FREE && offset[i] + pack->items[i].size <= capacity)
            append(shelf, i, offset[i]);
    }
    for (size_t x = 0; x < shelf->n; x++)
        keys[x] = (struct blyi_sort_key){(uint64_t)shelf->entries[x].start, (uint32_t)x};
    blyi_sort_keys(keys, keys + shelf->n, shelf->n);
    /* Each cycle of the permutation is moved through one spare entry. */
    for (size_t x = 0; x < shelf->n; x++) {
        struct blyi_shelf_entry first = shelf->entries[x];
        size_t at = x;
        for (; keys[at].value != x; at = (size_t)(keys[at].key)) {
            keys[at].key = keys[at].value;
            shelf->entries[at] = shelf->entries[keys[at].value];
            keys[at].value = (uint32_t)at;
        }
        if (at != x)
            shelf->entries[at] = first;
        keys[at].value = (uint32_t)at;
    }
}

void blyi_shelf_reset(struct blyi_shelf *shelf)
{
    shelf->n = 0;
    for (uint32_t i = 0; i < shelf->pack->n; i++)
        shelf->offset[i] = BLYI_PACK_FREE;
    for (uint32_t i = 0; i < shelf->pack->n; i++) {
        if (blyi_pack_is_fixed(shelf->pack, i))
            blyi_shelf_put(shelf, i, shelf->pack->fixed[i]);
    }
}

/* First entry that starts at or above `start`. */
static size_t find_start(const struct blyi_shelf *shelf, int64_t start)
{
    size_t lo = 0, hi = shelf->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (shelf->entries[mid].start < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void blyi_shelf_put(struct blyi_shelf *shelf, uint32_t item, int64_t offset)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(shelf->pack, item, &count, &own);
    for (uint32_t c = 0; c < count; c++) {
        int64_t start = offset + p[c].lo;
        size_t at = find_start(shelf, start);
        memmove(shelf->entries + at + 1, shelf->entries + at,
                (shelf->n - at) * sizeof(*shelf->entries));
        shelf->entries[at] =
            (struct blyi_shelf_entry){start, offset + p[c].hi, p[c].first, p[c].last, item};
        shelf->n++;
    }
    shelf->offset[item] = offset;
}

void blyi_shelf_take(struct blyi_shelf *shelf, uint32_t item)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(shelf->pack, item, &count, &own);
    for (uint32_t c = 0; c < count; c++) {
        size_t at = find_start(shelf, shelf->offset[item] + p[c].lo);
        while (shelf->entries[at].item != item)
            at++;
        shelf->n--;
        memmove(shelf->entries + at, shelf->entries + at + 1,
                (shelf->n - at) * sizeof(*shelf->entries));
    }
    shelf->offset[item] = BLYI_PACK_FREE;
}

int64_t blyi_shelf_room(const struct blyi_shelf *shelf, uint32_t item, bool tight)
{
    const struct blyi_pack *pack = shelf->pack;
    struct blyi_shelf_wish w = blyi_shelf_wish_of(pack, item);
    int64_t size = pack->items[item].size;
    int64_t top = 0, best = BLYI_PACK_FREE, best_hole = INT64_MAX;
    for (size_t x = 0; x < shelf->n; x++) {
        const struct blyi_shelf_entry *e = &shelf->entries[x];
        if (!blyi_shelf_meets(&w, e->first, e->last))
            continue;
        if (e->start - top >= size) {
            if (!tight)
                return top;
            if (e->start - top < best_hole) {
                best_hole = e->start - top;
                best = top;
            }
        }
        if (e->end > top)
            top = blyi_pack_align(pack, item, e->end);
    }
    return best == BLYI_PACK_FREE ? top : best;
}
