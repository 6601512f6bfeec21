/* SPDX-License-Identifier: Apache-2.0
 *
 * adjust.h - what can be changed while a pool is used. The pool is live. [any]
 */
#ifndef BLYI_POOL_ADJUST_H
#define BLYI_POOL_ADJUST_H

#include <belay/pool.h>
#include <stdbool.h>

void blyi_pool_set_threshold(bly_pool *pool, uint64_t bytes);
/* Holds what its blocks need and what it keeps idle, no more; takes memory of the card rather than
 * wait for work, and waits so long at most where there is none. */
void blyi_pool_set_exact(bly_pool *pool, uint64_t wait_ns);
void blyi_pool_set_reuse(bly_pool *pool, uint32_t bits, bool on); /* BLY_POOL_REUSE_* */
uint32_t blyi_pool_reuse(bly_pool *pool);
/* Peaks become 0, and catch up at the next allocation. */
void blyi_pool_reset_peaks(bly_pool *pool, bool reserved, bool live);

#endif
