/* SPDX-License-Identifier: Apache-2.0
 *
 * regions.c - figures of regions: counted, summed up, told.
 */
#include "pool/regions.h"

#include <string.h>

#include "base/fail.h"
#include "pool/front_inside.h"

const char *blyi_region_name(bly_pool_region region)
{
    static const char *const names[BLY_POOL_REGIONS] = {[BLY_POOL_ANY] = "any",
                                                        [BLY_POOL_WEIGHTS] = "weights",
                                                        [BLY_POOL_ACTIVATIONS] = "activations",
                                                        [BLY_POOL_WORKSPACE] = "workspace"};
    return names[region];
}

static void add(uint64_t *figure, uint64_t n, int sign)
{
    __atomic_fetch_add(figure, sign > 0 ? n : -n, __ATOMIC_RELAXED);
}

void blyi_region_count(bly_pool *pool, uint32_t index, uint64_t size, uint64_t asked, int sign)
{
    struct blyi_region *region = &pool->regions[index];
    add(&region->live, size, sign);
    add(&region->asked, asked, sign);
    add(&region->blocks, 1, sign);
    if (sign > 0)
        blyi_front_peak_to(&region->live_peak, BLYI_READ(region->live));
    blyi_front_aim(pool->front);
}

void blyi_region_wait(bly_pool *pool, uint32_t index, uint64_t size, int sign)
{
    if (index != BLY_POOL_ANY)
        add(&pool->regions[index].waiting, size, sign);
}

uint64_t blyi_regions_named(const bly_pool *pool)
{
    uint64_t live = 0;
    for (unsigned i = BLY_POOL_ANY + 1; i < BLY_POOL_REGIONS; i++)
        live += BLYI_READ(pool->regions[i].live);
    return live;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* Free slots of named regions are at home in their slabs: what is left of what is held. */
static bly_pool_region_info named(const struct blyi_region *is, const struct blyi_region *held)
{
    bly_pool_region_info out = {.reserved = held->held,
                                .idle = held->idle,
                                .live = BLYI_READ(is->live),
                                .waiting = BLYI_READ(is->waiting),
                                .asked = BLYI_READ(is->asked),
                                .blocks = BLYI_READ(is->blocks)};
    out.parked = less(out.reserved, out.idle + out.live + out.waiting);
    return out;
}

void blyi_regions_fill(const bly_pool *pool, const bly_pool_info *all,
                       const struct blyi_region held[BLY_POOL_REGIONS],
                       bly_pool_region_info out[BLY_POOL_REGIONS])
{
    bly_pool_region_info any = {.reserved = all->reserved,
                                .live = all->live,
                                .parked = all->parked,
                                .idle = all->idle,
                                .waiting = all->waiting,
                                .asked = all->asked,
                                .blocks = all->blocks};
    for (unsigned i = BLY_POOL_ANY + 1; i < BLY_POOL_REGIONS; i++) {
        out[i] = named(&pool->regions[i], &held[i]);
        any.reserved = less(any.reserved, out[i].reserved);
        any.live = less(any.live, out[i].live);
        any.parked = less(any.parked, out[i].parked);
        any.idle = less(any.idle, out[i].idle);
        any.waiting = less(any.waiting, out[i].waiting);
        any.asked = less(any.asked, out[i].asked);
        any.blocks = less(any.blocks, out[i].blocks);
    }
    out[BLY_POOL_ANY] = any;
    for (unsigned i = 0; i < BLY_POOL_REGIONS; i++) {
        uint64_t peak = BLYI_READ(pool->regions[i].live_peak);
        out[i].region = (bly_pool_region)i;
        out[i].live_peak = peak > out[i].live ? peak : out[i].live;
    }
}

bly_status bly_pool_get_region(bly_pool *pool, bly_pool_region region, bly_pool_region_info *info)
{
    bly_pool_info all = {.struct_size = sizeof all};
    bly_pool_region_info regions[BLY_POOL_REGIONS];
    if (info == NULL || (unsigned)region >= BLY_POOL_REGIONS)
        return blyi_fail(BLY_E_INVALID, "info is NULL, or region %d is none of 0 to %d",
                         (int)region, BLY_POOL_REGIONS - 1);
    bly_status status = blyi_pool_check(pool);
    if (status != BLY_OK)
        return status;
    blyi_pool_fill_info(pool, &all, regions);
    bly_pool_region_info *out = &regions[region];
    out->struct_size = info->struct_size;
    memcpy(info, out, info->struct_size < sizeof *out ? info->struct_size : sizeof *out);
    return BLY_OK;
}
