/* SPDX-License-Identifier: Apache-2.0
 *
 * reclaim.c - the list of reclaimers. Lock RECLAIM guards the list and is held during a run,
 * which is how removal waits for one; a reclaimer therefore must not allocate card memory.
 */
#include "base/reclaim.h"
#include "base/lock.h"

static struct blyi_lock list_lock = BLYI_LOCK_INIT(BLYI_RANK_RECLAIM);
static struct blyi_list reclaimers = BLYI_LIST_INIT(reclaimers);

void blyi_reclaim_add(struct blyi_reclaimer *reclaimer)
{
    blyi_lock_take(&list_lock);
    blyi_list_push_back(&reclaimers, &reclaimer->link);
    blyi_lock_drop(&list_lock);
}

void blyi_reclaim_remove(struct blyi_reclaimer *reclaimer)
{
    blyi_lock_take(&list_lock);
    blyi_list_remove(&reclaimer->link);
    blyi_lock_drop(&list_lock);
}

uint64_t blyi_reclaim_run(int card, uint64_t bytes)
{
    uint64_t got = 0;
    blyi_lock_take(&list_lock);
    BLYI_LIST_FOR(node, &reclaimers)
    {
        if (got >= bytes)
            break;
        struct blyi_reclaimer *reclaimer = BLYI_CONTAINER(node, struct blyi_reclaimer, link);
        got += reclaimer->reclaim(reclaimer->arg, card, bytes - got);
    }
    blyi_lock_drop(&list_lock);
    return got;
}
