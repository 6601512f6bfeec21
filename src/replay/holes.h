/* SPDX-License-Identifier: Apache-2.0
 *
 * holes.h - free ranges of one arena, for first fit: the lowest with room is found without looking
 * at those that are too small. A treap by address in which each node knows the largest below it.
 */
#ifndef BLYI_REPLAY_HOLES_H
#define BLYI_REPLAY_HOLES_H

#include <stdbool.h>
#include <stdint.h>

struct blyi_hole {
    uint64_t address, size;
    uint64_t largest; /* of its subtree */
    uint32_t left, right,
        order; /* left and right are indices, 0: none; parents have a higher order */
};

struct blyi_holes {
    struct blyi_hole *nodes; /* [0] is nobody */
    uint32_t root, n, room;
    uint32_t spare; /* unused nodes, through left */
};

void blyi_holes_init(struct blyi_holes *holes);
void blyi_holes_fini(struct blyi_holes *holes);

/* The lowest hole of at least `size`; false: none. */
bool blyi_holes_find(const struct blyi_holes *holes, uint64_t size, uint64_t *address);
/* The first `size` bytes of the hole at `address`, which has that many, are a hole no more. */
void blyi_holes_take(struct blyi_holes *holes, uint64_t address, uint64_t size);
/* A range that overlaps no hole becomes one, or part of those beside it. False: no host memory. */
bool blyi_holes_give(struct blyi_holes *holes, uint64_t address, uint64_t size);
/* Order, largest and neighbours agree. */
bool blyi_holes_audit(const struct blyi_holes *holes);

#endif
