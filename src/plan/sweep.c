/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.c - best fit with coalescing over a sorted array of holes. A few hundred holes are the
 * rule even for a million buffers, so a scan of an array beats a tree.
 */
#include "plan/sweep.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

#define ENDLESS (INT64_MAX / 2)

static bool by_section(const struct blyi_pack *pack, bool last, uint32_t **items, uint32_t **at)
{
    *items = blyi_host_alloc((pack->n + (size_t)1) * sizeof(**items));
    *at = blyi_host_calloc(pack->n_sections + (size_t)2, sizeof(**at));
    if (*items == NULL || *at == NULL)
        return false;
    uint32_t *count = *at;
    for (uint32_t i = 0; i < pack->n; i++)
        count[(last ? pack->items[i].last : pack->items[i].first) + 1]++;
    for (uint32_t s = 0; s < pack->n_sections; s++)
        count[s + 1] += count[s];
    for (uint32_t i = 0; i < pack->n; i++)
        (*items)[count[last ? pack->items[i].last : pack->items[i].first]++] = i;
    memmove(count + 1, count, pack->n_sections * sizeof(*count));
    count[0] = 0;
    return true;
}

bly_status blyi_timeline_init(struct blyi_timeline *line, const struct blyi_pack *pack)
{
    memset(line, 0, sizeof(*line));
    if (by_section(pack, false, &line->born, &line->born_at) &&
        by_section(pack, true, &line->dead, &line->dead_at))
        return BLY_OK;
    blyi_timeline_fini(line);
    return blyi_fail(BLY_E_HOST_MEMORY, "sorting %u buffers: the host has no memory", pack->n);
}

void blyi_timeline_fini(struct blyi_timeline *line)
{
    blyi_host_free(line->born);
    blyi_host_free(line->born_at);
    blyi_host_free(line->dead);
    blyi_host_free(line->dead_at);
    memset(line, 0, sizeof(*line));
}

/* Holes in order of offset; two arrays, so that a scan for a size reads sizes alone. */
struct holes {
    int64_t *start, *size;
    size_t n, room;
};

static bool holes_reserve(struct holes *h)
{
    if (h->n + 2 < h->room)
        return true;
    size_t room = h->room * 2 + 64;
    int64_t *start = blyi_host_realloc(h->start, room * sizeof(*start));
    if (start == NULL)
        return false;
    h->start = start;
    int64_t *size = blyi_host_realloc(h->size, room * sizeof(*size));
    if (size == NULL)
        return false;
    h->size = size;
    h->room = room;
    return true;
}

static void holes_insert(struct holes *h, size_t at, int64_t start, int64_t size)
{
    memmove(h->start + at + 1, h->start + at, (h->n - at) * sizeof(*h->start));
    memmove(h->size + at + 1, h->size + at, (h->n - at) * sizeof(*h->size));
    h->start[at] = start;
    h->size[at] = size;
    h->n++;
}

static void holes_remove(struct holes *h, size_t at)
{
    h->n--;
    memmove(h->start + at, h->start + at + 1, (h->n - at) * sizeof(*h->start));
    memmove(h->size + at, h->size + at + 1, (h->n - at) * sizeof(*h->size));
}

/* Room was reserved by holes_reserve(). */
static void holes_free(struct holes *h, int64_t start, int64_t size)
{
    size_t lo = 0, hi = h->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (h->start[mid] < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    bool below = lo > 0 && h->start[lo - 1] + h->size[lo - 1] == start;
    bool above = lo < h->n && h->start[lo] == start + size;
    if (below && above) {
        h->size[lo - 1] += size + h->size[lo];
        holes_remove(h, lo);
    } else if (below) {
        h->size[lo - 1] += size;
    } else if (above) {
        h->start[lo] = start;
        h->size[lo] += size;
    } else {
        holes_insert(h, lo, start, size);
    }
}

/* Takes [start, start + size) out of hole `at`. */
static void holes_cut(struct holes *h, size_t at, int64_t start, int64_t size)
{
    int64_t before = start - h->start[at];
    int64_t after = h->start[at] + h->size[at] - (start + size);
    if (before == 0 && after == 0) {
        holes_remove(h, at);
    } else if (before == 0) {
        h->start[at] = start + size;
        h->size[at] = after;
    } else {
        h->size[at] = before;
        if (after > 0)
            holes_insert(h, at + 1, start + size, after);
    }
}

/* The hole for an item; all holes together always have room, the last being endless. */
static size_t choose_hole(const struct holes *h, const struct blyi_pack *pack, uint32_t item,
                          enum blyi_sweep_fit fit)
{
    int64_t need = pack->items[item].size, best_size = INT64_MAX;
    size_t best = h->n - 1;
    for (size_t x = 0; x < h->n; x++) {
        int64_t size = h->size[x];
        if (size < need || size >= best_size)
            continue;
        if (pack->align != NULL &&
            h->start[x] + size - blyi_pack_align(pack, item, h->start[x]) < need)
            continue;
        best = x;
        best_size = size;
        if (fit == BLYI_SWEEP_FIRST || size == need)
            break;
    }
    return best;
}

/* The highest hole below `ceiling`, or the lowest for what lives long; n: there is none. */
static size_t choose_end(const struct holes *h, int64_t need, int64_t ceiling, bool lowest)
{
    if (lowest) {
        for (size_t x = 0; x < h->n && h->start[x] + need <= ceiling; x++) {
            if (h->size[x] >= need)
                return x;
        }
        return h->n;
    }
    for (size_t x = h->n; x-- > 0;) {
        int64_t end = h->start[x] + h->size[x];
        if ((end < ceiling ? end : ceiling) - h->start[x] >= need)
            return x;
    }
    return h->n;
}

static int64_t place(struct holes *h, const struct blyi_pack *pack, uint32_t item,
                     enum blyi_sweep_fit fit, int64_t ceiling, bool lowest)
{
    int64_t size = pack->items[item].size;
    size_t x = h->n;
    if (fit == BLYI_SWEEP_TWO_ENDED && pack->align == NULL)
        x = choose_end(h, size, ceiling, lowest);
    bool high = x < h->n && !lowest;
    if (x == h->n)
        x = choose_hole(h, pack, item, fit);
    int64_t start = blyi_pack_align(pack, item, h->start[x]);
    if (high) {
        int64_t end = h->start[x] + h->size[x];
        start = (end < ceiling ? end : ceiling) - size;
    }
    holes_cut(h, x, start, size);
    return start;
}

bly_status blyi_sweep(const struct blyi_pack *pack, const struct blyi_timeline *line,
                      enum blyi_sweep_fit fit, int64_t ceiling, uint32_t long_life,
                      struct blyi_stop *stop, int64_t *offset, bool *done)
{
    uint32_t s = 0;
    struct holes h = {NULL, NULL, 0, 0};
    if (!holes_reserve(&h))
        goto fail;
    holes_insert(&h, 0, 0, ENDLESS);
    for (; s < pack->n_sections && (stop == NULL || !blyi_stop_poll(stop)); s++) {
        for (uint32_t x = line->born_at[s]; x < line->born_at[s + 1]; x++) {
            uint32_t i = line->born[x];
            if (!holes_reserve(&h))
                goto fail;
            bool lowest = pack->items[i].last - pack->items[i].first >= long_life;
            offset[i] = place(&h, pack, i, fit, ceiling, lowest);
        }
        for (uint32_t x = line->dead_at[s]; x < line->dead_at[s + 1]; x++) {
            uint32_t i = line->dead[x];
            if (!holes_reserve(&h))
                goto fail;
            holes_free(&h, offset[i], pack->items[i].size);
        }
    }
    blyi_host_free(h.start);
    blyi_host_free(h.size);
    *done = s == pack->n_sections;
    return BLY_OK;

fail:
    blyi_host_free(h.start);
    blyi_host_free(h.size);
    return blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory", pack->n);
}
