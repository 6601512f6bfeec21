/* SPDX-License-Identifier: Apache-2.0
 *
 * share.c - records of shares: room for them, who holds them.
 *
 * Every order of stores here is such that a holder which dies between two of them leaves words
 * that share_reap.c can put right: a frame that a share lost or has not got yet is named by its
 * word as the dead one's, or as that of a share that is FORMING or ENDING.
 */
#include "npu/share_inside.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/stock.h"
#include "npu/wait.h"
#include "base/assert.h"
#include "base/fail.h"

#define GROW 256u

/* Records that this process has had backed. Relaxed: backing twice does no harm. */
static uint32_t backed_shares, backed_keys;

struct blyi_shares *blyi_shares(void)
{
    return (struct blyi_shares *)(void *)((char *)blyi_ledger_header() + BLYI_LEDGER_AT_SHARES);
}

bool blyi_shares_in_use(void)
{
    return blyi_ledger_attached() &&
           __atomic_load_n(&blyi_ledger_header()->has_shares, __ATOMIC_ACQUIRE) != 0;
}

static uint32_t bounded(const uint32_t *count, uint32_t most)
{
    uint32_t n = __atomic_load_n(count, __ATOMIC_RELAXED);
    return n < most ? n : most;
}

uint32_t blyi_shares_count(void)
{
    return blyi_shares_in_use() ? bounded(&blyi_shares()->n_shares, BLYI_SHARES) : 0;
}

uint32_t blyi_keys_count(void)
{
    return blyi_shares_in_use() ? bounded(&blyi_shares()->n_keys, BLYI_KEYS) : 0;
}

struct blyi_share *blyi_share_at(uint32_t index)
{
    bly_assert(index < BLYI_SHARES);
    return (struct blyi_share *)(void *)((char *)blyi_shares() + BLYI_SHARES_AT_SHARES) + index;
}

struct blyi_key *blyi_key_at(uint32_t index)
{
    bly_assert(index < BLYI_KEYS);
    return (struct blyi_key *)(void *)((char *)blyi_shares() + BLYI_SHARES_AT_KEYS) + index;
}

/* Half of the records stay empty, so that what ended stays readable for a while. */
static uint32_t wanted(uint32_t have, uint32_t live, uint32_t most)
{
    while (have < most && 2 * (uint64_t)live + 2 > have)
        have = have == 0 ? GROW : 2 * have;
    return have < most ? have : most;
}

static bly_status back_records(uint32_t *backed, uint64_t at, uint64_t size, uint32_t n)
{
    void *part;
    if (likely(__atomic_load_n(backed, __ATOMIC_RELAXED) >= n))
        return BLY_OK;
    bly_status status = blyi_ledger_back(BLYI_LEDGER_AT_SHARES + at, n * size, &part);
    if (status == BLY_OK)
        __atomic_store_n(backed, n, __ATOMIC_RELAXED);
    return status;
}

static bly_status prepare(int card)
{
    struct blyi_ledger *header = blyi_ledger_header();
    bly_status status = blyi_ledger_back_links(card);
    if (status == BLY_OK && __atomic_load_n(&header->has_shares, __ATOMIC_ACQUIRE) == 0) {
        void *part;
        status = blyi_ledger_back(BLYI_LEDGER_AT_SHARES, BLYI_SHARES_AT_SHARES, &part);
        if (status == BLY_OK)
            __atomic_store_n(&header->has_shares, 1, __ATOMIC_RELEASE);
    }
    if (status != BLY_OK)
        return status;
    struct blyi_shares *shares = blyi_shares();
    uint32_t have_shares = blyi_shares_count(), have_keys = blyi_keys_count();
    uint32_t n_shares =
        wanted(have_shares, bounded(&shares->live_shares, BLYI_SHARES), BLYI_SHARES);
    uint32_t n_keys = wanted(have_keys, bounded(&shares->live_keys, BLYI_KEYS), BLYI_KEYS);
    if (likely(n_shares == have_shares && n_keys == have_keys))
        return BLY_OK;
    status =
        back_records(&backed_shares, BLYI_SHARES_AT_SHARES, sizeof(struct blyi_share), n_shares);
    if (status == BLY_OK)
        status = back_records(&backed_keys, BLYI_SHARES_AT_KEYS, sizeof(struct blyi_key), n_keys);
    if (status != BLY_OK)
        return status;
    blyi_ledger_lock();
    if (n_shares > blyi_shares_count())
        __atomic_store_n(&shares->n_shares, n_shares, __ATOMIC_RELAXED);
    if (n_keys > blyi_keys_count())
        __atomic_store_n(&shares->n_keys, n_keys, __ATOMIC_RELAXED);
    blyi_ledger_unlock();
    return BLY_OK;
}

bly_status blyi_shares_prepare(int card)
{
    bly_status status = prepare(card);
    if (status == BLY_OK && blyi_ledger_is_lost()) /* a key where nobody looks opens nothing */
        status = blyi_fail(BLY_E_STATE, BLYI_LEDGER_LOST_TEXT);
    return status;
}

void blyi_share_set_state(struct blyi_share *share, enum blyi_share_state state)
{
    __atomic_store_n(&share->state, (uint32_t)state, __ATOMIC_RELEASE);
    blyi_ledger_step();
}

struct blyi_share *blyi_share_get_locked(struct blyi_hold hold)
{
    if (hold.index >= blyi_shares_count())
        return NULL;
    struct blyi_share *share = blyi_share_at(hold.index);
    return share->state == BLYI_SHARE_LIVE && share->generation == hold.generation ? share : NULL;
}

bool blyi_share_is_held(struct blyi_hold hold)
{
    blyi_ledger_lock();
    bool held = blyi_share_get_locked(hold) != NULL;
    blyi_ledger_unlock();
    return held;
}

bool blyi_share_has_holders(const struct blyi_share *share)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < BLYI_COUNT(share->holders); i++)
        any |= share->holders[i];
    return any != 0;
}

void blyi_share_set_holder(struct blyi_share *share, uint32_t slot, bool holds)
{
    uint64_t bit = (uint64_t)1 << (slot % 64), *word = &share->holders[slot / 64];
    __atomic_store_n(word, holds ? *word | bit : *word & ~bit, __ATOMIC_RELAXED);
    blyi_ledger_step();
}

static uint32_t find_room_locked(void)
{
    struct blyi_shares *shares = blyi_shares();
    uint32_t n = blyi_shares_count();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (shares->share_cursor + i) % n;
        if (blyi_share_at(at)->state == BLYI_SHARE_EMPTY) {
            shares->share_cursor = at + 1;
            return at;
        }
    }
    return BLYI_SHARES;
}

/* FORMING: the record first, then the links, then the words. */
static void form_locked(const struct blyi_share *with, struct blyi_share *share)
{
    struct blyi_shares *shares = blyi_shares();
    uint64_t generation = shares->generation + 1;
    shares->generation = generation;
    *share = *with;
    share->state = BLYI_SHARE_EMPTY;
    share->generation = generation;
    share->maker = blyi_ledger_slot();
    share->maker_pid = blyi_ledger_mine()->pid;
    share->maker_cookie = blyi_ledger_mine()->cookie;
    share->made_ns = blyi_wait_real_ns();
    share->freed_ns = 0;
    share->n_keys = 0;
    for (unsigned i = 0; i < BLYI_COUNT(share->holders); i++)
        share->holders[i] = 0;
    blyi_share_set_state(share, BLYI_SHARE_FORMING);
    blyi_share_set_holder(share, share->maker, true);
}

bly_status blyi_share_form_locked(struct blyi_card *card, const struct blyi_share *with,
                                  const struct blyi_run *runs, uint32_t n_runs,
                                  struct blyi_hold *hold)
{
    uint32_t index = find_room_locked();
    if (index == BLYI_SHARES)
        return blyi_fail(BLY_E_NO_MEMORY,
                         "card %d: %u blocks and handles are exported by all processes, which is "
                         "the most",
                         card->id, BLYI_SHARES);
    struct blyi_share *share = blyi_share_at(index);
    form_locked(with, share);
    if (!blyi_share_take_words_locked(card, share, BLYI_FRAME_SHARED | index, runs, n_runs)) {
        blyi_share_set_state(share, BLYI_SHARE_EMPTY);
        return blyi_fail(BLY_E_STATE,
                         "card %d: the shared state is damaged: frames of this process have "
                         "another owner there",
                         card->id);
    }
    blyi_share_set_state(share, BLYI_SHARE_LIVE);
    blyi_shares_count_live(&blyi_shares()->live_shares, 1);
    *hold = (struct blyi_hold){index, share->generation};
    return BLY_OK;
}
