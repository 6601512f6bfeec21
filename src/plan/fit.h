/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.h - greedy plans: buffers in some order, each at the lowest or the tightest place.
 */
#ifndef BLYI_PLAN_FIT_H
#define BLYI_PLAN_FIT_H

#include "plan/pack.h"
#include "plan/stop.h"

/* Orders for blyi_fit_order(): classes of size or lifetime, largest first, then birth; by
 * offset hints; by breadth: what lives in the fullest section first, larger ones first in it. */
enum blyi_fit_by {
    BLYI_FIT_SIZE,
    BLYI_FIT_LIFETIME,
    BLYI_FIT_AREA,
    BLYI_FIT_HINT,
    BLYI_FIT_BREADTH
};

/* Fills order[0 .. n) with all items; a class spans `octaves` powers of two (0: one class for
 * each value).
 * E_HOST_MEMORY: order is unspecified. */
bly_status blyi_fit_order(const struct blyi_pack *pack, enum blyi_fit_by by, double octaves,
                          uint32_t *order);

/* Places the items in that order, the first n_tight of them in the tightest hole, the others in
 * the lowest; false once the peak is above `limit`, or stopped. */
struct blyi_shelf;
bool blyi_fit_place(struct blyi_shelf *shelf, const uint32_t *order, uint32_t n_tight,
                    int64_t limit, struct blyi_stop *stop);

#endif
