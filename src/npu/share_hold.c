/* SPDX-License-Identifier: Apache-2.0
 *
 * share_hold.c - this process's holds on shares: made, opened, let go of.
 */
#include "npu/cap_group.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/partial.h"
#include "npu/share_inside.h"
#include "npu/shortage.h"
#include "npu/stock.h"
#include "npu/wait.h"
#include "base/fail.h"
#include "base/probe.h"

/* Holds of this process, by record. Guarded by the ledger's lock. */
static uint32_t opened[BLYI_SHARES];

bly_status blyi_share_make(struct blyi_card *card, const struct blyi_share *with,
                           const struct blyi_run *runs, uint32_t n_runs, struct blyi_hold *hold)
{
    blyi_stock_enter(card->stock);
    bly_status status = blyi_share_form_locked(card, with, runs, n_runs, hold);
    if (status == BLY_OK)
        opened[hold->index] = 1;
    blyi_stock_leave(card->stock);
    return status;
}

bly_status blyi_share_card_of(struct blyi_key_form form, int *card)
{
    bly_status status = blyi_key_check(form);
    if (status != BLY_OK)
        return status;
    blyi_ledger_lock();
    const struct blyi_key *key = blyi_key_find_locked(form);
    if (key)
        *card = (int)(key->card % BLYI_LEDGER_CARDS);
    blyi_ledger_unlock();
    return key ? BLY_OK : BLY_E_INVALID;
}

/* Nothing about it can be believed that does not fit together. */
static bool is_sound(const struct blyi_opening *o, const struct blyi_card *card)
{
    const struct blyi_share *share = &o->share;
    uint64_t n_frames = card->total / BLYI_FRAME_SIZE;
    return share->card == (uint32_t)card->id && share->whole <= n_frames &&
           share->tail_pages < BLYI_FRAME_PAGES && share->tail_page < BLYI_FRAME_PAGES &&
           share->tail_page + share->tail_pages <= BLYI_FRAME_PAGES &&
           (share->tail_pages == 0 || share->tail_frame < n_frames) &&
           (share->whole == 0 || share->tail_page == 0) &&
           share->page_kind < BLYI_PAGE_KIND_COUNT &&
           share->bytes == share->whole * BLYI_FRAME_SIZE + share->tail_pages * BLYI_PAGE_SIZE &&
           o->length > 0 && o->length <= share->bytes && o->offset <= share->bytes - o->length &&
           o->offset % BLYI_PAGE_SIZE == 0 && o->length % BLYI_PAGE_SIZE == 0;
}

static bly_status join(struct blyi_card *card, struct blyi_key_form form, int32_t pid,
                       struct blyi_opening *out)
{
    const struct blyi_key *key = blyi_key_find_locked(form);
    if (!key)
        return BLY_E_INVALID;
    bly_status status = blyi_key_admits(key, pid);
    if (status != BLY_OK)
        return status;
    struct blyi_share *share = blyi_share_at(key->share);
    *out = (struct blyi_opening){.share = *share,
                                 .hold = {key->share, key->generation},
                                 .offset = key->offset,
                                 .length = key->length};
    if (!is_sound(out, card))
        return blyi_fail(BLY_E_STATE,
                         "card %d: the shared state is damaged: what exporter pid %u wrote about "
                         "its memory does not fit together",
                         card->id, key->maker_pid);
    if (opened[key->share] == 0) {
        blyi_share_set_holder(share, blyi_ledger_slot(), true);
        if (!blyi_cap_fits_locked(
                0)) { /* counts the share, unless another member of the group has */
            blyi_share_set_holder(share, blyi_ledger_slot(), false);
            return BLY_E_CAP;
        }
        card->imported += share->bytes;
    }
    opened[key->share]++;
    return BLY_OK;
}

bly_status blyi_share_open(struct blyi_card *card, struct blyi_key_form form,
                           struct blyi_opening *out)
{
    int32_t pid = blyi_key_pid(); /* reads a file: not under the lock */
    blyi_cap_join();
    blyi_stock_enter(card->stock);
    bly_status status = join(card, form, pid, out);
    blyi_stock_leave(card->stock);
    if (status == BLY_E_CAP)
        return blyi_shortage_cap_locked(card, out->share.asked, out->share.bytes,
                                        "memory of another process");
    return status;
}

bool blyi_share_leave(struct blyi_card *card, struct blyi_hold hold)
{
    bool others = false;
    blyi_stock_enter(card->stock);
    struct blyi_share *share = blyi_share_get_locked(hold);
    if (share && opened[hold.index] > 1) {
        opened[hold.index]--;
        others = true;
    } else if (share) {
        bool made =
            share->maker == blyi_ledger_slot() && share->maker_cookie == blyi_ledger_mine()->cookie;
        if (made)
            share->freed_ns = blyi_wait_real_ns();
        else
            card->imported -= share->bytes < card->imported ? share->bytes : card->imported;
        opened[hold.index] = 0;
        blyi_share_set_holder(share, blyi_ledger_slot(), false);
        others = blyi_share_has_holders(share);
        if (!others)
            blyi_share_end_locked(card, hold.index, true);
    }
    blyi_stock_leave(card->stock);
    return others;
}

bool blyi_share_dissolve(struct blyi_card *card, struct blyi_hold hold)
{
    bool alone = false;
    blyi_stock_enter(card->stock);
    struct blyi_share *share = blyi_share_get_locked(hold);
    if (share && share->n_keys == 0) {
        uint32_t mine = blyi_ledger_slot();
        uint64_t bit = (uint64_t)1 << (mine % 64), was = share->holders[mine / 64];
        share->holders[mine / 64] = was & ~bit;
        alone = !blyi_share_has_holders(share);
        share->holders[mine / 64] = was;
        if (alone) {
            blyi_share_end_locked(card, hold.index, false);
            opened[hold.index] = 0;
        }
    }
    blyi_stock_leave(card->stock);
    return alone;
}
