/* SPDX-License-Identifier: Apache-2.0
 *
 * regions.h - figures of regions. Blocks that name a region are counted one by one: thread caches
 * keep none of them. Those of BLY_POOL_ANY are what is left of the pool, so nothing is counted for
 * them on the way.
 */
#ifndef BLYI_REGIONS_H
#define BLYI_REGIONS_H

#include "pool/pool.h"

/* Blocks of a named region, or, below 0, one less. */
void blyi_region_count(bly_pool *pool, uint32_t region, uint64_t size, uint64_t asked, int sign);
void blyi_region_wait(bly_pool *pool, uint32_t region, uint64_t size, int sign);
const char *blyi_region_name(bly_pool_region region); /* "weights"; static storage */
/* Live bytes of all named regions. */
uint64_t blyi_regions_named(const bly_pool *pool);
/* What the pool's figures are of, region by region; held and idle as they were with those. */
void blyi_regions_fill(const bly_pool *pool, const bly_pool_info *all,
                       const struct blyi_region held[BLY_POOL_REGIONS],
                       bly_pool_region_info out[BLY_POOL_REGIONS]);

#endif
