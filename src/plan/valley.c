/* SPDX-License-Identifier: Apache-2.0
 *
 * valley.c - tree search over valleys of the skyline, for problems without gaps and without
 * fixed offsets. Same doors as search.c, other branching:
 *
 *       |    |##            A valley is a run of sections of one floor f between higher walls
 *       |    |##            (or borders that nothing left crosses). In a plan that cannot be
 *     ##|____|##            pushed down, some item is the leftmost that rests on that floor,
 *     ##  V   ##            or none does and the floor may be raised to the lower wall.
 *
 * Any valley may be branched on, so the search takes the one with the fewest choices: it works
 * where the problem is tight and does not interleave places that have nothing to do with each
 * other. A raise that leaves room for an item that is left is never part of a best plan.
 */
#include "plan/valley.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/basin.h"
#include "plan/terrain.h"

struct blyi_valley {
    struct blyi_terrain terrain;
    struct blyi_basins basins;
    uint32_t *witness; /* per section: an item that started low enough when last looked at */
    uint32_t *rank;
    uint32_t *weight; /* per item: conflicts it took part in */
    struct blyi_sort_key *keys;
    int64_t capacity;
    uint64_t nodes; /* budget left */
    bool stopped, learn;
    struct blyi_stop *stop;
};

static void blame(struct blyi_valley *s, uint32_t first, uint32_t last)
{
    const struct blyi_terrain *t = &s->terrain;
    for (uint32_t at = t->first_at[first]; at < t->first_at[last + 1]; at++) {
        if (!t->placed[t->by_first[at]])
            s->weight[t->by_first[at]]++;
    }
}

/* Does some unplaced item of the section start at or below `highest`? The one found last time
 * mostly still does. */
static bool starts_by(struct blyi_valley *s, uint32_t section, int64_t highest)
{
    const struct blyi_terrain *t = &s->terrain;
    const struct blyi_graph *g = t->graph;
    uint32_t k = s->witness[section];
    if (!t->placed[k] && t->off[k] <= highest)
        return true;
    uint32_t x = t->mirrored ? t->pack->n_sections - 1 - section : section;
    for (uint32_t at = g->live_at[x]; at < g->live_at[x + 1]; at++) {
        k = g->live[at];
        if (!t->placed[k] && t->off[k] <= highest) {
            s->witness[section] = k;
            return true;
        }
    }
    return false;
}

/* Sections that did not change fit as they did before. */
static bool sections_fit(struct blyi_valley *s, uint32_t lo, uint32_t hi,
                         const struct blyi_terrain_change *c)
{
    const int64_t *rest = s->terrain.rest;
    for (uint32_t x = lo > c->low ? lo : c->low; x < hi && x <= c->high; x++) {
        if (rest[x] > 0 && !starts_by(s, x, s->capacity - rest[x])) {
            if (s->learn)
                blame(s, x, x);
            return false;
        }
    }
    return true;
}

/* The valley with the fewest choices, the tightest among equals; false: one has none. */
static bool choose_basin(struct blyi_valley *s, uint32_t lo, uint32_t hi, struct blyi_basin *best)
{
    uint32_t least = UINT32_MAX - 1, at = lo;
    int64_t least_slack = INT64_MAX;
    struct blyi_basin b;
    while (blyi_basin_next(&s->terrain, &at, hi, &b)) {
        int64_t slack;
        uint32_t count = blyi_basin_count(&s->basins, &b, least + 1, &slack);
        if (count == 0) {
            if (s->learn)
                blame(s, b.first, b.last);
            return false;
        }
        if (count < least || (count == least && slack < least_slack)) {
            least = count;
            least_slack = slack;
            *best = b;
        }
    }
    return least < UINT32_MAX - 1;
}

static bool solve(struct blyi_valley *s, uint32_t lo, uint32_t hi,
                  const struct blyi_terrain_change *c);

static bool solve_parts(struct blyi_valley *s, uint32_t lo, uint32_t hi,
                        const struct blyi_terrain_change *c)
{
    const struct blyi_terrain *t = &s->terrain;
    for (uint32_t from = lo; from < hi;) {
        uint32_t to = from + 1;
        if (c->first <= c->last && to <= c->first)
            to = c->first + 1;
        while (to <= c->last && t->cross[to] > 0)
            to++;
        to = to > c->last ? hi : to;
        if (t->rest[from] > 0 && !solve(s, from, to, c))
            return false;
        from = to;
    }
    return true;
}

/* Makes choice k of a valley; returns its place in the order. */
static int64_t choose(struct blyi_valley *s, const struct blyi_basin *b, uint32_t k)
{
    struct blyi_terrain *t = &s->terrain;
    if (k == t->pack->n) {
        blyi_terrain_raise(t, b->first, b->last, b->left < b->right ? b->left : b->right);
        return k;
    }
    int64_t height = blyi_basin_left_height(t, b, k);
    blyi_terrain_place(t, k);
    if (t->items[k].first > b->first)
        blyi_terrain_raise(t, b->first, t->items[k].first - 1, height);
    return s->rank[k];
}

static bool solve(struct blyi_valley *s, uint32_t lo, uint32_t hi,
                  const struct blyi_terrain_change *c)
{
    struct blyi_basin b;
    if (!sections_fit(s, lo, hi, c) || !choose_basin(s, lo, hi, &b))
        return false;
    int64_t tried = -1;
    for (;;) {
        struct blyi_terrain_mark mark;
        uint32_t k = blyi_basin_choice(&s->basins, &b, tried);
        if (k == BLYI_PACK_NONE)
            return false;
        if (s->nodes == 0 || blyi_stop_poll(s->stop) || !blyi_terrain_step(&s->terrain, &mark)) {
            s->stopped = true;
            return false;
        }
        s->nodes--;
        tried = choose(s, &b, k);
        struct blyi_terrain_change change = s->terrain.change; /* deeper choices have their own */
        if (solve_parts(s, lo, hi, &change))
            return true;
        blyi_terrain_undo(&s->terrain, &mark);
        if (s->stopped)
            return false;
    }
}

enum blyi_search_end blyi_valley_run(struct blyi_valley *s, int64_t capacity,
                                     const struct blyi_order *order, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset)
{
    const struct blyi_terrain *t = &s->terrain;
    uint32_t sections = t->pack->n_sections;
    blyi_terrain_begin(&s->terrain);
    s->capacity = s->basins.capacity = capacity;
    s->nodes = *nodes;
    s->stop = stop;
    s->stopped = false;
    s->learn = order->learn;
    blyi_order_rank(order, t->pack, t->graph->load, s->weight, s->keys, s->rank);
    struct blyi_terrain_change all = {0, sections - 1, 0, sections - 1};
    bool found = solve_parts(s, 0, sections, &all);
    *nodes = s->nodes;
    if (!found)
        return s->stopped ? BLYI_SEARCH_STOPPED : BLYI_SEARCH_NONE;
    memcpy(offset, t->off, t->pack->n * sizeof(*offset));
    return BLYI_SEARCH_FOUND;
}

void blyi_valley_reset(struct blyi_valley *s)
{
    memset(s->weight, 0, (s->terrain.pack->n + (size_t)1) * sizeof(*s->weight));
}

bly_status blyi_valley_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              bool mirrored, struct blyi_valley **valley)
{
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    struct blyi_valley *s = blyi_host_calloc(1, sizeof(*s));
    if (s == NULL)
        goto fail;
    s->rank = blyi_host_alloc(n * sizeof(*s->rank));
    s->witness = blyi_host_alloc(sections * sizeof(*s->witness));
    s->weight = blyi_host_calloc(n, sizeof(*s->weight));
    s->keys = blyi_host_alloc(2 * n * sizeof(*s->keys));
    if (!s->rank || !s->witness || !s->weight || !s->keys ||
        blyi_terrain_init(&s->terrain, pack, graph, mirrored) != BLY_OK ||
        blyi_basins_init(&s->basins, &s->terrain, s->rank) != BLY_OK)
        goto fail;
    for (uint32_t x = 0; x < pack->n_sections; x++)
        s->witness[x] = graph->live[graph->live_at[mirrored ? pack->n_sections - 1 - x : x]];
    *valley = s;
    return BLY_OK;

fail:
    blyi_valley_destroy(s);
    return blyi_fail(BLY_E_HOST_MEMORY,
                     "searching a plan of %u buffers: the host has no memory for it", pack->n);
}

void blyi_valley_destroy(struct blyi_valley *s)
{
    if (s == NULL)
        return;
    blyi_basins_fini(&s->basins);
    blyi_terrain_fini(&s->terrain);
    blyi_host_free(s->rank);
    blyi_host_free(s->witness);
    blyi_host_free(s->weight);
    blyi_host_free(s->keys);
    blyi_host_free(s);
}
