/* SPDX-License-Identifier: Apache-2.0
 *
 * random_inside.h - drawing numbers, one after another. Calls nothing that takes a lock.
 */
#ifndef BLYI_RANDOM_INSIDE_H
#define BLYI_RANDOM_INSIDE_H

#include "npu/random.h"

struct blyi_draw {
    uint64_t seed, index;
    uint32_t counter[4];
    uint32_t words[4], left; /* of the present block, not yet drawn */
    double spare;            /* the polar method makes two */
    bool has_spare;
};

static inline bool blyi_random_is_real(enum blyi_random_type type)
{
    return type >= BLYI_RANDOM_BF16;
}

/* The bytes of a real type as a number. */
double blyi_random_real(enum blyi_random_type type, uint64_t word);
/* The bytes of the next number. first and second of `random` are bytes, no addresses. */
uint64_t blyi_random_next(struct blyi_draw *draw, const struct blyi_random *random);
/* The next bits of a mask, lowest first. */
uint8_t blyi_random_mask(struct blyi_draw *draw, double ratio, unsigned n_bits);

double blyi_random_log(double x);
double blyi_random_root(double x);

#endif
