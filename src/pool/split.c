/* SPDX-License-Identifier: Apache-2.0
 *
 * split.c - blocks that are not divided: found, and counted where they are refused.
 */
#include "pool/split.h"

/* The best of a bin: the smallest block of at least the wanted size. NULL: none. */
static struct blyi_span *best_of(const struct blyi_run_link *link, const struct blyi_want *want)
{
    struct blyi_span *best = NULL;
    for (; link != NULL; link = link->next) {
        struct blyi_span *hole = blyi_run_span(link);
        bool fits = hole->size >= want->size && (hole->address & (want->align - 1)) == 0;
        if (fits && (best == NULL || hole->size < best->size))
            best = hole;
    }
    return best;
}

bool blyi_split_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                    struct blyi_place *place, uint64_t *refused)
{
    const struct blyi_runs *runs = &zone->closed;
    struct blyi_span *best = NULL;
    uint32_t bin = blyi_runs_up(runs, blyi_runs_bin(want->size));
    while (bin < BLYI_RUNS_BINS && (best = best_of(runs->heads[bin], want)) == NULL)
        bin = bin + 1 < BLYI_RUNS_BINS ? blyi_runs_up(runs, bin + 1) : BLYI_RUNS_BINS;
    bool serves = best != NULL && best->size - want->size < BLYI_SPLIT_REST;
    *refused = best != NULL && !serves ? best->size : 0;
    if (serves)
        *place = (struct blyi_place){.hole = best, .address = best->address, .run = best->size};
    return serves;
}

void blyi_split_note(bly_pool *pool, uint64_t size, uint64_t idle)
{
    struct blyi_split *is = &pool->split;
    if (is->refused == 0 || idle < is->idle_least)
        is->idle_least = idle;
    if (idle > is->idle_most)
        is->idle_most = idle;
    is->refused++;
    is->bytes += size;
}

uint64_t blyi_split_without(const bly_pool *pool)
{
    return pool->opts.split > 0 ? blyi_align_up(pool->is.live_peak, pool->granule) : 0;
}
