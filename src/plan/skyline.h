/* SPDX-License-Identifier: Apache-2.0
 *
 * skyline.h - heights of sections: the maximum of any range, and "raise a range to at least v".
 */
#ifndef BLYI_PLAN_SKYLINE_H
#define BLYI_PLAN_SKYLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blyi_skyline {
    int64_t *most; /* of the subtree, its own `raised` included */
    int64_t *raised;
    size_t leaves;
};

/* All heights 0. False: no host memory; blyi_skyline_fini() is needed in either case. */
bool blyi_skyline_init(struct blyi_skyline *sky, size_t n);
void blyi_skyline_fini(struct blyi_skyline *sky);

/* Of sections first..last, both included. */
void blyi_skyline_raise(struct blyi_skyline *sky, size_t first, size_t last, int64_t v);
int64_t blyi_skyline_most(const struct blyi_skyline *sky, size_t first, size_t last);

#endif
