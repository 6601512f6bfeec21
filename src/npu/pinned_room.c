/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned_room.c - where pinned blocks lie, and how much of them there may be.
 */
#include "npu/pinned_inside.h"
#include "npu/backing.h"
#include "npu/host_pages.h"
#include "npu/host_room.h"
#include "npu/live_pages.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/size.h"
#include "base/stat.h"
#include <inttypes.h>

#define WINDOW_LEAST (64 * GiB)

struct blyi_pinned_state blyi_pinned = {.lock = BLYI_LOCK_INIT(BLYI_RANK_PINNED)};

static bly_status open_window_locked(void)
{
    if (blyi_pinned.window)
        return BLY_OK;
    struct blyi_host_room room;
    blyi_host_room_read(&room);
    uint64_t size = room.ram > WINDOW_LEAST ? blyi_align_up(room.ram, GiB) : WINDOW_LEAST;
    struct blyi_window *window;
    bly_status status =
        blyi_window_create(BLYI_WINDOW_PINNED, blyi_window_share(size), GiB, &window);
    if (status != BLY_OK)
        return status;
    status = blyi_live_pages_make(window);
    if (status != BLY_OK) {
        blyi_window_destroy(window);
        return status;
    }
    blyi_ranges_init(&blyi_pinned.free_pages);
    status = blyi_ranges_add(&blyi_pinned.free_pages, 0, window->size / PINNED_PAGE);
    if (status != BLY_OK) {
        blyi_window_destroy(window);
        return status;
    }
    blyi_pinned.window = window;
    return BLY_OK;
}

uint64_t blyi_pinned_limit(void)
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

bly_status blyi_pinned_check_limits_locked(uint64_t asked, uint64_t backed)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    uint64_t ceiling = (uint64_t)blyi_option_int(BLYI_OPT_PIN_CEILING), limit = blyi_pinned_limit();
    if (ceiling > 0 && backed > ceiling)
        return blyi_fail(BLY_E_PIN_LIMIT,
                         "pinned host memory: %s were asked at once, a single block may have %s "
                         "(BELAY_PIN_CEILING)",
                         blyi_size_text(asked, a), blyi_size_text(ceiling, b));
    if (backed > limit || blyi_pinned.booked > limit - backed)
        return blyi_fail(
            BLY_E_PIN_LIMIT,
            "pinned host memory: limit %s (BELAY_PIN_LIMIT%s), used %s in %" PRIu64
            " blocks, asked %s, left %s",
            blyi_size_text(limit, a),
            blyi_option_int(BLYI_OPT_PIN_LIMIT) > 0 ? "" : ", half of the RAM",
            blyi_size_text(blyi_pinned.booked, b), blyi_pinned.n_live, blyi_size_text(asked, c),
            blyi_size_text(limit > blyi_pinned.booked ? limit - blyi_pinned.booked : 0, d));
    return BLY_OK;
}

static bly_status take_pages_locked(uint64_t asked, uint64_t backed, uint64_t *page)
{
    /* Blocks of 2 MiB and more begin at a granule, so that huge pages fit. */
    uint64_t align = backed >= BLYI_GRANULE ? BLYI_GRANULE / PINNED_PAGE : 1;
    bly_status status =
        blyi_ranges_take(&blyi_pinned.free_pages, backed / PINNED_PAGE, align, page);
    if (status != BLY_E_NO_MEMORY)
        return status;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    return blyi_fail(BLY_E_SYSTEM,
                     "pinned host memory: addresses ran out: %s were asked, the longest free range "
                     "is %s",
                     blyi_size_text(asked, a),
                     blyi_size_text(blyi_ranges_largest(&blyi_pinned.free_pages) * PINNED_PAGE, b));
}

/* Gives back the addresses of a block and frees it; false when that must wait. */
static bool try_give_locked(struct blyi_pinned *block)
{
    uint64_t page = (blyi_pinned_start(block) - blyi_pinned.window->base) / PINNED_PAGE;
    if (block->mapped)
        block->mapped = !blyi_host_pages_unmap(blyi_pinned_start(block), block->backed);
    if (block->mapped ||
        blyi_ranges_add(&blyi_pinned.free_pages, page, block->backed / PINNED_PAGE) != BLY_OK)
        return false;
    blyi_host_free(block);
    return true;
}

void blyi_pinned_give_locked(struct blyi_pinned *block)
{
    if (try_give_locked(block))
        return;
    block->next = blyi_pinned.aside;
    blyi_pinned.aside = block;
}

static void retry_aside_locked(void)
{
    struct blyi_pinned *block = blyi_pinned.aside;
    blyi_pinned.aside = NULL;
    while (block) {
        struct blyi_pinned *next = block->next;
        blyi_pinned_give_locked(block);
        block = next;
    }
}

bly_status blyi_pinned_reserve_locked(struct blyi_pinned *block)
{
    uint64_t page;
    bly_status status = open_window_locked();
    if (status == BLY_OK)
        status = blyi_pinned_check_limits_locked(block->asked, block->backed);
    if (status != BLY_OK)
        return status;
    if (unlikely(blyi_pinned.aside != NULL))
        retry_aside_locked();
    status = take_pages_locked(block->asked, block->backed, &page);
    if (status != BLY_OK)
        return status;
    block->node.key = blyi_pinned.window->base + page * PINNED_PAGE;
    blyi_pinned.booked += block->backed;
    return BLY_OK;
}

void blyi_pinned_unreserve(struct blyi_pinned *block)
{
    blyi_lock_take(&blyi_pinned.lock);
    blyi_pinned.booked -= block->backed;
    blyi_pinned_give_locked(block);
    blyi_lock_drop(&blyi_pinned.lock);
}

bly_status blyi_pinned_take_host(uint64_t bytes)
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
