/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned.c - blocks of page-locked host memory: anonymous pages mapped inside a window of
 * reserved addresses. Lock PINNED guards all state here; the system calls of an allocation are
 * made without it.
 *
 *   reserved (no access) ── map, populate ──> live ── free ──> reserved
 *                                              │ free while work holds it
 *                                              └──> dying ── last release ──> reserved
 */
#include "npu/pinned.h"
#include "npu/backing.h"
#include "npu/host_pages.h"
#include "npu/host_room.h"
#include "npu/runtime.h"
#include "npu/window.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/ranges.h"
#include "base/site.h"
#include "base/size.h"
#include "base/stat.h"
#include "base/tree.h"
#include <inttypes.h>

#define PAGE         ((uint64_t)4096)
#define WINDOW_LEAST (64 * GiB)

struct block {
    struct blyi_tree_node node; /* key: address */
    uint64_t asked, rounded, backed;
    uint64_t time_ns;
    uint32_t site, free_site;
    uint32_t n_holds;
    uint16_t module;
    bool dying;  /* freed by the program, held by queued work */
    bool locked; /* really in RAM for good */
    bool mapped; /* pages are behind it; with `next`, the kernel refused to take them away */
    struct block *next;
};

static struct {
    struct blyi_lock lock;
    struct blyi_window *window;
    struct blyi_ranges free_pages; /* of the window, in pages */
    struct blyi_tree blocks;       /* live and dying */
    uint64_t booked;    /* bytes that count toward the limit: blocks, made or being made */
    uint64_t elsewhere; /* of those, what is pinned elsewhere (blyi_pinned_book) */
    uint64_t live, asked, peak, locked, n_live;
    struct blyi_freed freed;
    struct block *aside; /* addresses that could not be given back yet, by `next` */
} pinned = {.lock = BLYI_LOCK_INIT(BLYI_RANK_PINNED)};

static struct block *block_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct block, node);
}

static uintptr_t start_of(const struct block *block)
{
    return (uintptr_t)block->node.key;
}

/* The block around an address, dying ones included. */
static struct block *find_locked(uintptr_t address)
{
    struct block *block = block_of(blyi_tree_floor(&pinned.blocks, address));
    return block && address - start_of(block) < block->backed ? block : NULL;
}

static bly_status open_window_locked(void)
{
    if (pinned.window)
        return BLY_OK;
    struct blyi_host_room room;
    blyi_host_room_read(&room);
    uint64_t size = room.ram > WINDOW_LEAST ? blyi_align_up(room.ram, GiB) : WINDOW_LEAST;
    struct blyi_window *window;
    bly_status status = blyi_window_create(BLYI_WINDOW_PINNED, size, GiB, &window);
    if (status != BLY_OK)
        return status;
    blyi_ranges_init(&pinned.free_pages);
    status = blyi_ranges_add(&pinned.free_pages, 0, window->size / PAGE);
    if (status != BLY_OK) {
        blyi_window_destroy(window);
        return status;
    }
    pinned.window = window;
    return BLY_OK;
}

static uint64_t limit_of(void)
{
    static _Atomic uint64_t half_of_ram; /* relaxed: whoever reads it anew finds the same */
    uint64_t limit = (uint64_t)blyi_option_int(BLYI_OPT_PIN_LIMIT);
    if (limit > 0)
        return limit;
    if (half_of_ram == 0) {
        struct blyi_host_room room;
        blyi_host_room_read(&room);
        half_of_ram = room.ram / 2;
    }
    return half_of_ram;
}

static bly_status check_limits_locked(uint64_t asked, uint64_t backed)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    uint64_t ceiling = (uint64_t)blyi_option_int(BLYI_OPT_PIN_CEILING), limit = limit_of();
    if (ceiling > 0 && backed > ceiling)
        return blyi_fail(BLY_E_PIN_LIMIT,
                         "pinned host memory: %s were asked at once, a single block may have %s "
                         "(BELAY_PIN_CEILING)",
                         blyi_size_text(asked, a), blyi_size_text(ceiling, b));
    if (backed > limit || pinned.booked > limit - backed)
        return blyi_fail(BLY_E_PIN_LIMIT,
                         "pinned host memory: limit %s (BELAY_PIN_LIMIT%s), used %s in %" PRIu64
                         " blocks, asked %s, left %s",
                         blyi_size_text(limit, a),
                         blyi_option_int(BLYI_OPT_PIN_LIMIT) > 0 ? "" : ", half of the RAM",
                         blyi_size_text(pinned.booked, b), pinned.n_live, blyi_size_text(asked, c),
                         blyi_size_text(limit > pinned.booked ? limit - pinned.booked : 0, d));
    return BLY_OK;
}

static bly_status take_pages_locked(uint64_t asked, uint64_t backed, uint64_t *page)
{
    /* Blocks of 2 MiB and more begin at a granule, so that huge pages fit. */
    uint64_t align = backed >= BLYI_GRANULE ? BLYI_GRANULE / PAGE : 1;
    bly_status status = blyi_ranges_take(&pinned.free_pages, backed / PAGE, align, page);
    if (status != BLY_E_NO_MEMORY)
        return status;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    return blyi_fail(BLY_E_SYSTEM,
                     "pinned host memory: addresses ran out: %s were asked, the longest free range "
                     "is %s",
                     blyi_size_text(asked, a),
                     blyi_size_text(blyi_ranges_largest(&pinned.free_pages) * PAGE, b));
}

/* Gives back the addresses of a block and frees it; false when that must wait. */
static bool try_give_locked(struct block *block)
{
    uint64_t page = (start_of(block) - pinned.window->base) / PAGE;
    if (block->mapped)
        block->mapped = !blyi_host_pages_unmap(start_of(block), block->backed);
    if (block->mapped || blyi_ranges_add(&pinned.free_pages, page, block->backed / PAGE) != BLY_OK)
        return false;
    blyi_host_free(block);
    return true;
}

/* Does not fail: what must wait is tried again at the next allocation. */
static void give_locked(struct block *block)
{
    if (try_give_locked(block))
        return;
    block->next = pinned.aside;
    pinned.aside = block;
}

static void retry_aside_locked(void)
{
    struct block *block = pinned.aside;
    pinned.aside = NULL;
    while (block) {
        struct block *next = block->next;
        give_locked(block);
        block = next;
    }
}

/* Limits and addresses, into the block's key; undone by unreserve(). */
static bly_status reserve_locked(struct block *block)
{
    uint64_t page;
    bly_status status = open_window_locked();
    if (status == BLY_OK)
        status = check_limits_locked(block->asked, block->backed);
    if (status != BLY_OK)
        return status;
    if (unlikely(pinned.aside != NULL))
        retry_aside_locked();
    status = take_pages_locked(block->asked, block->backed, &page);
    if (status != BLY_OK)
        return status;
    block->node.key = pinned.window->base + page * PAGE;
    pinned.booked += block->backed;
    return BLY_OK;
}

/* Frees the structure too. */
static void unreserve(struct block *block)
{
    blyi_lock_take(&pinned.lock);
    pinned.booked -= block->backed;
    give_locked(block);
    blyi_lock_drop(&pinned.lock);
}

static bly_status take_host(uint64_t bytes)
{
    while (!blyi_host_room_take(bytes)) {
        if (blyi_backing_trim_all(bytes) > 0)
            continue;
        char size[BLYI_SIZE_TEXT], text[BLYI_HOST_ROOM_TEXT];
        blyi_stat_add(BLYI_STAT_host_short, 1);
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "pinned host memory: the host is short: %s were asked, %s",
                         blyi_size_text(bytes, size), blyi_host_room_text(text));
    }
    return BLY_OK;
}

static void account_alloc_locked(const struct block *block)
{
    pinned.live += block->backed;
    pinned.asked += block->asked;
    pinned.locked += block->locked ? block->backed : 0;
    pinned.n_live++;
    if (pinned.live > pinned.peak)
        pinned.peak = pinned.live;
}

static void account_free_locked(const struct block *block)
{
    pinned.booked -= block->backed;
    pinned.live -= block->backed;
    pinned.asked -= block->asked;
    pinned.locked -= block->locked ? block->backed : 0;
    pinned.n_live--;
}

bly_status blyi_pinned_alloc(uint64_t asked, uint64_t rounded, uint32_t site, uint16_t module,
                             void **address)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    if (rounded == 0 || rounded > (uint64_t)1 << 50)
        return blyi_fail(BLY_E_INVALID, "pinned host memory: %" PRIu64 " bytes were asked", asked);
    struct block *block = blyi_host_alloc(sizeof *block);
    if (!block)
        return blyi_fail(BLY_E_HOST_MEMORY, "pinned host memory: no memory to describe a block");
    *block = (struct block){.asked = asked,
                            .rounded = rounded,
                            .backed = blyi_align_up(rounded, PAGE),
                            .site = site,
                            .module = module};
    blyi_lock_take(&pinned.lock);
    bly_status status = reserve_locked(block);
    blyi_lock_drop(&pinned.lock);
    if (status != BLY_OK) {
        blyi_host_free(block);
        return status;
    }
    uintptr_t at = start_of(block);
    status = take_host(block->backed);
    if (status != BLY_OK)
        goto unreserve;
    status = blyi_host_pages_map(at, block->backed, &block->locked, &block->mapped);
    if (status != BLY_OK)
        goto give_host;

    block->mapped = true;
    block->time_ns = blyi_clock_ns();
    blyi_lock_take(&pinned.lock);
    blyi_tree_insert(&pinned.blocks, &block->node, at, 0);
    account_alloc_locked(block);
    BLYI_PROBE(HOST_ALLOC, .card = -1, .address = at, .size = asked, .asked = asked,
               .rounded = rounded, .backed = block->backed, .site = site);
    blyi_lock_drop(&pinned.lock);
    *address = (void *)at;
    return BLY_OK;

give_host:
    blyi_host_room_give(block->backed);
unreserve:
    unreserve(block);
    return status;
}

/* The end of a block that nobody holds. Told now and not at the free, so that what listeners add up
 * is what counts toward the limit. */
static void take_down_locked(struct block *block)
{
    BLYI_PROBE(HOST_FREE, .card = -1, .address = start_of(block), .size = block->asked,
               .asked = block->asked, .rounded = block->rounded, .backed = block->backed,
               .site = block->free_site);
    blyi_tree_remove(&pinned.blocks, &block->node);
    account_free_locked(block);
    blyi_host_room_give(block->backed);
    give_locked(block);
}

static bly_status refuse_free_locked(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct block *block = find_locked(address);
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
                         address, (uint64_t)(address - start_of(block)), start_of(block),
                         blyi_size_text(block->asked, size), blyi_site_text(block->site, site));
    return blyi_fail(BLY_E_INVALID, "pinned host memory: cannot free 0x%" PRIxPTR ": %s", address,
                     pinned.window && address - pinned.window->base < pinned.window->size
                         ? "freed already, or never allocated"
                         : "it is not pinned host memory of this library");
}

bly_status blyi_pinned_free(void *address, uint32_t site)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    uintptr_t at = (uintptr_t)address;
    blyi_lock_take(&pinned.lock);
    struct block *block = block_of(blyi_tree_find(&pinned.blocks, at, 0));
    if (!block || block->dying) {
        bly_status status = refuse_free_locked(at);
        BLYI_PROBE(FREE_FAIL, .card = -1, .address = at, .site = site, .aux = status);
        blyi_lock_drop(&pinned.lock);
        return status;
    }
    block->free_site = site;
    blyi_freed_add(&pinned.freed, &(struct blyi_freed_block){.address = at,
                                                             .asked = block->asked,
                                                             .backed = block->backed,
                                                             .alloc_site = block->site,
                                                             .free_site = site,
                                                             .time_ns = blyi_clock_ns()});
    if (block->n_holds > 0)
        block->dying = true;
    else
        take_down_locked(block);
    blyi_lock_drop(&pinned.lock);
    return BLY_OK;
}

bool blyi_pinned_hold(const void *address, uint64_t size)
{
    if (blyi_runtime_is_forked())
        return false;
    uintptr_t at = (uintptr_t)address;
    blyi_lock_take(&pinned.lock);
    struct block *block = find_locked(at);
    bool live = block && !block->dying && size <= block->backed - (at - start_of(block));
    if (live)
        block->n_holds++;
    blyi_lock_drop(&pinned.lock);
    return live;
}

void blyi_pinned_release(const void *address)
{
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&pinned.lock);
    struct block *block = find_locked((uintptr_t)address);
    bly_check_msg(block && block->n_holds > 0, "release of %p, which nobody holds", address);
    if (--block->n_holds == 0 && block->dying)
        take_down_locked(block);
    blyi_lock_drop(&pinned.lock);
}

bly_status blyi_pinned_book(uint64_t asked, uint64_t backed)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    blyi_lock_take(&pinned.lock);
    bly_status status = check_limits_locked(asked, backed);
    if (status == BLY_OK) {
        pinned.booked += backed;
        pinned.elsewhere += backed;
    }
    blyi_lock_drop(&pinned.lock);
    return status;
}

void blyi_pinned_unbook(uint64_t backed)
{
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&pinned.lock);
    pinned.booked -= backed;
    pinned.elsewhere -= backed;
    blyi_lock_drop(&pinned.lock);
}

static void describe(const struct block *block, struct blyi_pinned_block *out)
{
    *out = (struct blyi_pinned_block){.address = start_of(block),
                                      .asked = block->asked,
                                      .rounded = block->rounded,
                                      .backed = block->backed,
                                      .site = block->site,
                                      .module = block->module,
                                      .time_ns = block->time_ns};
}

bool blyi_pinned_find(const void *address, struct blyi_pinned_block *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&pinned.lock);
    const struct block *block = find_locked((uintptr_t)address);
    bool live = block && !block->dying;
    if (live)
        describe(block, out);
    blyi_lock_drop(&pinned.lock);
    return live;
}

bool blyi_pinned_freed(uintptr_t address, struct blyi_freed_block *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&pinned.lock);
    const struct blyi_freed_block *freed = blyi_freed_find(&pinned.freed, address);
    if (freed)
        *out = *freed;
    blyi_lock_drop(&pinned.lock);
    return freed != NULL;
}

void blyi_pinned_figures(struct blyi_pinned_figures *out)
{
    *out = (struct blyi_pinned_figures){0};
    if (blyi_runtime_is_forked())
        return;
    uint64_t limit = limit_of();
    blyi_lock_take(&pinned.lock);
    *out = (struct blyi_pinned_figures){.live = pinned.live,
                                        .asked = pinned.asked,
                                        .peak = pinned.peak,
                                        .blocks = pinned.n_live,
                                        .locked = pinned.locked,
                                        .limit = limit};
    blyi_lock_drop(&pinned.lock);
}

/* Blocks do not overlap, sums agree, and every page of the window is free, in a block, or
 * aside. A test calls it while nothing is being allocated. */
bool blyi_pinned_audit(void)
{
    uint64_t live = 0, asked = 0, locked = 0, aside = 0, end = 0;
    bool sound = true;
    blyi_lock_take(&pinned.lock);
    for (struct blyi_tree_node *node = blyi_tree_first(&pinned.blocks); node;
         node = blyi_tree_next(node)) {
        const struct block *block = block_of(node);
        sound = sound && node->key >= end && (!block->dying || block->n_holds > 0);
        end = node->key + block->backed;
        live += block->backed;
        asked += block->asked;
        locked += block->locked ? block->backed : 0;
    }
    for (const struct block *block = pinned.aside; block; block = block->next)
        aside += block->backed;
    if (pinned.window)
        sound = sound && blyi_tree_audit(&pinned.blocks) && blyi_ranges_audit(&pinned.free_pages) &&
                pinned.free_pages.total * PAGE + live + aside == pinned.window->size;
    sound = sound && live == pinned.live && live + pinned.elsewhere == pinned.booked &&
            asked == pinned.asked && locked == pinned.locked &&
            pinned.n_live == pinned.blocks.count;
    blyi_lock_drop(&pinned.lock);
    return sound;
}
