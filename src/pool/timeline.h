/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline.h - the last times that a pool moved or gave back idle memory, and for whom: a request
 * that the card had no room for, or that had to wait; trims of all kinds. Under the pool's lock.
 */
#ifndef BLYI_TIMELINE_H
#define BLYI_TIMELINE_H

#include "pool/pool.h"

/* Where a request began, and what it came to. */
struct blyi_effort {
    uint64_t began_ns; /* 0: nothing has been needed yet */
    uint64_t held, unmaps, moved, waits;
};

struct blyi_effort blyi_effort_begin(const bly_pool *pool);
/* A request of so many bytes is over; `pressed`: what could be had without waiting was gathered. */
void blyi_timeline_request(bly_pool *pool, const struct blyi_effort *effort, uint64_t asked,
                           bool pressed, bool served);
/* Memory went back to the card. Of one kind in a row: one entry. */
void blyi_timeline_give(bly_pool *pool, enum blyi_flush_kind kind, uint64_t began_ns,
                        uint64_t bytes, uint64_t pieces);

#endif
