/* SPDX-License-Identifier: Apache-2.0
 *
 * waiting.h - blocks that were freed and that other streams may still use: neither live nor idle.
 * Each comes back when all its marks have passed. Oldest first; one list for each pool.
 */
#ifndef BLYI_WAITING_H
#define BLYI_WAITING_H

#include "pool/arena.h"

/* Takes over `block` (of `size` bytes as backed) and copies the uses. When they have passed,
 * blyi_front_back(block) is called, with no lock held. E_HOST_MEMORY: nothing was taken over. */
bly_status blyi_waiting_add(bly_pool *pool, void *block, uint64_t size, const struct blyi_use *uses,
                            size_t n_uses);
/* Gives back what has passed; looks at no more than `max` that have not. Bytes given back. */
uint64_t blyi_waiting_poll(bly_pool *pool, size_t max);
/* Gives back all that has passed, and waits for other threads that are giving some back. No lock
 * held. */
void blyi_waiting_settle(bly_pool *pool);
/* Waits for the oldest until `bytes` have come back or none is left. Bytes given back. */
uint64_t blyi_waiting_drain(bly_pool *pool, uint64_t bytes);
/* Forgets what is left: the pool ends. */
void blyi_waiting_drop(bly_pool *pool);

/* What waits for one stream, and behind which moment of it all of that has passed. A block with
 * uses by several counts for one of them. */
struct blyi_awaited {
    struct blyi_arena *arena;
    blyi_mark mark;
    uint64_t bytes, blocks;
    uint64_t since_ns; /* when the first of them was freed */
};
/* Returns how many rows there are, of the first `max` streams. No lock held. */
size_t blyi_waiting_by_stream(bly_pool *pool, struct blyi_awaited *rows, size_t max);

#endif
