/* SPDX-License-Identifier: Apache-2.0
 *
 * terrain.c - see terrain.h.
 */
#include "plan/terrain.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

static void set_floor(struct blyi_terrain *t, uint32_t section, int64_t floor)
{
    t->trail[t->trail_used++] = (struct blyi_terrain_undo){section, t->floor[section]};
    t->floor[section] = floor;
    t->changed_at[section] = t->clock;
}

static void touch(struct blyi_terrain_change *change, const struct blyi_pack_item *item)
{
    change->low = item->first < change->low ? item->first : change->low;
    change->high = item->last > change->high ? item->last : change->high;
}

static void set_off(struct blyi_terrain *t, uint32_t i, int64_t off)
{
    touch(&t->change, &t->items[i]);
    t->trail[t->trail_used++] = (struct blyi_terrain_undo){t->pack->n_sections + i, t->off[i]};
    t->off[i] = off;
    t->changed_at[t->items[i].first] = t->clock; /* the valley in which it may be leftmost */
}

bool blyi_terrain_step(struct blyi_terrain *t, struct blyi_terrain_mark *mark)
{
    /* A choice writes at most a value per section and two per item. */
    if (t->trail_room - t->trail_used < t->pack->n_sections + 2 * (size_t)t->pack->n)
        return false;
    *mark = (struct blyi_terrain_mark){t->n_done, t->trail_used};
    t->change = (struct blyi_terrain_change){UINT32_MAX, 0, UINT32_MAX, 0};
    t->clock++;
    return true;
}

void blyi_terrain_raise(struct blyi_terrain *t, uint32_t first, uint32_t last, int64_t floor)
{
    for (uint32_t x = first; x <= last; x++)
        set_floor(t, x, floor);
    for (uint32_t at = t->first_at[first]; at < t->first_at[last + 1]; at++) {
        uint32_t k = t->by_first[at];
        if (!t->placed[k] && t->items[k].last <= last && t->off[k] < floor)
            set_off(t, k, blyi_pack_align(t->pack, k, floor));
    }
}

void blyi_terrain_place(struct blyi_terrain *t, uint32_t i)
{
    const struct blyi_pack_item *item = &t->items[i];
    int64_t end = t->off[i] + item->size;
    for (uint32_t x = item->first; x <= item->last; x++) {
        set_floor(t, x, end);
        t->rest[x] -= item->size;
    }
    for (uint32_t x = item->first + 1; x <= item->last; x++)
        t->cross[x]--;
    t->change.first = item->first;
    t->change.last = item->last;
    touch(&t->change, item);
    t->placed[i] = 1;
    t->done[t->n_done++] = i;
    const struct blyi_graph *g = t->graph;
    for (uint32_t at = g->near_at[i]; at < g->near_at[i + 1]; at++) {
        uint32_t k = g->near[at];
        if (!t->placed[k] && t->off[k] < end)
            set_off(t, k, blyi_pack_align(t->pack, k, end));
    }
}

void blyi_terrain_undo(struct blyi_terrain *t, const struct blyi_terrain_mark *mark)
{
    uint32_t sections = t->pack->n_sections;
    t->clock++;
    while (t->trail_used > mark->trail_used) {
        struct blyi_terrain_undo u = t->trail[--t->trail_used];
        if (u.at < sections) {
            t->floor[u.at] = u.old;
            t->changed_at[u.at] = t->clock;
        } else {
            t->off[u.at - sections] = u.old;
            t->changed_at[t->items[u.at - sections].first] = t->clock;
        }
    }
    while (t->n_done > mark->n_done) {
        uint32_t i = t->done[--t->n_done];
        const struct blyi_pack_item *item = &t->items[i];
        t->placed[i] = 0;
        for (uint32_t x = item->first; x <= item->last; x++)
            t->rest[x] += item->size;
        for (uint32_t x = item->first + 1; x <= item->last; x++)
            t->cross[x]++;
    }
}

void blyi_terrain_begin(struct blyi_terrain *t)
{
    uint32_t n = t->pack->n, sections = t->pack->n_sections;
    memset(t->floor, 0, sections * sizeof(*t->floor));
    memcpy(t->rest, t->load, sections * sizeof(*t->rest));
    memset(t->cross, 0, (sections + (size_t)1) * sizeof(*t->cross));
    memset(t->placed, 0, n);
    memset(t->off, 0, n * sizeof(*t->off));
    t->n_done = t->trail_used = 0;
    t->clock++;
    for (uint32_t x = 0; x < sections; x++)
        t->changed_at[x] = t->clock;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t x = t->items[i].first + 1; x <= t->items[i].last; x++)
            t->cross[x]++;
    }
}

/* Items, their order and the load as the search sees them. */
static void copy_problem(struct blyi_terrain *t)
{
    const struct blyi_pack *pack = t->pack;
    uint32_t sections = pack->n_sections;
    for (uint32_t x = 0; x < sections; x++)
        t->load[x] = t->graph->load[t->mirrored ? sections - 1 - x : x];
    memset(t->first_at, 0, (sections + (size_t)2) * sizeof(*t->first_at));
    for (uint32_t i = 0; i < pack->n; i++) {
        struct blyi_pack_item item = pack->items[i];
        if (t->mirrored) {
            item.first = sections - 1 - pack->items[i].last;
            item.last = sections - 1 - pack->items[i].first;
        }
        t->items[i] = item;
        t->first_at[item.first + 1]++;
    }
    for (uint32_t x = 0; x < sections; x++)
        t->first_at[x + 1] += t->first_at[x];
    for (uint32_t i = 0; i < pack->n; i++)
        t->by_first[t->first_at[t->items[i].first]++] = i;
    memmove(t->first_at + 1, t->first_at, sections * sizeof(*t->first_at));
    t->first_at[0] = 0;
}

bly_status blyi_terrain_init(struct blyi_terrain *t, const struct blyi_pack *pack,
                             const struct blyi_graph *graph, bool mirrored)
{
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    memset(t, 0, sizeof(*t));
    t->pack = pack;
    t->graph = graph;
    t->mirrored = mirrored;
    t->trail_room = 4 * (size_t)graph->near_at[pack->n] + 16 * (n + sections);
    for (uint32_t i = 0; i < pack->n; i++)
        t->trail_room += 4 * (size_t)(pack->items[i].last - pack->items[i].first + 1);
    t->items = blyi_host_alloc(n * sizeof(*t->items));
    t->by_first = blyi_host_alloc(n * sizeof(*t->by_first));
    t->first_at = blyi_host_alloc(sections * sizeof(*t->first_at));
    t->load = blyi_host_alloc(sections * sizeof(*t->load));
    t->floor = blyi_host_alloc(sections * sizeof(*t->floor));
    t->rest = blyi_host_alloc(sections * sizeof(*t->rest));
    t->cross = blyi_host_alloc(sections * sizeof(*t->cross));
    t->changed_at = blyi_host_alloc(sections * sizeof(*t->changed_at));
    t->off = blyi_host_alloc(n * sizeof(*t->off));
    t->placed = blyi_host_alloc(n);
    t->done = blyi_host_alloc(n * sizeof(*t->done));
    t->trail = blyi_host_alloc(t->trail_room * sizeof(*t->trail));
    if (!t->items || !t->by_first || !t->first_at || !t->load || !t->floor || !t->rest ||
        !t->cross || !t->changed_at || !t->off || !t->placed || !t->done || !t->trail)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "searching a plan of %u buffers: the host has no memory for it", pack->n);
    copy_problem(t);
    return BLY_OK;
}

void blyi_terrain_fini(struct blyi_terrain *t)
{
    blyi_host_free(t->items);
    blyi_host_free(t->by_first);
    blyi_host_free(t->first_at);
    blyi_host_free(t->load);
    blyi_host_free(t->floor);
    blyi_host_free(t->rest);
    blyi_host_free(t->cross);
    blyi_host_free(t->changed_at);
    blyi_host_free(t->off);
    blyi_host_free(t->placed);
    blyi_host_free(t->done);
    blyi_host_free(t->trail);
}
