/* SPDX-License-Identifier: Apache-2.0
 *
 * service_ask.c - asking another process: taking its mailbox, waiting for its answer, giving up.
 */
#include "npu/service.h"
#include "npu/ledger.h"
#include "npu/ledger_process.h"
#include "npu/mailbox.h"
#include "npu/wait.h"
#include "base/compiler.h"
#include "base/sys.h"
#include <limits.h>

#define LOOK_NS ((uint64_t)20 * 1000000) /* between two looks whether the other side lives */

struct asking {
    uint32_t slot;
    uint64_t cookie; /* of its user: another one is another process */
    struct blyi_mailbox *box;
};

static bool is_there(const struct asking *asking)
{
    return __atomic_load_n(&blyi_ledger_slot_at(asking->slot)->cookie, __ATOMIC_RELAXED) ==
               asking->cookie &&
           blyi_ledger_is_alive(asking->slot);
}

/* Sleeps while the word is `word`, at most until `until` or the next look. False: it is time, or
 * the process is gone (*asked). */
static bool wait_for_change(const struct asking *asking, uint32_t word, uint64_t until,
                            enum blyi_asked *asked)
{
    uint64_t now = blyi_wait_real_ns();
    if (now >= until)
        return false;
    uint64_t rest = until - now < LOOK_NS ? until - now : LOOK_NS;
    if (blyi_sys_futex_wait_shared(&asking->box->word, word, rest) != 0 && !is_there(asking)) {
        *asked = BLYI_ASKED_ENDED;
        return false;
    }
    return true;
}

/* Takes the mailbox; *word is FILLING and ours then. */
static enum blyi_asked take_box(const struct asking *asking, uint64_t until, uint32_t *word)
{
    enum blyi_asked asked = BLYI_ASKED_SILENT;
    for (;;) {
        uint32_t now = __atomic_load_n(&asking->box->word, __ATOMIC_ACQUIRE);
        if (blyi_mailbox_phase(now) == BLYI_PHASE_FREE) {
            *word = blyi_mailbox_word((now >> 11) + 1, blyi_ledger_slot(), BLYI_PHASE_FILLING);
            if (blyi_mailbox_move(asking->box, now, *word))
                return BLYI_ASKED_ANSWERED;
        } else if (!wait_for_change(asking, now, until, &asked)) {
            return asked;
        }
    }
}

static void write_request(const struct asking *asking, const struct blyi_request *request)
{
    struct blyi_mailbox *box = asking->box;
    __atomic_store_n(&box->what, (uint32_t)request->what, __ATOMIC_RELAXED);
    __atomic_store_n(&box->card, request->card, __ATOMIC_RELAXED);
    __atomic_store_n(&box->cookie, asking->cookie, __ATOMIC_RELAXED);
    __atomic_store_n(&box->bytes, request->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&box->timeout_ns, request->timeout_ns, __ATOMIC_RELAXED);
}

/* A status that we know; anything else is a broken promise of the other side. */
static bly_status status_of(int32_t number)
{
    static const bly_status known[] = {
#define STATUS_ROW(name, value, text) BLY_##name,
        BLY_STATUS(STATUS_ROW)
#undef STATUS_ROW
    };
    for (size_t i = 0; i < BLYI_COUNT(known); i++)
        if ((int32_t)known[i] == number)
            return known[i];
    return BLY_E_STATE;
}

static void read_answer(const struct blyi_mailbox *box, struct blyi_answer *answer)
{
    answer->status = status_of(__atomic_load_n(&box->status, __ATOMIC_RELAXED));
    answer->bytes = __atomic_load_n(&box->done, __ATOMIC_RELAXED);
    answer->copied = __atomic_load_n(&box->copied, __ATOMIC_RELAXED);
    answer->fixed = __atomic_load_n(&box->fixed, __ATOMIC_RELAXED);
}

static void leave_free(struct blyi_mailbox *box, uint32_t word)
{
    blyi_mailbox_move(box, word, blyi_mailbox_in(word, BLYI_PHASE_FREE));
    blyi_sys_futex_wake_shared(&box->word, INT_MAX); /* others may want to ask */
}

/* `word` is ours in any phase. */
static enum blyi_asked await_answer(const struct asking *asking, uint32_t word, uint64_t timeout_ns,
                                    struct blyi_answer *answer)
{
    struct blyi_mailbox *box = asking->box;
    uint64_t began = blyi_wait_real_ns();
    enum blyi_asked asked = BLYI_ASKED_SILENT;
    for (;;) {
        uint32_t now = __atomic_load_n(&box->word, __ATOMIC_ACQUIRE);
        enum blyi_phase phase = blyi_mailbox_phase(now);
        bool begun = phase == BLYI_PHASE_WORKING;
        if (blyi_mailbox_in(now, phase) != blyi_mailbox_in(word, phase))
            return BLYI_ASKED_ENDED; /* cleared with its slot */
        if (phase == BLYI_PHASE_ANSWERED) {
            read_answer(box, answer);
            leave_free(box, now);
            return BLYI_ASKED_ANSWERED;
        }
        if (phase != BLYI_PHASE_ASKED && !begun)
            return BLYI_ASKED_ENDED;
        uint64_t until = began + BLYI_ASK_BEGIN_NS + (begun ? timeout_ns : 0);
        if (wait_for_change(asking, now, until, &asked))
            continue;
        if (asked == BLYI_ASKED_ENDED)
            return asked;
        if (!begun && blyi_mailbox_move(box, now, blyi_mailbox_in(now, BLYI_PHASE_FREE))) {
            blyi_sys_futex_wake_shared(&box->word, INT_MAX);
            return BLYI_ASKED_SILENT;
        }
        if (begun && blyi_mailbox_move(box, now, blyi_mailbox_in(now, BLYI_PHASE_ABANDONED)))
            return BLYI_ASKED_LATE;
    }
}

enum blyi_asked blyi_service_ask(uint32_t slot, const struct blyi_request *request,
                                 struct blyi_answer *answer)
{
    struct asking asking = {.slot = slot, .box = blyi_mailbox_of(slot)};
    uint32_t word;
    asking.cookie = __atomic_load_n(&blyi_ledger_slot_at(slot)->cookie, __ATOMIC_RELAXED);
    if (!is_there(&asking))
        return BLYI_ASKED_ENDED;
    if (blyi_process_is_stopped(blyi_ledger_slot_at(slot)->pid))
        return BLYI_ASKED_STOPPED;
    enum blyi_asked asked = take_box(&asking, blyi_wait_real_ns() + BLYI_ASK_BEGIN_NS, &word);
    if (asked != BLYI_ASKED_ANSWERED)
        return asked;
    write_request(&asking, request);
    uint32_t posted = blyi_mailbox_in(word, BLYI_PHASE_ASKED);
    if (!blyi_mailbox_move(asking.box, word, posted))
        return BLYI_ASKED_ENDED;
    blyi_service_ring(slot);
    return await_answer(&asking, posted, request->timeout_ns, answer);
}

const char *blyi_asked_text(enum blyi_asked asked)
{
    switch (asked) {
    case BLYI_ASKED_STOPPED:
        return "is stopped";
    case BLYI_ASKED_SILENT:
        return "did not begin within 2 s";
    case BLYI_ASKED_LATE:
        return "did not end in time";
    case BLYI_ASKED_ENDED:
        return "has ended";
    case BLYI_ASKED_ANSWERED:
        break;
    }
    return NULL;
}

void blyi_service_reap_locked(uint32_t dead)
{
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++) {
        if (slot == dead || !blyi_ledger_in_use(slot))
            continue;
        struct blyi_mailbox *box = blyi_mailbox_of(slot);
        uint32_t word = __atomic_load_n(&box->word, __ATOMIC_ACQUIRE);
        if (blyi_mailbox_asker(word) != dead)
            continue;
        /* Once more when its owner moves it on meanwhile: ASKED, WORKING, ANSWERED. */
        for (int i = 0; i < 3; i++) {
            enum blyi_phase phase = blyi_mailbox_phase(word);
            if (phase == BLYI_PHASE_FREE || phase == BLYI_PHASE_ABANDONED)
                break;
            if (blyi_mailbox_move(box, word,
                                  blyi_mailbox_in(word, phase == BLYI_PHASE_WORKING
                                                            ? BLYI_PHASE_ABANDONED
                                                            : BLYI_PHASE_FREE)))
                break;
            word = __atomic_load_n(&box->word, __ATOMIC_ACQUIRE);
        }
        blyi_sys_futex_wake_shared(&box->word, INT_MAX);
    }
}
