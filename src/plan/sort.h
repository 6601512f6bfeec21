/* SPDX-License-Identifier: Apache-2.0
 *
 * sort.h - radix sort of keys with a payload; stable, so equal keys stay in order.
 */
#ifndef BLYI_PLAN_SORT_H
#define BLYI_PLAN_SORT_H

#include <stddef.h>
#include <stdint.h>

struct blyi_sort_key {
    uint64_t key;
    uint32_t value;
};

/* Sorts keys[0 .. n) upwards; `spare` is room for n more. */
void blyi_sort_keys(struct blyi_sort_key *keys, struct blyi_sort_key *spare, size_t n);

#endif
