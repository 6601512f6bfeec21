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

#define WHOLE_MAX   2500   /* up to so many items the window is the whole problem */
#define LARGE       100000 /* items: a failed attempt costs more */
#define REACH_FIRST 300
#define REACH_MAX   6000
#define PART_MAX    20000 /* items in a window: the shelf of more would be too slow */
#define STEPS_FIRST 4000
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
    press->share = pack->n > LARGE ? 0.5 : 0.75;
    press->reach = REACH_FIRST;
    press->steps = STEPS_FIRST;
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
                               const int64_t *offset, struct window **windows, size_t *count)
{
    const struct blyi_pack *pack = press->pack;
    size_t n_high = 0;
    for (uint32_t i = 0; i < pack->n; i++)
        n_high += offset[i] + pack->items[i].size > wanted;
    struct window *w = blyi_host_alloc((n_high + 1) * sizeof(*w));
    struct blyi_sort_key *keys = blyi_host_alloc((2 * n_high + 1) * sizeof(*keys));
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
    for (size_t k = 0; k < n_high; k++) {
        const struct blyi_pack_item *item = &pack->items[keys[k].value];
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

static bly_status part_init(struct part *part, const struct blyi_press *press,
                            const struct window *w, const int64_t *offset)
{
    const struct blyi_pack *pack = press->pack;
    const struct blyi_timeline *line = press->line;
    memset(part, 0, sizeof(*part));
    uint32_t end = line->born_at[w->last + 1], n = 0;
    if (end - line->born_at[w->first] > PART_MAX)
        return BLY_OK; /* empty: too large to be pressed */
    for (uint32_t x = 0; x < end; x++)
        n += pack->items[line->born[x]].last >= w->first;
    struct blyi_pack *sub = &part->pack;
    sub->items = blyi_host_alloc((n + (size_t)1) * sizeof(*sub->items));
    sub->fixed = blyi_host_alloc((n + (size_t)1) * sizeof(*sub->fixed));
    if (pack->align != NULL)
        sub->align = blyi_host_alloc((n + (size_t)1) * sizeof(*sub->align));
    part->ids = blyi_host_alloc((n + (size_t)1) * sizeof(*part->ids));
    part->offset = blyi_host_alloc((n + (size_t)1) * sizeof(*part->offset));
    if (!sub->items || !sub->fixed || (pack->align && !sub->align) || !part->ids || !part->offset) {
        part_fini(part);
        return blyi_fail(BLY_E_HOST_MEMORY, "pressing %u of %u buffers: the host has no memory", n,
                         pack->n);
    }
    sub->unit = pack->unit;
    sub->n_sections = w->last - w->first + 1;
    for (uint32_t x = 0; x < end; x++) {
        uint32_t i = line->born[x];
        const struct blyi_pack_item *item = &pack->items[i];
        if (item->last < w->first)
            continue;
        uint32_t first = item->first > w->first ? item->first - w->first : 0;
        uint32_t last = (item->last < w->last ? item->last : w->last) - w->first;
        bool moves = is_inside(item, w) && !blyi_pack_is_fixed(pack, i);
        sub->items[sub->n] = (struct blyi_pack_item){first, last, item->size};
        sub->fixed[sub->n] = moves ? BLYI_PACK_FREE : offset[i];
        if (sub->align != NULL)
            sub->align[sub->n] = pack->align[i];
        part->offset[sub->n] = offset[i];
        part->ids[sub->n++] = i;
    }
    return BLY_OK;
}

/* *done: everything that lies inside the window ends at or below `wanted` now. */
static bly_status press_window(struct blyi_press *press, const struct window *w, int64_t wanted,
                               uint64_t *nodes, struct blyi_stop *stop, int64_t *offset, bool *done)
{
    struct part part;
    struct blyi_eject *eject;
    bly_status status = part_init(&part, press, w, offset);
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
                              struct blyi_stop *stop, int64_t *offset, bool *done)
{
    struct blyi_eject *eject;
    bly_status status = blyi_eject_create(press->pack, &eject);
    if (status != BLY_OK)
        return status;
    uint64_t steps = press->steps < *nodes ? press->steps : *nodes, left = steps;
    *done = blyi_eject_run(eject, wanted, &press->rand, &left, stop, offset);
    *nodes -= steps - left;
    blyi_eject_destroy(eject);
    return BLY_OK;
}

static bly_status press_all(struct blyi_press *press, int64_t wanted, uint64_t *nodes,
                            struct blyi_stop *stop, int64_t *offset, bool *done)
{
    if (press->pack->n <= WHOLE_MAX || press->pack->pieces != NULL)
        return press_whole(press, wanted, nodes, stop, offset, done);
    struct window *windows = NULL;
    size_t n = 0;
    bly_status status = find_windows(press, wanted, offset, &windows, &n);
    if (status != BLY_OK)
        return status;
    *done = true;
    for (size_t w = 0; w < n && status == BLY_OK && !blyi_stop_now(stop); w++) {
        bool pressed = false; /* a window that resists is left for a wider one, later */
        status = press_window(press, &windows[w], wanted, nodes, stop, offset, &pressed);
        *done &= pressed;
    }
    *done &= !blyi_stop_now(stop);
    blyi_host_free(windows);
    return status;
}

bly_status blyi_press_once(struct blyi_press *press, int64_t bound, uint64_t *nodes,
                           struct blyi_stop *stop, int64_t *offset, int64_t *peak)
{
    int64_t gain = (int64_t)((double)(*peak - bound) * press->share);
    int64_t wanted = *peak - (gain > 1 ? gain : 1);
    bool done = false;
    bly_status status = press_all(press, wanted, nodes, stop, offset, &done);
    *peak = blyi_pack_peak(press->pack, offset);
    if (done) {
        press->share = press->share < 0.5 ? press->share * 1.5 : press->share;
        return status;
    }
    press->share *= 0.6;
    press->reach = press->reach * 2 < REACH_MAX ? press->reach * 2 : REACH_MAX;
    press->steps = press->steps * 2 < STEPS_MAX ? press->steps * 2 : STEPS_MAX;
    return status;
}
