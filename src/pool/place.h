/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h - where a span shall lie in a zone. Under the pool's lock.
 */
#ifndef BLYI_PLACE_H
#define BLYI_PLACE_H

#include "pool/pool.h"

struct blyi_place {
    struct blyi_span *hole;
    uintptr_t address;
    uint64_t run; /* bytes of what the hole was found by */
    uint32_t end; /* of the hole, at which it lies */
};

/* Bytes in which the span has a place wherever they begin. */
static inline uint64_t blyi_place_room(const struct blyi_want *want)
{
    return want->size + want->align - BLYI_QUANTUM;
}

/* The smallest mapped run that holds the span. */
bool blyi_place_fit(const struct blyi_zone *zone, const struct blyi_want *want,
                    struct blyi_place *place);
/* Where the fewest granules have to be mapped, and of those places the one that uses up least.
 * False: the zone has no such addresses. */
bool blyi_place_growth(const struct blyi_zone *zone, const struct blyi_want *want,
                       struct blyi_place *place);
/* For when memory is short: of some places, mapped or not, the one that takes the fewest granules
 * into use, handles counted whole, and of those the one that leaves the shortest rest. */
bool blyi_place_tightest(const struct blyi_zone *zone, const struct blyi_want *want,
                         struct blyi_place *place);

#endif
