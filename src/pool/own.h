/* SPDX-License-Identifier: Apache-2.0
 *
 * own.h - blocks whose memory is one handle, so that it can be shared with other processes. Each
 * has an extent of its own:
 *
 *     extent   [ span, or hole ]      all of it mapped, by one handle, or nothing
 *
 * A hole serves a request of just its size; its handle is idle memory as any other. Extents from
 * which the memory went are used again for that size, or dropped where another is made. Under the
 * pool's lock.
 */
#ifndef BLYI_OWN_H
#define BLYI_OWN_H

#include "pool/place.h"

/* Whole granules. */
void blyi_own_round(const bly_pool *pool, struct blyi_want *want);
/* A mapped hole; one that is not. */
bool blyi_own_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                  struct blyi_place *place);
bool blyi_own_room(const struct blyi_zone *zone, const struct blyi_want *want,
                   struct blyi_place *place);
/* One more extent. E_SYSTEM, E_HOST_MEMORY. */
bly_status blyi_own_grow(struct blyi_zone *zone, const struct blyi_want *want);
/* Of a span that has left its figures: its memory goes back to the device, and its extent goes. */
void blyi_own_release(struct blyi_span *span);

static inline bool blyi_own_leaves(const struct blyi_span *span)
{
    return span->slab == NULL && __atomic_load_n(&span->extent->leaves, __ATOMIC_RELAXED);
}

#endif
