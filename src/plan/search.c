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

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"

struct trail_entry {
    uint32_t item;
    int64_t off;
};

struct placement {
    uint32_t item;
    uint32_t trail_mark;
};

struct blyi_search {
    const struct blyi_pack *pack;
    const struct blyi_graph *graph;
    int64_t *floor;    /* per section: end of what is placed there */
    int64_t *rest;     /* per section: units not placed yet */
    uint32_t *witness; /* per section: an item that started low enough when last looked at */
    uint32_t *cross;   /* per section: unplaced items in both it and the one before */
    int64_t *off;      /* per item: its offset, or the lowest possible one */
    uint32_t *rank;    /* per item: place in the order of this run */
    uint8_t *placed;
    uint32_t *next, *prev; /* unplaced items by first section; n is the end */
    struct trail_entry *trail;
    size_t trail_used, trail_room;
    struct placement *done; /* placements in order, for undoing */
    size_t n_done;
    int64_t *floors; /* undo stack of floor values */
    size_t floors_used, floors_room;
    uint32_t *weight;           /* per item: conflicts it took part in */
    struct blyi_sort_key *keys; /* 2 n, for ranking */
    int64_t capacity;
    uint64_t nodes; /* budget left */
    bool stopped, learn, by_offset;
    struct blyi_stop *stop;
};

/* An item is the next choice at a node when it is the least above the choice tried last. */
struct choice {
    int64_t off;
    uint32_t rank;
    uint32_t item;
};

static bool choice_before(const struct choice *a, const struct choice *b, bool by_offset)
{
    if (by_offset && a->off != b->off)
        return a->off < b->off;
    return a->rank < b->rank;
}

static void unlink_item(struct blyi_search *s, uint32_t i)
{
    s->next[s->prev[i]] = s->next[i];
    s->prev[s->next[i]] = s->prev[i];
}

static void relink_item(struct blyi_search *s, uint32_t i)
{
    s->next[s->prev[i]] = i;
    s->prev[s->next[i]] = i;
}

/* False: some neighbour cannot stay below the capacity any more (the caller undoes). */
static bool place(struct blyi_search *s, uint32_t i)
{
    const struct blyi_pack *pack = s->pack;
    const struct blyi_graph *g = s->graph;
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
    for (uint32_t c = 0; c < count; c++) {
        int64_t end = s->off[i] + p[c].hi, used = p[c].hi - p[c].lo;
        for (uint32_t x = p[c].first; x <= p[c].last; x++) {
            s->floors[s->floors_used++] = s->floor[x];
            if (s->floor[x] < end)
                s->floor[x] = end;
            s->rest[x] -= used;
        }
    }
    for (uint32_t x = pack->items[i].first + 1; x <= pack->items[i].last; x++)
        s->cross[x]--;
    s->placed[i] = 1;
    unlink_item(s, i);
    s->done[s->n_done++] = (struct placement){i, (uint32_t)s->trail_used};

    bool fits = true;
    int64_t end = s->off[i] + pack->items[i].size;
    for (uint32_t at = g->near_at[i]; at < g->near_at[i + 1]; at++) {
        uint32_t k = g->near[at];
        int64_t least = g->lift == NULL ? end : s->off[i] + g->lift[at];
        if (s->placed[k] || s->off[k] >= least)
            continue;
        s->trail[s->trail_used++] = (struct trail_entry){k, s->off[k]};
        s->off[k] = blyi_pack_align(pack, k, least);
        fits &= s->off[k] + pack->items[k].size <= s->capacity && !blyi_pack_is_fixed(pack, k);
    }
    return fits;
}

static void unplace_last(struct blyi_search *s)
{
    const struct blyi_pack *pack = s->pack;
    uint32_t i = s->done[--s->n_done].item;
    while (s->trail_used > s->done[s->n_done].trail_mark) {
        s->trail_used--;
        s->off[s->trail[s->trail_used].item] = s->trail[s->trail_used].off;
    }
    relink_item(s, i);
    s->placed[i] = 0;
    for (uint32_t x = pack->items[i].first + 1; x <= pack->items[i].last; x++)
        s->cross[x]++;
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
    for (uint32_t c = count; c-- > 0;) {
        for (uint32_t x = p[c].last + 1; x-- > p[c].first;) {
            s->floor[x] = s->floors[--s->floors_used];
            s->rest[x] += p[c].hi - p[c].lo;
        }
    }
}

/* First unplaced item whose first section is in [lo, hi), or n. Items of a part that begin
 * before lo do not exist: the part would reach further. */
static uint32_t first_in(const struct blyi_search *s, uint32_t lo)
{
    const struct blyi_graph *g = s->graph;
    for (uint32_t at = g->first_at[lo]; at < s->pack->n; at++) {
        if (!s->placed[g->by_first[at]])
            return g->by_first[at];
    }
    return s->pack->n;
}

static void blame(struct blyi_search *s, uint32_t section, uint32_t head, uint32_t hi)
{
    const struct blyi_pack_item *items = s->pack->items;
    for (uint32_t k = head; k != s->pack->n && items[k].first < hi; k = s->next[k]) {
        if (items[k].first <= section && section <= items[k].last)
            s->weight[k]++;
    }
}

/* Does some unplaced item of the section start at or below `highest`? The one found last time
 * mostly still does. */
static bool starts_by(struct blyi_search *s, uint32_t section, int64_t highest)
{
    const struct blyi_graph *g = s->graph;
    uint32_t k = s->witness[section];
    if (!s->placed[k] && s->off[k] <= highest)
        return true;
    for (uint32_t at = g->live_at[section]; at < g->live_at[section + 1]; at++) {
        k = g->live[at];
        if (!s->placed[k] && s->off[k] <= highest) {
            s->witness[section] = k;
            return true;
        }
    }
    return false;
}

/* The section rule over the part [lo, hi), whose next placement lies at `least` or above. */
static bool sections_fit(struct blyi_search *s, uint32_t lo, uint32_t hi, uint32_t head,
                         int64_t least)
{
    for (uint32_t x = lo; x < hi; x++) {
        int64_t highest = s->capacity - s->rest[x];
        if (s->rest[x] > 0 && (least > highest || !starts_by(s, x, highest))) {
            if (s->learn)
                blame(s, x, head, hi);
            return false;
        }
    }
    return true;
}

static bool solve(struct blyi_search *s, uint32_t lo, uint32_t hi, int64_t last_off,
                  uint32_t last_rank);

/* Splits [lo, hi) where nothing unplaced crosses any more and solves each part. */
static bool solve_parts(struct blyi_search *s, uint32_t lo, uint32_t hi, int64_t last_off,
                        uint32_t last_rank)
{
    for (uint32_t from = lo; from < hi;) {
        uint32_t to = from + 1;
        while (to < hi && s->cross[to] > 0)
            to++;
        if ((s->rest[from] > 0 || to > from + 1) && !solve(s, from, to, last_off, last_rank))
            return false;
        from = to;
    }
    return true;
}

/* Room below which some unplaced item fits: a placement at or above it is never best. */
static int64_t hole_top(const struct blyi_search *s, uint32_t head, uint32_t hi)
{
    const struct blyi_pack *pack = s->pack;
    int64_t top = INT64_MAX;
    for (uint32_t k = head; k != pack->n && pack->items[k].first < hi; k = s->next[k]) {
        int64_t end = s->off[k] + pack->items[k].size;
        if (end < top && !blyi_pack_is_fixed(pack, k))
            top = end;
    }
    return top;
}

/* Everything left in a section lies above the next placement, so it cannot start higher. */
static int64_t highest_start(const struct blyi_search *s, uint32_t lo, uint32_t hi,
                             uint32_t *section)
{
    int64_t most = 0;
    for (uint32_t x = lo; x < hi; x++) {
        if (s->rest[x] > most) {
            most = s->rest[x];
            *section = x;
        }
    }
    return s->capacity - most;
}

/* The least choice after `tried`. */
static bool next_choice(const struct blyi_search *s, uint32_t head, uint32_t hi, int64_t last_off,
                        uint32_t last_rank, int64_t top, const struct choice *tried,
                        struct choice *best)
{
    const struct blyi_pack *pack = s->pack;
    bool found = false;
    for (uint32_t k = head; k != pack->n && pack->items[k].first < hi; k = s->next[k]) {
        struct choice c = {s->off[k], s->rank[k], k};
        if (c.off < last_off || c.off >= top || (c.off == last_off && c.rank < last_rank))
            continue;
        uint32_t twin = s->graph->twin[k];
        if (twin != BLYI_PACK_NONE && !s->placed[twin])
            continue;
        if (tried->item != BLYI_PACK_NONE && !choice_before(tried, &c, s->by_offset))
            continue;
        if (!found || choice_before(&c, best, s->by_offset)) {
            *best = c;
            found = true;
        }
    }
    return found;
}

static bool solve(struct blyi_search *s, uint32_t lo, uint32_t hi, int64_t last_off,
                  uint32_t last_rank)
{
    uint32_t head = first_in(s, lo);
    if (head == s->pack->n || s->pack->items[head].first >= hi)
        return true;
    if (!sections_fit(s, lo, hi, head, last_off))
        return false;
    uint32_t fullest = lo;
    int64_t top = hole_top(s, head, hi), high = highest_start(s, lo, hi, &fullest) + 1;
    if (top <= last_off)
        return false;
    top = high < top ? high : top;
    struct choice tried = {0, 0, BLYI_PACK_NONE}, choice = tried;
    while (next_choice(s, head, hi, last_off, last_rank, top, &tried, &choice)) {
        if (s->nodes == 0 || blyi_stop_poll(s->stop)) {
            s->stopped = true;
            return false;
        }
        s->nodes--;
        size_t mark = s->n_done;
        if (place(s, choice.item) && solve_parts(s, lo, hi, choice.off, choice.rank))
            return true;
        while (s->n_done > mark) /* parts that were solved before one failed go too */
            unplace_last(s);
        if (s->stopped)
            return false;
        tried = choice;
    }
    if (s->learn && tried.item == BLYI_PACK_NONE)
        blame(s, fullest, head, hi);
    return false;
}

/* ---- running ----------------------------------------------------------------------------- */

static void begin(struct blyi_search *s)
{
    const struct blyi_pack *pack = s->pack;
    uint32_t n = pack->n, sections = pack->n_sections;
    memset(s->floor, 0, sections * sizeof(*s->floor));
    memcpy(s->rest, s->graph->load, sections * sizeof(*s->rest));
    memset(s->placed, 0, n);
    memset(s->cross, 0, (sections + (size_t)1) * sizeof(*s->cross));
    s->trail_used = s->floors_used = s->n_done = 0;
    uint32_t last = n;
    for (uint32_t x = 0; x < n; x++) {
        uint32_t i = s->graph->by_first[x];
        s->prev[i] = last;
        s->next[last] = i;
        last = i;
        s->off[i] = blyi_pack_is_fixed(pack, i) ? pack->fixed[i] : 0;
        for (uint32_t y = pack->items[i].first + 1; y <= pack->items[i].last; y++)
            s->cross[y]++;
    }
    s->next[last] = n;
    s->prev[n] = last;
}

enum blyi_search_end blyi_search_run(struct blyi_search *s, int64_t capacity,
                                     const struct blyi_search_style *style, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset)
{
    const struct blyi_pack *pack = s->pack;
    begin(s);
    s->capacity = capacity;
    s->nodes = *nodes;
    s->stop = stop;
    s->stopped = false;
    s->learn = style->order.learn;
    s->by_offset = style->by_offset;
    for (uint32_t i = 0; i < pack->n; i++) {
        if (s->off[i] + pack->items[i].size > capacity)
            return BLYI_SEARCH_NONE;
    }
    blyi_order_rank(&style->order, pack, s->graph->load, s->weight, s->keys, s->rank);
    bool found = solve_parts(s, 0, pack->n_sections, 0, 0);
    *nodes = s->nodes;
    if (!found)
        return s->stopped || pack->windowed ? BLYI_SEARCH_STOPPED : BLYI_SEARCH_NONE;
    memcpy(offset, s->off, pack->n * sizeof(*offset));
    return BLYI_SEARCH_FOUND;
}

void blyi_search_reset(struct blyi_search *s)
{
    memset(s->weight, 0, (s->pack->n + (size_t)1) * sizeof(*s->weight));
}

bly_status blyi_search_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              struct blyi_search **search)
{
    struct blyi_search *s = blyi_host_calloc(1, sizeof(*s));
    if (s == NULL)
        goto fail;
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    s->pack = pack;
    s->graph = graph;
    s->trail_room = graph->near_at[pack->n] + (size_t)1;
    s->floors_room = 1;
    for (uint32_t i = 0; i < pack->n; i++)
        s->floors_room += (size_t)(pack->items[i].last - pack->items[i].first + 1);
    s->floor = blyi_host_alloc(sections * sizeof(*s->floor));
    s->rest = blyi_host_alloc(sections * sizeof(*s->rest));
    s->witness = blyi_host_alloc(sections * sizeof(*s->witness));
    s->cross = blyi_host_alloc(sections * sizeof(*s->cross));
    s->off = blyi_host_alloc(n * sizeof(*s->off));
    s->rank = blyi_host_alloc(n * sizeof(*s->rank));
    s->placed = blyi_host_alloc(n);
    s->next = blyi_host_alloc(n * sizeof(*s->next));
    s->prev = blyi_host_alloc(n * sizeof(*s->prev));
    s->weight = blyi_host_calloc(n, sizeof(*s->weight));
    s->keys = blyi_host_alloc(2 * n * sizeof(*s->keys));
    s->done = blyi_host_alloc(n * sizeof(*s->done));
    s->trail = blyi_host_alloc(s->trail_room * sizeof(*s->trail));
    s->floors = blyi_host_alloc(s->floors_room * sizeof(*s->floors));
    if (!s->floor || !s->rest || !s->witness || !s->cross || !s->off || !s->rank || !s->placed ||
        !s->next || !s->prev || !s->weight || !s->keys || !s->trail || !s->done || !s->floors)
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
    blyi_host_free(s->floor);
    blyi_host_free(s->rest);
    blyi_host_free(s->witness);
    blyi_host_free(s->cross);
    blyi_host_free(s->off);
    blyi_host_free(s->rank);
    blyi_host_free(s->placed);
    blyi_host_free(s->next);
    blyi_host_free(s->prev);
    blyi_host_free(s->weight);
    blyi_host_free(s->keys);
    blyi_host_free(s->done);
    blyi_host_free(s->trail);
    blyi_host_free(s->floors);
    blyi_host_free(s);
}
