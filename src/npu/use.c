/* SPDX-License-Identifier: Apache-2.0
 *
 * use.c - where an address lies, and the check that every copy, set and task makes before it
 * touches card memory.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/mem_block.h"
#include "npu/memory.h"
#include "npu/mapping.h"
#include "npu/partial.h"
#include "npu/peer.h"
#include "npu/poison.h"
#include "npu/registered.h"
#include "npu/share.h"
#include "npu/window.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>

/* Frames committed in one go, 1 ms or more; then others may have the card's lock. */
#define COMMIT_STEP 4

struct range {
    uintptr_t start, end;
    enum blyi_access access;
    uintptr_t rest; /* below it, all is known to be fit for use */
};

/* Of an address in the window of reserved addresses. */
static enum blyi_place place_reserved(const struct blyi_window *window, uintptr_t address,
                                      int *card)
{
    uint64_t entry = blyi_window_entry(window, address);
    int owner = entry & (BLYI_ENTRY_MAPPED | BLYI_ENTRY_AWAY) ? blyi_entry_owner(entry) : -1;
    if (owner == BLYI_OWNER_HOST)
        return BLYI_PLACE_PINNED;
    if (card)
        *card = owner;
    return BLYI_PLACE_CARD;
}

enum blyi_place blyi_place_of(const void *address, int *card)
{
    const struct blyi_window *window = blyi_window_find((uintptr_t)address);
    if (!window)
        return blyi_registered_any() && blyi_registered_find((uintptr_t)address, NULL)
                   ? BLYI_PLACE_PINNED
                   : BLYI_PLACE_HOST;
    if (window->owner == BLYI_WINDOW_PINNED)
        return BLYI_PLACE_PINNED;
    if (window->owner == BLYI_WINDOW_VMM)
        return place_reserved(window, (uintptr_t)address, card);
    if (card)
        *card = window->owner;
    return BLYI_PLACE_CARD;
}

static bool allows(uint64_t entry, enum blyi_access access)
{
    return (entry & BLYI_ENTRY_MAPPED) && !((entry & BLYI_ENTRY_READONLY) && (access & BLYI_WRITE));
}

/* First place in the range that may not be touched so; range->end when there is none. */
static uintptr_t find_bad_locked(struct blyi_card *card, const struct range *range)
{
    uintptr_t at = range->rest;
    while (at < range->end) {
        uintptr_t granule = blyi_align_down(at, BLYI_GRANULE), next = granule + BLYI_GRANULE;
        uint64_t entry = blyi_window_entry(card->window, at);
        if (!allows(entry, range->access))
            return at;
        uintptr_t stop = range->end < next ? range->end : next;
        if (entry & BLYI_ENTRY_PAGES) {
            uintptr_t bad = blyi_import_bad_locked(card, at, stop);
            if (bad < stop)
                return bad;
        } else if (entry & BLYI_ENTRY_PARTIAL) {
            uint32_t first = (uint32_t)((at - granule) / BLYI_PAGE_SIZE);
            uint32_t end = (uint32_t)((stop - granule + BLYI_PAGE_SIZE - 1) / BLYI_PAGE_SIZE);
            uint32_t bad =
                blyi_partial_bad(blyi_partial_of(card->partials, blyi_entry_frame(entry)), first,
                                 end, range->access & BLYI_WRITE);
            if (bad < end) {
                uintptr_t place = granule + bad * BLYI_PAGE_SIZE;
                return place > at ? place : at;
            }
        }
        at = next;
    }
    return range->end;
}

void blyi_mem_append_why_locked(struct blyi_card *card, uintptr_t bad)
{
    char size[BLYI_SIZE_TEXT], a[BLYI_FREED_TEXT], b[BLYI_SITE_TEXT];
    const struct blyi_block *block = blyi_block_find_locked(card, bad);
    if (block) {
        blyi_fail_append("; block 0x%" PRIxPTR " of %s made at %s is read-only",
                         blyi_block_start(block), blyi_size_text(block->asked, size),
                         blyi_site_text(block->site, b));
        return;
    }
    blyi_import_append_near_locked(card, bad);
    const struct blyi_freed_block *freed = blyi_freed_find(card->freed, bad);
    if (freed)
        blyi_fail_append("; freed %s: block 0x%" PRIxPTR " of %s made at %s",
                         blyi_freed_when(freed, a), freed->address,
                         blyi_size_text(freed->asked, size), blyi_site_text(freed->alloc_site, b));

    const struct blyi_block *before = blyi_block_of(blyi_tree_floor(&card->blocks, bad));
    const struct blyi_block *after = blyi_block_of(blyi_tree_ceil(&card->blocks, bad));
    uint64_t past = before ? bad - (blyi_block_start(before) + before->asked) : UINT64_MAX;
    uint64_t ahead = after ? blyi_block_start(after) - bad : UINT64_MAX;
    const struct blyi_block *near = past <= ahead ? before : after;
    if (near)
        blyi_fail_append("; the nearest block is 0x%" PRIxPTR " of %s made at %s, which %s %" PRIu64
                         " B %s it",
                         blyi_block_start(near), blyi_size_text(near->asked, size),
                         blyi_site_text(near->site, b), near == before ? "ends" : "begins",
                         near == before ? past : ahead, near == before ? "before" : "behind");
}

static bly_status fail_locked(struct blyi_card *card, const struct range *range, uintptr_t bad)
{
    char size[BLYI_SIZE_TEXT];
    bly_status status = blyi_fail(
        BLY_E_FAULT, "card %d: %s of %s at 0x%" PRIxPTR " touches 0x%" PRIxPTR ", which is %s",
        card->id, range->access & BLYI_WRITE ? "write" : "read",
        blyi_size_text(range->end - range->start, size), range->start, bad,
        blyi_block_find_locked(card, bad) ? "not to be written" : "no live memory");
    blyi_mem_append_why_locked(card, bad);
    return status;
}

/* Commits the first run of absent frames in the range, at most COMMIT_STEP; *at moves behind
 * what is known to be committed. */
static bly_status commit_step_locked(struct blyi_card *card, struct range *range, uintptr_t *at)
{
    const struct blyi_window *w = card->window;
    while (*at < range->end && (blyi_window_entry(w, *at) & BLYI_ENTRY_COMMITTED))
        *at += BLYI_GRANULE;
    if (*at >= range->end)
        return BLY_OK;
    /* Somebody may have freed memory while the lock was dropped between two steps. */
    if (*at > range->rest)
        range->rest = *at;
    uintptr_t bad = find_bad_locked(card, range);
    if (bad < range->end)
        return fail_locked(card, range, bad);

    uint64_t entry = blyi_window_entry(w, *at);
    uint32_t n = 1, first = blyi_entry_frame(entry);
    for (; n < COMMIT_STEP && *at + n * BLYI_GRANULE < range->end; n++) {
        entry = blyi_window_entry(w, *at + n * BLYI_GRANULE);
        if ((entry & BLYI_ENTRY_COMMITTED) || blyi_entry_frame(entry) != first + n)
            break;
    }
    bly_status status = blyi_backing_commit(card->backing, first, n, (void *)*at);
    if (status != BLY_OK)
        return status;
    blyi_window_set_flags(card->window, *at, n, BLYI_ENTRY_COMMITTED, 0);
    *at += n * BLYI_GRANULE;
    return BLY_OK;
}

static bly_status use_slowly(struct blyi_card *card, struct range *range)
{
    uintptr_t at = blyi_align_down(range->rest, BLYI_GRANULE);
    bly_status status = blyi_card_lock_present(card);
    if (status != BLY_OK)
        return status;
    uintptr_t bad = find_bad_locked(card, range);
    status = bad < range->end ? fail_locked(card, range, bad) : BLY_OK;
    while (status == BLY_OK) {
        status = commit_step_locked(card, range, &at);
        if (at >= range->end)
            break;
        blyi_card_yield(card);
    }
    blyi_card_unlock(card);
    return status;
}

bly_status blyi_mem_use(const void *address, uint64_t size, enum blyi_access access)
{
    return blyi_mem_use_by(address, size, access, -1);
}

static bly_status use_beyond(const struct blyi_window *w, uintptr_t start, uint64_t size)
{
    char text[BLYI_SIZE_TEXT];
    if (w->owner == BLYI_WINDOW_VMM)
        return blyi_fail(BLY_E_FAULT, "%s at 0x%" PRIxPTR " reach past the reserved addresses",
                         blyi_size_text(size, text), start);
    return blyi_fail(BLY_E_FAULT,
                     "card %d: %s at 0x%" PRIxPTR " reach past the end of its addresses", w->owner,
                     blyi_size_text(size, text), start);
}

static bly_status use_live(const struct blyi_window *w, uintptr_t start, uint64_t size,
                           enum blyi_access access, int accessor)
{
    bool reserved = w->owner == BLYI_WINDOW_VMM;
    struct blyi_card *card = reserved ? NULL : blyi_card_get(w->owner);
    if ((!reserved && !card) || size > w->size - (start - w->base))
        return use_beyond(w, start, size);
    if (unlikely(accessor >= 0)) {
        if (reserved)
            return blyi_mapping_use(start, size, access, accessor);
        bly_status status = blyi_peer_use(accessor, w->owner);
        if (unlikely(status != BLY_OK)) {
            BLYI_PROBE(PEER_FAIL, .card = accessor, .address = start, .size = size, .asked = size,
                       .aux = w->owner);
            return status;
        }
    }

    /* No lock: a whole frame that is committed stays so until its block is freed or unmapped, and
     * a program that frees memory in use has the same race on a real card. The acquire in
     * blyi_window_entry() makes what the committing thread did visible before the flag. */
    uint64_t wrong = BLYI_ENTRY_PARTIAL | (access & BLYI_WRITE ? BLYI_ENTRY_READONLY : 0);
    uint64_t right = BLYI_ENTRY_MAPPED | BLYI_ENTRY_COMMITTED;
    uintptr_t at = blyi_align_down(start, BLYI_GRANULE), end = start + size;
    for (; at < end; at += BLYI_GRANULE)
        if (unlikely((blyi_window_entry(w, at) & (right | wrong)) != right))
            break;
    if (likely(at >= end))
        return BLY_OK;
    if (reserved)
        return blyi_mapping_use(start, size, access, -1);
    struct range range = {start, end, access, at > start ? at : start};
    return use_slowly(card, &range);
}

bly_status blyi_mem_use_by(const void *address, uint64_t size, enum blyi_access access,
                           int accessor)
{
    uintptr_t start = (uintptr_t)address;
    const struct blyi_window *w = blyi_window_find(start);
    if (size == 0 || !w || w->owner == BLYI_WINDOW_PINNED)
        return BLY_OK;
    bly_status status = use_live(w, start, size, access, accessor);
    if (blyi_poison_any() && status == BLY_OK)
        status = blyi_poison_touch(start, size, (access & BLYI_WRITE) != 0);
    return status;
}

bly_status blyi_mem_recheck(const void *address, enum blyi_access access)
{
    uintptr_t start = (uintptr_t)address;
    const struct blyi_window *w = blyi_window_find(start);
    if (w && w->owner == BLYI_WINDOW_VMM)
        return blyi_mapping_use(start, 1, access, -1);
    struct blyi_card *card = w ? blyi_card_get(w->owner) : NULL;
    struct range range = {start, start + 1, access, start};
    return card ? use_slowly(card, &range) : BLY_OK;
}
