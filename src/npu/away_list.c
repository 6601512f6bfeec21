/* SPDX-License-Identifier: Apache-2.0
 *
 * away_list.c - what a card's memory consists of, in pieces that must be asked for together.
 */
#include "npu/away_inside.h"
#include "npu/bits.h"
#include "npu/card.h"
#include "npu/mem_block.h"
#include "npu/share.h"
#include "npu/vmm_inside.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>

bool blyi_away_add_run(struct blyi_away_unit *unit, struct blyi_run run)
{
    if (unit->n_runs > 0) {
        struct blyi_run *last = &unit->runs[unit->n_runs - 1];
        if (last->first + last->count == run.first) {
            last->count += run.count;
            return true;
        }
    }
    if (unit->n_runs == unit->max_runs) {
        uint32_t more = unit->max_runs > 0 ? 2 * unit->max_runs : 1;
        struct blyi_run *runs = blyi_host_realloc(unit->runs, more * sizeof *runs);
        if (!runs)
            return false;
        unit->runs = runs;
        unit->max_runs = more;
    }
    unit->runs[unit->n_runs++] = run;
    return true;
}

static bly_status no_host_memory(const struct blyi_card *card)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to list its memory", card->id);
}

static struct blyi_away_unit *add_unit(struct blyi_away *away, uint32_t n, enum blyi_short kind)
{
    if (away->n_units == away->max_units) {
        uint32_t more = away->max_units > 0 ? 2 * away->max_units : 16;
        struct blyi_away_unit *units = blyi_host_realloc(away->units, more * sizeof *units);
        if (!units)
            return NULL;
        away->units = units;
        away->max_units = more;
    }
    struct blyi_away_unit *unit = &away->units[away->n_units++];
    *unit = (struct blyi_away_unit){.n = n, .at = away->n_frames, .kind = kind, .here = true};
    away->n_frames += n;
    return unit;
}

/* Granules of the card's window. */
static bool add_range(struct blyi_away *away, uintptr_t address, uint32_t n, enum blyi_short kind)
{
    struct blyi_card *card = away->card;
    struct blyi_away_unit *unit = add_unit(away, n, kind);
    if (!unit)
        return false;
    unit->address = address;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t entry = blyi_window_entry(card->window, address + i * BLYI_GRANULE);
        if (!blyi_away_add_run(unit, (struct blyi_run){blyi_entry_frame(entry), 1}))
            return false;
        if (entry & BLYI_ENTRY_PARTIAL)
            unit->partial = blyi_partial_of(card->partials, blyi_entry_frame(entry));
    }
    return true;
}

static enum blyi_short kind_of(const struct blyi_block *block)
{
    bool contiguous = block->flags & BLYI_MEM_CONTIGUOUS;
    if (block->page_kind == BLYI_PAGE_GIANT)
        return contiguous ? BLYI_SHORT_GIANT_RUN : BLYI_SHORT_GIANT;
    if (block->flags & BLYI_MEM_LOW)
        return BLYI_SHORT_LOW;
    if (contiguous)
        return BLYI_SHORT_RUN;
    return block->page_kind == BLYI_PAGE_HUGE ? BLYI_SHORT_HUGE : BLYI_SHORT_NORMAL;
}

/* The last unit, when it reaches over an address of a block behind: blocks come by address. */
static struct blyi_away_unit *covering(const struct blyi_away *away, uintptr_t address)
{
    struct blyi_away_unit *last = away->n_units > 0 ? &away->units[away->n_units - 1] : NULL;
    return last && address < last->address + last->n * BLYI_GRANULE ? last : NULL;
}

/* Whole frames, and the partial one behind them: in one piece with them where it must be. */
static bool add_block(struct blyi_away *away, const struct blyi_block *block)
{
    enum blyi_short kind = kind_of(block);
    bool in_one = kind == BLYI_SHORT_RUN && block->whole > 0;
    uint32_t n = block->whole + (in_one && block->pages > 0);
    uintptr_t start = blyi_block_start(block);
    if (n > 0 && !add_range(away, start, n, kind))
        return false;
    if (block->pages == 0 || in_one)
        return true;
    uintptr_t tail = blyi_align_down(start + block->whole * BLYI_GRANULE, BLYI_GRANULE);
    struct blyi_away_unit *known = covering(away, tail);
    if (!known)
        return add_range(away, tail, 1,
                         kind == BLYI_SHORT_LOW ? BLYI_SHORT_LOW : BLYI_SHORT_NORMAL);
    if (kind == BLYI_SHORT_LOW && known->kind == BLYI_SHORT_NORMAL)
        known->kind = BLYI_SHORT_LOW;
    return true;
}

static bool add_physical(struct blyi_away *away, struct blyi_physical *p)
{
    bool giant = p->page_kind == BLYI_PAGE_GIANT;
    enum blyi_short kind = p->contiguous ? (giant ? BLYI_SHORT_GIANT_RUN : BLYI_SHORT_RUN)
                                         : (giant ? BLYI_SHORT_GIANT : BLYI_SHORT_HUGE);
    struct blyi_away_unit *unit = add_unit(away, (uint32_t)(p->size / BLYI_FRAME_SIZE), kind);
    if (!unit)
        return false;
    unit->physical = p;
    for (uint32_t i = 0; i < p->n_runs; i++)
        if (!blyi_away_add_run(unit, p->runs[i]))
            return false;
    return true;
}

static bly_status refuse_shared(const struct blyi_card *card, uint64_t bytes, uint32_t site,
                                const char *how)
{
    char size[BLYI_SIZE_TEXT], where[BLYI_SITE_TEXT];
    return blyi_fail(BLY_E_STATE,
                     "card %d: %s %s at %s: what processes share is in no snapshot; close it first",
                     card->id, blyi_size_text(bytes, size), how, blyi_site_text(site, where));
}

static bly_status check_shares_locked(struct blyi_card *card)
{
    char size[BLYI_SIZE_TEXT];
    blyi_tails_settle_locked(card);
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        const struct blyi_block *block = blyi_block_of(node);
        if (block->hold.generation != 0)
            return refuse_shared(card, block->backed, block->site,
                                 "are exported to other processes, made");
    }
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (p->hold.generation != 0)
            return refuse_shared(card, p->size, p->site,
                                 p->imported ? "are imported from another process"
                                             : "are exported to other processes, made");
    }
    if (card->imported > 0)
        return blyi_fail(BLY_E_STATE,
                         "card %d: %s are imported from other processes: what processes share is "
                         "in no snapshot; close it first",
                         card->id, blyi_size_text(card->imported, size));
    if (!blyi_list_empty(&card->tails))
        return blyi_fail(BLY_E_STATE,
                         "card %d: another process has pages of freed memory of this one open: "
                         "what processes share is in no snapshot",
                         card->id);
    return BLY_OK;
}

bly_status blyi_away_list_locked(struct blyi_card *card, struct blyi_away **out)
{
    bly_status status = check_shares_locked(card);
    if (status != BLY_OK)
        return status;
    struct blyi_away *away = blyi_host_calloc(1, sizeof *away);
    if (!away)
        return no_host_memory(card);
    away->card = card;
    bool listed = true;
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node && listed;
         node = blyi_tree_next(node))
        listed = add_block(away, blyi_block_of(node));
    BLYI_LIST_FOR(node, &card->physicals)
    listed = listed && add_physical(away, BLYI_CONTAINER(node, struct blyi_physical, link));
    if (listed && away->n_frames > 0) {
        away->saved = blyi_host_calloc(BLYI_BITS_WORDS(away->n_frames), sizeof *away->saved);
        listed = away->saved != NULL;
    }
    if (!listed) {
        blyi_away_free(away);
        return no_host_memory(card);
    }
    *out = away;
    return BLY_OK;
}
