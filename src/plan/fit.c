/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c - greedy placement by orders of classes.
 */
#include "plan/fit.h"

#include "base/fail.h"
#include "base/host.h"
#include "plan/fullest.h"
#include "plan/shelf.h"
#include "plan/sort.h"

/* Octaves of x in 1/16, so that classes can be cut without a logarithm of the libc: exact
 * enough, and the same on every machine. */
static uint64_t log2_16(uint64_t x)
{
    if (x == 0)
        return 0;
    unsigned top = 63u - (unsigned)__builtin_clzll(x);
    uint64_t rest = top >= 4 ? (x >> (top - 4)) & 15 : (x << (4 - top)) & 15;
    return (uint64_t)top * 16 + rest;
}

static uint64_t value_of(const struct blyi_pack *pack, enum blyi_fit_by by, uint32_t i)
{
    const struct blyi_pack_item *item = &pack->items[i];
    uint64_t life = pack->time[item->last + 1] - pack->time[item->first];
    uint64_t size = (uint64_t)item->size;
    switch (by) {
    case BLYI_FIT_SIZE:
        return size;
    case BLYI_FIT_LIFETIME:
        return life;
    case BLYI_FIT_AREA:
        return size > UINT64_MAX / (life + 1) ? UINT64_MAX : size * life;
    case BLYI_FIT_BREADTH:
    case BLYI_FIT_HINT:
    default:
        return pack->hint == NULL || pack->hint[i] < 0 ? 0 : UINT64_MAX - (uint64_t)pack->hint[i];
    }
}

static bly_status order_by_breadth(const struct blyi_pack *pack, struct blyi_sort_key *keys)
{
    size_t n = pack->n, sections = pack->n_sections;
    int64_t *load = blyi_host_calloc(2 * sections + 2, sizeof(*load));
    if (load == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "ordering %zu buffers: the host has no memory", n);
    for (uint32_t i = 0; i < pack->n; i++) {
        load[pack->items[i].first] += pack->items[i].size;
        load[pack->items[i].last + 1] -= pack->items[i].size;
    }
    for (size_t s = 1; s < sections; s++)
        load[s] += load[s - 1];
    for (uint32_t i = 0; i < pack->n; i++)
        keys[i] = (struct blyi_sort_key){UINT64_MAX - (uint64_t)pack->items[i].size, i};
    blyi_sort_keys(keys, keys + n, n);
    struct blyi_fullest fullest;
    bly_status status = blyi_fullest_init(&fullest, load, sections);
    if (status == BLY_OK) {
        for (size_t x = 0; x < n; x++) {
            const struct blyi_pack_item *item = &pack->items[keys[x].value];
            keys[x].key = UINT64_MAX - (uint64_t)blyi_fullest_of(&fullest, item->first, item->last);
        }
        blyi_sort_keys(keys, keys + n, n);
        blyi_fullest_fini(&fullest);
    }
    blyi_host_free(load);
    return status;
}

bly_status blyi_fit_order(const struct blyi_pack *pack, enum blyi_fit_by by, double octaves,
                          uint32_t *order)
{
    size_t n = pack->n;
    struct blyi_sort_key *keys = blyi_host_alloc((2 * n + 1) * sizeof(*keys));
    if (keys == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "ordering %zu buffers: the host has no memory", n);
    if (by == BLYI_FIT_BREADTH) {
        bly_status status = order_by_breadth(pack, keys);
        for (uint32_t x = 0; x < pack->n; x++)
            order[x] = keys[x].value;
        blyi_host_free(keys);
        return status;
    }
    uint64_t step = (uint64_t)(octaves * 16.0);
    for (uint32_t i = 0; i < pack->n; i++)
        keys[i] = (struct blyi_sort_key){pack->items[i].first, i};
    blyi_sort_keys(keys, keys + n, n);
    for (uint32_t x = 0; x < pack->n; x++) {
        uint64_t value = value_of(pack, by, keys[x].value);
        keys[x].key = UINT64_MAX - (step == 0 ? value : log2_16(value) / step);
    }
    blyi_sort_keys(keys, keys + n, n);
    for (uint32_t x = 0; x < pack->n; x++)
        order[x] = keys[x].value;
    blyi_host_free(keys);
    return BLY_OK;
}

bool blyi_fit_place(struct blyi_shelf *shelf, const uint32_t *order, uint32_t n_tight,
                    int64_t limit, struct blyi_stop *stop)
{
    const struct blyi_pack *pack = shelf->pack;
    blyi_shelf_reset(shelf);
    for (uint32_t x = 0; x < pack->n; x++) {
        uint32_t i = order[x];
        if (blyi_pack_is_fixed(pack, i))
            continue;
        int64_t offset = blyi_shelf_room(shelf, i, x < n_tight);
        if (offset + pack->items[i].size > limit || blyi_stop_poll(stop))
            return false;
        blyi_shelf_put(shelf, i, offset);
    }
    return true;
}
