/* SPDX-License-Identifier: Apache-2.0
 *
 * reclaim.h - who can give card memory back when a request would fail. The card calls
 * blyi_reclaim_run() with no lock held and tries again if anything came back.
 */
#ifndef BLYI_RECLAIM_H
#define BLYI_RECLAIM_H

#include "base/list.h"

struct blyi_reclaimer {
    struct blyi_list link;
    const char *name;
    /* Gives back up to `bytes` of `card`; returns the bytes really given back. May take locks
     * of rank CARD and above. */
    uint64_t (*reclaim)(void *arg, int card, uint64_t bytes);
    void *arg;
};

void blyi_reclaim_add(struct blyi_reclaimer *reclaimer);
void blyi_reclaim_remove(struct blyi_reclaimer *reclaimer); /* waits for a run in progress */
/* Asks each in turn until `bytes` are given back; returns what was. */
uint64_t blyi_reclaim_run(int card, uint64_t bytes);

#endif
