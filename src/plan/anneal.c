/* SPDX-License-Identifier: Apache-2.0
 *
 * anneal.c - moves bring an item that ends at the peak, or any other, forward in the order. A
 * worse order is kept with a chance that falls with the distance and with time.
 */
#include "plan/anneal.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/fit.h"
#include "plan/shelf.h"
#include "plan/sort.h"

#define HEAT_FIRST 0.02 /* of the peak: a plan so much worse is kept once in e times */
#define COOLING    0.995
#define HEAT_LEAST 0.0005

struct blyi_anneal {
    const struct blyi_pack *pack;
    struct blyi_shelf shelf;
    struct blyi_rand rand;
    uint32_t *order;
    int64_t peak; /* of the order as it is */
    double heat;
};

bly_status blyi_anneal_create(const struct blyi_pack *pack, uint64_t seed, const int64_t *offset,
                              struct blyi_anneal **anneal)
{
    size_t n = pack->n;
    struct blyi_sort_key *keys = blyi_host_alloc((2 * n + 1) * sizeof(*keys));
    struct blyi_anneal *a = blyi_host_calloc(1, sizeof(*a));
    if (a == NULL || keys == NULL)
        goto fail;
    a->order = blyi_host_alloc((n + 1) * sizeof(*a->order));
    if (a->order == NULL || blyi_shelf_init(&a->shelf, pack) != BLY_OK)
        goto fail;
    a->pack = pack;
    a->heat = HEAT_FIRST;
    blyi_rand_init(&a->rand, seed);
    for (uint32_t i = 0; i < pack->n; i++)
        keys[i] = (struct blyi_sort_key){(uint64_t)offset[i], i};
    blyi_sort_keys(keys, keys + n, n);
    for (size_t x = 0; x < n; x++)
        a->order[x] = keys[x].value;
    a->peak = blyi_pack_peak(pack, offset);
    blyi_host_free(keys);
    *anneal = a;
    return BLY_OK;

fail:
    blyi_host_free(keys);
    blyi_anneal_destroy(a);
    return blyi_fail(BLY_E_HOST_MEMORY, "annealing %zu buffers: the host has no memory", n);
}

void blyi_anneal_destroy(struct blyi_anneal *a)
{
    if (a == NULL)
        return;
    blyi_shelf_fini(&a->shelf);
    blyi_host_free(a->order);
    blyi_host_free(a);
}

/* Moves the item at position `from` to `to`, or back. */
static void move_item(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t item = order[from];
    if (from < to)
        memmove(order + from, order + from + 1, (to - from) * sizeof(*order));
    else
        memmove(order + to + 1, order + to, (from - to) * sizeof(*order));
    order[to] = item;
}

/* Half of the moves take an item near the top of the plan, which is late in the order. */
static void choose_move(struct blyi_anneal *a, uint32_t *from, uint32_t *to)
{
    uint32_t n = a->pack->n;
    *from = (uint32_t)blyi_rand_below(&a->rand, n);
    if (blyi_rand_below(&a->rand, 2) == 0)
        *from = n - 1 - (uint32_t)blyi_rand_below(&a->rand, n / 8 + 1);
    *to = (uint32_t)blyi_rand_below(&a->rand, n);
}

/* Chance of e^-x for x >= 0, by a rational curve: equal on every machine. */
static double keep_chance(double x)
{
    return 1.0 / (1.0 + x + x * x / 2.0 + x * x * x / 6.0);
}

bool blyi_anneal_run(struct blyi_anneal *a, uint64_t moves, int64_t bound, struct blyi_stop *stop,
                     int64_t *offset, int64_t *peak)
{
    bool better = false;
    if (a->pack->n < 2)
        return false;
    for (uint64_t m = 0; m<moves && * peak> bound && !blyi_stop_now(stop); m++) {
        uint32_t from, to;
        choose_move(a, &from, &to);
        move_item(a->order, from, to);
        /* What is hopelessly worse need not be placed to the end. */
        int64_t limit = a->peak + (int64_t)((double)a->peak * a->heat * 4);
        bool placed = blyi_fit_place(&a->shelf, a->order, 0, limit, stop);
        int64_t now = placed ? blyi_pack_peak(a->pack, a->shelf.offset) : INT64_MAX;
        double worse = placed ? (double)(now - a->peak) / (double)a->peak / a->heat : 0;
        if (placed && (worse <= 0 || blyi_rand_unit(&a->rand) < keep_chance(worse)))
            a->peak = now;
        else
            move_item(a->order, to, from);
        if (placed && now < *peak) {
            memcpy(offset, a->shelf.offset, a->pack->n * sizeof(*offset));
            *peak = now;
            better = true;
        }
        a->heat = a->heat > HEAT_LEAST ? a->heat * COOLING : HEAT_FIRST / 2;
    }
    return better;
}
