/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_audit.c - whether what processes share makes sense: every frame has an owner that exists,
 * and every process has the frames that its figures say.
 */
#include "npu/ledger_inside.h"
#include "npu/frame.h"
#include "npu/share_inside.h"
#include "npu/signal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct audit {
    char *why;
    size_t size;
    uint32_t owned[BLYI_SLOTS]; /* frames of a card */
    uint32_t shared[BLYI_SHARES];
};

static bool wrong(struct audit *audit, int card, const char *what, uint64_t a, uint64_t b)
{
    snprintf(audit->why, audit->size, "card %d: %s (%" PRIu64 ", %" PRIu64 ")", card, what, a, b);
    return false;
}

static bool count_words(struct audit *audit, int card, const struct blyi_card_file *file)
{
    memset(audit->owned, 0, sizeof audit->owned);
    memset(audit->shared, 0, sizeof audit->shared);
    for (uint32_t i = 0; i < blyi_ledger_card_frames(card); i++) {
        uint32_t word = __atomic_load_n(&file->words[i], __ATOMIC_RELAXED);
        uint32_t owner = word & BLYI_FRAME_OWNER;
        if (owner == 0)
            continue;
        if (owner & BLYI_FRAME_SHARED) {
            if ((owner & ~BLYI_FRAME_SHARED) >= blyi_shares_count())
                return wrong(audit, card, "a frame belongs to a share that is none", i, owner);
            audit->shared[owner & ~BLYI_FRAME_SHARED]++;
            continue;
        }
        if (owner > BLYI_SLOTS || !blyi_ledger_in_use(owner - 1))
            return wrong(audit, card, "a frame belongs to nobody who exists", i, owner);
        audit->owned[owner - 1]++;
    }
    return true;
}

/* What a slot says it has is what words say it has. */
static bool check_slot(struct audit *audit, int card, uint32_t slot)
{
    const struct blyi_slot_card *there = &blyi_ledger_slot_at(slot)->cards[card];
    uint64_t bytes = there->live + there->overhead + there->unused + there->deferred;
    uint64_t words = audit->owned[slot] * BLYI_FRAME_SIZE + there->shared;
    if (bytes != words)
        return wrong(audit, card, "figures of a slot and its frames differ", bytes, words);
    if (audit->owned[slot] > 0 && there->fd < 0)
        return wrong(audit, card, "a slot has frames of a card that it has not open", slot,
                     audit->owned[slot]);
    return true;
}

/* Shares have the frames that they say, and a tail at most, and somebody alive holds them. */
static bool check_share(struct audit *audit, int card, uint32_t index)
{
    const struct blyi_share *share = blyi_share_at(index);
    if (share->state != BLYI_SHARE_LIVE && share->state != BLYI_SHARE_EMPTY)
        return wrong(audit, card, "a share was left half way", index, share->state);
    if (share->state == BLYI_SHARE_EMPTY || share->card != (uint32_t)card)
        return audit->shared[index] == 0 ||
               wrong(audit, card, "a frame belongs to a share that is none", index,
                     audit->shared[index]);
    uint32_t tail = audit->shared[index] - share->whole;
    if (tail > 1 || (tail == 1 && share->tail_pages == 0))
        return wrong(audit, card, "a share and its frames differ", index, audit->shared[index]);
    if (!blyi_share_has_holders(share))
        return wrong(audit, card, "nobody holds a share", index, share->maker_pid);
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
        if ((share->holders[slot / 64] >> (slot % 64) & 1) && !blyi_ledger_in_use(slot))
            return wrong(audit, card, "a share has a holder that does not exist", index, slot);
    return true;
}

bool blyi_ledger_audit(char *why, size_t size)
{
    static struct audit audit; /* under the ledger's lock */
    bool sound = true;
    blyi_ledger_lock();
    audit.why = why;
    audit.size = size;
    for (int card = 0; card < (int)BLYI_LEDGER_CARDS && sound; card++) {
        const struct blyi_card_file *file = blyi_ledger_card_locked(card);
        if (!file)
            continue;
        sound = count_words(&audit, card, file);
        for (uint32_t slot = 0; slot < BLYI_SLOTS && sound; slot++)
            if (blyi_ledger_in_use(slot))
                sound = check_slot(&audit, card, slot);
        for (uint32_t i = 0; i < blyi_shares_count() && sound; i++)
            sound = check_share(&audit, card, i);
    }
    const char *signals = sound ? blyi_signal_audit_locked() : NULL;
    if (signals)
        snprintf(why, size, "%s", signals);
    blyi_ledger_unlock();
    return sound && !signals;
}
