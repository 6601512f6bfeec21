/* SPDX-License-Identifier: Apache-2.0
 *
 * lasting.c - blocks that graphs know again, by the serial number in their notes (notes.c). A note
 * keeps a block off the fast path, so its free is seen here, and others pay nothing. And what a
 * snapshot of the process wants of pools.
 */
#include "pool/lasting.h"

#include "base/fail.h"
#include "base/pool_blocks.h"
#include "pool/front_inside.h"
#include "pool/pool.h"

static bool find_live(uintptr_t address, struct blyi_spot *spot)
{
    return blyi_spot_find(address, spot) && blyi_spot_life(spot) == BLYI_LIFE_LIVE;
}

static void describe(const struct blyi_spot *spot, uint64_t serial, struct blyi_pool_block *block)
{
    *block = (struct blyi_pool_block){.address = spot->address,
                                      .asked = blyi_spot_asked(spot),
                                      .serial = serial,
                                      .site = spot->slab == NULL ? spot->span->site : 0,
                                      .card = blyi_spot_pool(spot)->device};
}

static bool keep(uintptr_t address, struct blyi_pool_block *block)
{
    struct blyi_spot spot;
    if (!find_live(address, &spot))
        return false;
    uint64_t serial = blyi_note_keep(&spot);
    if (serial == 0) { /* not known again then, as without this */
        blyi_fail_clear();
        return false;
    }
    describe(&spot, serial, block);
    return true;
}

static bool find(uintptr_t address, struct blyi_pool_block *block)
{
    struct blyi_spot spot;
    if (!find_live(address, &spot))
        return false;
    describe(&spot, blyi_spot_has_note(&spot) ? blyi_note_serial(&spot) : 0, block);
    return true;
}

/* Who changes something has the pool's lock, and looked under it whether he may (still.h). */
static void settle_one(void *arg, bly_pool *pool)
{
    (void)arg;
    blyi_lock_take(&pool->lock);
    blyi_lock_drop(&pool->lock);
}

static void settle(void)
{
    (void)blyi_pools_each(settle_one, NULL, false);
}

void blyi_lasting_offer(void)
{
    static const struct blyi_pool_blocks ops = {keep, find, settle};
    blyi_pool_blocks_offer(&ops);
}
