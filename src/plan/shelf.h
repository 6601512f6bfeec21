/* SPDX-License-Identifier: Apache-2.0
 *
 * shelf.h - buffers that have a place, sorted by offset: finds room for one more.
 *
 * A search for room walks the shelf upwards and reads it in order of memory, which beats
 * cleverer structures up to some ten thousand buffers.
 */
#ifndef BLYI_PLAN_SHELF_H
#define BLYI_PLAN_SHELF_H

#include "plan/pack.h"
#include "plan/sort.h"

struct blyi_shelf_entry {
    int64_t start, end;
    uint32_t first, last;
    uint32_t item;
};

struct blyi_shelf {
    const struct blyi_pack *pack;
    struct blyi_shelf_entry *entries;
    size_t n;
    int64_t *offset; /* per item, BLYI_PACK_FREE when it is not on the shelf */
};

/* The sections in which an item has to be free, as one span or as pieces. */
struct blyi_shelf_wish {
    uint32_t first, last;
    uint32_t count; /* of pieces; 0: the span is all of it */
    const struct blyi_pack_piece *pieces;
};

static inline struct blyi_shelf_wish blyi_shelf_wish_of(const struct blyi_pack *pack, uint32_t item)
{
    struct blyi_shelf_wish w = {pack->items[item].first, pack->items[item].last, 0, NULL};
    if (pack->piece_at != NULL) {
        w.count = pack->piece_at[item + 1] - pack->piece_at[item];
        w.pieces = &pack->pieces[pack->piece_at[item]];
    }
    return w;
}

static inline bool blyi_shelf_meets(const struct blyi_shelf_wish *w, uint32_t first, uint32_t last)
{
    bool meets = (first <= w->last) & (last >= w->first);
    if (w->count > 0 && meets) {
        meets = false;
        for (uint32_t c = 0; c < w->count && !meets; c++)
            meets = first <= w->pieces[c].last && w->pieces[c].first <= last;
    }
    return meets;
}

bly_status blyi_shelf_init(struct blyi_shelf *shelf, const struct blyi_pack *pack);
void blyi_shelf_fini(struct blyi_shelf *shelf);

/* Everything that is fixed, and of the rest what offset[] names a place for that ends at or below
 * `capacity`. keys: room for twice the pieces. */
void blyi_shelf_load(struct blyi_shelf *shelf, const int64_t *offset, int64_t capacity,
                     struct blyi_sort_key *keys);
/* Empties it and puts the fixed items back. */
void blyi_shelf_reset(struct blyi_shelf *shelf);
void blyi_shelf_put(struct blyi_shelf *shelf, uint32_t item, int64_t offset);
void blyi_shelf_take(struct blyi_shelf *shelf, uint32_t item);

/* Lowest offset at which the item fits; with `tight`, the one whose hole is smallest. */
int64_t blyi_shelf_room(const struct blyi_shelf *shelf, uint32_t item, bool tight);

#endif
