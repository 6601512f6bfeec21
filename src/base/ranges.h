/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.h - a set of disjoint free ranges [start, start + length) of units, joined
 * when they touch, found by best fit or by place. Units are the caller's (granules).
 * No locking.
 */
#ifndef BLYI_RANGES_H
#define BLYI_RANGES_H

#include <belay/base.h>
#include "base/tree.h"

struct blyi_ranges {
    struct blyi_tree by_start; /* key start */
    struct blyi_tree by_size;  /* key length, sub start */
    uint64_t total;            /* units in the set */
    struct blyi_tree_node *spare;
};

void blyi_ranges_init(struct blyi_ranges *ranges);
void blyi_ranges_fini(struct blyi_ranges *ranges);

/* Adds a range that overlaps nothing in the set. E_HOST_MEMORY: nothing changed. */
bly_status blyi_ranges_add(struct blyi_ranges *ranges, uint64_t start, uint64_t length);
/* Smallest range that holds `length` units at a multiple of `align`; lowest start among equals.
 * E_NO_MEMORY without a sentence-worthy cause: the caller words it. E_HOST_MEMORY: a split
 * needed a node. Nothing changed on failure. */
bly_status blyi_ranges_take(struct blyi_ranges *ranges, uint64_t length, uint64_t align,
                            uint64_t *start);
/* Takes exactly this range. E_INVALID: not all of it is in the set. */
bly_status blyi_ranges_take_at(struct blyi_ranges *ranges, uint64_t start, uint64_t length);
uint64_t blyi_ranges_largest(const struct blyi_ranges *ranges);
bool blyi_ranges_audit(const struct blyi_ranges *ranges);

#endif
