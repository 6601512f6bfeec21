/* SPDX-License-Identifier: Apache-2.0
 *
 * press.c - finds the windows in which a plan is too high and lets the ejection search work
 * on each of them.
 *
 *   peak    -  -  -  - ## -  -  -  -  -  -
 *   wanted  - -  ## -  ## -  -  -  ## -  -     two windows; what crosses a border is fixed
 *              ####   #####      ####
 *             [ window 1  ]   [ window 2 ]
 */
#include "plan/press.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/eject.h"
#include "plan/sort.h"

#define WHOLE_MAX   2500  /* up to so many items the window is the whole problem */
#define LARGE       50000 /* items: small gains come sooner */
#define REACH_FIRST 300
#define REACH_MAX   6000
#define PART_MAX    20000 /* items in a window: the shelf of more would be too slow */
#define STEPS_FIRST 4000
#define STEPS_LARGE 2500
#define YIELDS      1 /* how often the aim is made higher for one window */
#define STEPS_MAX   40000

struct window {
    uint32_t first, last; /* sections, both included */
};

void blyi_press_init(struct blyi_press *press, const struct blyi_pack *pack,
                     const struct blyi_timeline *line, uint64_t seed)
{
    press->pack = pack;
    press->line = line;
    blyi_rand_init(&press->rand, seed);
    press->share = pack->n > LARGE ? 0.33 : 0.75;
    press->reach = REACH_FIRST;
    press->steps = pack->n > LARGE ? STEPS_LARGE : STEPS_FIRST;
    press->growth = pack->n > LARGE ? 1.2 : 1.5;
}

/* Sections around [first, last] in which about `reach` items are born before and after. */
static struct window widen(const struct blyi_press *press, uint32_t first, uint32_t last)
{
    const struct blyi_timeline *line = press->line;
    uint32_t n = press->pack->n, sections = press->pack->n_sections;
    if (n <= WHOLE_MAX)
        return (struct window){0, sections - 1};
    uint32_t at = line->born_at[first];
    while (first > 0 && at - line->born_at[first] < press->reach)
        first--;
    at = line->born_at[last + 1];
    while (last + 1 < sections && line->born_at[last + 1] - at < press->reach)
        last++;
    return (struct window){first, last};
}

/* Windows around everything above `wanted`, in order of time, merged where they touch. */
static bly_status find_windows(const struct blyi_press *press, int64_t wanted,
                               const int64_t *offset, struct blyi_stop *stop,
                               struct window **windows, size_t *count)
{
    const struct blyi_pack *pack = press->pack;
    size_t n_high = 0;
    for (uint32_t i = 0; i < pack->n; i++)
        n_high += offset[i] + pack->items[i].size > wanted;
    struct window *w = blyi_host_alloc_dense((n_high + 1) * sizeof(*w));
    struct blyi_sort_key *keys = blyi_host_alloc_dense((2 * n_high + 1) * sizeof(*keys));
    if (w == NULL || keys == NULL) {
        blyi_host_free(w);
        blyi_host_free(keys);
        return blyi_fail(BLY_E_HOST_MEMORY, "pressing a plan of %u buffers: the host has no memory",
                         pack->n);
    }
    size_t at = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        if (offset[i] + pack->items[i].size > wanted)
            keys[at++] = (struct blyi_sort_key){pack->items[i].first, i};
    }
    blyi_sort_keys(keys, keys + n_high, n_high);
    size_t n = 0;
    uint32_t core = 0; /* last section of what the last window was made for */
    for (size_t k = 0; k < n_high && !blyi_stop_poll(stop); k++) {
        const struct blyi_pack_item *item = &pack->items[keys[k].value];
        if (n > 0 && item->last <= core)
            continue; /* inside of it already, since it is not born before */
        core = item->last;
        struct window next = widen(press, item->first, item->last);
        if (n > 0 && next.first <= w[n - 1].last)
            w[n - 1].last = next.last > w[n - 1].last ? next.last : w[n - 1].last;
        else
            w[n++] = next;
    }
    blyi_host_free(keys);
    *windows = w;
    *count = n;
    return BLY_OK;
}

/* The part of the problem inside a window; ids[k] is the item that became item k. Empty where
 * the window holds too much. */
struct part {
    struct blyi_pack pack;
    uint32_t *ids;
    int64_t *offset;
};

static void part_fini(struct part *part)
{
    blyi_pack_fini(&part->pack);
    blyi_host_free(part->ids);
    blyi_host_free(part->offset);
}

static bool is_inside(const struct blyi_pack_item *item, const struct window *w)
{
    return item->first >= w->first && item->last <= w->last;
}

/* Items born before a section that live to it or longer. Windows come in order of time, so what
 * reaches into one is found among what reached into the one before and what was born since. */
struct carry {
    uint32_t *items;
    size_t n, room;
    uint32_t born; /* so many, in order of birth, were looked at */
};

static bool carry_to(struct carry *carry, const struct blyi_press *press, uint32_t section)
{
    const struct blyi_pack_item *items = press->pack->items;
    size_t kept = 0;
    for (size_t x = 0; x < carry->n; x++) {
        if (items[carry->items[x]].last >= section)
            carry->items[kept++] = carry->items[x];
    }
    carry->n = kept;
    for (; carry->born < press->line->born_at[section]; carry->born++) {
        uint32_t i = press->line->born[carry->born];
        if (items[i].last < section)
            continue;
        if (carry->n == carry->room) {
            size_t room = carry->room * 2 + 256;
            uint32_t *more = blyi_host_realloc(carry->items, room * sizeof(*more));
            if (more == NULL)
                return false;
            carry->items = more;
            carry->room = room;
        }
        carry->items[carry->n++] = i;
    }
    return true;
}

static void add_item(struct part *part, const struct blyi_press *press, const struct window *w,
                     uint32_t i, const int64_t *offset)
{
    const struct blyi_pack_item *item = &press->pack->items[i];
    struct blyi_pack *sub = &part->pack;
    uint32_t first = item->first > w->first ? item->first - w->first : 0;
    uint32_t last = (item->last < w->last ? item->last : w->last) - w->first;
    bool moves = is_inside(item, w) && !blyi_pack_is_fixed(press->pack, i);
    sub->items[sub->n] = (struct blyi_pack_item){first, last, item->size};
    sub->fixed[sub->n] = moves ? BLYI_PACK_FREE : offset[i];
    if (sub->align != NULL)
        sub->align[sub->n] = press->pack->align[i];
    part->offset[sub->n] = offset[i];
    part->ids[sub->n++] = i;
}

static bly_status part_init(struct part *part, const struct blyi_press *press,
                            const struct carry *carry, const struct window *w,
                            const int64_t *offset)
{
    const struct blyi_pack *pack = press->pack;
    const struct blyi_timeline *line = press->line;
    memset(part, 0, sizeof(*part));
    uint32_t begin = line->born_at[w->first], end = line->born_at[w->last + 1];
    if (end - begin > PART_MAX)
        return BLY_OK; /* empty: too large to be pressed */
    size_t n = carry->n + (end - begin);
    struct blyi_pack *sub = &part->pack;
    sub->items = blyi_host_alloc_dense((n + 1) * sizeof(*sub->items));
    sub->fixed = blyi_host_alloc_dense((n + 1) * sizeof(*sub->fixed));
    if (pack->align != NULL)
        sub->align = blyi_host_alloc_dense((n + 1) * sizeof(*sub->align));
    part->ids = blyi_host_alloc_dense((n + 1) * sizeof(*part->ids));
    part->offset = blyi_host_alloc_dense((n + 1) * sizeof(*part->offset));
    if (!sub->items || !sub->fixed || (pack->align && !sub->align) || !part->ids || !part->offset) {
        part_fini(part);
        return blyi_fail(BLY_E_HOST_MEMORY, "pressing %zu of %u buffers: the host has no memory", n,
                         pack->n);
    }
    sub->unit = pack->unit;
    sub->n_sections = w->last - w->first + 1;
    for (size_t x = 0; x < carry->n; x++)
        add_item(part, press, w, carry->items[x], offset);
    for (uint32_t x = begin; x < end; x++)
        add_item(part, press, w, line->born[x], offset);
    return BLY_OK;
}

/* *done: everything that lies inside the window ends at or below `wanted` now. */
static bly_status press_window(struct blyi_press *press, const struct carry *carry,
                               const struct window *w, int64_t wanted, uint64_t *nodes,
                               struct blyi_stop *stop, int64_t *offset, bool *done)
{
    struct part part;
    struct blyi_eject *eject;
    bly_status status = part_init(&part, press, carry, w, offset);
    if (status != BLY_OK)
        return status;
    *done = false;
    if (part.pack.n == 0)
        return BLY_OK;
    status = blyi_eject_create(&part.pack, &eject);
    if (status == BLY_OK) {
        uint64_t steps = press->steps < *nodes ? press->steps : *nodes, left = steps;
        *done = blyi_eject_run(eject, wanted, &press->rand, &left, stop, part.offset);
        *nodes -= steps - left;
        blyi_eject_destroy(eject);
        for (uint32_t k = 0; *done && k < part.pack.n; k++)
            offset[part.ids[k]] = part.offset[k];
    }
    part_fini(&part);
    return status;
}

/* The whole problem, gaps and all. */
static bly_status press_whole(struct blyi_press *press, int64_t wanted, uint64_t *nodes,
                              struct blyi_stop *stop, int64_t *offset)
{
    struct blyi_eject *eject;
    bly_status status = blyi_eject_create(press->pack, &eject);
    if (status != BLY_OK)
        return status;
    uint64_t steps = press->steps < *nodes ? press->steps : *nodes, left = steps;
    (void)blyi_eject_run(eject, wanted, &press->rand, &left, stop, offset);
    *nodes -= steps - left;
    blyi_eject_destroy(eject);
    return BLY_OK;
}

/* In a large problem a window that resists makes the aim higher, for itself and for those that
 * follow: what is above it there stays the peak, and less is wanted of the others then. In others
 * it is left for a wider one, later. */
static bly_status press_or_yield(struct blyi_press *press, const struct carry *carry,
                                 const struct window *w, int64_t peak, int64_t *wanted,
                                 uint64_t *nodes, struct blyi_stop *stop, int64_t *offset)
{
    bly_status status = BLY_OK;
    for (int tries = 0; tries <= YIELDS && *wanted < peak && !blyi_stop_now(stop); tries++) {
        bool done = false;
        status = press_window(press, carry, w, *wanted, nodes, stop, offset, &done);
        if (status != BLY_OK || done || press->pack->n <= LARGE)
            return status;
        *wanted = tries < YIELDS ? *wanted + (peak - *wanted + 1) / 2 : peak;
    }
    return status;
}

static bly_status press_all(struct blyi_press *press, int64_t peak, int64_t wanted, uint64_t *nodes,
                            struct blyi_stop *stop, int64_t *offset)
{
    struct window *windows = NULL;
    struct carry carry = {NULL, 0, 0, 0};
    size_t n = 0;
    bly_status status = find_windows(press, wanted, offset, stop, &windows, &n);
    if (status != BLY_OK)
        return status;
    for (size_t w = 0; w < n && status == BLY_OK && wanted < peak && !blyi_stop_now(stop); w++) {
        if (carry_to(&carry, press, windows[w].first))
            status = press_or_yield(press, &carry, &windows[w], peak, &wanted, nodes, stop, offset);
        else
            status = blyi_fail(BLY_E_HOST_MEMORY, "pressing %u buffers: the host has no memory",
                               press->pack->n);
    }
    blyi_host_free(carry.items);
    blyi_host_free(windows);
    return status;
}

bly_status blyi_press_once(struct blyi_press *press, int64_t bound, uint64_t *nodes,
                           struct blyi_stop *stop, int64_t *offset, int64_t *peak)
{
    int64_t gain = (int64_t)((double)(*peak - bound) * press->share);
    int64_t wanted = *peak - (gain > 1 ? gain : 1);
    bly_status status;
    if (press->pack->n <= WHOLE_MAX || press->pack->pieces != NULL)
        status = press_whole(press, wanted, nodes, stop, offset);
    else
        status = press_all(press, *peak, wanted, nodes, stop, offset);
    *peak = blyi_pack_peak(press->pack, offset);
    if (*peak <= wanted) {
        press->share = press->share < 0.5 ? press->share * press->growth : press->share;
        return status;
    }
    press->share *= 0.6;
    press->reach = press->reach * 2 < REACH_MAX ? press->reach * 2 : REACH_MAX;
    press->steps = press->steps * 2 < STEPS_MAX ? press->steps * 2 : STEPS_MAX;
    return status;
}
