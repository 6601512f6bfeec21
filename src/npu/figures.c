/* SPDX-License-Identifier: Apache-2.0
 *
 * figures.c - reading a card's memory: sums, blocks, use by module, audit.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/mem_block.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/ledger.h"
#include "npu/stock.h"
#include "npu/tally.h"
#include "npu/runtime.h"
#include "npu/share_inside.h"
#include "npu/vmm_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe(const struct blyi_card *card, const struct blyi_block *block,
                     struct blyi_mem_block *out)
{
    *out = (struct blyi_mem_block){.card = card->id,
                                   .address = blyi_block_start(block),
                                   .asked = block->asked,
                                   .rounded = block->rounded,
                                   .backed = block->backed,
                                   .page_kind = block->page_kind,
                                   .site = block->site,
                                   .module = block->module,
                                   .time_ns = block->time_ns,
                                   .serial = block->serial};
}

bool blyi_mem_find(const void *address, struct blyi_mem_block *out)
{
    if (blyi_runtime_is_forked())
        return false;
    int id = -1;
    if (blyi_place_of(address, &id) != BLYI_PLACE_CARD)
        return false;
    struct blyi_card *card = blyi_card_get(id);
    if (!card)
        return false;
    blyi_card_lock(card);
    const struct blyi_block *block = blyi_block_find_locked(card, (uintptr_t)address);
    if (block)
        describe(card, block, out);
    blyi_card_unlock(card);
    return block != NULL;
}

bool blyi_mem_freed(int id, uintptr_t address, struct blyi_freed_block *out)
{
    struct blyi_card *card = blyi_runtime_is_forked() ? NULL : blyi_card_get(id);
    if (!card)
        return false;
    blyi_card_lock(card);
    const struct blyi_freed_block *freed = blyi_freed_find(card->freed, address);
    if (freed)
        *out = *freed;
    blyi_card_unlock(card);
    return freed != NULL;
}

void blyi_mem_figures(struct blyi_card *card, struct blyi_mem_figures *out)
{
    *out = (struct blyi_mem_figures){0};
    if (blyi_runtime_is_forked())
        return;
    blyi_ledger_reap(); /* what the dead had is free */
    blyi_card_lock(card);
    struct blyi_stock_figures frames;
    blyi_tails_settle_locked(card);
    blyi_tally_card_locked(card);
    blyi_stock_figures(card->stock, &frames);
    uint64_t whole = frames.free * BLYI_FRAME_SIZE;
    struct blyi_physical_sums sums;
    uint64_t live = card->live, gone;
    blyi_physical_sums_locked(card, &sums);
    if (blyi_away_is_gone(card))
        blyi_away_figures(card->away, &live, &gone);
    *out = (struct blyi_mem_figures){.total = card->total,
                                     .free = whole + frames.unused,
                                     .huge_free = whole,
                                     .giant_free = frames.giants * GiB,
                                     .normal_free = frames.unused,
                                     .largest_run = frames.longest * BLYI_FRAME_SIZE,
                                     .live = live,
                                     .peak = card->peak,
                                     .overhead = blyi_away_is_gone(card) ? 0 : card->overhead,
                                     .blocks = card->blocks.count,
                                     .physical = sums.bytes,
                                     .handles = sums.count,
                                     .orphans = sums.orphans,
                                     .orphan_bytes = sums.orphan_bytes};
    blyi_card_unlock(card);
}

/* As the driver's modules are called; others are shown by number. */
static void name_module(unsigned module, char name[32])
{
    static const char *const names[BLYI_MODULE_COUNT] = {
        [3] = "HCCL", [5] = "HIAIENGINE", [6] = "DVPP",   [BLYI_MODULE_RUNTIME] = "RUNTIME",
        [8] = "CCE",  [10] = "DRV",       [22] = "DEVMM", [BLYI_MODULE_APPLICATION] = "APP",
        [34] = "TS",  [36] = "AICPU",     [38] = "TDT",   [39] = "FE",
        [45] = "GE",  [48] = "ASCENDCL",  [57] = "TBE",   [63] = "OP"};
    if (names[module])
        snprintf(name, 32, "%s", names[module]);
    else
        snprintf(name, 32, "MODULE_%u", module);
}

static int by_falling_live(const void *a, const void *b)
{
    const struct blyi_mem_usage *x = a, *y = b;
    if (x->live != y->live)
        return x->live < y->live ? 1 : -1;
    return strcmp(x->name, y->name);
}

size_t blyi_mem_usage(struct blyi_card *card, struct blyi_mem_usage *rows, size_t max)
{
    if (blyi_runtime_is_forked())
        return 0;
    struct blyi_mem_usage all[BLYI_MODULE_COUNT];
    size_t n = 0;
    blyi_card_lock(card);
    for (unsigned i = 0; i < BLYI_MODULE_COUNT; i++) {
        if (card->modules[i].peak == 0)
            continue;
        name_module(i, all[n].name);
        all[n].live = card->modules[i].live;
        all[n].peak = card->modules[i].peak;
        n++;
    }
    blyi_card_unlock(card);
    qsort(all, n, sizeof all[0], by_falling_live);
    memcpy(rows, all, (n < max ? n : max) * sizeof all[0]);
    return n;
}

/* What is away has no frames; the sums stay. */
static bool audit_away_locked(struct blyi_card *card)
{
    uint64_t live = 0, modules = 0, kept, gone;
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node))
        live += blyi_block_of(node)->backed;
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        live += p->imported ? 0 : p->size;
    }
    for (unsigned i = 0; i < BLYI_MODULE_COUNT; i++)
        modules += card->modules[i].live;
    blyi_away_figures(card->away, &kept, &gone);
    return live == card->live && modules == card->live + card->overhead &&
           card->overhead_frames == 0 &&
           blyi_stock_audit(card->stock, (uint32_t)(kept / BLYI_FRAME_SIZE));
}

/* The frames that a block alone has, and its pages in a partial frame, are as the entries and
 * the partial frame say. */
static bool audit_block(const struct blyi_card *card, const struct blyi_block *block)
{
    uintptr_t at = blyi_block_start(block);
    if (block->backed != block->whole * BLYI_FRAME_SIZE + block->pages * BLYI_PAGE_SIZE)
        return false;
    for (uint32_t i = 0; i < block->whole; i++, at += BLYI_GRANULE) {
        uint64_t entry = blyi_window_entry(card->window, at);
        if (!(entry & BLYI_ENTRY_MAPPED) || (entry & BLYI_ENTRY_PARTIAL) ||
            blyi_stock_is_free(card->stock, blyi_entry_frame(entry)))
            return false;
    }
    if (block->pages == 0)
        return true;
    uint64_t entry = blyi_window_entry(card->window, at);
    const struct blyi_partial *partial = blyi_partial_of(card->partials, blyi_entry_frame(entry));
    if (!(entry & BLYI_ENTRY_PARTIAL) || !partial ||
        partial->address != blyi_align_down(at, BLYI_GRANULE))
        return false;
    uint32_t page = (uint32_t)((at - partial->address) / BLYI_PAGE_SIZE);
    return blyi_partial_bad(partial, page, page + block->pages, false) == page + block->pages;
}

static bool audit_locked(struct blyi_card *card)
{
    uint64_t live = 0, modules = 0, whole = 0, end = 0, shared = 0, deferred = 0;
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        const struct blyi_block *block = blyi_block_of(node);
        if (node->key < end || !audit_block(card, block))
            return false;
        end = node->key + block->backed;
        live += block->backed;
        whole += block->whole;
        shared += block->hold.generation != 0 ? block->whole : 0;
    }
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (!blyi_physical_audit(p))
            return false;
        if (p->imported)
            continue;
        live += p->size;
        whole += p->size / BLYI_FRAME_SIZE;
        shared += p->hold.generation != 0 ? p->size / BLYI_FRAME_SIZE : 0;
    }
    BLYI_LIST_FOR(node, &card->tails)
    deferred += BLYI_CONTAINER(node, struct blyi_tail, link)->pages * BLYI_PAGE_SIZE;
    for (unsigned i = 0; i < BLYI_MODULE_COUNT; i++)
        modules += card->modules[i].live;
    uint64_t frames = whole + blyi_partials_count(card->partials) + card->overhead_frames;
    return live == card->live && modules == card->live + card->overhead &&
           live + deferred + card->overhead + blyi_partials_unused(card->partials) ==
               frames * BLYI_FRAME_SIZE &&
           blyi_share_audit_locked(card) &&
           blyi_stock_audit(card->stock, (uint32_t)(frames - shared));
}

bool blyi_mem_audit(struct blyi_card *card)
{
    blyi_card_lock(card);
    bool sound = blyi_window_audit(card->window) && blyi_partials_audit(card->partials) &&
                 blyi_tree_audit(&card->blocks) &&
                 (blyi_away_is_gone(card) ? audit_away_locked(card) : audit_locked(card));
    blyi_card_unlock(card);
    return sound;
}
