/* SPDX-License-Identifier: Apache-2.0
 *
 * trim.h - memory that goes back to the card.
 */
#ifndef BLYI_TRIM_H
#define BLYI_TRIM_H

#include "pool/pool.h"

/* For reclaim.h; `arg` is the pool. */
uint64_t blyi_trim_reclaim(void *arg, int card, uint64_t bytes);
/* Half of opts.trim_ms has gone by: what has been idle for two halves, and not for three, goes
 * back. */
void blyi_trim_tick(bly_pool *pool);
/* Bytes of idle memory that could go at once. Under the pool's lock. */
uint64_t blyi_trim_releasable_locked(const bly_pool *pool);

/* The program has waited for work of some stream: what waited for it comes back, and idle memory
 * above thresholds goes, of all pools. No lock is held. */
void blyi_pools_synced_slow(void);
extern uint32_t blyi_pools_live; /* how many there are */
static inline void blyi_pools_synced(void)
{
    if (unlikely(__atomic_load_n(&blyi_pools_live, __ATOMIC_RELAXED) != 0))
        blyi_pools_synced_slow();
}

#endif
