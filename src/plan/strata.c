/* SPDX-License-Identifier: Apache-2.0
 *
 * strata.c - what is placed is kept per stretch of time, sorted by offset, once in each stretch
 * that it lives in. A search for room walks up the stretches of a life in turns: where one of
 * them raises the floor, the others follow, until none does.
 *
 *   stretch    0      1      2
 *                   ######
 *           #####      ####      the floor under a new item that lives through 0 and 1: raised
 *           ######  ####         by 0, by 1, again by 0; what lies above is never looked at
 */
#include "plan/strata.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/bound.h"

#define CELLS_MAX  (UINT32_C(1) << 28) /* of the bound: memory is counted in 32 bits */
#define PLACES_MAX (UINT32_C(1) << 31)
#define CLASSES    128 /* two in an octave */
#define LAST       CLASSES
#define LEVELS     3
#define CROWDED    6000.0 /* entries that an item may look at on average */
#define SHARE      0.95   /* of the memory, summed over time, that is placed class by class */

/* Something placed, in cells and sections. */
struct lying {
    uint32_t start, end;
    uint32_t first, last;
};

struct strata {
    const struct blyi_pack *pack;
    unsigned cell;        /* memory is counted in cells of 2^cell units */
    unsigned width;       /* a stretch is 2^width sections */
    struct lying *lying;  /* of all stretches, each with a mark above everything at its end */
    uint32_t *from, *end; /* positions of a stretch in lying[]; end: of its mark */
    uint32_t *at;         /* where a search stands, per stretch of a life */
    double entries;       /* that are looked at in all, at most */
};

static bly_status no_memory(const struct blyi_pack *pack)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "placing %u buffers: the host has no memory", pack->n);
}

static uint32_t stretches(const struct strata *s)
{
    return ((s->pack->n_sections - 1) >> s->width) + 1;
}

/* About as wide as the mean life, so that an item lies in two or three of them. */
static void choose_width(struct strata *s)
{
    uint64_t lives = 0;
    for (uint32_t i = 0; i < s->pack->n; i++)
        lives += s->pack->items[i].last - s->pack->items[i].first + UINT64_C(1);
    s->width = 0;
    while (s->width < 31 && (uint64_t)s->pack->n << s->width < lives)
        s->width++;
}

/* A stretch has room for all that live in it, and for a mark above everything. */
static bool make_room(struct strata *s)
{
    const struct blyi_pack *pack = s->pack;
    size_t n = stretches(s), sum = 0;
    s->from = blyi_host_calloc_dense(n + 2, sizeof(*s->from));
    s->end = blyi_host_alloc_dense((n + 1) * sizeof(*s->end));
    s->at = blyi_host_alloc_dense(n * sizeof(*s->at));
    if (s->from == NULL || s->end == NULL || s->at == NULL)
        return false;
    for (uint32_t i = 0; i < pack->n; i++) {
        s->from[pack->items[i].first >> s->width]++;
        s->from[(pack->items[i].last >> s->width) + 1]--;
    }
    uint32_t alive = 0;
    for (size_t k = 0; k < n; k++) {
        alive += s->from[k];
        s->from[k] = s->end[k] = (uint32_t)sum;
        sum += alive + (size_t)1;
        s->entries += (double)alive * (double)alive;
    }
    s->lying = sum > UINT32_MAX ? NULL : blyi_host_alloc_dense(sum * sizeof(*s->lying));
    for (size_t k = 0; s->lying != NULL && k < n; k++)
        s->lying[s->end[k]].start = UINT32_MAX;
    return s->lying != NULL;
}

static void strata_fini(struct strata *s)
{
    blyi_host_free(s->lying);
    blyi_host_free(s->from);
    blyi_host_free(s->end);
    blyi_host_free(s->at);
    memset(s, 0, sizeof(*s));
}

static bly_status strata_init(struct strata *s, const struct blyi_pack *pack, int64_t bound)
{
    memset(s, 0, sizeof(*s));
    s->pack = pack;
    while (bound >> s->cell >= CELLS_MAX)
        s->cell++;
    choose_width(s);
    if (make_room(s))
        return BLY_OK;
    strata_fini(s);
    return no_memory(pack);
}

/* Equal parts of an octave; smaller classes are larger sizes. */
static unsigned class_of_size(int64_t size)
{
    unsigned octave = 63 - (unsigned)__builtin_clzll((uint64_t)size);
    unsigned half = octave > 0 ? (unsigned)((uint64_t)size >> (octave - 1)) & 1 : 0;
    return CLASSES - 1 - (octave * 2 + half);
}

/* How many sections before a section are at a level, for all levels. */
struct heat {
    uint32_t before[LEVELS];
};

static bool measure_heat(const struct blyi_pack *pack, int64_t bound, struct heat *heat)
{
    static const double levels[LEVELS] = {0.90, 0.93, 0.96};
    int64_t *load = blyi_host_alloc_dense((pack->n_sections + (size_t)1) * sizeof(*load));
    int64_t most;
    bool ok = load != NULL && blyi_bound_load(pack, load, &most) == BLY_OK;
    memset(&heat[0], 0, sizeof(heat[0]));
    for (uint32_t s = 0; ok && s < pack->n_sections; s++) {
        for (unsigned l = 0; l < LEVELS; l++)
            heat[s + 1].before[l] =
                heat[s].before[l] + ((double)load[s] >= levels[l] * (double)bound);
    }
    blyi_host_free(load);
    return ok;
}

static unsigned levels_of(const struct heat *heat, const struct blyi_pack_item *item)
{
    unsigned n = 0;
    for (unsigned l = 0; l < LEVELS; l++)
        n += heat[item->last + 1].before[l] > heat[item->first].before[l];
    return n;
}

/* The class of each item; LAST for those that are small and nowhere near the peak. */
static void classify(const struct blyi_pack *pack, const struct heat *heat, uint8_t *class)
{
    double area[CLASSES] = {0}, all = 0, held = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        const struct blyi_pack_item *item = &pack->items[i];
        double use = (double)item->size * (double)(item->last - item->first + 1);
        area[class_of_size(item->size)] += use;
        all += use;
    }
    unsigned small = 0;
    while (small < CLASSES && held < all * SHARE)
        held += area[small++];
    for (uint32_t i = 0; i < pack->n; i++) {
        unsigned levels = levels_of(heat, &pack->items[i]);
        unsigned c = class_of_size(pack->items[i].size);
        class[i] = (uint8_t)(c >= small && levels == 0 ? LAST : c > levels ? c - levels : 0);
    }
}

static bly_status make_order(const struct blyi_pack *pack, const struct blyi_timeline *line,
                             int64_t bound, uint32_t *order)
{
    struct heat *heat = blyi_host_alloc_dense((pack->n_sections + (size_t)1) * sizeof(*heat));
    uint8_t *class = blyi_host_alloc_dense(pack->n + (size_t)1);
    bool ok = heat != NULL && class != NULL && measure_heat(pack, bound, heat);
    uint32_t at[LAST + 2] = {0};
    if (ok)
        classify(pack, heat, class);
    for (uint32_t i = 0; ok && i < pack->n; i++)
        at[class[i] + 1]++;
    for (unsigned c = 0; c < LAST; c++)
        at[c + 1] += at[c];
    for (uint32_t x = 0; ok && x < pack->n; x++) {
        uint32_t i = line->born[x];
        order[at[class[i]]++] = i;
    }
    blyi_host_free(heat);
    blyi_host_free(class);
    return ok ? BLY_OK : no_memory(pack);
}

/* The lowest place that is free in all sections of a life. Where a search ends in each stretch is
 * kept in at[]: nothing from there on starts below the end of the place. */
static uint32_t find_room(struct strata *s, const struct blyi_pack_item *item, uint32_t size)
{
    uint32_t k = item->first >> s->width, n = (item->last >> s->width) - k + 1;
    uint32_t floor = 0, agree = 0;
    memcpy(s->at, s->from + k, n * sizeof(*s->at));
    for (uint32_t x = 0; agree < n && floor <= PLACES_MAX; x = x + 1 < n ? x + 1 : 0) {
        const struct lying *on = s->lying + s->at[x];
        uint32_t was = floor;
        for (; on->start < floor + size; on++) {
            bool meets = (on->end > floor) & (on->first <= item->last) & (on->last >= item->first);
            floor = meets ? on->end : floor;
        }
        s->at[x] = (uint32_t)(on - s->lying);
        agree = floor == was ? agree + 1 : 1;
    }
    return floor;
}

/* at[]: in each stretch of the life, a position at or above which it belongs. */
static void put(struct strata *s, const struct blyi_pack_item *item, uint32_t start, uint32_t size)
{
    uint32_t first = item->first >> s->width, n = (item->last >> s->width) - first + 1;
    for (uint32_t x = 0; x < n; x++) {
        struct lying *list = s->lying + s->from[first + x], *at = s->lying + s->at[x];
        struct lying *mark = s->lying + s->end[first + x]++;
        while (at > list && at[-1].start > start)
            at--;
        memmove(at + 1, at, (size_t)(mark + 1 - at) * sizeof(*at));
        *at = (struct lying){start, start + size, item->first, item->last};
    }
}

static uint32_t cells_of(const struct strata *s, int64_t units)
{
    return (uint32_t)(((uint64_t)units + (UINT64_C(1) << s->cell) - 1) >> s->cell);
}

/* False: something would end above `limit`, or it is time to stop. */
static bool place_all(struct strata *s, const uint32_t *order, int64_t limit,
                      struct blyi_stop *stop, int64_t *offset)
{
    int64_t places = (int64_t)PLACES_MAX << s->cell, most = limit < places ? limit : places;
    for (uint32_t x = 0; x < s->pack->n; x++) {
        const struct blyi_pack_item *item = &s->pack->items[order[x]];
        uint32_t size = cells_of(s, item->size), start = find_room(s, item, size);
        if ((int64_t)(start + size) << s->cell > most || blyi_stop_poll(stop))
            return false;
        put(s, item, start, size);
        offset[order[x]] = (int64_t)start << s->cell;
    }
    return true;
}

bly_status blyi_strata(const struct blyi_pack *pack, const struct blyi_timeline *line,
                       int64_t bound, int64_t limit, struct blyi_stop *stop, int64_t *offset,
                       bool *done)
{
    struct strata strata;
    bly_status status = strata_init(&strata, pack, bound);
    if (status != BLY_OK)
        return status;
    uint32_t *order = blyi_host_alloc_dense((pack->n + (size_t)1) * sizeof(*order));
    status = order == NULL ? no_memory(pack) : make_order(pack, line, bound, order);
    /* Where very much is live at once, other plans are quicker. */
    bool crowded = strata.entries > CROWDED * (double)pack->n;
    *done = status == BLY_OK && !crowded && place_all(&strata, order, limit, stop, offset);
    blyi_host_free(order);
    strata_fini(&strata);
    return status;
}
