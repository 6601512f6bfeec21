/* SPDX-License-Identifier: Apache-2.0
 *
 * ranges.c - free ranges in two trees: by place, to join neighbours, and by size, for best fit.
 *
 * One node is kept as a spare when a range disappears. So whatever was just taken can be
 * added back without host memory: it joins a rest, or finds the spare.
 */
#include "base/ranges.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"

#include <inttypes.h>

struct range {
    struct blyi_tree_node by_start, by_size;
};

static struct range *of_start(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct range, by_start);
}

static struct range *of_size(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct range, by_size);
}

static uint64_t start_of(const struct range *range)
{
    return range->by_start.key;
}

static uint64_t length_of(const struct range *range)
{
    return range->by_size.key;
}

static uint64_t end_of(const struct range *range)
{
    return start_of(range) + length_of(range);
}

static void link_range(struct blyi_ranges *ranges, struct range *range, uint64_t start,
                       uint64_t length)
{
    blyi_tree_insert(&ranges->by_start, &range->by_start, start, 0);
    blyi_tree_insert(&ranges->by_size, &range->by_size, length, start);
    ranges->total += length;
}

static void unlink_range(struct blyi_ranges *ranges, struct range *range)
{
    ranges->total -= length_of(range);
    blyi_tree_remove(&ranges->by_start, &range->by_start);
    blyi_tree_remove(&ranges->by_size, &range->by_size);
}

static struct range *new_range(struct blyi_ranges *ranges)
{
    struct range *range = of_start(ranges->spare);
    ranges->spare = NULL;
    if (range == NULL)
        range = blyi_host_alloc(sizeof(*range));
    if (range == NULL)
        blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu bytes, a node beside %zu free ranges",
                  sizeof(*range), ranges->by_start.count);
    return range;
}

static void drop_range(struct blyi_ranges *ranges, struct range *range)
{
    if (ranges->spare == NULL)
        ranges->spare = &range->by_start;
    else
        blyi_host_free(range);
}

void blyi_ranges_init(struct blyi_ranges *ranges)
{
    *ranges = (struct blyi_ranges){.total = 0};
}

void blyi_ranges_fini(struct blyi_ranges *ranges)
{
    struct blyi_tree_node *node;
    while ((node = blyi_tree_first(&ranges->by_start)) != NULL) {
        struct range *range = of_start(node);
        unlink_range(ranges, range);
        blyi_host_free(range);
    }
    blyi_host_free(of_start(ranges->spare));
    ranges->spare = NULL;
}

bly_status blyi_ranges_add(struct blyi_ranges *ranges, uint64_t start, uint64_t length)
{
    if (length == 0 || start + length < start)
        return blyi_fail(BLY_E_INVALID, "range of %" PRIu64 " units at %" PRIu64, length, start);
    uint64_t end = start + length;
    struct range *left = of_start(blyi_tree_floor(&ranges->by_start, start));
    struct range *right = of_start(blyi_tree_ceil(&ranges->by_start, start));
    bly_check_msg((!left || end_of(left) <= start) && (!right || start_of(right) >= end),
                  "range of %" PRIu64 " units at %" PRIu64 " is partly free already", length,
                  start);
    if (left && end_of(left) != start)
        left = NULL;
    if (right && start_of(right) != end)
        right = NULL;

    struct range *range = left ? left : right;
    if (range == NULL) {
        range = new_range(ranges);
        if (range == NULL)
            return BLY_E_HOST_MEMORY;
    }
    if (left) {
        start = start_of(left);
        unlink_range(ranges, left);
    }
    if (right) {
        end = end_of(right);
        unlink_range(ranges, right);
    }
    link_range(ranges, range, start, end - start);
    if (left && right)
        drop_range(ranges, right);
    return BLY_OK;
}

/* Cuts [start, start + length) out of `range`, which holds it. */
static bly_status cut(struct blyi_ranges *ranges, struct range *range, uint64_t start,
                      uint64_t length)
{
    uint64_t range_start = start_of(range), range_end = end_of(range), end = start + length;
    struct range *second = NULL;
    if (start > range_start && end < range_end) {
        second = new_range(ranges);
        if (second == NULL)
            return BLY_E_HOST_MEMORY;
    }
    unlink_range(ranges, range);
    if (second) {
        link_range(ranges, range, range_start, start - range_start);
        link_range(ranges, second, end, range_end - end);
    } else if (start > range_start) {
        link_range(ranges, range, range_start, start - range_start);
    } else if (end < range_end) {
        link_range(ranges, range, end, range_end - end);
    } else {
        drop_range(ranges, range);
    }
    return BLY_OK;
}

/* First multiple of `align` in the range with `length` units behind it inside. */
static bool fits(const struct range *range, uint64_t length, uint64_t align, uint64_t *start)
{
    uint64_t past = start_of(range) % align, skip = past ? align - past : 0;
    if (skip > length_of(range) || length > length_of(range) - skip)
        return false;
    *start = start_of(range) + skip;
    return true;
}

bly_status blyi_ranges_take(struct blyi_ranges *ranges, uint64_t length, uint64_t align,
                            uint64_t *start)
{
    bly_assert(length > 0 && align > 0);
    uint64_t place;
    struct blyi_tree_node *node = blyi_tree_ceil(&ranges->by_size, length);
    while (node && !fits(of_size(node), length, align, &place))
        node = blyi_tree_next(node);
    if (node == NULL)
        return BLY_E_NO_MEMORY;
    bly_status status = cut(ranges, of_size(node), place, length);
    if (status == BLY_OK)
        *start = place;
    return status;
}

bly_status blyi_ranges_take_at(struct blyi_ranges *ranges, uint64_t start, uint64_t length)
{
    struct range *range = of_start(blyi_tree_floor(&ranges->by_start, start));
    if (length == 0 || !range || start >= end_of(range) || length > end_of(range) - start)
        return blyi_fail(BLY_E_INVALID,
                         "range of %" PRIu64 " units at %" PRIu64 " is not free as a whole", length,
                         start);
    return cut(ranges, range, start, length);
}

uint64_t blyi_ranges_largest(const struct blyi_ranges *ranges)
{
    struct blyi_tree_node *last = blyi_tree_last(&ranges->by_size);
    return last ? last->key : 0;
}

bool blyi_ranges_audit(const struct blyi_ranges *ranges)
{
    if (!blyi_tree_audit(&ranges->by_start) || !blyi_tree_audit(&ranges->by_size) ||
        ranges->by_start.count != ranges->by_size.count)
        return false;
    uint64_t total = 0;
    const struct range *prev = NULL;
    for (struct blyi_tree_node *node = blyi_tree_first(&ranges->by_start); node;
         node = blyi_tree_next(node)) {
        const struct range *range = of_start(node);
        if (length_of(range) == 0 || range->by_size.sub != start_of(range))
            return false;
        if (blyi_tree_find(&ranges->by_size, length_of(range), start_of(range)) != &range->by_size)
            return false;
        if (prev && end_of(prev) >= start_of(range)) /* touching ranges must have been joined */
            return false;
        total += length_of(range);
        prev = range;
    }
    return total == ranges->total;
}
