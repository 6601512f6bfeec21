/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.c - this process's figures in its slot. Others read them at any time, so each is stored
 * atomically (relaxed: figures order nothing); what they add up to is exact when nobody moves.
 */
#include "npu/tally.h"
#include "npu/away.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/partial.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/site.h"
#include <string.h>

#define PLACES 512u /* of the table that finds a row; a power of two */

struct place {
    uint32_t site;
    int16_t card;
    uint8_t kind; /* NONE: empty */
    uint8_t row;  /* BLYI_SLOT_ROWS: among the others */
};

static struct place places[PLACES];
static uint32_t n_places;
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_TALLY);

static void put(uint64_t *field, uint64_t value)
{
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

/* All cards together: each adds how much it changed, so that no other card's lock is needed. */
static void put_sum(uint64_t change)
{
    struct blyi_slot *mine = blyi_ledger_mine();
    uint64_t live = __atomic_add_fetch(&mine->live, change, __ATOMIC_RELAXED);
    uint64_t peak = __atomic_load_n(&mine->peak, __ATOMIC_RELAXED);
    while (live > peak && !__atomic_compare_exchange_n(&mine->peak, &peak, live, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void blyi_tally_card_locked(const struct blyi_card *card)
{
    struct blyi_slot_card *mine = &blyi_ledger_mine()->cards[card->id];
    bool is_gone = blyi_away_is_gone(card);
    uint64_t live = card->live, away = 0;
    if (is_gone)
        blyi_away_figures(card->away, &live, &away);
    if (mine->live != live)
        put_sum(live - mine->live);
    put(&mine->live, live);
    put(&mine->peak, card->peak);
    put(&mine->overhead, is_gone ? 0 : card->overhead);
    put(&mine->imported, card->imported);
    put(&mine->shared, card->shared);
    put(&mine->deferred, card->deferred);
    put(&mine->unused, is_gone ? 0 : blyi_partials_unused(card->partials));
    __atomic_store_n(&mine->away, (uint32_t)(away / BLYI_FRAME_SIZE), __ATOMIC_RELAXED);
    __atomic_store_n(&mine->contexts, card->n_bound, __ATOMIC_RELAXED);
}

static struct place *find(enum blyi_row_kind kind, int card, uint32_t site)
{
    uint32_t at = site * 31 + (uint32_t)card * 7 + (uint32_t)kind;
    for (;; at++) {
        struct place *place = &places[at % PLACES];
        if (place->kind == BLYI_ROW_NONE ||
            (place->site == site && place->card == card && place->kind == kind))
            return place;
    }
}

/* The row of a site; NULL: it is one of too many. Lock held. */
static struct blyi_slot_row *row_of(enum blyi_row_kind kind, int card, uint32_t site)
{
    struct blyi_slot *mine = blyi_ledger_mine();
    struct place *place = find(kind, card, site);
    if (place->kind != BLYI_ROW_NONE)
        return place->row < BLYI_SLOT_ROWS ? &mine->rows[place->row] : NULL;
    if (n_places == BLYI_SLOT_ROWS)
        return NULL;
    *place = (struct place){site, (int16_t)card, (uint8_t)kind, (uint8_t)n_places++};
    struct blyi_slot_row *row = &mine->rows[place->row];
    put(&row->pc, (uintptr_t)blyi_site_pc(site));
    row->card = card;
    __atomic_store_n(&row->kind, (uint32_t)kind, __ATOMIC_RELEASE);
    return row;
}

void blyi_tally_row(enum blyi_row_kind kind, int card, uint32_t site, uint64_t bytes, int sign)
{
    bly_assert(kind > BLYI_ROW_NONE && kind < BLYI_ROW_KINDS);
    uint64_t one = sign > 0 ? 1 : UINT64_MAX;
    bytes = sign > 0 ? bytes : 0 - bytes;
    blyi_lock_take(&lock);
    struct blyi_slot_row *row = row_of(kind, card, site);
    struct blyi_slot *mine = blyi_ledger_mine();
    uint64_t *sum = row ? &row->bytes : &mine->others_bytes[kind];
    uint64_t *count = row ? &row->count : &mine->others_count[kind];
    put(sum, *sum + bytes);
    put(count, *count + one);
    if (row && sign > 0)
        put(&row->last_ns, blyi_clock_ns());
    blyi_lock_drop(&lock);
}

static uint32_t *counter(uint32_t slot, int card, enum blyi_limit what)
{
    struct blyi_slot_card *there = &blyi_ledger_slot_at(slot)->cards[card];
    switch (what) {
    case BLYI_LIMIT_STREAMS:
        return &there->streams;
    case BLYI_LIMIT_EVENTS:
        return &there->events;
    case BLYI_LIMIT_NOTIFIES:
        break;
    }
    return &there->notifies;
}

uint64_t blyi_tally_used(int card, enum blyi_limit what)
{
    uint64_t used = 0;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
        if (blyi_ledger_in_use(slot))
            used += __atomic_load_n(counter(slot, card, what), __ATOMIC_RELAXED);
    return used;
}

static bool take(int card, enum blyi_limit what, uint64_t limit)
{
    blyi_ledger_lock();
    bool free = blyi_tally_used(card, what) < limit;
    if (free)
        __atomic_fetch_add(counter(blyi_ledger_slot(), card, what), 1, __ATOMIC_RELAXED);
    blyi_ledger_unlock();
    return free;
}

bool blyi_tally_take(int card, enum blyi_limit what, uint64_t limit)
{
    return take(card, what, limit) || (blyi_ledger_reap() > 0 && take(card, what, limit));
}

void blyi_tally_give(int card, enum blyi_limit what)
{
    uint32_t *n = counter(blyi_ledger_slot(), card, what);
    uint32_t before = __atomic_load_n(n, __ATOMIC_RELAXED);
    while (before > 0 && !__atomic_compare_exchange_n(n, &before, before - 1, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}
