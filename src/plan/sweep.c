/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep.c - best fit with coalescing over a sorted array of holes. A few hundred holes are the
 * rule even for a million buffers, so a scan of an array beats a tree.
 */
#include "plan/sweep.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/holes.h"

static bool by_section(const struct blyi_pack *pack, bool last, uint32_t **items, uint32_t **at)
{
    *items = blyi_host_alloc_dense((pack->n + (size_t)1) * sizeof(**items));
    *at = blyi_host_calloc_dense(pack->n_sections + (size_t)2, sizeof(**at));
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

/* The smallest hole that fits, the lowest among equals. A hole that is too small wraps around to
 * more than the endless one leaves, so that nothing branches on what nobody can foresee. */
static size_t choose_tightest(const struct blyi_holes *h, int64_t need)
{
    uint64_t least = UINT64_MAX;
    size_t best = 0;
    for (size_t x = 0; x < h->n; x++) {
        uint64_t left = (uint64_t)h->size[x] - (uint64_t)need;
        best = left < least ? x : best;
        least = left < least ? left : least;
    }
    return best;
}

/* The hole for an item; all holes together always have room, the last being endless. */
static size_t choose_hole(const struct blyi_holes *h, const struct blyi_pack *pack, uint32_t item,
                          enum blyi_sweep_fit fit)
{
    int64_t need = pack->items[item].size, best_size = INT64_MAX;
    size_t best = h->n - 1;
    if (fit != BLYI_SWEEP_FIRST && pack->align == NULL)
        return choose_tightest(h, need);
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
static size_t choose_end(const struct blyi_holes *h, int64_t need, int64_t ceiling, bool lowest)
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

static int64_t place(struct blyi_holes *h, const struct blyi_pack *pack, uint32_t item,
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
    blyi_holes_cut(h, x, start, size);
    return start;
}

bly_status blyi_sweep(const struct blyi_pack *pack, const struct blyi_timeline *line,
                      enum blyi_sweep_fit fit, int64_t ceiling, uint32_t long_life, int64_t limit,
                      struct blyi_stop *stop, int64_t *offset, bool *done)
{
    bool low = true; /* nothing ends above the limit */
    uint32_t s = 0;
    struct blyi_holes h = {NULL, NULL, 0, 0};
    if (!blyi_holes_reserve(&h))
        goto fail;
    blyi_holes_insert(&h, 0, 0, BLYI_HOLES_ENDLESS);
    for (; s < pack->n_sections && low && (stop == NULL || !blyi_stop_poll(stop)); s++) {
        for (uint32_t x = line->born_at[s]; x < line->born_at[s + 1]; x++) {
            uint32_t i = line->born[x];
            if (!blyi_holes_reserve(&h))
                goto fail;
            bool lowest = pack->items[i].last - pack->items[i].first >= long_life;
            offset[i] = place(&h, pack, i, fit, ceiling, lowest);
            low &= offset[i] + pack->items[i].size <= limit;
        }
        for (uint32_t x = line->dead_at[s]; x < line->dead_at[s + 1]; x++) {
            uint32_t i = line->dead[x];
            if (!blyi_holes_reserve(&h))
                goto fail;
            blyi_holes_free(&h, offset[i], pack->items[i].size);
        }
    }
    blyi_holes_fini(&h);
    *done = low && s == pack->n_sections;
    return BLY_OK;

fail:
    blyi_holes_fini(&h);
    return blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory", pack->n);
}
