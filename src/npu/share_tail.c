/* SPDX-License-Identifier: Apache-2.0
 *
 * share_tail.c - an exported block that its maker frees, and its pages in a frame that has pages
 * of other blocks: such pages stay out of use while somebody holds them, and a frame that has no
 * others goes over to those who do.
 */
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/mem_block.h"
#include "npu/partial.h"
#include "npu/share_inside.h"
#include "npu/stock.h"
#include "base/host.h"
#include "base/site.h"
#include <stdio.h>

/* The pages of a tail are unused from now on; the partial frame may be empty then. */
static void end_tail(struct blyi_card *card, struct blyi_tail *tail)
{
    blyi_list_remove(&tail->link);
    tail->partial->n_deferred -= tail->pages;
    card->deferred -= tail->pages * BLYI_PAGE_SIZE;
    blyi_partial_give(card->partials, tail->partial, tail->page, tail->pages);
    blyi_host_free(tail);
}

/* The frame is named by a share that has pages in it, unless none lives any more. */
static bool hand_over(struct blyi_card *card, const struct blyi_partial *partial)
{
    bool passed = false;
    blyi_stock_enter(card->stock);
    BLYI_LIST_FOR(node, &card->tails)
    {
        const struct blyi_tail *tail = BLYI_CONTAINER(node, struct blyi_tail, link);
        if (!passed && tail->partial == partial && blyi_share_get_locked(tail->hold))
            passed = blyi_share_turn(card->stock, partial->frame,
                                     BLYI_FRAME_SHARED | tail->hold.index, false);
    }
    blyi_stock_leave(card->stock);
    return passed;
}

bool blyi_tails_after_give_locked(struct blyi_card *card, struct blyi_partial *partial)
{
    uintptr_t address = partial->address;
    if (partial->n_used > partial->n_deferred)
        return false;
    bool passed = partial->n_deferred > 0 && hand_over(card, partial);
    BLYI_LIST_FOR_SAFE(node, &card->tails)
    {
        struct blyi_tail *tail = BLYI_CONTAINER(node, struct blyi_tail, link);
        if (tail->partial == partial)
            end_tail(card, tail);
    }
    blyi_partial_remove(card->partials, partial);
    if (!passed)
        blyi_span_give(card, address, 1);
    else if (blyi_window_unmap(card->window, address, 1))
        blyi_window_give(card->window, address, 1);
    return true;
}

void blyi_tails_settle_locked(struct blyi_card *card)
{
    struct blyi_list *node = card->tails.next;
    while (node != &card->tails) {
        struct blyi_tail *tail = BLYI_CONTAINER(node, struct blyi_tail, link);
        node = node->next;
        if (blyi_share_is_held(tail->hold))
            continue;
        struct blyi_partial *partial = tail->partial;
        end_tail(card, tail);
        if (blyi_tails_after_give_locked(card, partial))
            node = card->tails.next; /* others may have gone with it */
    }
}

static void free_tail_locked(struct blyi_card *card, struct blyi_block *block, bool held)
{
    uintptr_t at = blyi_block_start(block) + block->whole * BLYI_GRANULE;
    struct blyi_partial *partial =
        blyi_partial_of(card->partials, blyi_entry_frame(blyi_window_entry(card->window, at)));
    struct blyi_tail *tail = block->tail;
    block->tail = NULL;
    tail->partial = partial;
    tail->page = (uint32_t)((at - partial->address) / BLYI_PAGE_SIZE);
    tail->pages = block->pages;
    tail->hold = block->hold;
    partial->n_deferred += tail->pages;
    card->deferred += tail->pages * BLYI_PAGE_SIZE;
    blyi_list_push_back(&card->tails, &tail->link);
    if (!held)
        end_tail(card, tail);
    (void)blyi_tails_after_give_locked(card, partial);
}

void blyi_share_free_block_locked(struct blyi_card *card, struct blyi_block *block, uint32_t site)
{
    char where[BLYI_SITE_TEXT];
    if (site == 0)
        snprintf(where, sizeof where, "a device reset");
    else
        blyi_site_text(site, where);
    blyi_ledger_lock();
    blyi_key_end_all_locked(block->hold, BLYI_KEY_FREED, where);
    blyi_ledger_unlock();
    if (block->whole > 0 && blyi_window_unmap(card->window, blyi_block_start(block), block->whole))
        blyi_window_give(card->window, blyi_block_start(block), block->whole);
    card->shared -= block->whole * BLYI_FRAME_SIZE;
    bool held = blyi_share_leave(card, block->hold);
    if (block->pages > 0)
        free_tail_locked(card, block, held);
    blyi_host_free(block->tail);
    blyi_backing_settle(card->backing);
}
