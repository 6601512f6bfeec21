/* SPDX-License-Identifier: Apache-2.0
 *
 * split.h - blocks above a size that shall not be divided (bly_pool_opts.split): each has an extent
 * and a handle of its own (own.h), is used again whole, and only where little of it is left over.
 *
 * For programs that want the rule of other caches, and to see what it costs: how many requests it
 * refused idle memory is counted. A pool with such a limit takes fresh memory as long as there is
 * some, and only then that of its idle blocks. Under the pool's lock.
 */
#ifndef BLYI_SPLIT_H
#define BLYI_SPLIT_H

#include "base/size.h"
#include "pool/place.h"

#define BLYI_SPLIT_REST (20 * MiB) /* what is left over of a block is less */

/* Whether a block is one of those. */
static inline bool blyi_split_is_whole(const bly_pool *pool, const struct blyi_want *want)
{
    return pool->opts.split > 0 && want->slab == NULL && want->size > pool->opts.split;
}

/* The smallest idle block that serves as it is; place->run is its size. False, and there is one
 * that was too large: that is left in *refused, else 0. */
bool blyi_split_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                    struct blyi_place *place, uint64_t *refused);
/* A request of so many bytes was refused an idle block of `idle` bytes. */
void blyi_split_note(bly_pool *pool, uint64_t size, uint64_t idle);
/* What would be held without the limit: the most that was in use at once. */
uint64_t blyi_split_without(const bly_pool *pool);

#endif
