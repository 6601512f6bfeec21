/* SPDX-License-Identifier: Apache-2.0
 *
 * away.c - frames given back while their blocks, handles and mappings stay.
 */
#include "npu/away_inside.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/partial.h"
#include "npu/snapshot.h"
#include "npu/vmm_inside.h"
#include "base/assert.h"

bly_status blyi_card_lock_present(struct blyi_card *card)
{
    for (;;) {
        blyi_card_lock(card);
        if (likely(!card->away))
            return BLY_OK;
        blyi_card_unlock(card); /* BACKED_UP by now, so this waits */
        bly_status status = blyi_snapshot_pass();
        if (status != BLY_OK)
            return status;
    }
}

bly_status blyi_vmm_lock_present(void)
{
    for (;;) {
        blyi_lock_take(&blyi_vmm.lock);
        if (likely(!blyi_vmm.away))
            return BLY_OK;
        blyi_lock_drop(&blyi_vmm.lock);
        bly_status status = blyi_snapshot_pass();
        if (status != BLY_OK)
            return status;
    }
}

void blyi_card_lock_teardown(struct blyi_card *card)
{
    bly_status status = blyi_card_lock_present(card);
    bly_check_msg(status == BLY_OK, "card %d is torn down while its memory is away", card->id);
}

void blyi_vmm_lock_teardown(void)
{
    bly_status status = blyi_vmm_lock_present();
    bly_check_msg(status == BLY_OK, "mappings are torn down while their memory is away");
}

bool blyi_away_is_gone(const struct blyi_card *card)
{
    return card->away && card->away->gone;
}

void blyi_away_figures(const struct blyi_away *away, uint64_t *kept, uint64_t *gone)
{
    *kept = away->n_kept * BLYI_FRAME_SIZE;
    *gone = (away->n_frames - away->n_kept) * BLYI_FRAME_SIZE;
}

void blyi_away_sums(uint64_t *frames, uint64_t *content)
{
    *frames = *content = 0;
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *card = blyi_card_get(i);
        uint64_t kept, gone;
        if (!card)
            continue;
        blyi_card_lock(card);
        if (blyi_away_is_gone(card)) {
            blyi_away_figures(card->away, &kept, &gone);
            *frames += gone;
            *content += card->away->content_bytes;
        }
        blyi_card_unlock(card);
    }
}

/* ── Save ─────────────────────────────────────────────────────────────────────────────────── */

static bly_status list_all(void)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_vmm.lock);
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card)
            continue;
        blyi_card_lock(card);
        status = blyi_away_list_locked(card, &card->away);
        blyi_card_unlock(card);
    }
    blyi_vmm.away = true;
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

bly_status blyi_away_save(void)
{
    bly_status status = list_all();
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (card && card->away)
            status = blyi_away_copy_out(card->away);
    }
    if (status != BLY_OK)
        blyi_away_forget();
    return status;
}

void blyi_away_forget(void)
{
    blyi_lock_take(&blyi_vmm.lock);
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card || !card->away)
            continue;
        blyi_card_lock(card);
        struct blyi_away *away = card->away;
        card->away = NULL;
        blyi_card_unlock(card);
        blyi_away_free(away);
    }
    blyi_vmm.away = false;
    blyi_lock_drop(&blyi_vmm.lock);
}

/* ── Leave. VMM and the card's lock are held ──────────────────────────────────────────────── */

/* Takes its addresses out of reach. False: the kernel refuses, and some still lead to the frames.
 */
static bool park(struct blyi_away *away, const struct blyi_away_unit *unit)
{
    bool parked = true;
    if (!unit->physical)
        return blyi_window_park(away->card->window, unit->address, unit->n);
    BLYI_LIST_FOR(node, &unit->physical->mappings)
    {
        const struct blyi_mapping *m = BLYI_CONTAINER(node, struct blyi_mapping, link);
        if (m->mapped)
            parked = blyi_window_park(blyi_vmm.window, m->node.key, unit->n) && parked;
    }
    return parked;
}

void blyi_away_give_unit(struct blyi_away *away, struct blyi_away_unit *unit)
{
    unit->fresh = false;
    if (!park(away, unit)) {
        away->n_kept += unit->n;
        return;
    }
    if (unit->partial && !unit->lifted) {
        blyi_partial_lift(away->card->partials, unit->partial);
        unit->lifted = true;
    }
    for (uint32_t i = 0; i < unit->n_runs; i++)
        blyi_run_give(away->card, unit->runs[i]);
    unit->n_runs = 0;
    unit->here = false;
}

static void leave_locked(struct blyi_away *away)
{
    struct blyi_card *card = away->card;
    for (uint32_t i = 0; i < away->n_units; i++)
        blyi_away_give_unit(away, &away->units[i]);
    away->has_overhead = card->overhead > 0;
    if (away->has_overhead)
        blyi_card_give_overhead_locked(card);
    uint64_t all = card->live + card->overhead, kept = away->n_kept * BLYI_FRAME_SIZE;
    away->booked = all > kept ? all - kept : 0;
    blyi_cap_give(away->booked);
    away->gone = true;
    blyi_backing_settle(card->backing);
}

void blyi_away_leave(void)
{
    blyi_lock_take(&blyi_vmm.lock);
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card || !card->away)
            continue;
        blyi_card_lock(card);
        leave_locked(card->away);
        blyi_card_unlock(card);
    }
    blyi_lock_drop(&blyi_vmm.lock);
}
