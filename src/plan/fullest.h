/* SPDX-License-Identifier: Apache-2.0
 *
 * fullest.h - largest value in a range of a fixed array: blocks of 64 and their maxima.
 */
#ifndef BLYI_PLAN_FULLEST_H
#define BLYI_PLAN_FULLEST_H

#include <belay/base.h>

struct blyi_fullest {
    const int64_t *values;   /* the caller's, which must outlive this */
    int64_t *blocks, *super; /* maxima of 64 values, of 64 blocks */
};

bly_status blyi_fullest_init(struct blyi_fullest *f, const int64_t *values, size_t n);
void blyi_fullest_fini(struct blyi_fullest *f);
int64_t blyi_fullest_of(const struct blyi_fullest *f, size_t first, size_t last);

#endif
