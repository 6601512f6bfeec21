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

#define NO_WALL INT64_MAX

struct undo {
    uint32_t at; /* section, or item + n_sections */
    int64_t old;
};

struct blyi_valley {
    const struct blyi_pack *pack;
    const struct blyi_graph *graph;
    struct blyi_pack_item *items; /* as the pack's, mirrored in time if asked */
    uint32_t *by_first, *first_at;
    int64_t *load;
    int64_t *floor, *rest; /* per section */
    int64_t *low;          /* per section: scratch */
    uint32_t *witness;     /* per section: an item that started low enough when last looked at */
    uint32_t *cross;       /* per section: unplaced items in it and the one before */
    int64_t *off;          /* per item: its offset, or the lowest possible one */
    uint32_t *rank;
    uint8_t *placed;
    uint32_t *done; /* placed items in order */
    size_t n_done;
    struct undo *trail;
    size_t trail_used, trail_room;
    uint32_t *weight;
    struct blyi_sort_key *keys;
    int64_t capacity;
    uint64_t nodes;
    bool stopped, learn, mirrored;
    struct blyi_stop *stop;
};

struct basin {
    uint32_t first, last;
    int64_t floor, left, right; /* walls */
};

static void set_value(struct blyi_valley *s, int64_t *slot, uint32_t at, int64_t value)
{
    s->trail[s->trail_used++] = (struct undo){at, *slot};
    *slot = value;
}

static void set_off(struct blyi_valley *s, uint32_t i, int64_t value)
{
    set_value(s, &s->off[i], s->pack->n_sections + i, value);
}

/* Raises the floor of [first, last]; nothing reaches out of it below the new floor. */
static void raise_floor(struct blyi_valley *s, uint32_t first, uint32_t last, int64_t floor)
{
    for (uint32_t x = first; x <= last; x++)
        set_value(s, &s->floor[x], x, floor);
    for (uint32_t at = s->first_at[first]; at < s->first_at[last + 1]; at++) {
        uint32_t k = s->by_first[at];
        if (!s->placed[k] && s->items[k].last <= last && s->off[k] < floor)
            set_off(s, k, blyi_pack_align(s->pack, k, floor));
    }
}

static void place(struct blyi_valley *s, uint32_t i)
{
    const struct blyi_pack_item *item = &s->items[i];
    int64_t end = s->off[i] + item->size;
    for (uint32_t x = item->first; x <= item->last; x++) {
        set_value(s, &s->floor[x], x, end);
        s->rest[x] -= item->size;
    }
    for (uint32_t x = item->first + 1; x <= item->last; x++)
        s->cross[x]--;
    s->placed[i] = 1;
    s->done[s->n_done++] = i;
    const struct blyi_graph *g = s->graph;
    for (uint32_t at = g->near_at[i]; at < g->near_at[i + 1]; at++) {
        uint32_t k = g->near[at];
        if (!s->placed[k] && s->off[k] < end)
            set_off(s, k, blyi_pack_align(s->pack, k, end));
    }
}

static void undo_to(struct blyi_valley *s, size_t n_done, size_t trail_used)
{
    uint32_t sections = s->pack->n_sections;
    while (s->trail_used > trail_used) {
        struct undo u = s->trail[--s->trail_used];
        if (u.at < sections)
            s->floor[u.at] = u.old;
        else
            s->off[u.at - sections] = u.old;
    }
    while (s->n_done > n_done) {
        uint32_t i = s->done[--s->n_done];
        const struct blyi_pack_item *item = &s->items[i];
        s->placed[i] = 0;
        for (uint32_t x = item->first; x <= item->last; x++)
            s->rest[x] += item->size;
        for (uint32_t x = item->first + 1; x <= item->last; x++)
            s->cross[x]++;
    }
}

static void blame(struct blyi_valley *s, uint32_t first, uint32_t last)
{
    for (uint32_t at = s->first_at[first]; at < s->first_at[last + 1]; at++) {
        if (!s->placed[s->by_first[at]])
            s->weight[s->by_first[at]]++;
    }
}

/* Does some unplaced item of the section start at or below `highest`? The one found last time
 * mostly still does. */
static bool starts_by(struct blyi_valley *s, uint32_t section, int64_t highest)
{
    const struct blyi_graph *g = s->graph;
    uint32_t k = s->witness[section];
    if (!s->placed[k] && s->off[k] <= highest)
        return true;
    uint32_t x = s->mirrored ? s->pack->n_sections - 1 - section : section;
    for (uint32_t at = g->live_at[x]; at < g->live_at[x + 1]; at++) {
        k = g->live[at];
        if (!s->placed[k] && s->off[k] <= highest) {
            s->witness[section] = k;
            return true;
        }
    }
    return false;
}

static bool sections_fit(struct blyi_valley *s, uint32_t lo, uint32_t hi)
{
    for (uint32_t x = lo; x < hi; x++) {
        if (s->rest[x] > 0 && !starts_by(s, x, s->capacity - s->rest[x])) {
            if (s->learn)
                blame(s, x, x);
            return false;
        }
    }
    return true;
}

/* The next valley of [lo, hi) from *at on. */
static bool next_basin(const struct blyi_valley *s, uint32_t *at, uint32_t hi, struct basin *b)
{
    for (uint32_t x = *at; x < hi;) {
        if (s->rest[x] == 0) {
            x++;
            continue;
        }
        uint32_t last = x;
        while (last + 1 < hi && s->rest[last + 1] > 0 && s->cross[last + 1] > 0 &&
               s->floor[last + 1] == s->floor[x])
            last++;
        b->first = x;
        b->last = last;
        b->floor = s->floor[x];
        b->left = s->cross[x] > 0 ? s->floor[x - 1] : NO_WALL;
        b->right = last + 1 < hi && s->cross[last + 1] > 0 ? s->floor[last + 1] : NO_WALL;
        x = last + 1;
        if (b->left > b->floor && b->right > b->floor) {
            *at = x;
            return true;
        }
    }
    return false;
}

/* What the choices of a valley need to know: filled once, then asked for each item. */
static void survey_basin(struct blyi_valley *s, const struct basin *b)
{
    /* low[x]: least end of an item that lies in the valley and ends at or before section x */
    for (uint32_t x = b->first; x <= b->last; x++)
        s->low[x] = NO_WALL;
    for (uint32_t at = s->first_at[b->first]; at < s->first_at[b->last + 1]; at++) {
        uint32_t k = s->by_first[at];
        uint32_t last = s->items[k].last;
        if (s->placed[k] || last > b->last)
            continue;
        int64_t end = s->off[k] + s->items[k].size;
        s->low[last] = end < s->low[last] ? end : s->low[last];
    }
    for (uint32_t x = b->first + 1; x <= b->last; x++)
        s->low[x] = s->low[x - 1] < s->low[x] ? s->low[x - 1] : s->low[x];
}

/* Height to which the part left of item k is raised when k is the leftmost. */
static int64_t left_height(const struct blyi_valley *s, const struct basin *b, uint32_t k)
{
    int64_t end = s->off[k] + s->items[k].size;
    return b->left < end ? b->left : end;
}

/* `most` is the largest rest of the sections left of k. */
static bool can_be_leftmost(const struct blyi_valley *s, const struct basin *b, uint32_t k,
                            int64_t most)
{
    if (s->placed[k] || s->items[k].last > b->last)
        return false;
    uint32_t twin = s->graph->twin[k];
    if (twin != BLYI_PACK_NONE && !s->placed[twin])
        return false;
    if (s->off[k] + s->items[k].size > s->capacity)
        return false;
    if (s->items[k].first == b->first)
        return true;
    int64_t height = left_height(s, b, k);
    return most <= s->capacity - height && s->low[s->items[k].first - 1] > height;
}

static bool can_close(const struct blyi_valley *s, const struct basin *b, int64_t most)
{
    int64_t height = b->left < b->right ? b->left : b->right;
    return height != NO_WALL && most <= s->capacity - height && s->low[b->last] > height;
}

/* Choices of a valley, counted up to `limit`. */
static uint32_t count_choices(struct blyi_valley *s, const struct basin *b, uint32_t limit)
{
    survey_basin(s, b);
    uint32_t count = 0;
    int64_t most = 0;
    for (uint32_t x = b->first; x <= b->last; x++) {
        for (uint32_t at = s->first_at[x]; at < s->first_at[x + 1]; at++)
            count += can_be_leftmost(s, b, s->by_first[at], most);
        most = s->rest[x] > most ? s->rest[x] : most;
        if (count >= limit || most > s->capacity - b->floor - 1)
            return count; /* nothing further right can be leftmost: this section has no slack */
    }
    return count + can_close(s, b, most);
}

/* The choice of least rank above `tried`; rank n closes the valley. */
static uint32_t next_choice(const struct blyi_valley *s, const struct basin *b, int64_t tried)
{
    uint32_t n = s->pack->n, best = BLYI_PACK_NONE;
    int64_t most = 0, best_rank = INT64_MAX;
    for (uint32_t x = b->first; x <= b->last; x++) {
        for (uint32_t at = s->first_at[x]; at < s->first_at[x + 1]; at++) {
            uint32_t k = s->by_first[at];
            int64_t rank = s->rank[k];
            if (rank > tried && rank < best_rank && can_be_leftmost(s, b, k, most)) {
                best = k;
                best_rank = rank;
            }
        }
        most = s->rest[x] > most ? s->rest[x] : most;
    }
    if (best == BLYI_PACK_NONE && tried < (int64_t)n && can_close(s, b, most))
        return n;
    return best;
}

static bool solve(struct blyi_valley *s, uint32_t lo, uint32_t hi);

static bool solve_parts(struct blyi_valley *s, uint32_t lo, uint32_t hi)
{
    for (uint32_t from = lo; from < hi;) {
        uint32_t to = from + 1;
        while (to < hi && s->cross[to] > 0)
            to++;
        if (s->rest[from] > 0 && !solve(s, from, to))
            return false;
        from = to;
    }
    return true;
}

/* Units by which the tightest section of a valley may be raised. */
static int64_t basin_slack(const struct blyi_valley *s, const struct basin *b)
{
    int64_t most = 0;
    for (uint32_t x = b->first; x <= b->last; x++)
        most = s->rest[x] > most ? s->rest[x] : most;
    return s->capacity - b->floor - most;
}

/* The valley with the fewest choices, the tightest among equals; false: one has none. */
static bool choose_basin(struct blyi_valley *s, uint32_t lo, uint32_t hi, struct basin *best)
{
    uint32_t least = UINT32_MAX - 1, at = lo;
    int64_t least_slack = INT64_MAX;
    struct basin b;
    while (next_basin(s, &at, hi, &b)) {
        uint32_t count = count_choices(s, &b, least + 1);
        if (count == 0) {
            if (s->learn)
                blame(s, b.first, b.last);
            return false;
        }
        int64_t slack = basin_slack(s, &b);
        if (count < least || (count == least && slack < least_slack)) {
            least = count;
            least_slack = slack;
            *best = b;
        }
    }
    return least < UINT32_MAX - 1;
}

static bool solve(struct blyi_valley *s, uint32_t lo, uint32_t hi)
{
    struct basin b;
    if (!sections_fit(s, lo, hi) || !choose_basin(s, lo, hi, &b))
        return false;
    int64_t tried = -1;
    for (;;) {
        survey_basin(s, &b);
        uint32_t k = next_choice(s, &b, tried);
        if (k == BLYI_PACK_NONE)
            return false;
        /* A choice writes at most a value per section and two per item. */
        if (s->nodes == 0 || blyi_stop_poll(s->stop) ||
            s->trail_room - s->trail_used < s->pack->n_sections + 2 * (size_t)s->pack->n) {
            s->stopped = true;
            return false;
        }
        s->nodes--;
        size_t n_done = s->n_done, trail = s->trail_used;
        if (k == s->pack->n) {
            tried = k;
            raise_floor(s, b.first, b.last, b.left < b.right ? b.left : b.right);
        } else {
            tried = s->rank[k];
            int64_t height = left_height(s, &b, k);
            place(s, k);
            if (s->items[k].first > b.first)
                raise_floor(s, b.first, s->items[k].first - 1, height);
        }
        if (solve_parts(s, lo, hi))
            return true;
        undo_to(s, n_done, trail);
        if (s->stopped)
            return false;
    }
}

/* ---- running ----------------------------------------------------------------------------- */

static void begin(struct blyi_valley *s)
{
    uint32_t n = s->pack->n, sections = s->pack->n_sections;
    memset(s->floor, 0, sections * sizeof(*s->floor));
    memcpy(s->rest, s->load, sections * sizeof(*s->rest));
    memset(s->cross, 0, (sections + (size_t)1) * sizeof(*s->cross));
    memset(s->placed, 0, n);
    memset(s->off, 0, n * sizeof(*s->off));
    s->n_done = s->trail_used = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t x = s->items[i].first + 1; x <= s->items[i].last; x++)
            s->cross[x]++;
    }
}

enum blyi_search_end blyi_valley_run(struct blyi_valley *s, int64_t capacity,
                                     const struct blyi_order *order, uint64_t *nodes,
                                     struct blyi_stop *stop, int64_t *offset)
{
    begin(s);
    s->capacity = capacity;
    s->nodes = *nodes;
    s->stop = stop;
    s->stopped = false;
    s->learn = order->learn;
    blyi_order_rank(order, s->pack, s->graph->load, s->weight, s->keys, s->rank);
    bool found = solve_parts(s, 0, s->pack->n_sections);
    *nodes = s->nodes;
    if (!found)
        return s->stopped ? BLYI_SEARCH_STOPPED : BLYI_SEARCH_NONE;
    memcpy(offset, s->off, s->pack->n * sizeof(*offset));
    return BLYI_SEARCH_FOUND;
}

void blyi_valley_reset(struct blyi_valley *s)
{
    memset(s->weight, 0, (s->pack->n + (size_t)1) * sizeof(*s->weight));
}

/* Items, their order and the load as the search sees them. */
static void copy_problem(struct blyi_valley *s, bool mirrored)
{
    const struct blyi_pack *pack = s->pack;
    uint32_t sections = pack->n_sections;
    for (uint32_t x = 0; x < sections; x++) {
        uint32_t theirs = mirrored ? sections - 1 - x : x;
        s->load[x] = s->graph->load[theirs];
        s->witness[x] = s->graph->live[s->graph->live_at[theirs]];
    }
    memset(s->first_at, 0, (sections + (size_t)2) * sizeof(*s->first_at));
    for (uint32_t i = 0; i < pack->n; i++) {
        struct blyi_pack_item item = pack->items[i];
        if (mirrored) {
            item.first = sections - 1 - pack->items[i].last;
            item.last = sections - 1 - pack->items[i].first;
        }
        s->items[i] = item;
        s->first_at[item.first + 1]++;
    }
    for (uint32_t x = 0; x < sections; x++)
        s->first_at[x + 1] += s->first_at[x];
    for (uint32_t i = 0; i < pack->n; i++)
        s->by_first[s->first_at[s->items[i].first]++] = i;
    memmove(s->first_at + 1, s->first_at, sections * sizeof(*s->first_at));
    s->first_at[0] = 0;
}

bly_status blyi_valley_create(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              bool mirrored, struct blyi_valley **valley)
{
    size_t n = pack->n + (size_t)1, sections = pack->n_sections + (size_t)2;
    struct blyi_valley *s = blyi_host_calloc(1, sizeof(*s));
    if (s == NULL)
        goto fail;
    s->pack = pack;
    s->graph = graph;
    s->trail_room = 4 * (size_t)graph->near_at[pack->n] + 16 * (n + sections);
    for (uint32_t i = 0; i < pack->n; i++)
        s->trail_room += 4 * (size_t)(pack->items[i].last - pack->items[i].first + 1);
    s->items = blyi_host_alloc(n * sizeof(*s->items));
    s->by_first = blyi_host_alloc(n * sizeof(*s->by_first));
    s->first_at = blyi_host_alloc(sections * sizeof(*s->first_at));
    s->load = blyi_host_alloc(sections * sizeof(*s->load));
    s->floor = blyi_host_alloc(sections * sizeof(*s->floor));
    s->rest = blyi_host_alloc(sections * sizeof(*s->rest));
    s->low = blyi_host_alloc(sections * sizeof(*s->low));
    s->witness = blyi_host_alloc(sections * sizeof(*s->witness));
    s->cross = blyi_host_alloc(sections * sizeof(*s->cross));
    s->off = blyi_host_alloc(n * sizeof(*s->off));
    s->rank = blyi_host_alloc(n * sizeof(*s->rank));
    s->placed = blyi_host_alloc(n);
    s->done = blyi_host_alloc(n * sizeof(*s->done));
    s->weight = blyi_host_calloc(n, sizeof(*s->weight));
    s->keys = blyi_host_alloc(2 * n * sizeof(*s->keys));
    s->trail = blyi_host_alloc(s->trail_room * sizeof(*s->trail));
    if (!s->items || !s->by_first || !s->first_at || !s->load || !s->floor || !s->rest || !s->low ||
        !s->witness || !s->cross || !s->off || !s->rank || !s->placed || !s->done || !s->weight ||
        !s->keys || !s->trail)
        goto fail;
    s->mirrored = mirrored;
    copy_problem(s, mirrored);
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
    blyi_host_free(s->items);
    blyi_host_free(s->by_first);
    blyi_host_free(s->first_at);
    blyi_host_free(s->load);
    blyi_host_free(s->floor);
    blyi_host_free(s->rest);
    blyi_host_free(s->low);
    blyi_host_free(s->witness);
    blyi_host_free(s->cross);
    blyi_host_free(s->off);
    blyi_host_free(s->rank);
    blyi_host_free(s->placed);
    blyi_host_free(s->done);
    blyi_host_free(s->weight);
    blyi_host_free(s->keys);
    blyi_host_free(s->trail);
    blyi_host_free(s);
}
