/* SPDX-License-Identifier: Apache-2.0
 *
 * ipc.c - keys to blocks: exporting, and closing by either side.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/ledger.h"
#include "npu/mem_block.h"
#include "npu/partial.h"
#include "npu/runtime.h"
#include "npu/share_inside.h"
#include "npu/snapshot.h"
#include "npu/stock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <stdio.h>

struct request {
    uintptr_t address;
    uint64_t size;
    uint32_t flags, site;
};

/* Cards on which a block may be without a key and still open elsewhere. Written under the card's
 * lock. */
static bool lent[BLYI_CARD_MAX];

static bly_status refuse_place_locked(struct blyi_card *card, const struct request *request)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_import *import = blyi_import_find_locked(card, request->address);
    if (import)
        return blyi_fail(BLY_E_INVALID,
                         "cannot export 0x%" PRIxPTR ": it is memory of exporter pid %u, imported "
                         "at %s; only that process can export it",
                         request->address, import->maker_pid, blyi_site_text(import->site, site));
    bly_status status =
        blyi_fail(BLY_E_INVALID, "card %d: cannot export %s at 0x%" PRIxPTR ": no live block there",
                  card->id, blyi_size_text(request->size, size), request->address);
    blyi_mem_append_why_locked(card, request->address);
    return status;
}

static bly_status check_range(const struct blyi_block *block, const struct request *request)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    uint64_t page = blyi_page_bytes(block->page_kind), offset = request->address % page;
    uint64_t room = blyi_block_start(block) + block->backed - request->address;
    if (offset != 0)
        return blyi_fail(
            BLY_E_ALIGN,
            "cannot export 0x%" PRIxPTR ": an export begins at a multiple of the page size %s, "
            "and the address is %" PRIu64 " B behind one; %" PRIu64 " B more would reach the "
            "next; align the blocks, give this one a segment of its own, or export the block "
            "0x%" PRIxPTR " of %s and send the offset",
            request->address, blyi_size_text(page, a), offset, page - offset,
            blyi_block_start(block), blyi_size_text(block->asked, b));
    if (request->size > room)
        return blyi_fail(BLY_E_INVALID,
                         "cannot export %s at 0x%" PRIxPTR ": the block 0x%" PRIxPTR
                         " of %s made at %s ends %s behind that",
                         blyi_size_text(request->size, a), request->address,
                         blyi_block_start(block), blyi_size_text(block->asked, b),
                         blyi_site_text(block->site, site), blyi_size_text(room, c));
    return BLY_OK;
}

/* Frames that importers will not map as a whole get their pages now: they could not do it. */
static bly_status commit_edges(struct blyi_card *card, const struct blyi_block *block,
                               uintptr_t start, uintptr_t end)
{
    uintptr_t whole_end = blyi_block_start(block) + block->whole * BLYI_GRANULE;
    for (uintptr_t at = blyi_align_down(start, BLYI_GRANULE); at < end; at += BLYI_GRANULE) {
        bool is_whole = at >= start && at + BLYI_GRANULE <= end && at + BLYI_GRANULE <= whole_end;
        uint64_t entry = blyi_window_entry(card->window, at);
        if (is_whole) { /* so are all others up to the last */
            uintptr_t last = blyi_align_down(end < whole_end ? end : whole_end, BLYI_GRANULE);
            at = last - BLYI_GRANULE;
            continue;
        }
        if (entry & BLYI_ENTRY_COMMITTED)
            continue;
        bly_status status =
            blyi_backing_commit(card->backing, blyi_entry_frame(entry), 1, (void *)at);
        if (status != BLY_OK)
            return status;
        blyi_window_set_flags(card->window, at, 1, BLYI_ENTRY_COMMITTED, 0);
    }
    return BLY_OK;
}

/* The frames that the block alone has, as the window's entries say. */
static struct blyi_run *runs_of(const struct blyi_card *card, const struct blyi_block *block,
                                uint32_t *n)
{
    struct blyi_run *runs = NULL;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t found = 0, next = BLYI_FRAME_NONE;
        for (uint32_t i = 0; i < block->whole; i++) {
            uint32_t frame = blyi_entry_frame(
                blyi_window_entry(card->window, blyi_block_start(block) + i * BLYI_GRANULE));
            if (frame != next) {
                if (runs)
                    runs[found] = (struct blyi_run){frame, 0};
                found++;
            }
            if (runs)
                runs[found - 1].count++;
            next = frame + 1;
        }
        *n = found;
        if (pass == 0)
            runs = blyi_host_alloc((found + 1) * sizeof *runs);
        if (!runs)
            return NULL;
    }
    return runs;
}

/* From now on its frames belong to a share. */
static bly_status share_block_locked(struct blyi_card *card, struct blyi_block *block)
{
    struct blyi_share with = {.card = (uint32_t)card->id,
                              .asked = block->asked,
                              .bytes = block->backed,
                              .address = blyi_block_start(block),
                              .pc = (uintptr_t)blyi_site_pc(block->site),
                              .page_kind = block->page_kind,
                              .tail_frame = BLYI_FRAME_NONE,
                              .tail_pages = block->pages};
    if (block->flags & BLYI_MEM_READONLY)
        with.flags |= BLYI_SHARE_READONLY;
    if (block->flags & BLYI_MEM_CONTIGUOUS)
        with.flags |= BLYI_SHARE_CONTIGUOUS;
    if (block->pages > 0) {
        uintptr_t at = blyi_block_start(block) + block->whole * BLYI_GRANULE;
        with.tail_frame = blyi_entry_frame(blyi_window_entry(card->window, at));
        with.tail_page = (uint32_t)(at % BLYI_GRANULE / BLYI_PAGE_SIZE);
    }
    uint32_t n_runs;
    struct blyi_run *runs = runs_of(card, block, &n_runs);
    struct blyi_tail *tail = block->pages > 0 ? blyi_host_calloc(1, sizeof *tail) : NULL;
    bly_status status;
    if (!runs || (block->pages > 0 && !tail))
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to describe a share", card->id);
    else
        status = blyi_share_make(card, &with, runs, n_runs, &block->hold);
    blyi_host_free(runs);
    if (status != BLY_OK) {
        blyi_host_free(tail);
        return status;
    }
    if (tail)
        blyi_list_init(&tail->link);
    block->tail = tail;
    card->shared += block->whole * BLYI_FRAME_SIZE;
    return BLY_OK;
}

static void unshare_block_locked(struct blyi_card *card, struct blyi_block *block)
{
    if (block->hold.generation == 0 || !blyi_share_dissolve(card, block->hold))
        return;
    card->shared -= block->whole * BLYI_FRAME_SIZE;
    block->hold = (struct blyi_hold){0, 0};
    blyi_host_free(block->tail);
    block->tail = NULL;
}

static bly_status export_locked(struct blyi_card *card, const struct request *request,
                                struct blyi_key_draft *draft)
{
    struct blyi_block *block = blyi_block_find_locked(card, request->address);
    if (!block)
        return refuse_place_locked(card, request);
    bly_status status = check_range(block, request);
    if (status != BLY_OK)
        return status;
    draft->offset = request->address - blyi_block_start(block);
    draft->length = blyi_align_up(request->size, blyi_page_bytes(block->page_kind));
    status = commit_edges(card, block, request->address, request->address + draft->length);
    if (status == BLY_OK && block->hold.generation == 0)
        status = share_block_locked(card, block);
    if (status != BLY_OK)
        return status;
    blyi_stock_enter(card->stock);
    status = blyi_key_make_locked(draft, block->hold);
    blyi_stock_leave(card->stock);
    if (status != BLY_OK)
        unshare_block_locked(card, block);
    return status;
}

bly_status blyi_ipc_export(void *address, uint64_t size, uint32_t flags, uint32_t site,
                           char text[BLYI_KEY_TEXT_SIZE])
{
    struct request request = {(uintptr_t)address, size, flags, site};
    struct blyi_key_draft draft = {.kind = BLYI_KEY_TEXT, .flags = flags};
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK)
        return status;
    const struct blyi_window *window = blyi_window_find(request.address);
    struct blyi_card *card = window ? blyi_card_get(window->owner) : NULL;
    if (window && window->owner == BLYI_WINDOW_VMM)
        return blyi_ipc_export_pooled(request.address, size, &draft, site, text);
    if (!card)
        return blyi_fail(BLY_E_INVALID, "cannot export 0x%" PRIxPTR ": it is %s", request.address,
                         !window ? "an address of the host, not card memory"
                                 : "pinned host memory, not card memory");
    status = blyi_shares_prepare(card->id);
    if (status == BLY_OK)
        status = blyi_key_draw(&draft);
    if (status != BLY_OK)
        return status;
    status = blyi_card_lock_present(card);
    if (status != BLY_OK)
        return status;
    status = export_locked(card, &request, &draft);
    if (status == BLY_OK)
        BLYI_PROBE(EXPORT, .card = card->id, .address = request.address, .size = size,
                   .asked = size, .site = site);
    blyi_card_unlock(card);
    if (status == BLY_OK)
        blyi_key_write(&draft, text);
    return status;
}

/* The maker's own key. One that ended with its memory may be closed once, too. */
static bly_status close_made(const char *text, uint32_t site, struct blyi_hold *hold, int *id,
                             uintptr_t *address)
{
    struct blyi_key_form form = {BLYI_KEY_TEXT, text};
    char where[BLYI_SITE_TEXT];
    bly_status status = BLY_OK;
    blyi_site_text(site, where);
    blyi_ledger_lock();
    struct blyi_key *key = blyi_key_find_locked(form);
    if (key && blyi_key_is_mine(key)) {
        *hold = (struct blyi_hold){key->share, key->generation};
        *id = (int)(key->card % BLYI_LEDGER_CARDS);
        *address = (uintptr_t)blyi_share_at(key->share)->address;
        blyi_key_end_locked(key, BLYI_KEY_CLOSED, where);
    } else if (key) {
        status = blyi_fail(BLY_E_INVALID,
                           "cannot close a key of exporter pid %u: this process has not "
                           "imported it",
                           key->maker_pid);
    } else if (!blyi_key_close_freed_locked(form)) {
        status = BLY_E_INVALID;
    }
    blyi_ledger_unlock();
    return status;
}

void blyi_ipc_settle_locked(struct blyi_card *card)
{
    bool rest = false;
    if (likely(!__atomic_exchange_n(&lent[card->id], false, __ATOMIC_RELAXED)))
        return;
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        unshare_block_locked(card, blyi_block_of(node));
        rest = rest || blyi_block_of(node)->hold.generation != 0;
    }
    if (rest)
        __atomic_store_n(&lent[card->id], true, __ATOMIC_RELAXED);
}

void blyi_ipc_settle(void)
{
    for (int id = 0; id < BLYI_CARD_MAX; id++) {
        struct blyi_card *card = blyi_card_get(id);
        if (likely(!card || !__atomic_load_n(&lent[id], __ATOMIC_RELAXED)))
            continue;
        blyi_card_lock(card);
        blyi_ipc_settle_locked(card);
        blyi_card_unlock(card);
    }
}

bly_status blyi_ipc_close(const char *text, uint32_t site)
{
    bly_status status = blyi_snapshot_enter();
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (card && blyi_import_close_oldest(card, text, site))
            return BLY_OK;
    }
    return status == BLY_OK ? blyi_ipc_end(text, site) : status;
}

bly_status blyi_ipc_end(const char *text, uint32_t site)
{
    struct blyi_hold hold = {0, 0};
    uintptr_t address = 0;
    int id = -1;
    bly_status status = blyi_runtime_enter();
    if (status == BLY_OK)
        status = blyi_key_attach((struct blyi_key_form){BLYI_KEY_TEXT, text});
    if (status == BLY_OK)
        status = close_made(text, site, &hold, &id, &address);
    struct blyi_card *card = blyi_card_get(id);
    if (status != BLY_OK || !card)
        return status;
    blyi_card_lock(card);
    struct blyi_block *block = blyi_block_of(blyi_tree_find(&card->blocks, address, 0));
    if (block && block->hold.generation == hold.generation) {
        unshare_block_locked(card, block);
        if (block->hold.generation != 0)
            __atomic_store_n(&lent[id], true, __ATOMIC_RELAXED);
    }
    blyi_card_unlock(card);
    return BLY_OK;
}
