/* SPDX-License-Identifier: Apache-2.0
 *
 * away_return.c - frames for what is away, their content, and their places.
 *
 * Three steps, each for all cards: take frames, fill them, put them behind their addresses.
 * Whichever fails, the frames of all go back, and the content is still in host memory.
 */
#include "npu/away_inside.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/partial.h"
#include "npu/relief.h"
#include "npu/tally.h"
#include "npu/vmm_inside.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/size.h"

struct want {
    bool is_short, capped;             /* no sentence yet */
    const struct blyi_away_unit *unit; /* that found no frames; NULL: the overhead */
};

static uint64_t missing(const struct blyi_away *away)
{
    return (away->n_frames - away->n_kept) * BLYI_FRAME_SIZE +
           (away->has_overhead ? away->card->overhead : 0);
}

static bly_status take_unit(struct blyi_away *away, struct blyi_away_unit *unit, struct want *want)
{
    unit->fresh = unit->here = true;
    for (uint32_t taken = 0; taken < unit->n;) {
        struct blyi_run run;
        if (!blyi_run_take(away->card, unit->kind, unit->n - taken, &run)) {
            want->is_short = true;
            want->unit = unit;
            return BLY_E_NO_MEMORY;
        }
        if (!blyi_away_add_run(unit, run)) {
            blyi_run_give(away->card, run);
            return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to list frames",
                             away->card->id);
        }
        taken += run.count;
    }
    return BLY_OK;
}

static bool is_choosy(enum blyi_short kind)
{
    return kind != BLYI_SHORT_NORMAL && kind != BLYI_SHORT_HUGE;
}

/* Everything that the card had, or nothing; those first that cannot have any frame. */
static bly_status try_locked(struct blyi_away *away, struct want *want)
{
    struct blyi_card *card = away->card;
    *want = (struct want){0};
    if (!blyi_cap_take(away->booked)) {
        want->is_short = want->capped = true;
        return BLY_E_CAP;
    }
    bly_status status = BLY_OK;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < away->n_units && status == BLY_OK; i++) {
            struct blyi_away_unit *unit = &away->units[i];
            if (!unit->here && is_choosy(unit->kind) == (pass == 0))
                status = take_unit(away, unit, want);
        }
    if (status == BLY_OK && away->has_overhead && !blyi_card_take_overhead_locked(card)) {
        want->is_short = true;
        status = BLY_E_NO_MEMORY;
    }
    return status;
}

/* Undoes take, and place as far as it came. */
static void give_again_locked(struct blyi_away *away, bool had_overhead)
{
    for (uint32_t i = 0; i < away->n_units; i++)
        if (away->units[i].fresh)
            blyi_away_give_unit(away, &away->units[i]);
    if (had_overhead)
        blyi_card_give_overhead_locked(away->card);
    blyi_backing_settle(away->card->backing);
}

static bly_status word_locked(struct blyi_away *away, const struct want *want,
                              const struct blyi_relief *relief)
{
    static const char *const what[] = {[BLYI_SHORT_NORMAL] = "any frames",
                                       [BLYI_SHORT_HUGE] = "any frames",
                                       [BLYI_SHORT_GIANT] = "1 GiB pages",
                                       [BLYI_SHORT_RUN] = "contiguous frames",
                                       [BLYI_SHORT_GIANT_RUN] = "contiguous 1 GiB pages",
                                       [BLYI_SHORT_LOW] = "the card's first 4 GiB"};
    struct blyi_card *card = away->card;
    struct blyi_cap_view view;
    struct blyi_stock_figures frames;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    bly_status status;
    if (want->capped) {
        blyi_cap_view(away->booked, &view);
        status = blyi_fail(BLY_E_CAP,
                           "card %d: %s of a snapshot do not come back: BELAY_CAP is %s, used %s",
                           card->id, blyi_size_text(away->booked, a), blyi_size_text(view.cap, b),
                           blyi_size_text(view.used, c));
    } else {
        blyi_stock_figures(card->stock, &frames);
        status = blyi_fail(BLY_E_NO_MEMORY,
                           "card %d: %s of a snapshot do not come back: free %s, longest run %s",
                           card->id, blyi_size_text(missing(away), a),
                           blyi_size_text(frames.free * BLYI_FRAME_SIZE, b),
                           blyi_size_text(frames.longest * BLYI_FRAME_SIZE, c));
        if (want->unit && is_choosy(want->unit->kind))
            blyi_fail_append(", of which %s want %s",
                             blyi_size_text(want->unit->n * BLYI_FRAME_SIZE, d),
                             what[want->unit->kind]);
        blyi_tally_append_memory(card->id);
    }
    blyi_relief_append(relief);
    blyi_fail_append("; nothing is lost, the content is in host memory");
    return status;
}

static bly_status take(struct blyi_away *away)
{
    struct blyi_card *card = away->card;
    struct blyi_relief relief = {0};
    struct want want;
    for (;;) {
        blyi_lock_take(&blyi_vmm.lock);
        blyi_card_lock(card);
        bly_status status = try_locked(away, &want);
        if (status != BLY_OK) {
            give_again_locked(away, false);
            if (!want.capped)
                blyi_cap_give(away->booked);
        }
        if (want.is_short && relief.over)
            status = word_locked(away, &want, &relief);
        blyi_card_unlock(card);
        blyi_lock_drop(&blyi_vmm.lock);
        if (!want.is_short || relief.over)
            return status;
        blyi_relief_seek(&relief, card, missing(away), want.capped);
    }
}

static void mark_committed(const struct blyi_away *away, struct blyi_window *window,
                           uintptr_t address, struct blyi_run run)
{
    bool committed;
    for (uint32_t at = 0, same; at < run.count; at += same) {
        same = blyi_backing_span(away->card->backing, run.first + at, run.count - at, &committed);
        if (committed)
            blyi_window_set_flags(window, address + at * BLYI_GRANULE, same, BLYI_ENTRY_COMMITTED,
                                  0);
    }
}

static bly_status place_at(const struct blyi_away *away, const struct blyi_away_unit *unit,
                           struct blyi_window *window, uintptr_t address)
{
    int fd = blyi_backing_fd(away->card->backing);
    for (uint32_t i = 0; i < unit->n_runs; i++) {
        struct blyi_run run = unit->runs[i];
        bly_status status = blyi_window_remap(window, address, fd, run.first, run.count);
        if (status != BLY_OK)
            return status;
        mark_committed(away, window, address, run);
        address += run.count * BLYI_GRANULE;
    }
    return BLY_OK;
}

/* Kept units too: some of their addresses may be out of reach. */
static bly_status place_locked(struct blyi_away *away)
{
    bly_status status = BLY_OK;
    for (uint32_t i = 0; i < away->n_units && status == BLY_OK; i++) {
        const struct blyi_away_unit *unit = &away->units[i];
        if (!unit->physical) {
            status = place_at(away, unit, away->card->window, unit->address);
            continue;
        }
        BLYI_LIST_FOR(node, &unit->physical->mappings)
        {
            const struct blyi_mapping *m = BLYI_CONTAINER(node, struct blyi_mapping, link);
            if (m->mapped && status == BLY_OK)
                status = place_at(away, unit, blyi_vmm.window, m->node.key);
        }
    }
    return status;
}

/* The last step: what refers to frames by number learns the new ones. */
static void settle_locked(struct blyi_away *away)
{
    for (uint32_t i = 0; i < away->n_units; i++) {
        struct blyi_away_unit *unit = &away->units[i];
        struct blyi_physical *p = unit->physical;
        if (unit->lifted)
            blyi_partial_land(away->card->partials, unit->partial,
                              unit->runs[unit->n_runs - 1].first +
                                  unit->runs[unit->n_runs - 1].count - 1);
        if (!p)
            continue;
        blyi_host_free(p->runs);
        p->runs = unit->runs;
        p->n_runs = unit->n_runs;
        p->max_runs = unit->max_runs;
        unit->runs = NULL;
        unit->n_runs = 0;
    }
    away->gone = false;
}

/* Cards [0, n) go back to where they were. */
static void undo(int n)
{
    blyi_lock_take(&blyi_vmm.lock);
    for (int i = 0; i < n; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card || !card->away)
            continue;
        blyi_card_lock(card);
        give_again_locked(card->away, card->away->has_overhead);
        blyi_cap_give(card->away->booked);
        blyi_card_unlock(card);
    }
    blyi_lock_drop(&blyi_vmm.lock);
}

static bly_status take_all(void)
{
    for (int i = 0; i < BLYI_CARD_MAX; i++) {
        struct blyi_card *card = blyi_card_get(i);
        bly_status status = card && card->away ? take(card->away) : BLY_OK;
        if (status != BLY_OK) {
            undo(i);
            return status;
        }
    }
    return BLY_OK;
}

bly_status blyi_away_return(void)
{
    bly_status status = take_all();
    if (status != BLY_OK)
        return status;
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (card && card->away)
            status = blyi_away_copy_in(card->away);
    }
    blyi_lock_take(&blyi_vmm.lock);
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card || !card->away)
            continue;
        blyi_card_lock(card);
        status = place_locked(card->away);
        blyi_card_unlock(card);
    }
    for (int i = 0; i < BLYI_CARD_MAX && status == BLY_OK; i++) {
        struct blyi_card *card = blyi_card_get(i);
        if (!card || !card->away)
            continue;
        blyi_card_lock(card);
        settle_locked(card->away);
        blyi_card_unlock(card);
    }
    blyi_lock_drop(&blyi_vmm.lock);
    if (status != BLY_OK)
        undo(BLYI_CARD_MAX);
    else
        blyi_away_forget();
    return status;
}
