/* SPDX-License-Identifier: Apache-2.0
 *
 * service.c - the thread: sleeping at the bell, answering, clearing away the dead.
 */
#include "npu/service.h"
#include "npu/ledger.h"
#include "npu/mailbox.h"
#include "npu/share.h"
#include "npu/signal.h"
#include "npu/wait.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/lock.h"
#include "base/reclaim.h"
#include "base/sys.h"
#include <belay/card.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define LOOK_NS    ((uint64_t)500 * 1000000)
#define AGAIN_NS   ((uint64_t)20 * 1000000)
#define LONGEST_NS ((uint64_t)60 * 1000000000) /* that a request may make this thread work */

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_ENGINE); /* starting the thread */
static uint32_t running;                                         /* futex; 1: there is a thread */
static uint32_t stopping;

void blyi_service_ring(uint32_t slot)
{
    struct blyi_slot *there = blyi_ledger_slot_at(slot);
    /* Sequentially consistent against sleep_at_bell(): it sees the bell, or we see that it is
     * asleep. */
    __atomic_fetch_add(&there->bell, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&there->asleep, __ATOMIC_SEQ_CST) != 0)
        blyi_sys_futex_wake_shared(&there->bell, INT32_MAX);
}

void blyi_service_ring_all(void)
{
    for (uint32_t slot = 0; slot < BLYI_SLOTS; slot++)
        if (slot != blyi_ledger_slot() && blyi_ledger_in_use(slot))
            blyi_service_ring(slot);
}

/* ── Answering ────────────────────────────────────────────────────────────────────────────── */

static void give_back(const struct blyi_request *request, struct blyi_answer *answer)
{
    answer->bytes = blyi_reclaim_run(request->card, request->bytes);
}

static void defragment(const struct blyi_request *request, struct blyi_answer *answer)
{
    bly_defrag d = {.struct_size = sizeof d,
                    .card = request->card,
                    .want = request->bytes,
                    .timeout_ns = request->timeout_ns};
    answer->status = bly_card_defrag(&d);
    answer->bytes = d.moved;
    answer->copied = d.copied;
    answer->fixed = d.fixed;
}

/* What the mailbox says, once and bounded. False: not for the present user of this slot, or nothing
 * that we know. */
static bool read_request(const struct blyi_mailbox *box, struct blyi_request *request)
{
    uint32_t what = __atomic_load_n(&box->what, __ATOMIC_RELAXED);
    request->card = __atomic_load_n(&box->card, __ATOMIC_RELAXED);
    request->bytes = __atomic_load_n(&box->bytes, __ATOMIC_RELAXED);
    request->timeout_ns = __atomic_load_n(&box->timeout_ns, __ATOMIC_RELAXED);
    if (request->timeout_ns == 0 || request->timeout_ns > LONGEST_NS)
        request->timeout_ns = LONGEST_NS;
    if (__atomic_load_n(&box->cookie, __ATOMIC_RELAXED) != blyi_ledger_mine()->cookie)
        return false;
    if (request->card < 0 || request->card >= (int)BLYI_LEDGER_CARDS)
        return false;
    request->what = (enum blyi_ask)what;
    return what == BLYI_ASK_GIVE || what == BLYI_ASK_DEFRAG;
}

static void write_answer(struct blyi_mailbox *box, const struct blyi_answer *answer)
{
    __atomic_store_n(&box->status, (int32_t)answer->status, __ATOMIC_RELAXED);
    __atomic_store_n(&box->done, answer->bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&box->copied, answer->copied, __ATOMIC_RELAXED);
    __atomic_store_n(&box->fixed, answer->fixed, __ATOMIC_RELAXED);
}

static void answer_one(void)
{
    struct blyi_mailbox *box = blyi_mailbox_of(blyi_ledger_slot());
    uint32_t word = __atomic_load_n(&box->word, __ATOMIC_ACQUIRE);
    struct blyi_request request = {0};
    struct blyi_answer answer = {.status = BLY_OK};
    uint32_t working = blyi_mailbox_in(word, BLYI_PHASE_WORKING);
    if (blyi_mailbox_phase(word) != BLYI_PHASE_ASKED || !blyi_mailbox_move(box, word, working))
        return;
    if (!read_request(box, &request))
        answer.status = BLY_E_INVALID;
    else if (request.what == BLYI_ASK_GIVE)
        give_back(&request, &answer);
    else
        defragment(&request, &answer);
    write_answer(box, &answer);
    /* Else the asker has gone on without us: nobody reads it. */
    if (!blyi_mailbox_move(box, working, blyi_mailbox_in(word, BLYI_PHASE_ANSWERED)))
        blyi_mailbox_move(box, blyi_mailbox_in(word, BLYI_PHASE_ABANDONED),
                          blyi_mailbox_in(word, BLYI_PHASE_FREE));
    blyi_sys_futex_wake_shared(&box->word, INT32_MAX);
}

/* ── The thread ───────────────────────────────────────────────────────────────────────────── */

static void sleep_at_bell(struct blyi_slot *mine, uint32_t bell, uint64_t limit_ns)
{
    __atomic_store_n(&mine->asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&mine->bell, __ATOMIC_SEQ_CST) == bell &&
        !__atomic_load_n(&stopping, __ATOMIC_SEQ_CST))
        blyi_sys_futex_wait_shared(&mine->bell, bell, limit_ns);
    __atomic_store_n(&mine->asleep, 0, __ATOMIC_RELAXED);
}

static void *service_main(void *arg)
{
    struct blyi_slot *mine = blyi_ledger_mine();
    uint64_t look_at = 0;
    (void)arg;
    while (!__atomic_load_n(&stopping, __ATOMIC_SEQ_CST)) {
        /* Before looking: what is rung meanwhile keeps us from sleeping. */
        uint32_t bell = __atomic_load_n(&mine->bell, __ATOMIC_SEQ_CST);
        uint64_t now = blyi_wait_real_ns(), limit = 0;
        answer_one();
        blyi_signal_look();
        if (blyi_ledger_others() > 0) {
            if (now >= look_at) {
                blyi_ledger_reap_in_turn(now, LOOK_NS / 2);
                blyi_ipc_settle();
                look_at = now + LOOK_NS;
            }
            limit = look_at - now;
        }
        blyi_fail_clear();
        sleep_at_bell(mine, bell, limit);
    }
    __atomic_store_n(&stopping, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&running, 0, __ATOMIC_SEQ_CST);
    blyi_sys_futex_wake(&running, INT32_MAX);
    return NULL;
}

bly_status blyi_service_need(void)
{
    bly_status status = BLY_OK;
    if (likely(__atomic_load_n(&running, __ATOMIC_ACQUIRE) &&
               !__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)))
        return BLY_OK;
    blyi_lock_take(&lock);
    if (!__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        pthread_t thread;
        __atomic_store_n(&running, 1, __ATOMIC_SEQ_CST);
        int error = blyi_sys_thread_create(&thread, "bly-service", service_main, NULL);
        if (error == 0) {
            pthread_detach(thread);
        } else {
            __atomic_store_n(&running, 0, __ATOMIC_SEQ_CST);
            status = blyi_fail(BLY_E_SYSTEM,
                               "the thread that answers other processes cannot be made: %s",
                               strerror(error));
        }
    }
    blyi_lock_drop(&lock);
    return status;
}

void blyi_service_stop(void)
{
    struct blyi_slot *mine = blyi_ledger_attached() ? blyi_ledger_mine() : NULL;
    blyi_lock_take(&lock); /* so that none starts meanwhile */
    if (mine && __atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&stopping, 1, __ATOMIC_SEQ_CST);
        /* `asleep` may be garbage, so it is woken in any case, and again. When the ledger's file
         * was cut short, the word that it sleeps at is out of reach: it is left where it is. */
        while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) && !blyi_ledger_is_lost()) {
            __atomic_fetch_add(&mine->bell, 1, __ATOMIC_SEQ_CST);
            blyi_sys_futex_wake_shared(&mine->bell, INT32_MAX);
            blyi_sys_futex_wait(&running, 1, AGAIN_NS);
        }
    }
    blyi_lock_drop(&lock);
}

void blyi_service_forget(void)
{
    running = stopping = 0;
}
