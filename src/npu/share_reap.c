/* SPDX-License-Identifier: Apache-2.0
 *
 * share_reap.c - what a dead process held, and lists of shares for those who show them.
 */
#include "npu/share_inside.h"
#include "npu/ledger.h"
#include "npu/wait.h"
#include "base/fail.h"
#include <string.h>

static bool holds(const struct blyi_share *share, uint32_t slot)
{
    uint64_t word = __atomic_load_n(&share->holders[slot / 64], __ATOMIC_RELAXED);
    return (word >> (slot % 64)) & 1;
}

/* All frames that name the share become the dead one's: they are cleared with its others. By the
 * words, not the links: of a share that was being made these may be garbage. */
static void end_dead_locked(uint32_t index, uint32_t slot)
{
    struct blyi_share *share = blyi_share_at(index);
    struct blyi_card_file *file =
        share->card < BLYI_LEDGER_CARDS ? blyi_ledger_card_locked((int)share->card) : NULL;
    if (share->state == BLYI_SHARE_LIVE) {
        __atomic_store_n(&share->state, (uint32_t)BLYI_SHARE_ENDING, __ATOMIC_RELEASE);
        blyi_ledger_step();
    }
    if (file) {
        if (share->tail_pages > 0 && share->tail_frame < blyi_ledger_card_frames((int)share->card))
            (void)blyi_share_pass_tail_locked(file, index);
        for (uint32_t i = 0; i < blyi_ledger_card_frames((int)share->card); i++)
            (void)blyi_share_rename(file, i, BLYI_FRAME_SHARED | index, slot + 1);
    }
    __atomic_store_n(&share->state, (uint32_t)BLYI_SHARE_EMPTY, __ATOMIC_RELEASE);
    blyi_ledger_step();
}

/* Its partial frame would be cleared with its others, and somebody has pages of it mapped. */
static void save_tail_locked(uint32_t index, uint32_t slot)
{
    const struct blyi_share *share = blyi_share_at(index);
    struct blyi_card_file *file =
        share->card < BLYI_LEDGER_CARDS ? blyi_ledger_card_locked((int)share->card) : NULL;
    if (file && share->tail_pages > 0 &&
        share->tail_frame < blyi_ledger_card_frames((int)share->card))
        (void)blyi_share_rename(file, share->tail_frame, slot + 1, BLYI_FRAME_SHARED | index);
}

static void reap_live_locked(uint32_t index, uint32_t slot)
{
    struct blyi_share *share = blyi_share_at(index);
    bool made = share->maker == slot && share->maker_cookie == blyi_ledger_slot_at(slot)->cookie;
    if (holds(share, slot)) {
        share->holders[slot / 64] &= ~((uint64_t)1 << (slot % 64));
        blyi_ledger_step();
    }
    if (!blyi_share_has_holders(share)) {
        end_dead_locked(index, slot);
        return;
    }
    if (!made)
        return;
    if (share->freed_ns == 0)
        share->freed_ns = blyi_wait_real_ns();
    share->n_keys = 0;
    save_tail_locked(index, slot);
}

static void reap_keys_locked(uint32_t slot)
{
    uint64_t cookie = blyi_ledger_slot_at(slot)->cookie;
    uint32_t live = 0;
    for (uint32_t i = 0; i < blyi_keys_count(); i++) {
        struct blyi_key *key = blyi_key_at(i);
        if (key->state != BLYI_KEY_LIVE)
            continue;
        if (key->maker == slot && key->maker_cookie == cookie)
            blyi_key_end_locked(key, BLYI_KEY_DIED, "");
        else
            live++;
    }
    __atomic_store_n(&blyi_shares()->live_keys, live, __ATOMIC_RELAXED);
}

void blyi_share_reap_locked(uint32_t slot)
{
    if (!blyi_shares_in_use())
        return;
    uint32_t live = 0;
    reap_keys_locked(slot);
    for (uint32_t i = 0; i < blyi_shares_count(); i++) {
        struct blyi_share *share = blyi_share_at(i);
        switch ((enum blyi_share_state)share->state) {
        case BLYI_SHARE_LIVE:
            reap_live_locked(i, slot);
            break;
        case BLYI_SHARE_FORMING: /* under the lock alone: of who died in it */
        case BLYI_SHARE_ENDING:
            end_dead_locked(i, slot);
            break;
        case BLYI_SHARE_EMPTY:
            break;
        default: /* garbage */
            end_dead_locked(i, slot);
            break;
        }
        live += share->state == BLYI_SHARE_LIVE;
    }
    __atomic_store_n(&blyi_shares()->live_shares, live, __ATOMIC_RELAXED);
}

#define WORDS (BLYI_SLOTS / 64)

/* Held by a member, and not counted already by one that made it. */
static bool is_charged(const struct blyi_share *share, const uint64_t members[WORDS])
{
    uint64_t held = 0;
    uint32_t maker = share->maker % BLYI_SLOTS;
    for (uint32_t i = 0; i < WORDS; i++)
        held |= share->holders[i] & members[i];
    bool made = holds(share, maker) && (members[maker / 64] >> (maker % 64) & 1) != 0;
    return held != 0 && !(made && share->freed_ns == 0);
}

uint64_t blyi_share_charged_locked(bool (*is_member)(void *arg, uint32_t slot), void *arg)
{
    uint64_t bytes = 0, members[WORDS] = {0};
    if (blyi_shares_count() == 0)
        return 0;
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
        members[slot / 64] |= (uint64_t)is_member(arg, slot) << (slot % 64);
    for (uint32_t i = 0; i < blyi_shares_count(); i++) {
        const struct blyi_share *share = blyi_share_at(i);
        if (share->state == BLYI_SHARE_LIVE && is_charged(share, members))
            bytes += share->bytes;
    }
    return bytes;
}

bool blyi_share_read(const struct blyi_shares *part, uint32_t index, struct blyi_share_info *out)
{
    const struct blyi_share *share =
        (const struct blyi_share *)(const void *)((const char *)part + BLYI_SHARES_AT_SHARES) +
        index;
    if (index >= BLYI_SHARES || index >= part->n_shares || share->state != BLYI_SHARE_LIVE)
        return false;
    *out = (struct blyi_share_info){.index = index,
                                    .card = (int)(share->card % BLYI_LEDGER_CARDS),
                                    .asked = share->asked,
                                    .bytes = share->bytes,
                                    .maker_pid = share->maker_pid,
                                    .maker_slot =
                                        share->maker < BLYI_SLOTS ? share->maker : BLYI_SLOTS,
                                    .made_free = share->freed_ns != 0,
                                    .physical = (share->flags & BLYI_SHARE_PHYSICAL) != 0,
                                    .pc = (const void *)(uintptr_t)share->pc,
                                    .made_ns = share->made_ns,
                                    .freed_ns = share->freed_ns};
    memcpy(out->holders, share->holders, sizeof out->holders);
    return true;
}

uint32_t blyi_share_list(int card, struct blyi_share_info *out, uint32_t max)
{
    uint32_t n = 0;
    if (!blyi_shares_in_use())
        return 0;
    blyi_ledger_lock();
    for (uint32_t i = 0; i < blyi_shares_count(); i++) {
        struct blyi_share_info info;
        if (!blyi_share_read(blyi_shares(), i, &info) || (card >= 0 && info.card != card))
            continue;
        if (n < max)
            out[n] = info;
        n++;
    }
    blyi_ledger_unlock();
    return n;
}
