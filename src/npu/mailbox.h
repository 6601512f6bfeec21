/* SPDX-License-Identifier: Apache-2.0
 *
 * mailbox.h - one request at a time to a process, in `ask` of its slot. Anything may stand there:
 * who reads it trusts nothing. All fields are atomic.
 *
 *          asker                          its owner's service thread
 *   FREE ────────> FILLING ──> ASKED ───────────────> WORKING ──> ANSWERED ──> FREE (asker)
 *                                └──> FREE (gave up)     └──> ABANDONED ──> FREE (owner)
 *
 *   word:  [ turn 21 | asker's slot 8 | phase 3 ]    the turn tells two requests apart
 */
#ifndef BLYI_MAILBOX_H
#define BLYI_MAILBOX_H

#include "npu/ledger.h"

enum blyi_phase {
    BLYI_PHASE_FREE,
    BLYI_PHASE_FILLING,
    BLYI_PHASE_ASKED,
    BLYI_PHASE_WORKING,
    BLYI_PHASE_ANSWERED,
    BLYI_PHASE_ABANDONED,
};

struct blyi_mailbox {
    uint32_t word; /* futex */
    uint32_t what;
    int32_t card;
    int32_t status;
    uint64_t cookie; /* of the slot that is asked: its next user does not answer */
    uint64_t bytes, timeout_ns;
    uint64_t done, copied, fixed;
};
_Static_assert(sizeof(struct blyi_mailbox) <= sizeof(((struct blyi_slot *)0)->ask),
               "a mailbox has its room");

static inline struct blyi_mailbox *blyi_mailbox_of(uint32_t slot)
{
    return (struct blyi_mailbox *)(void *)blyi_ledger_slot_at(slot)->ask;
}

static inline enum blyi_phase blyi_mailbox_phase(uint32_t word)
{
    return (enum blyi_phase)(word & 7);
}

static inline uint32_t blyi_mailbox_asker(uint32_t word)
{
    return (word >> 3) & (BLYI_SLOTS - 1);
}

static inline uint32_t blyi_mailbox_word(uint32_t turn, uint32_t asker, enum blyi_phase phase)
{
    return turn << 11 | asker << 3 | (uint32_t)phase;
}

/* The same request in another phase. */
static inline uint32_t blyi_mailbox_in(uint32_t word, enum blyi_phase phase)
{
    return (word & ~7u) | (uint32_t)phase;
}

/* Moves the word on; false: somebody else did. Acquire and release: the fields go with it. */
static inline bool blyi_mailbox_move(struct blyi_mailbox *box, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&box->word, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

#endif
