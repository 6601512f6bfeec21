/* SPDX-License-Identifier: Apache-2.0
 *
 * search.c - the tree search: flat arrays, an undo trail, nothing allocated at a node.
 *
 * Rules that cut the tree; each keeps at least one plan of least total offset:
 *   floor     an item lies on the items placed before it, never lower (off[i])
 *   order     items are placed by rising offset, equal offsets by rising rank
 *   hole      if item j would fit below the next placement, j came first in a better plan
 *   section   what is left in a section must fit between its lowest start and the capacity
 *   part      sections that no unplaced item connects any more are solved one by one
 *   twin      of equal items the earlier one comes first
 */
#include "plan/search.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/pile.h"

struct blyi_search {
    struct blyi_pile pile;
    uint32_t *witness;          /* per section: an item that started low enough last time */
    uint32_t *rank;             /* per item: place in the order of this run */
    uint32_t *rank_at;          /* the same by first sections */
    uint32_t *weight;           /* per item: conflicts it took part in */
    struct blyi_sort_key *keys; /* 2 n, for ranking */
    int64_t capacity;
    uint64_t nodes; /* budget left */
    bool stopped, learn;
    struct blyi_stop *stop;
};

/* Sections [lo, hi) that nothing unplaced connects to others, below what was placed last. */
struct part {
    uint32_t lo, hi;
    int64_t last_off;
    int64_t top; /* the next placement lies below */
};

/* An item is the next choice at a node when it is the least above the choice tried last. */
struct choice {
    int64_t off;
    uint32_t rank;
    uint32_t item;
};

static bool choice_before(const struct choice *a, const struct choice *b)
{
    return a->off != b->off ? a->off < b->off : a->rank < b->rank;
}

static void blame(struct blyi_search *s, uint32_t section)
{
    const struct blyi_graph *g = s->pile.graph;
    for (uint32_t at = g->live_at[section]; at < g->live_at[section + 1]; at++)
        s->weight[g->live[at]] += !s->pile.placed[g->live[at]];
}

/* Does some unplaced item of the section start at or below `highest`? The one found last time
 * mostly still does. */
static bool starts_by(struct blyi_search *s, uint32_t section, int64_t highest)
{
    const struct blyi_pile *p = &s->pile;
    const struct blyi_graph *g = p->graph;
    uint32_t k = s->witness[section];
    if (!p->placed[k] && p->off[k] <= highest)
        return true;
    for (uint32_t at = g->live_at[section]; at < g->live_at[section + 1]; at++) {
        k = g->live[at];
        if (!p->placed[k] && p->off[k] <= highest) {
            s->witness[section] = k;
            return true;
        }
    }
    return false;
}

/* The section that must start lowest, since most is left in it. */
static uint32_t fullest_section(const struct blyi_search *s, const struct part *part)
{
    const int64_t *rest = s->pile.rest;
    uint32_t fullest = part->lo;
    for (uint32_t x = part->lo + 1; x < part->hi; x++)
        fullest = rest[x] > rest[fullest] ? x : fullest;
    return fullest;
}

/* The section rule: sections outside of [low, high] are as they were when they passed last. */
static bool sections_fit(struct blyi_search *s, const struct part *part, uint32_t fullest,
                         uint32_t low, uint32_t high)
{
    const int64_t *rest = s->pile.rest;
    if (part->last_off > s->capacity - rest[fullest]) {
        if (s->learn)
            blame(s, fullest);
        return false;
    }
    for (uint32_t x = part->lo > low ? part->lo : low; x < part->hi && x <= high; x++) {
        if (rest[x] > 0 && !starts_by(s, x, s->capacity - rest[x])) {
            if (s->learn)
                blame(s, x);
            return false;
        }
    }
    return true;
}

/* Room below which some unplaced item fits: a placement at or above it is never best. *least:
 * lowest offset of one, BLYI_PILE_SHUT when there is none. */
static int64_t hole_top(const struct blyi_pile *p, uint32_t from, uint32_t to, int64_t *least)
{
    int64_t top = INT64_MAX, low = BLYI_PILE_SHUT;
    for (uint32_t x = from; x < to; x++) {
        int64_t end = p->open[x] + p->room[x];
        top = end < top ? end : top;
        low = p->open[x] < low ? p->open[x] : low;
    }
    *least = low;
    return top;
}

/* The least choice after `tried`. */
static bool next_choice(const struct blyi_search *s, const struct part *part,
                        const struct choice *tried, struct choice *best)
{
    const struct blyi_pile *p = &s->pile;
    const struct blyi_graph *g = p->graph;
    *best = (struct choice){part->top, 0, BLYI_PACK_NONE};
    for (uint32_t x = g->first_at[part->lo]; x < g->first_at[part->hi]; x++) {
        struct choice c = {p->open[x], s->rank_at[x], 0};
        if (!choice_before(&c, best) || !choice_before(tried, &c))
            continue;
        uint32_t k = g->by_first[x], twin = g->twin[k];
        if (twin == BLYI_PACK_NONE || p->placed[twin])
            *best = (struct choice){c.off, c.rank, k};
    }
    return best->item != BLYI_PACK_NONE;
}

static bool solve(struct blyi_search *s, uint32_t lo, uint32_t hi, const struct choice *last,
                  uint32_t low, uint32_t high);

/* Splits [lo, hi) where nothing unplaced crosses any more, which is where the last placement
 * was, and solves each part. */
static bool solve_parts(struct blyi_search *s, uint32_t lo, uint32_t hi, const struct choice *last,
                        uint32_t first_cut, uint32_t last_cut)
{
    const struct blyi_pile *p = &s->pile;
    uint32_t low = p->low, high = p->high; /* of the last placement; deeper ones have their own */
    for (uint32_t from = lo; from < hi;) {
        uint32_t to = from + 1 > first_cut ? from + 1 : first_cut;
        while (to <= last_cut && p->cross[to] > 0)
            to++;
        to = to > last_cut ? hi : to;
        if ((p->rest[from] > 0 || to > from + 1) && !solve(s, from, to, last, low, high))
            return false;
        from = to;
    }
    return true;
}

static bool solve(struct blyi_search *s, uint32_t lo, uint32_t hi, const struct choice *last,
                  uint32_t low, uint32_t high)
{
    struct blyi_pile *p = &s->pile;
    const struct blyi_pack_item *items = p->pack->items;
    const uint32_t *first_at = p->graph->first_at;
    struct part part = {lo, hi, last->off, 0};
    uint32_t fullest = fullest_section(s, &part);
    if (!sections_fit(s, &part, fullest, low, high))
        return false;
    int64_t least, top = hole_top(p, first_at[lo], first_at[hi], &least);
    if (least == BLYI_PILE_SHUT)
        return true; /* nothing is left */
    int64_t high_end = s->capacity - p->rest[fullest] + 1;
    part.top = top < high_end ? top : high_end;
    if (top <= last->off)
        return false;
    struct choice tried = *last, choice;
    bool any = false;
    while (next_choice(s, &part, &tried, &choice)) {
        any = true;
        if (s->nodes == 0 || blyi_stop_poll(s->stop)) {
            s->stopped = true;
            return false;
        }
        s->nodes--;
        size_t mark = p->n_done;
        if (blyi_pile_place(p, choice.item, s->capacity) &&
            solve_parts(s, lo, hi, &choice, items[choice.item].first + 1, items[choice.item].last))
            return true;
        while (p->n_done > mark) /* parts that were solved before one failed go too */
            blyi_pile_take(p);
        if (s->stopped)
            return false;
        tried = choice;
    }
    if (s->learn && !any)
        blame(s, fullest);
    return false;
}

/* ---- running ----------------------------------------------------------------------------- */

enum blyi_search_end blyi_search_run(struct blyi_search *s, int64_t capacity,
                                     const struct blyi_order *order, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset)
{
    struct blyi_pile *p = &s->pile;
    const struct blyi_pack *pack = p->pack;
    blyi_pile_begin(p);
    s->capacity = capacity;
    s->nodes = *nodes;
    s->stop = stop;
    s->stopped = false;
    s->learn = order->learn;
    for (uint32_t i = 0; i < pack->n; i++) {
        if (p->off[i] + pack->items[i].size > capacity)
            return BLYI_SEARCH_NONE;
    }
    blyi_order_rank(order, pack, p->graph->load, s->weight, s->keys, s->rank);
    struct choice none = {-1, 0, BLYI_PACK_NONE}; /* before all others */
    for (uint32_t x = 0; x < pack->n; x++)
        s->rank_at[x] = s->rank[p->graph->by_first[x]];
    p->low = 0;
    p->high = pack->n_sections - 1;
    bool found = solve_parts(s, 0, pack->n_sections, &none, 1, pack->n_sections - 1);
    *nodes = s->nodes;
    if (!found)
        return s->stopped || pack->windowed ? BLYI_SEARCH_STOPPED : BLYI_SEARCH_NONE;
    memcpy(offset, p->off, pack->n * sizeof(*offset));
    return BLYI_SEARCH_FOUND;
}

void blyi_search_reset(struct blyi_search *s)
{
    memset(s->weight, 0, (s->pile.pack->n + (size_t)1) * sizeof(*s->weight));
}

bly_status blyi_search_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              struct blyi_search **search)
{
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    struct blyi_search *s = blyi_host_calloc(1, sizeof(*s));
    if (s == NULL)
        goto fail;
    s->witness = blyi_host_alloc(sections * sizeof(*s->witness));
    s->rank = blyi_host_alloc(n * sizeof(*s->rank));
    s->rank_at = blyi_host_alloc(n * sizeof(*s->rank_at));
    s->weight = blyi_host_calloc(n, sizeof(*s->weight));
    s->keys = blyi_host_alloc(2 * n * sizeof(*s->keys));
    if (!s->witness || !s->rank || !s->rank_at || !s->weight || !s->keys ||
        blyi_pile_init(&s->pile, pack, graph) != BLY_OK)
        goto fail;
    for (uint32_t x = 0; x < pack->n_sections; x++)
        s->witness[x] = graph->live[graph->live_at[x]];
    *search = s;
    return BLY_OK;

fail:
    blyi_search_destroy(s);
    return blyi_fail(BLY_E_HOST_MEMORY,
                     "searching a plan of %u buffers: the host has no memory for it", pack->n);
}

void blyi_search_destroy(struct blyi_search *s)
{
    if (s == NULL)
        return;
    blyi_pile_fini(&s->pile);
    blyi_host_free(s->witness);
    blyi_host_free(s->rank);
    blyi_host_free(s->rank_at);
    blyi_host_free(s->weight);
    blyi_host_free(s->keys);
    blyi_host_free(s);
}
