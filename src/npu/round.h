/* SPDX-License-Identifier: Apache-2.0
 *
 * round.h - AscendCL's rounding rule, the one place.
 *
 * aclrtMalloc and aclrtMallocCached: up to a multiple of 32, plus 32 (but not with 1 GiB
 * pages); every other call: up to a multiple of 32.
 */
#ifndef BLYI_ROUND_H
#define BLYI_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#define BLYI_ROUND_UNIT    32u
#define BLYI_ROUND_PADDING 32u

/* False when the sum does not fit in 64 bits. */
static inline bool blyi_round_size(uint64_t asked, bool padded, uint64_t *rounded)
{
    uint64_t sum;
    if (__builtin_add_overflow(asked, BLYI_ROUND_UNIT - 1, &sum))
        return false;
    sum &= ~(uint64_t)(BLYI_ROUND_UNIT - 1);
    if (padded && __builtin_add_overflow(sum, BLYI_ROUND_PADDING, &sum))
        return false;
    *rounded = sum;
    return true;
}

#endif
