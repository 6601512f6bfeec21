/* SPDX-License-Identifier: Apache-2.0
 *
 * view_place.c - where blocks are drawn.
 */
#include "view_data.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/ranges.h"

static uint64_t size_of(const struct blyi_life *life)
{
    uint64_t size = life->rounded > life->asked ? life->rounded : life->asked;
    return size > 0 ? size : 1;
}

/* ── By address ───────────────────────────────────────────────────────────────────────────── */

static const struct blyi_history *sorted_history; /* for compare() alone */

static int compare(const void *a, const void *b)
{
    const struct blyi_life *x = &sorted_history->lives[*(const uint32_t *)a];
    const struct blyi_life *y = &sorted_history->lives[*(const uint32_t *)b];
    if (x->card != y->card)
        return x->card < y->card ? -1 : 1;
    return (x->address > y->address) - (x->address < y->address);
}

/* Blocks by rising address; what lies between them and was never in one is left out. */
static void place_by_address(const struct blyi_history *h, uint32_t *order, size_t n,
                             struct view_places *out)
{
    uint64_t end = 0, y = 0; /* y stands for address `end` */
    uint8_t card = BLYI_NO_CARD;
    sorted_history = h;
    if (n > 0)
        qsort(order, n, sizeof(*order), compare);
    for (size_t i = 0; i < n; i++) {
        const struct blyi_life *life = &h->lives[order[i]];
        uint64_t size = size_of(life);
        if (life->card != card || life->address > end) {
            card = life->card;
            end = life->address;
        }
        out->y[order[i]] = y - (end - life->address);
        uint64_t stop = life->address + size < life->address ? UINT64_MAX : life->address + size;
        if (stop > end) {
            y += stop - end;
            end = stop;
        }
    }
    out->height = y;
}

/* ── By best fit ──────────────────────────────────────────────────────────────────────────── */

#define UNIT 512u

static uint64_t units(const struct blyi_life *life)
{
    return (size_of(life) - 1) / UNIT + 1;
}

/* A file may say anything: what finds no room is not drawn. */
static bool put(struct blyi_ranges *ranges, const struct blyi_life *life, uint64_t *y,
                uint64_t *height)
{
    uint64_t at;
    bly_status status = blyi_ranges_take(ranges, units(life), 1, &at);
    *y = VIEW_NOWHERE;
    if (status != BLY_OK)
        return status == BLY_E_NO_MEMORY;
    *y = at * UNIT;
    if ((at + units(life)) * UNIT > *height)
        *height = (at + units(life)) * UNIT;
    return true;
}

static bool place_packed(const struct blyi_history *h, struct view_places *out)
{
    struct blyi_ranges ranges;
    blyi_ranges_init(&ranges);
    bool ok = blyi_ranges_add(&ranges, 0, (uint64_t)1 << 53) == BLY_OK;
    for (size_t i = 0; ok && i < h->n_start; i++)
        if (blyi_is_card(&h->lives[i]))
            ok = put(&ranges, &h->lives[i], &out->y[i], &out->height);
    for (size_t i = 0; ok && i < h->n_changes; i++) {
        struct blyi_change change = h->changes[i];
        if (change.kind > BLYI_CHANGE_DIED || !blyi_is_card(&h->lives[change.index]))
            continue;
        if (change.kind == BLYI_CHANGE_BORN)
            ok = put(&ranges, &h->lives[change.index], &out->y[change.index], &out->height);
        else if (out->y[change.index] != VIEW_NOWHERE)
            ok = blyi_ranges_add(&ranges, out->y[change.index] / UNIT,
                                 units(&h->lives[change.index])) == BLY_OK;
    }
    blyi_ranges_fini(&ranges);
    return ok;
}

bly_status view_places_make(const struct blyi_insight *in, bool packed, struct view_places *out)
{
    const struct blyi_history *h = &in->history;
    uint32_t *order = packed ? NULL : blyi_host_alloc((h->n_lives + 1) * sizeof(*order));
    size_t n = 0;
    *out = (struct view_places){.packed = packed};
    out->y = blyi_host_calloc(h->n_lives + 1, sizeof(*out->y));
    bool ok = out->y != NULL && (packed || order != NULL);
    if (ok && packed)
        ok = place_packed(h, out);
    for (size_t i = 0; ok && !packed && i < h->n_lives; i++)
        if (blyi_is_card(&h->lives[i]) && h->lives[i].class_ == BLYI_TRACE_CARD_BLOCK)
            order[n++] = (uint32_t)i;
    if (ok && !packed)
        place_by_address(h, order, n, out);
    blyi_host_free(order);
    if (ok)
        return BLY_OK;
    blyi_host_free(out->y);
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to draw its blocks", in->info->name);
}
