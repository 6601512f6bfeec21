/* SPDX-License-Identifier: Apache-2.0
 *
 * recent.h - the span of a zone that was freed last. It is joined with its neighbours at the next
 * take or give, unless that take wants just its size: then it is handed out again as it is, as most
 * blocks of a moment are. Spans of slabs are never recent. Under the pool's lock.
 */
#ifndef BLYI_RECENT_H
#define BLYI_RECENT_H

#include "pool/pool.h"

/* The recent span for a block, if it has just that size, and those bits of its address are 0; it is
 * no longer recent. The zone may be NULL. */
static inline struct blyi_span *blyi_recent_take(struct blyi_zone *zone, uint64_t size,
                                                 uint64_t align_bits)
{
    struct blyi_span *span = likely(zone != NULL) ? zone->recent : NULL;
    if (span == NULL || span->size != size || (span->address & align_bits) != 0)
        return NULL;
    zone->recent = NULL;
    return span;
}

/* A span that was freed, at span->freed. */
void blyi_recent_put_slow(struct blyi_span *span);
static inline void blyi_recent_put(struct blyi_span *span)
{
    struct blyi_zone *zone = span->extent->zone;
    if (likely(zone->recent == NULL && span->slab == NULL))
        zone->recent = span;
    else
        blyi_recent_put_slow(span);
}
/* Joins a zone's with its neighbours; those of all zones. */
void blyi_recent_join(struct blyi_zone *zone);
void blyi_recent_join_all(bly_pool *pool);

#endif
