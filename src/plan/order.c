/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c - ranks from width, load, area and size, disturbed by chance and by conflicts.
 */
#include "plan/order.h"

#include "plan/rand.h"

#define CONFLICT_PULL 2.0 /* the item with most conflicts gains two lengths of the order */

static uint64_t to_key(double x)
{
    return UINT64_MAX - (x >= 1e18 ? (uint64_t)1000000000000000000u : (uint64_t)x);
}

/* Larger is earlier. */
static double order_value(uint8_t by, double width, double size, double load)
{
    switch (by) {
    case 0:
        return width * 1e6 + size * width / 1e6;
    case 1:
        return load * 1e3 + size * width / 1e6;
    case 2:
        return load * 1e3 + width;
    case 3:
        return size * width;
    case 4:
        return size * 1e3;
    default:
        return size * load;
    }
}

static double value_of(const struct blyi_order *order, const struct blyi_pack *pack,
                       const int64_t *load, uint32_t i)
{
    const struct blyi_pack_item *item = &pack->items[i];
    int64_t most = 0;
    for (uint32_t x = item->first; x <= item->last; x++)
        most = load[x] > most ? load[x] : most;
    double width = (double)(pack->time[item->last + 1] - pack->time[item->first]);
    return order_value(order->by, width, (double)item->size, (double)most);
}

void blyi_order_rank(const struct blyi_order *order, const struct blyi_pack *pack,
                     const int64_t *load, const uint32_t *weight, struct blyi_sort_key *keys,
                     uint32_t *rank)
{
    uint32_t n = pack->n, most = 0;
    struct blyi_rand rand;
    blyi_rand_init(&rand, order->noise);
    /* A value may be raised by so much of itself: some restarts stay close, some do not. */
    double reach = 0.125 * (double)(1u << blyi_rand_below(&rand, 4));
    for (uint32_t i = 0; i < n; i++) {
        double value = value_of(order, pack, load, i);
        if (order->noise != 0)
            value *= 1.0 + reach * blyi_rand_unit(&rand);
        keys[i] = (struct blyi_sort_key){to_key(value), i};
        most = weight[i] > most ? weight[i] : most;
    }
    blyi_sort_keys(keys, keys + n, n);
    if (order->learn && most > 0) {
        for (uint32_t r = 0; r < n; r++) {
            double value =
                (double)(n - r) / n + CONFLICT_PULL * (double)weight[keys[r].value] / (double)most;
            keys[r].key = to_key(value * 1e9);
        }
        blyi_sort_keys(keys, keys + n, n);
    }
    for (uint32_t r = 0; r < n; r++)
        rank[keys[r].value] = r;
}
