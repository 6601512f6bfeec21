/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c - one row for each pool that lives, and for the last ones that have ended.
 */
#include "pool/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool_rows.h"
#include "base/stamp.h"
#include "pool/front.h"
#include "pool/pool.h"
#include "pool/regions.h"

#define PAST     16u
#define NS_IN_MS 1000000u

static struct blyi_lock past_lock = BLYI_LOCK_INIT(BLYI_RANK_POOLS);
static struct blyi_pool_row past[PAST];
static uint32_t n_past;

static void name_row(const bly_pool *pool, struct blyi_pool_row *row)
{
    *row = (struct blyi_pool_row){.number = pool->number,
                                  .card = pool->device,
                                  .limit = pool->opts.limit,
                                  .threshold = pool->opts.threshold,
                                  .prefill = pool->opts.prefill};
    _Static_assert(sizeof(row->name) == sizeof(pool->name), "names have one length");
    memcpy(row->name, pool->name, sizeof(row->name));
}

/* The list has who rests longest first. */
static void add_idle(struct blyi_pool_row *row, const struct blyi_span *hole, uint32_t now_ms)
{
    uint32_t stream = __atomic_load_n(&hole->arena->number, __ATOMIC_RELAXED), i = 0;
    row->pieces++;
    while (i < row->n_idle_by && row->idle_by[i].stream != stream)
        i++;
    if (i == BLYI_POOL_ROW_STREAMS)
        return;
    struct blyi_pool_idle *idle = &row->idle_by[i];
    if (i == row->n_idle_by) {
        row->n_idle_by++;
        *idle = (struct blyi_pool_idle){.stream = stream,
                                        .oldest_ns = (uint64_t)(now_ms - hole->idle_ms) * NS_IN_MS};
    }
    idle->bytes += hole->mapped;
    idle->pieces++;
}

static void fill_idle(bly_pool *pool, struct blyi_pool_row *row)
{
    blyi_lock_take(&pool->lock);
    uint32_t now_ms = (uint32_t)((blyi_stamp_ns() - pool->made_ns) / NS_IN_MS);
    BLYI_LIST_FOR(node, &pool->idle)
    {
        add_idle(row, BLYI_CONTAINER(node, struct blyi_span, idle), now_ms);
    }
    uint32_t n = pool->n_flushes < BLYI_FLUSHES ? pool->n_flushes : BLYI_FLUSHES;
    for (uint32_t i = 0; i < n; i++)
        row->flushes_seen[i] = pool->flushes[(pool->n_flushes - n + i) % BLYI_FLUSHES];
    row->n_flushes_seen = n;
    blyi_lock_drop(&pool->lock);
}

_Static_assert(BLYI_POOL_ROW_REGIONS == BLY_POOL_REGIONS, "a row has all regions");

static void fill_region(const bly_pool_region_info *info, struct blyi_pool_region *row)
{
    *row = (struct blyi_pool_region){.name = blyi_region_name(info->region),
                                     .held = info->reserved,
                                     .live = info->live,
                                     .live_peak = info->live_peak,
                                     .asked = info->asked,
                                     .parked = info->parked,
                                     .idle = info->idle,
                                     .waiting = info->waiting,
                                     .blocks = info->blocks};
}

static void fill(bly_pool *pool, struct blyi_pool_row *row)
{
    bly_pool_info info = {.struct_size = sizeof(info)};
    bly_pool_region_info regions[BLY_POOL_REGIONS];
    name_row(pool, row);
    blyi_pool_fill_info(pool, &info, regions);
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++)
        fill_region(&regions[i], &row->regions[i]);
    fill_idle(pool, row);
    row->held = info.reserved;
    row->held_peak = info.reserved_peak;
    row->live = info.live;
    row->live_peak = info.live_peak;
    row->asked = info.asked;
    row->asked_peak = info.asked_peak;
    row->parked = info.parked;
    row->idle = info.idle;
    row->waiting = info.waiting;
    row->releasable = info.releasable;
    row->largest = info.largest;
    row->blocks = info.blocks;
    row->allocs = info.allocs;
    row->frees = info.frees;
    row->maps = info.maps;
    row->unmaps = info.unmaps;
    row->handle_ops = info.handle_ops;
    row->waits = info.waits;
    row->flushes = info.flushes;
    row->reserve = info.reserve;
    row->reserve_used = info.reserve_used;
    row->split = info.split;
    row->split_refused = info.split_refused;
    row->split_refused_bytes = info.split_refused_bytes;
    row->split_idle_least = info.split_idle_least;
    row->split_idle_most = info.split_idle_most;
    row->split_without = info.split_without;
}

/* Thread caches are not looked into: what they park counts as live. */
static bool fill_quick(bly_pool *pool, struct blyi_pool_row *row)
{
    if (!blyi_lock_try(&pool->lock))
        return false;
    const struct blyi_pool_figures *is = &pool->is;
    name_row(pool, row);
    row->held = is->held;
    row->waiting = is->waiting;
    row->idle = is->held - blyi_figures_used(is);
    row->live = is->live;
    row->blocks = is->allocs - is->frees;
    blyi_lock_drop(&pool->lock);
    return true;
}

struct filling {
    struct blyi_pool_row *rows;
    size_t n, max;
    bool quick;
};

static void add_row(void *arg, bly_pool *pool)
{
    struct filling *filling = arg;
    if (filling->n == filling->max)
        return;
    struct blyi_pool_row *row = &filling->rows[filling->n];
    if (!filling->quick)
        fill(pool, row);
    else if (!fill_quick(pool, row))
        return;
    filling->n++;
}

static int by_number(const void *a, const void *b)
{
    const struct blyi_pool_row *one = a, *other = b;
    return one->number < other->number ? -1 : one->number > other->number;
}

static size_t all_rows(struct blyi_pool_row *rows, size_t max, bool quick)
{
    struct filling filling = {rows, 0, max, quick};
    (void)blyi_pools_each(add_row, &filling, quick);
    if (!quick) {
        blyi_lock_take(&past_lock);
        for (uint32_t i = 0; i < PAST && i < n_past && filling.n < max; i++)
            rows[filling.n++] = past[i];
        blyi_lock_drop(&past_lock);
    }
    qsort(rows, filling.n, sizeof(*rows), by_number);
    return filling.n;
}

void blyi_rows_offer(void)
{
    blyi_pool_rows_offer(all_rows);
}

void blyi_rows_keep(bly_pool *pool)
{
    struct blyi_pool_row row;
    fill(pool, &row);
    row.has_ended = true;
    blyi_lock_take(&past_lock);
    past[n_past++ % PAST] = row;
    blyi_lock_drop(&past_lock);
}
