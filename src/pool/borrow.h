/* SPDX-License-Identifier: Apache-2.0
 *
 * borrow.h - memory that another stream freed, used before anybody has waited for that: where the
 * program allows it (BLY_POOL_REUSE_*) and the asking stream comes behind it.
 *
 * A borrowed span stays in the arena that it lies in. Its free is in the order of the borrower: it
 * waits (waiting.h) until that has passed, and then is the lender's.
 */
#ifndef BLYI_BORROW_H
#define BLYI_BORROW_H

#include "pool/place.h"

struct blyi_loan {
    struct blyi_arena *lender;
    blyi_mark mark;     /* of its stream: behind all that used the memory */
    bool to_be_ordered; /* the borrower does not come behind that yet */
};

/* A place in another arena, where the own one has none with memory behind it. The lock is held. */
bool blyi_borrow_find(struct blyi_zone *zone, const struct blyi_want *want,
                      struct blyi_place *place, struct blyi_loan *loan);
/* Where memory is short, and whatever the program allows, as it is no more than what moving a
 * granule is: the place that costs least (place.h), of all streams; elsewhere where all work on it
 * has ended, so that there is nothing to be ordered. Spans of slabs stay in their own arena. False:
 * the zone needs addresses. The lock is held. */
bool blyi_borrow_tightest(struct blyi_zone *zone, const struct blyi_want *want,
                          struct blyi_place *place);
/* Makes the borrower wait, on the device. False: it cannot. No lock is held. */
bool blyi_borrow_order(struct blyi_arena *borrower, const struct blyi_loan *loan);

#endif
