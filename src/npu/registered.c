/* SPDX-License-Identifier: Apache-2.0
 *
 * registered.c - a tree of ranges. Its lock is above PINNED, so that limits are booked
 * under it.
 */
#include "npu/registered.h"
#include "npu/pinned.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/window.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include "base/tree.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((uint64_t)4096)

struct range {
    struct blyi_tree_node node; /* key: address */
    struct blyi_registered data;
};

static struct {
    struct blyi_lock lock;
    struct blyi_tree ranges;
    uint64_t bytes; /* pinned */
    uint64_t count; /* also read without the lock */
} all = {.lock = BLYI_LOCK_INIT(BLYI_RANK_REGISTERED)};

static struct range *range_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct range, node);
}

bool blyi_registered_any(void)
{
    /* relaxed: who registered orders it before the uses of the memory */
    return __atomic_load_n(&all.count, __ATOMIC_RELAXED) > 0;
}

static struct range *find_locked(uintptr_t address)
{
    struct range *range = range_of(blyi_tree_floor(&all.ranges, address));
    return range && address - range->node.key < range->data.pinned ? range : NULL;
}

static bool is_pinned(uintptr_t address)
{
    const struct blyi_window *w = blyi_window_find(address);
    return w && w->owner == BLYI_WINDOW_PINNED;
}

/* Memory of aclrtMallocHost may be registered to learn its address on the device. */
static bly_status check_pinned(uintptr_t address, uint64_t size)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    struct blyi_pinned_block block;
    if (!blyi_pinned_find((void *)address, &block))
        return blyi_fail(BLY_E_INVALID, "register 0x%" PRIxPTR ": no live pinned block is there",
                         address);
    if (size > block.backed - (address - block.address))
        return blyi_fail(
            BLY_E_INVALID, "register %s at 0x%" PRIxPTR ": the pinned block 0x%" PRIxPTR " has %s",
            blyi_size_text(size, a), address, block.address, blyi_size_text(block.asked, b));
    return BLY_OK;
}

static bly_status check_address(uintptr_t address, uint64_t size)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    uint64_t align = (uint64_t)blyi_option_int(BLYI_OPT_PIN_ALIGN);
    if (size == 0 || size > (uint64_t)1 << 50 || size - 1 > UINTPTR_MAX - PAGE - address)
        return blyi_fail(BLY_E_INVALID,
                         "register 0x%" PRIxPTR ": %" PRIu64 " bytes from there are no memory",
                         address, size);
    if (address % align != 0)
        return blyi_fail(BLY_E_ALIGN,
                         "register %s at 0x%" PRIxPTR ": the address must be a multiple of %s "
                         "(BELAY_PIN_ALIGN); it is %" PRIu64 " bytes beyond one, the nearest "
                         "aligned addresses are 0x%" PRIx64 " and 0x%" PRIx64,
                         blyi_size_text(size, a), address, blyi_size_text(align, b),
                         address % align, blyi_align_down(address, align),
                         blyi_align_up(address, align));
    if (is_pinned(address))
        return check_pinned(address, size);
    const struct blyi_window *w = blyi_window_find(address);
    if (w)
        return blyi_fail(BLY_E_INVALID, "register 0x%" PRIxPTR ": it is %s, not host memory",
                         address,
                         w->owner == BLYI_WINDOW_VMM ? "a reserved address" : "memory of a card");
    /* Walks the mappings and touches nothing. */
    uintptr_t start = blyi_align_down(address, PAGE);
    if (msync((void *)start, blyi_align_up(address + size, PAGE) - start, MS_ASYNC) != 0 &&
        errno == ENOMEM)
        return blyi_fail(BLY_E_INVALID,
                         "register %s at 0x%" PRIxPTR ": not all of it is mapped in the process",
                         blyi_size_text(size, a), address);
    return BLY_OK;
}

static bly_status check_overlap_locked(uintptr_t address, uint64_t size)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct range *other = range_of(blyi_tree_floor(&all.ranges, address + size - 1));
    if (!other || other->node.key + other->data.pinned <= address)
        return BLY_OK;
    return blyi_fail(BLY_E_REGISTERED,
                     "register %s at 0x%" PRIxPTR ": the range 0x%" PRIxPTR
                     " of %s is registered already, at %s",
                     blyi_size_text(size, a), address, (uintptr_t)other->node.key,
                     blyi_size_text(other->data.size, b), blyi_site_text(other->data.site, site));
}

static void count(int64_t bytes, int64_t n)
{
    all.bytes = (uint64_t)((int64_t)all.bytes + bytes);
    __atomic_store_n(&all.count, (uint64_t)((int64_t)all.count + n), __ATOMIC_RELAXED);
}

bly_status blyi_registered_add(void *address, uint64_t size, uint32_t flags, uint32_t site)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    uintptr_t at = (uintptr_t)address;
    bly_status status = check_address(at, size);
    if (status != BLY_OK)
        return status;
    struct range *range = blyi_host_calloc(1, sizeof *range);
    if (!range)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a registration");
    uint64_t pinned = blyi_align_up(size, PAGE);
    range->data = (struct blyi_registered){.address = at,
                                           .size = size,
                                           .pinned = pinned,
                                           .flags = flags,
                                           .site = site,
                                           .time_ns = blyi_clock_ns()};
    blyi_lock_take(&all.lock);
    status = check_overlap_locked(at, pinned);
    if (status == BLY_OK && !is_pinned(at)) /* a pinned block is counted already */
        status = blyi_pinned_book(size, pinned);
    if (status == BLY_OK) {
        blyi_tree_insert(&all.ranges, &range->node, at, 0);
        count((int64_t)pinned, 1);
        BLYI_PROBE(HOST_REGISTER, .card = -1, .address = at, .size = size, .asked = size,
                   .rounded = size, .backed = is_pinned(at) ? 0 : pinned, .site = site,
                   .aux = flags);
    }
    blyi_lock_drop(&all.lock);
    if (status != BLY_OK)
        blyi_host_free(range);
    return status;
}

static bly_status refuse_locked(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct range *range = find_locked(address);
    if (range)
        return blyi_fail(BLY_E_NOT_REGISTERED,
                         "cannot unregister 0x%" PRIxPTR ": it is %" PRIu64
                         " bytes inside the range 0x%" PRIxPTR " of %s registered at %s",
                         address, (uint64_t)(address - range->node.key), (uintptr_t)range->node.key,
                         blyi_size_text(range->data.size, size),
                         blyi_site_text(range->data.site, site));
    return blyi_fail(BLY_E_NOT_REGISTERED,
                     "cannot unregister 0x%" PRIxPTR ": no range is registered there", address);
}

bly_status blyi_registered_remove(void *address, uint32_t site)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    uintptr_t at = (uintptr_t)address;
    bly_status status = BLY_OK;
    blyi_lock_take(&all.lock);
    struct range *range = range_of(blyi_tree_find(&all.ranges, at, 0));
    if (range) {
        blyi_tree_remove(&all.ranges, &range->node);
        if (!is_pinned(at))
            blyi_pinned_unbook(range->data.pinned);
        count(-(int64_t)range->data.pinned, -1);
        BLYI_PROBE(HOST_UNREGISTER, .card = -1, .address = at, .size = range->data.size,
                   .asked = range->data.size, .rounded = range->data.size,
                   .backed = is_pinned(at) ? 0 : range->data.pinned, .site = site);
    } else {
        status = refuse_locked(at);
    }
    blyi_lock_drop(&all.lock);
    blyi_host_free(range);
    return status;
}

bool blyi_registered_find(uintptr_t address, struct blyi_registered *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&all.lock);
    const struct range *range = find_locked(address);
    if (range && out)
        *out = range->data;
    blyi_lock_drop(&all.lock);
    return range != NULL;
}

void blyi_registered_figures(struct blyi_registered_figures *out)
{
    *out = (struct blyi_registered_figures){0};
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&all.lock);
    *out = (struct blyi_registered_figures){.count = all.count, .bytes = all.bytes};
    blyi_lock_drop(&all.lock);
}

/* Ranges do not overlap; the sums agree. */
bool blyi_registered_audit(void)
{
    uint64_t bytes = 0, end = 0;
    blyi_lock_take(&all.lock);
    bool sound = blyi_tree_audit(&all.ranges) && all.ranges.count == all.count;
    for (struct blyi_tree_node *node = blyi_tree_first(&all.ranges); node;
         node = blyi_tree_next(node)) {
        sound = sound && node->key >= end;
        end = node->key + range_of(node)->data.pinned;
        bytes += range_of(node)->data.pinned;
    }
    sound = sound && bytes == all.bytes;
    blyi_lock_drop(&all.lock);
    return sound;
}
