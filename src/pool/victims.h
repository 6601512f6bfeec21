/* SPDX-License-Identifier: Apache-2.0
 *
 * victims.h - what idle holes can give: whole handles. Under the pool's lock.
 */
#ifndef BLYI_VICTIMS_H
#define BLYI_VICTIMS_H

#include "pool/pool.h"

/* The handles inside a hole, from its high end down. */
struct blyi_victims {
    struct blyi_span *hole;
    uintptr_t from, to; /* addresses that are spared */
    uint64_t low, at;   /* granules of the extent */
};

struct blyi_victims blyi_victims_of(struct blyi_span *hole, const struct blyi_need *need);
struct blyi_chunk *blyi_victims_next(struct blyi_victims *victims);
/* The moment behind the last free in a chunk. */
blyi_mark blyi_chunk_mark(const struct blyi_chunk *chunk);

#endif
