/* SPDX-License-Identifier: Apache-2.0
 *
 * relief.c - asking for memory, near and far.
 */
#include "npu/relief.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/stock.h"
#include "npu/tally.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/reclaim.h"
#include "base/size.h"
#include <inttypes.h>
#include <string.h>

#define GIVE_NS ((uint64_t)2 * 1000000000)

void blyi_idle_add(int card, int64_t bytes)
{
    bly_assert(card >= 0 && card < (int)BLYI_LEDGER_CARDS);
    if (!blyi_ledger_attached())
        return;
    /* Relaxed: a figure. */
    __atomic_fetch_add(&blyi_ledger_mine()->cards[card].idle, (uint64_t)bytes, __ATOMIC_RELAXED);
}

void blyi_pools_cells(int card, uint64_t **held, uint64_t **idle, uint64_t **spare)
{
    struct blyi_slot_card *mine = &blyi_ledger_mine()->cards[card];
    *held = &mine->pool_held;
    *idle = &mine->pool_idle;
    *spare = &mine->idle;
}

static uint64_t idle_of(uint32_t slot, int card)
{
    const struct blyi_slot_card *there = &blyi_ledger_slot_at(slot)->cards[card];
    return __atomic_load_n(&there->idle, __ATOMIC_RELAXED);
}

/* The one that holds most idle bytes and was not asked yet; BLYI_SLOTS: none. */
static uint32_t next_to_ask(int card, bool capped, const uint64_t asked[BLYI_SLOTS / 64])
{
    uint32_t best = BLYI_SLOTS;
    uint64_t most = 0;
    if (!blyi_ledger_attached())
        return best;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (slot == blyi_ledger_slot() || !blyi_ledger_in_use(slot) ||
            ((asked[slot / 64] >> (slot % 64)) & 1) || (capped && !blyi_cap_shares_group(slot)))
            continue;
        uint64_t idle = idle_of(slot, card);
        if (idle > most) {
            most = idle;
            best = slot;
        }
    }
    return best;
}

static uint64_t ask_one(struct blyi_relief *relief, uint32_t slot, int card, uint64_t bytes)
{
    const struct blyi_slot *there = blyi_ledger_slot_at(slot);
    struct blyi_request request = {
        .what = BLYI_ASK_GIVE, .card = card, .bytes = bytes, .timeout_ns = GIVE_NS};
    struct blyi_answer answer = {0};
    uint32_t pid = there->pid;
    char name[BLYI_SLOT_NAME];
    blyi_slot_name(there, name);
    enum blyi_asked how = blyi_service_ask(slot, &request, &answer);
    uint32_t row = relief->n_asked++;
    if (row < BLYI_RELIEF_ROWS) {
        relief->rows[row].pid = pid;
        memcpy(relief->rows[row].name, name, sizeof name);
        relief->rows[row].asked = bytes;
        relief->rows[row].got = answer.bytes;
        relief->rows[row].how = how;
    }
    return answer.bytes;
}

static void ask_others(struct blyi_relief *relief, int card, uint64_t bytes, bool capped)
{
    uint64_t asked[BLYI_SLOTS / 64] = {0}, got = 0;
    uint32_t slot;
    while (got < bytes && (slot = next_to_ask(card, capped, asked)) < BLYI_SLOTS) {
        asked[slot / 64] |= (uint64_t)1 << (slot % 64);
        uint64_t more = ask_one(relief, slot, card, bytes - got);
        got = more > bytes - got ? bytes : got + more;
    }
}

static bool is_enough(struct blyi_card *card, uint64_t bytes)
{
    return blyi_stock_free(card->stock) * BLYI_FRAME_SIZE >= bytes;
}

static uint64_t missing(struct blyi_card *card, uint64_t bytes, bool capped)
{
    struct blyi_cap_view view;
    uint64_t there = blyi_stock_free(card->stock) * BLYI_FRAME_SIZE;
    if (capped) {
        blyi_cap_view(bytes, &view);
        there = view.used < view.cap ? view.cap - view.used : 0;
    }
    return bytes > there ? bytes - there : bytes;
}

void blyi_relief_seek(struct blyi_relief *relief, struct blyi_card *card, uint64_t bytes,
                      bool capped)
{
    const uint64_t none[BLYI_SLOTS / 64] = {0};
    if (!relief->local) {
        (void)blyi_ledger_reap();
        (void)blyi_reclaim_run(card->id, bytes); /* in vain, the next try says so */
        relief->local = true;
        if (capped || !is_enough(card, bytes))
            relief->over = next_to_ask(card->id, capped, none) == BLYI_SLOTS;
        return;
    }
    if (!relief->all && !capped && is_enough(card, bytes)) { /* not in one piece */
        (void)blyi_reclaim_run(card->id, UINT64_MAX);
        relief->all = true;
        relief->over = next_to_ask(card->id, capped, none) == BLYI_SLOTS;
        return;
    }
    ask_others(relief, card->id, missing(card, bytes, capped), capped);
    relief->over = true;
}

void blyi_relief_append(const struct blyi_relief *relief)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    for (uint32_t i = 0; i < relief->n_asked && i < BLYI_RELIEF_ROWS; i++) {
        blyi_fail_append("; asked pid %" PRIu32 " (%s) for %s: ", relief->rows[i].pid,
                         relief->rows[i].name, blyi_size_text(relief->rows[i].asked, a));
        if (relief->rows[i].how == BLYI_ASKED_ANSWERED)
            blyi_fail_append("it gave back %s", blyi_size_text(relief->rows[i].got, b));
        else
            blyi_fail_append("it %s", blyi_asked_text(relief->rows[i].how));
    }
    if (relief->n_asked > BLYI_RELIEF_ROWS)
        blyi_fail_append("; asked %" PRIu32 " more", relief->n_asked - BLYI_RELIEF_ROWS);
}
