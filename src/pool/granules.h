/* SPDX-License-Identifier: Apache-2.0
 *
 * granules.h - granules of a pool, fresh or idle. Under its lock.
 */
#ifndef BLYI_GRANULES_H
#define BLYI_GRANULES_H

#include "pool/pool.h"

/* Maps what is not mapped in [from, to). What was done stays done, also on failure.
 * E_TIMEOUT: memory is there, behind need->mark, which may be waited for.
 * E_NO_MEMORY, E_CAP: neither the limit nor the card has room, and nothing idle can go; without a
 * sentence. E_SYSTEM, E_HOST_MEMORY, E_STATE. */
bly_status blyi_granules_cover(bly_pool *pool, struct blyi_need *need);
/* Idle memory that has passed goes back to the card, until at most `keep` bytes are held. Of what
 * is held now, `least` bytes stay held. */
void blyi_granules_give(bly_pool *pool, uint64_t keep, uint64_t least);
/* The same for what came to rest before a tick, and keep bytes stay held. */
void blyi_granules_give_old(bly_pool *pool, uint32_t before, uint64_t keep);
/* Holds so much more, mapped nowhere yet. E_NO_MEMORY, E_CAP, ...; what was done stays done. */
bly_status blyi_granules_prefill(bly_pool *pool, uint64_t bytes);
/* All memory of the pool goes back, whatever lies in it; its streams have been waited for. */
void blyi_granules_drop(bly_pool *pool);

#endif
