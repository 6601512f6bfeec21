/* SPDX-License-Identifier: Apache-2.0
 *
 * around.c - first fit over a sorted array of holes, in which what is placed already is taken
 * out of them when it is born, and looked ahead for.
 */
#include "plan/around.h"

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/holes.h"
#include "plan/sort.h"

struct around {
    const struct blyi_pack *pack;
    const struct blyi_timeline *line;
    int64_t *offset;
    struct blyi_holes holes;
    uint32_t *placed;    /* items placed before, by birth */
    size_t n_placed, at; /* so many of them were born */
    bool *is_placed;
    struct blyi_sort_key *ahead; /* of `placed`, by offset; and room to sort */
};

static bool around_init(struct around *a)
{
    size_t n = a->pack->n;
    a->placed = blyi_host_alloc_dense((n + 1) * sizeof(*a->placed));
    a->is_placed = blyi_host_alloc_dense((n + 1) * sizeof(*a->is_placed));
    if (a->placed == NULL || a->is_placed == NULL || !blyi_holes_reserve(&a->holes))
        return false;
    for (size_t x = 0; x < n; x++) {
        uint32_t i = a->line->born[x];
        a->is_placed[i] = a->offset[i] != BLYI_PACK_FREE;
        if (a->is_placed[i])
            a->placed[a->n_placed++] = i;
    }
    a->ahead = blyi_host_alloc_dense((2 * a->n_placed + 1) * sizeof(*a->ahead));
    blyi_holes_insert(&a->holes, 0, 0, BLYI_HOLES_ENDLESS);
    return a->ahead != NULL;
}

static void around_fini(struct around *a)
{
    blyi_holes_fini(&a->holes);
    blyi_host_free(a->placed);
    blyi_host_free(a->is_placed);
    blyi_host_free(a->ahead);
}

/* Gathers those that are born during the life of item i, by offset. */
static size_t look_ahead(struct around *a, uint32_t i)
{
    const struct blyi_pack_item *items = a->pack->items;
    size_t n = 0;
    for (size_t x = a->at; x < a->n_placed; x++) {
        uint32_t k = a->placed[x];
        if (items[k].first > items[i].last)
            break;
        a->ahead[n++] = (struct blyi_sort_key){(uint64_t)a->offset[k], k};
    }
    blyi_sort_keys(a->ahead, a->ahead + n, n);
    return n;
}

/* Walks up holes and what is ahead together: `floor` is where neither is in the way from below. */
static size_t find_place(const struct around *a, int64_t size, size_t n_ahead, int64_t *floor)
{
    const struct blyi_holes *h = &a->holes;
    size_t next = 0;
    *floor = 0;
    for (size_t x = 0; x < h->n; x++) {
        int64_t end = h->start[x] + h->size[x];
        if (h->size[x] < size || end - *floor < size)
            continue;
        *floor = h->start[x] > *floor ? h->start[x] : *floor;
        for (; next < n_ahead && (int64_t)a->ahead[next].key < *floor + size; next++) {
            uint32_t k = a->ahead[next].value;
            int64_t above = a->offset[k] + a->pack->items[k].size;
            *floor = above > *floor ? above : *floor;
        }
        if (end - *floor >= size)
            return x;
    }
    bly_assert(false); /* the last hole is endless */
    return h->n - 1;
}

/* A hole is cut around what was placed before. */
static void open_place(struct around *a, uint32_t i)
{
    size_t x = blyi_holes_find(&a->holes, a->offset[i] + 1) - 1;
    blyi_holes_cut(&a->holes, x, a->offset[i], a->pack->items[i].size);
}

static bool births(struct around *a, uint32_t section)
{
    const struct blyi_timeline *line = a->line;
    for (; a->at < a->n_placed && a->pack->items[a->placed[a->at]].first == section; a->at++) {
        if (!blyi_holes_reserve(&a->holes))
            return false;
        open_place(a, a->placed[a->at]);
    }
    for (uint32_t x = line->born_at[section]; x < line->born_at[section + 1]; x++) {
        uint32_t i = line->born[x];
        if (a->is_placed[i])
            continue;
        if (!blyi_holes_reserve(&a->holes))
            return false;
        int64_t size = a->pack->items[i].size;
        size_t hole = find_place(a, size, look_ahead(a, i), &a->offset[i]);
        blyi_holes_cut(&a->holes, hole, a->offset[i], size);
    }
    return true;
}

bly_status blyi_sweep_around(const struct blyi_pack *pack, const struct blyi_timeline *line,
                             int64_t *offset)
{
    struct around a = {.pack = pack, .line = line, .offset = offset};
    bool ok = around_init(&a);
    for (uint32_t s = 0; ok && s < pack->n_sections; s++) {
        ok = births(&a, s);
        for (uint32_t x = line->dead_at[s]; ok && x < line->dead_at[s + 1]; x++) {
            uint32_t i = line->dead[x];
            ok = blyi_holes_reserve(&a.holes);
            if (ok)
                blyi_holes_free(&a.holes, offset[i], pack->items[i].size);
        }
    }
    around_fini(&a);
    return ok ? BLY_OK
              : blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory", pack->n);
}
