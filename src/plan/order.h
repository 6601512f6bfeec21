/* SPDX-License-Identifier: Apache-2.0
 *
 * order.h - in which order a tree search tries the buffers at a node.
 */
#ifndef BLYI_PLAN_ORDER_H
#define BLYI_PLAN_ORDER_H

#include "plan/pack.h"
#include "plan/sort.h"

#define BLYI_ORDERS 6

struct blyi_order {
    uint8_t by;     /* 0 .. BLYI_ORDERS - 1: width, load, area or size first */
    bool learn;     /* conflicts raise the weight of the buffers that met in them */
    uint64_t noise; /* seed of a disturbance of the order; 0: none */
};

/* rank[i]: place of item i, the first is 0. load: per section; weight: conflicts per item.
 * keys: room for 2 n. */
void blyi_order_rank(const struct blyi_order *order, const struct blyi_pack *pack,
                     const int64_t *load, const uint32_t *weight, struct blyi_sort_key *keys,
                     uint32_t *rank);

#endif
