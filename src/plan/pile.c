/* SPDX-License-Identifier: Apache-2.0
 *
 * pile.c - see pile.h.
 */
#include "plan/pile.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* Takes the item's units out of what is left in its sections, or puts them back. */
static void change_rest(struct blyi_pile *p, uint32_t i, int64_t sign)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *piece = blyi_pack_pieces(p->pack, i, &count, &own);
    for (uint32_t c = 0; c < count; c++) {
        int64_t units = sign * (piece[c].hi - piece[c].lo);
        for (uint32_t x = piece[c].first; x <= piece[c].last; x++)
            p->rest[x] += units;
    }
}

bool blyi_pile_place(struct blyi_pile *p, uint32_t i, int64_t capacity)
{
    const struct blyi_pack_item *items = p->pack->items;
    const struct blyi_graph *g = p->graph;
    change_rest(p, i, -1);
    for (uint32_t x = items[i].first + 1; x <= items[i].last; x++)
        p->cross[x]--;
    p->placed[i] = 1;
    p->open[p->place_of[i]] = BLYI_PILE_SHUT;
    p->done[p->n_done++] = (struct blyi_pile_placement){i, (uint32_t)p->trail_used};
    bool fits = true;
    int64_t end = p->off[i] + items[i].size;
    p->low = items[i].first;
    p->high = items[i].last;
    for (uint32_t at = g->near_at[i]; at < g->near_at[i + 1]; at++) {
        uint32_t k = g->near[at];
        int64_t least = g->lift == NULL ? end : p->off[i] + g->lift[at];
        if (p->placed[k] || p->off[k] >= least)
            continue;
        p->trail[p->trail_used++] = (struct blyi_pile_trail){k, p->off[k]};
        p->off[k] = p->open[p->place_of[k]] = blyi_pack_align(p->pack, k, least);
        p->low = items[k].first < p->low ? items[k].first : p->low;
        p->high = items[k].last > p->high ? items[k].last : p->high;
        fits &= p->off[k] + items[k].size <= capacity && !blyi_pack_is_fixed(p->pack, k);
    }
    return fits;
}

void blyi_pile_take(struct blyi_pile *p)
{
    uint32_t i = p->done[--p->n_done].item;
    while (p->trail_used > p->done[p->n_done].trail_mark) {
        struct blyi_pile_trail t = p->trail[--p->trail_used];
        p->off[t.item] = p->open[p->place_of[t.item]] = t.off;
    }
    p->open[p->place_of[i]] = p->off[i];
    p->placed[i] = 0;
    for (uint32_t x = p->pack->items[i].first + 1; x <= p->pack->items[i].last; x++)
        p->cross[x]++;
    change_rest(p, i, 1);
}

void blyi_pile_begin(struct blyi_pile *p)
{
    const struct blyi_pack *pack = p->pack;
    uint32_t n = pack->n, sections = pack->n_sections;
    memcpy(p->rest, p->graph->load, sections * sizeof(*p->rest));
    memset(p->placed, 0, n);
    memset(p->cross, 0, (sections + (size_t)1) * sizeof(*p->cross));
    p->trail_used = p->n_done = 0;
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = p->graph->by_first[x];
        bool fixed = blyi_pack_is_fixed(pack, i);
        p->off[i] = p->open[x] = fixed ? pack->fixed[i] : 0;
        p->room[x] = fixed ? BLYI_PILE_SHUT : pack->items[i].size;
        p->place_of[i] = x;
        for (uint32_t y = pack->items[i].first + 1; y <= pack->items[i].last; y++)
            p->cross[y]++;
    }
}

bly_status blyi_pile_init(struct blyi_pile *p, const struct blyi_pack *pack,
                          const struct blyi_graph *graph)
{
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    memset(p, 0, sizeof(*p));
    p->pack = pack;
    p->graph = graph;
    p->rest = blyi_host_alloc(sections * sizeof(*p->rest));
    p->cross = blyi_host_alloc(sections * sizeof(*p->cross));
    p->off = blyi_host_alloc(n * sizeof(*p->off));
    p->placed = blyi_host_alloc(n);
    p->place_of = blyi_host_alloc(n * sizeof(*p->place_of));
    p->open = blyi_host_alloc(n * sizeof(*p->open));
    p->room = blyi_host_alloc(n * sizeof(*p->room));
    p->done = blyi_host_alloc(n * sizeof(*p->done));
    p->trail = blyi_host_alloc((graph->near_at[pack->n] + (size_t)1) * sizeof(*p->trail));
    if (!p->rest || !p->cross || !p->off || !p->placed || !p->place_of || !p->open || !p->room ||
        !p->done || !p->trail)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "searching a plan of %u buffers: the host has no memory for it", pack->n);
    return BLY_OK;
}

void blyi_pile_fini(struct blyi_pile *p)
{
    blyi_host_free(p->rest);
    blyi_host_free(p->cross);
    blyi_host_free(p->off);
    blyi_host_free(p->placed);
    blyi_host_free(p->place_of);
    blyi_host_free(p->open);
    blyi_host_free(p->room);
    blyi_host_free(p->done);
    blyi_host_free(p->trail);
}
