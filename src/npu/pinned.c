/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned.c - blocks of page-locked host memory: anonymous pages mapped inside a window of
 * reserved addresses (pinned_room.c). The system calls of an allocation are made without the lock.
 *
 *   reserved (no access) ── map, populate ──> live ── free ──> reserved
 *                                              │ free while work holds it
 *                                              └──> dying ── last release ──> reserved
 */
#include "npu/pinned_inside.h"
#include "npu/host_pages.h"
#include "npu/host_room.h"
#include "npu/live_pages.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>

static void account_alloc_locked(const struct blyi_pinned *block)
{
    blyi_pinned.live += block->backed;
    blyi_pinned.asked += block->asked;
    blyi_pinned.locked += block->locked ? block->backed : 0;
    blyi_pinned.n_live++;
    if (blyi_pinned.live > blyi_pinned.peak)
        blyi_pinned.peak = blyi_pinned.live;
}

static void account_free_locked(const struct blyi_pinned *block)
{
    blyi_pinned.booked -= block->backed;
    blyi_pinned.live -= block->backed;
    blyi_pinned.asked -= block->asked;
    blyi_pinned.locked -= block->locked ? block->backed : 0;
    blyi_pinned.n_live--;
}

bly_status blyi_pinned_alloc(uint64_t asked, uint64_t rounded, uint32_t site, uint16_t module,
                             void **address)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_HOST_ALLOC);
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    if (rounded == 0 || rounded > (uint64_t)1 << 50)
        return blyi_fail(BLY_E_INVALID, "pinned host memory: %" PRIu64 " bytes were asked", asked);
    struct blyi_pinned *block = blyi_host_alloc(sizeof *block);
    if (!block)
        return blyi_fail(BLY_E_HOST_MEMORY, "pinned host memory: no memory to describe a block");
    *block = (struct blyi_pinned){.asked = asked,
                                  .rounded = rounded,
                                  .backed = blyi_align_up(rounded, PINNED_PAGE),
                                  .site = site,
                                  .module = module};
    blyi_lock_take(&blyi_pinned.lock);
    bly_status status = blyi_pinned_reserve_locked(block);
    blyi_lock_drop(&blyi_pinned.lock);
    if (status != BLY_OK) {
        blyi_host_free(block);
        goto refused;
    }
    uintptr_t at = blyi_pinned_start(block);
    status = blyi_pinned_take_host(block->backed);
    if (status != BLY_OK)
        goto unreserve;
    status = blyi_host_pages_map(at, block->backed, &block->locked, &block->mapped);
    if (status != BLY_OK)
        goto give_host;

    block->mapped = true;
    block->time_ns = blyi_clock_ns();
    block->serial = blyi_block_serial();
    blyi_lock_take(&blyi_pinned.lock);
    blyi_tree_insert(&blyi_pinned.blocks, &block->node, at, 0);
    blyi_live_pages_set(blyi_pinned.window, at, block->backed, true);
    account_alloc_locked(block);
    BLYI_PROBE(HOST_ALLOC, .card = -1, .address = at, .size = asked, .asked = asked,
               .rounded = rounded, .backed = block->backed, .site = site, .began_ns = began_ns);
    blyi_lock_drop(&blyi_pinned.lock);
    *address = (void *)at;
    return BLY_OK;

give_host:
    blyi_host_room_give(block->backed);
unreserve:
    blyi_pinned_unreserve(block);
refused:
    BLYI_PROBE(ALLOC_FAIL, .card = -1, .size = asked, .asked = asked, .site = site, .aux = status,
               .began_ns = began_ns);
    return status;
}

/* The end of a block that nobody holds. Told now and not at the free, so that what listeners add up
 * is what counts toward the limit. began_ns  0: not within the call that frees it */
static void take_down_locked(struct blyi_pinned *block, uint64_t began_ns)
{
    BLYI_PROBE(HOST_FREE, .card = -1, .address = blyi_pinned_start(block), .size = block->asked,
               .asked = block->asked, .rounded = block->rounded, .backed = block->backed,
               .site = block->free_site, .began_ns = began_ns);
    blyi_tree_remove(&blyi_pinned.blocks, &block->node);
    account_free_locked(block);
    blyi_host_room_give(block->backed);
    blyi_pinned_give_locked(block);
}

static bly_status refuse_free_locked(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_pinned *block = blyi_pinned_find_locked(address);
    if (block && block->dying)
        return blyi_fail(BLY_E_INVALID,
                         "pinned host memory: cannot free 0x%" PRIxPTR ": freed already, queued "
                         "work still holds the block of %s made at %s",
                         address, blyi_size_text(block->asked, size),
                         blyi_site_text(block->site, site));
    if (block)
        return blyi_fail(BLY_E_INVALID,
                         "pinned host memory: cannot free 0x%" PRIxPTR ": it is %" PRIu64
                         " bytes inside the block 0x%" PRIxPTR " of %s made at %s",
                         address, (uint64_t)(address - blyi_pinned_start(block)),
                         blyi_pinned_start(block), blyi_size_text(block->asked, size),
                         blyi_site_text(block->site, site));
    return blyi_fail(BLY_E_INVALID, "pinned host memory: cannot free 0x%" PRIxPTR ": %s", address,
                     blyi_pinned.window &&
                             address - blyi_pinned.window->base < blyi_pinned.window->size
                         ? "freed already, or never allocated"
                         : "it is not pinned host memory of this library");
}

bly_status blyi_pinned_free(void *address, uint32_t site)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_HOST_FREE);
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    uintptr_t at = (uintptr_t)address;
    blyi_lock_take(&blyi_pinned.lock);
    struct blyi_pinned *block = blyi_pinned_of(blyi_tree_find(&blyi_pinned.blocks, at, 0));
    if (!block || block->dying) {
        bly_status status = refuse_free_locked(at);
        BLYI_PROBE(FREE_FAIL, .card = -1, .address = at, .site = site, .aux = status);
        blyi_lock_drop(&blyi_pinned.lock);
        return status;
    }
    block->free_site = site;
    blyi_live_pages_set(blyi_pinned.window, at, block->backed, false);
    blyi_freed_add(&blyi_pinned.freed, &(struct blyi_freed_block){.address = at,
                                                                  .asked = block->asked,
                                                                  .backed = block->backed,
                                                                  .alloc_site = block->site,
                                                                  .free_site = site,
                                                                  .time_ns = blyi_clock_ns()});
    if (block->n_holds > 0) {
        block->dying = true;
        if (site != 0) /* buffers of ours are freed so on purpose */
            BLYI_PROBE(HOST_FREE_HELD, .card = -1, .address = at, .size = block->asked,
                       .asked = block->asked, .site = site);
    } else {
        take_down_locked(block, began_ns);
    }
    blyi_lock_drop(&blyi_pinned.lock);
    return BLY_OK;
}

bool blyi_pinned_hold(const void *address, uint64_t size)
{
    if (blyi_runtime_is_forked())
        return false;
    uintptr_t at = (uintptr_t)address;
    blyi_lock_take(&blyi_pinned.lock);
    struct blyi_pinned *block = blyi_pinned_find_locked(at);
    bool live = block && !block->dying && size <= block->backed - (at - blyi_pinned_start(block));
    if (live)
        block->n_holds++;
    blyi_lock_drop(&blyi_pinned.lock);
    return live;
}

void blyi_pinned_release(const void *address)
{
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&blyi_pinned.lock);
    struct blyi_pinned *block = blyi_pinned_find_locked((uintptr_t)address);
    bly_check_msg(block && block->n_holds > 0, "release of %p, which nobody holds", address);
    if (--block->n_holds == 0 && block->dying)
        take_down_locked(block, 0);
    blyi_lock_drop(&blyi_pinned.lock);
}

bly_status blyi_pinned_book(uint64_t asked, uint64_t backed)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    blyi_lock_take(&blyi_pinned.lock);
    bly_status status = blyi_pinned_check_limits_locked(asked, backed);
    if (status == BLY_OK) {
        blyi_pinned.booked += backed;
        blyi_pinned.elsewhere += backed;
    }
    blyi_lock_drop(&blyi_pinned.lock);
    return status;
}

void blyi_pinned_unbook(uint64_t backed)
{
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&blyi_pinned.lock);
    blyi_pinned.booked -= backed;
    blyi_pinned.elsewhere -= backed;
    blyi_lock_drop(&blyi_pinned.lock);
}
