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
/* What a place costs: granules that it takes into use, handles counted whole, and then the free
 * bytes that it leaves beside itself in handles that are in use. */
struct blyi_price {
    uint64_t cost, rest;
};
#define BLYI_PRICE_ANY ((struct blyi_price){UINT64_MAX, UINT64_MAX})

/* For when memory is short: of some places, mapped or not, the cheapest. It costs less than *price,
 * which is its price then. False: none of them does. */
bool blyi_place_cheaper(const struct blyi_zone *zone, const struct blyi_want *want,
                        struct blyi_price *price, struct blyi_place *place);
/* A hole that has room wherever the span begins. One that was made last is found. */
bool blyi_place_sure(const struct blyi_zone *zone, const struct blyi_want *want,
                     struct blyi_place *place);

#endif
