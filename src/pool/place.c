/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c - best fit over mapped runs, and over those that may grow.
 */
#include "pool/place.h"

#define PROBES       2u    /* of a bin, looked at for the best: more is no better */
#define TIGHT_PROBES 64u   /* of each kind, where memory is short, */
#define TIGHT_STEPS  4096u /* and handles of those */

/* A span at an end of a hole, in the `room` bytes from that end on. */
static bool fits(const struct blyi_span *hole, uint32_t end, uint64_t room,
                 const struct blyi_want *want, uintptr_t *address)
{
    if (room < want->size)
        return false;
    if (end != 1) {
        *address = blyi_align_up(hole->address, want->align);
        return *address + want->size <= hole->address + room;
    }
    uintptr_t high = hole->address + hole->size;
    *address = blyi_align_down(high - want->size, want->align);
    return *address >= high - room;
}

/* By what a hole stands in an index. */
static uint64_t length_of(const struct blyi_span *hole, const struct blyi_run_link *link)
{
    return link->end == 2 ? hole->size : hole->ends[link->end];
}

/* The shortest entry of at least `least` bytes and less than place->run that has room for a span:
 * in the mapped run itself or, with `grows`, anywhere in the hole. False: *place stays. */
static bool find(const struct blyi_runs *runs, uint64_t least, bool grows,
                 const struct blyi_want *want, struct blyi_place *place)
{
    bool found = false;
    uint32_t last = place->run == UINT64_MAX ? BLYI_RUNS_BINS - 1 : blyi_runs_bin(place->run);
    for (uint32_t bin = blyi_runs_up(runs, blyi_runs_bin(least)); bin <= last && !found;
         bin = bin < last ? blyi_runs_up(runs, bin + 1) : BLYI_RUNS_BINS) {
        unsigned left = PROBES;
        for (struct blyi_run_link *link = runs->heads[bin]; link != NULL && left > 0;
             link = link->next, left--) {
            struct blyi_span *hole = blyi_run_span(link);
            uint64_t run = length_of(hole, link);
            uintptr_t address;
            if (run < least || run >= place->run ||
                !fits(hole, link->end, grows ? hole->size : run, want, &address))
                continue;
            *place = (struct blyi_place){hole, address, run, link->end == 1};
            found = true;
        }
    }
    return found;
}

/* The longest run below the wanted size that can grow to it. */
static bool find_longest(const struct blyi_runs *runs, const struct blyi_want *want,
                         struct blyi_place *place)
{
    unsigned left = 2 * PROBES;
    uint32_t bin = blyi_runs_down(runs, blyi_runs_bin(want->size));
    place->run = 0;
    while (bin < BLYI_RUNS_BINS && left > 0 && place->run == 0) {
        for (struct blyi_run_link *link = runs->heads[bin]; link != NULL && left > 0;
             link = link->next, left--) {
            struct blyi_span *hole = blyi_run_span(link);
            uint64_t run = hole->ends[link->end];
            uintptr_t address;
            if (run > place->run && run < want->size &&
                fits(hole, link->end, hole->size, want, &address))
                *place = (struct blyi_place){hole, address, run, link->end == 1};
        }
        bin = bin > 0 ? blyi_runs_down(runs, bin - 1) : BLYI_RUNS_BINS;
    }
    return place->run > 0;
}

bool blyi_place_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                    struct blyi_place *place)
{
    place->run = UINT64_MAX;
    bool found = find(&zone->closed, want->size, false, want, place);
    return place->run == want->size || find(&zone->open, want->size, false, want, place) || found;
}

bool blyi_place_growth(const struct blyi_zone *zone, const struct blyi_want *want,
                       struct blyi_place *place)
{
    uint64_t granule = zone->arena->pool->granule;
    if (find_longest(&zone->open, want, place)) {
        uint64_t grow = blyi_align_up(want->size - place->run, granule);
        uint64_t least = grow < want->size ? want->size - grow : BLYI_QUANTUM;
        (void)find(&zone->open, least, true, want, place);
        return true;
    }
    place->run = UINT64_MAX;
    return find(&zone->rooms, want->size, true, want, place);
}

bool blyi_place_sure(const struct blyi_zone *zone, const struct blyi_want *want,
                     struct blyi_place *place)
{
    place->run = UINT64_MAX;
    return find(&zone->rooms, blyi_place_room(want), true, want, place);
}

/* What was looked at for the place that costs least. */
struct look {
    struct blyi_price best;
    unsigned left; /* holes */
    uint64_t steps;
    bool found;
};

/* Granules that a place takes: new ones, and all of handles that could go elsewhere until then. */
static uint64_t cost_of(const struct blyi_extent *extent, uint64_t at, uint64_t end,
                        struct look *look)
{
    uint64_t cost = 0;
    for (; at < end; look->steps++) {
        const struct blyi_chunk *chunk = extent->chunks[at];
        cost += chunk == NULL ? 1 : chunk->n_spans == 0 ? chunk->count : 0;
        at = chunk == NULL ? at + 1 : chunk->first + chunk->count;
    }
    return cost;
}

/* Free bytes of a hole from `from` on, in handles that are taken once what ends there is. */
static uint64_t rest_above(const struct blyi_span *hole, uintptr_t from)
{
    const struct blyi_extent *extent = hole->extent;
    uint64_t granule = extent->zone->arena->pool->granule;
    uintptr_t high = hole->address + hole->size, at = from - 1;
    bool is_own = true; /* its last handle */
    while (at < high) {
        uint64_t i = (at - extent->base) / granule;
        const struct blyi_chunk *chunk = extent->chunks[i];
        if (!is_own && (chunk == NULL || chunk->n_spans == 0))
            break;
        at = extent->base + (chunk == NULL ? i + 1 : chunk->first + chunk->count) * granule;
        is_own = false;
    }
    return (at < high ? at : high) - from;
}

/* The same up to `to`, where what is placed begins. */
static uint64_t rest_below(const struct blyi_span *hole, uintptr_t to)
{
    const struct blyi_extent *extent = hole->extent;
    uint64_t granule = extent->zone->arena->pool->granule;
    uintptr_t low = hole->address, at = to + 1;
    bool is_own = true;
    while (at > low) {
        uint64_t i = (at - 1 - extent->base) / granule;
        const struct blyi_chunk *chunk = extent->chunks[i];
        if (!is_own && (chunk == NULL || chunk->n_spans == 0))
            break;
        at = extent->base + (chunk == NULL ? i : chunk->first) * granule;
        is_own = false;
    }
    return to - (at > low ? at : low);
}

static void look_at(struct look *look, struct blyi_span *hole, uint32_t end,
                    const struct blyi_want *want, struct blyi_place *place)
{
    const struct blyi_extent *extent = hole->extent;
    uint64_t granule = extent->zone->arena->pool->granule;
    uintptr_t at;
    bool is_last = end == 1 && hole->after == NULL; /* far up, where nothing is */
    if (is_last || !fits(hole, end, hole->size, want, &at))
        return;
    uint64_t first = (at - extent->base) / granule;
    uint64_t last = (at + want->size - 1 - extent->base) / granule;
    uint64_t cost = cost_of(extent, first, last + 1, look);
    if (cost > look->best.cost)
        return;
    uint64_t rest = end == 0 ? rest_above(hole, at + want->size) : rest_below(hole, at);
    if (cost == look->best.cost && rest >= look->best.rest)
        return;
    look->best = (struct blyi_price){cost, rest};
    look->found = true;
    *place = (struct blyi_place){hole, at, hole->size, end};
}

static void look_in(const struct blyi_runs *runs, struct look *look, const struct blyi_want *want,
                    struct blyi_place *place)
{
    look->left = TIGHT_PROBES;
    look->steps = 0;
    for (uint32_t bin = blyi_runs_up(runs, blyi_runs_bin(want->size)); bin < BLYI_RUNS_BINS;
         bin = bin + 1 < BLYI_RUNS_BINS ? blyi_runs_up(runs, bin + 1) : BLYI_RUNS_BINS) {
        for (struct blyi_run_link *link = runs->heads[bin]; link != NULL; link = link->next) {
            if (look->left-- == 0 || look->steps > TIGHT_STEPS)
                return;
            look_at(look, blyi_run_span(link), 0, want, place);
            look_at(look, blyi_run_span(link), 1, want, place);
        }
    }
}

bool blyi_place_cheaper(const struct blyi_zone *zone, const struct blyi_want *want,
                        struct blyi_price *price, struct blyi_place *place)
{
    struct look look = {.best = *price};
    look_in(&zone->closed, &look, want, place);
    look_in(&zone->rooms, &look, want, place);
    *price = look.best;
    return look.found;
}
