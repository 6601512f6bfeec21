/* SPDX-License-Identifier: Apache-2.0
 *
 * still.h - whether a pool may change what its device holds. While a device stands still for
 * another thread, whoever needs memory of it waits, what is at hand is served, and what would go
 * back stays.
 *
 * It is looked at under the pool's lock, which is held until the change is done: so who makes the
 * device stand still knows that nothing is under way once it had the lock (base/pool_blocks.h).
 */
#ifndef BLYI_STILL_H
#define BLYI_STILL_H

#include "pool/pool.h"

static inline bool blyi_still_may(struct blyi_backend *backend)
{
    return likely(backend->still == NULL) ||
           likely(__atomic_load_n(backend->still, __ATOMIC_RELAXED) == 0) ||
           backend->ops->may_change(backend);
}

static inline bool blyi_still_may_change(const bly_pool *pool)
{
    return blyi_still_may(pool->backend);
}

/* Under the lock, which is left meanwhile: until it may. E_STATE: not before this thread goes on.
 */
static inline bly_status blyi_still_wait_locked(bly_pool *pool)
{
    bly_status status = BLY_OK;
    while (unlikely(!blyi_still_may_change(pool)) && status == BLY_OK) {
        blyi_lock_drop(&pool->lock);
        status = pool->backend->ops->pass(pool->backend);
        blyi_lock_take(&pool->lock);
    }
    return status;
}

/* The same with no lock held, for who wants to be sure at first. */
static inline bly_status blyi_still_wait(struct blyi_backend *backend)
{
    return blyi_still_may(backend) ? BLY_OK : backend->ops->pass(backend);
}

#endif
