/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.c - records of shared events and notifies: made, opened, let go, inherited from the dead.
 * Lock: rank STREAM, the list of those that this process holds.
 */
#include "npu/signal.h"
#include "npu/block.h"
#include "npu/ledger_inside.h"
#include "npu/service.h"
#include "npu/signal_inside.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define CHUNK 32u /* records that the disk promises at a time */

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_STREAM);
static struct blyi_list all = BLYI_LIST_INIT(all);

struct blyi_signal_record *blyi_signal_record_at(uint32_t index)
{
    bly_assert(index < BLYI_SIGNALS);
    return (struct blyi_signal_record *)(void *)(blyi_ledger.map + BLYI_LEDGER_AT_SIGNALS +
                                                 (size_t)index * BLYI_SIGNAL_SIZE);
}

uint32_t blyi_signal_records(void)
{
    uint32_t n = __atomic_load_n(&blyi_ledger_header()->n_signals, __ATOMIC_ACQUIRE);
    return n < BLYI_SIGNALS ? n : BLYI_SIGNALS;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void ring(const struct blyi_signal_record *record, bool ours_too)
{
    for (uint32_t i = 0; i < BLYI_SLOTS / 64; i++)
        for (uint64_t bits = __atomic_load_n(&record->holders[i], __ATOMIC_ACQUIRE); bits != 0;
             bits &= bits - 1) {
            uint32_t slot = i * 64 + (uint32_t)__builtin_ctzll(bits);
            if (ours_too || slot != blyi_ledger_slot())
                blyi_service_ring(slot);
        }
}

static void move_turn(struct blyi_signal_record *record)
{
    /* Sequentially consistent against those who go to sleep (signal_event.c). */
    __atomic_fetch_add(&record->turn, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&record->sleepers, __ATOMIC_SEQ_CST) != 0)
        blyi_sys_futex_wake_shared(&record->turn, INT_MAX);
}

void blyi_signal_wake_locked(struct blyi_signal_record *record)
{
    move_turn(record);
    ring(record, true);
}

void blyi_signal_tell(struct blyi_signal *signal)
{
    move_turn(signal->record);
    blyi_block_change(&signal->watchers, nothing, NULL);
    ring(signal->record, false);
}

void blyi_signal_look(void)
{
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &all)
    {
        struct blyi_signal *signal = BLYI_CONTAINER(node, struct blyi_signal, link);
        uint32_t turn = __atomic_load_n(&signal->record->turn, __ATOMIC_SEQ_CST);
        if (turn == signal->seen)
            continue;
        signal->seen = turn;
        blyi_block_change(&signal->watchers, nothing, NULL);
    }
    blyi_lock_drop(&lock);
}

void blyi_signal_forget(void)
{
    blyi_list_init(&all);
}

/* ── Making ───────────────────────────────────────────────────────────────────────────────── */

/* The disk promises more records than `n`. */
static bly_status grow(uint32_t n)
{
    void *part;
    bly_status status =
        blyi_ledger_back(BLYI_LEDGER_AT_SIGNALS, (uint64_t)(n + CHUNK) * BLYI_SIGNAL_SIZE, &part);
    if (status != BLY_OK)
        return status;
    struct blyi_ledger *header = blyi_ledger_header();
    blyi_ledger_lock();
    if (header->n_signals < n + CHUNK)
        __atomic_store_n(&header->n_signals, n + CHUNK, __ATOMIC_RELEASE);
    blyi_ledger_unlock();
    return BLY_OK;
}

/* Our bit and the state last: whoever dies in between leaves it FORMING. */
static void form_locked(struct blyi_signal_record *record, enum blyi_signal_kind kind, int card,
                        const unsigned char secret[32])
{
    uint32_t slot = blyi_ledger_slot(), generation = record->generation + 1;
    record->maker = slot + 1;
    blyi_ledger_step();
    __atomic_store_n(&record->life, BLYI_SIGNAL_FORMING, __ATOMIC_RELEASE);
    blyi_ledger_step();
    size_t head = offsetof(struct blyi_signal_record, any_pid);
    memset((char *)record + head, 0, sizeof *record - head);
    blyi_ledger_step();
    record->kind = kind;
    record->generation = generation;
    record->card = card;
    memcpy(record->secret, secret, sizeof record->secret);
    record->holders[slot / 64] = (uint64_t)1 << (slot % 64);
    blyi_ledger_step();
    __atomic_store_n(&record->life, BLYI_SIGNAL_LIVE, __ATOMIC_RELEASE);
}

/* The index of a new record; BLYI_SIGNALS: none of the promised ones is free (*n). */
static uint32_t take_record(enum blyi_signal_kind kind, int card, const unsigned char secret[32],
                            uint32_t *n)
{
    static uint32_t next; /* where the last one was found */
    uint32_t taken = BLYI_SIGNALS;
    blyi_ledger_lock();
    *n = blyi_signal_records();
    for (uint32_t i = 0; i < *n && taken == BLYI_SIGNALS; i++)
        if (blyi_signal_record_at((next + i) % *n)->life == BLYI_SIGNAL_FREE)
            taken = (next + i) % *n;
    if (taken != BLYI_SIGNALS) {
        form_locked(blyi_signal_record_at(taken), kind, card, secret);
        next = taken;
    }
    blyi_ledger_unlock();
    return taken;
}

static struct blyi_signal *make_local(bool is_maker)
{
    struct blyi_signal *signal = blyi_host_calloc(1, sizeof *signal);
    if (signal == NULL)
        return NULL;
    signal->refs = 1;
    signal->is_maker = is_maker;
    blyi_list_init(&signal->watchers);
    blyi_list_init(&signal->link);
    return signal;
}

static void add_local_locked(struct blyi_signal *signal, uint32_t index)
{
    signal->index = index;
    signal->record = blyi_signal_record_at(index);
    signal->generation = signal->record->generation;
    signal->seen = __atomic_load_n(&signal->record->turn, __ATOMIC_SEQ_CST);
    blyi_list_push_back(&all, &signal->link);
}

bly_status blyi_signal_create(enum blyi_signal_kind kind, int card, struct blyi_signal **out)
{
    unsigned char secret[32];
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return blyi_fail(BLY_E_SYSTEM, "no random number for a shared event or notify: %s",
                         strerror(errno));
    struct blyi_signal *signal = make_local(true);
    if (signal == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a shared event or notify");
    uint32_t n, index;
    bly_status status = BLY_OK;
    while ((index = take_record(kind, card, secret, &n)) == BLYI_SIGNALS && status == BLY_OK) {
        if (n < BLYI_SIGNALS)
            status = grow(n);
        else if (blyi_ledger_reap() == 0)
            status = blyi_fail(kind == BLYI_SIGNAL_EVENT ? BLY_E_NO_EVENT : BLY_E_NO_NOTIFY,
                               "all %u events and notifies that processes can share are in use",
                               BLYI_SIGNALS);
    }
    if (status != BLY_OK) {
        blyi_host_free(signal);
        return status;
    }
    blyi_lock_take(&lock);
    add_local_locked(signal, index);
    blyi_lock_drop(&lock);
    *out = signal;
    return BLY_OK;
}

/* ── Ending ───────────────────────────────────────────────────────────────────────────────── */

bool blyi_signal_has_holders(const struct blyi_signal_record *record)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < BLYI_SLOTS / 64; i++)
        any |= record->holders[i];
    return any != 0;
}

void blyi_signal_leave_locked(struct blyi_signal_record *record, uint32_t slot)
{
    if (record->kind == BLYI_SIGNAL_EVENT)
        for (uint32_t i = 0; i < BLYI_SIGNAL_LANES; i++)
            if (record->lanes[i].owner == slot + 1)
                record->lanes[i].owner = 0;
    if (record->maker == slot + 1)
        record->maker = 0;
    blyi_ledger_step();
    __atomic_fetch_and(&record->holders[slot / 64], ~((uint64_t)1 << (slot % 64)),
                       __ATOMIC_RELEASE);
    blyi_ledger_step();
    if (!blyi_signal_has_holders(record))
        __atomic_store_n(&record->life, BLYI_SIGNAL_FREE, __ATOMIC_RELEASE);
}

void blyi_signal_unref(struct blyi_signal *signal)
{
    blyi_lock_take(&lock); /* against one that opens the same record */
    bool last = --signal->refs == 0;
    if (last) {
        bly_assert(blyi_list_empty(&signal->watchers));
        blyi_list_remove(&signal->link);
        blyi_ledger_lock();
        blyi_signal_leave_locked(signal->record, blyi_ledger_slot());
        blyi_ledger_unlock();
    }
    blyi_lock_drop(&lock);
    if (last)
        blyi_host_free(signal);
}

int blyi_signal_card(const struct blyi_signal *signal)
{
    return signal->record->card;
}

bly_status blyi_signal_open_named(enum blyi_signal_kind kind, uint32_t index, uint32_t generation,
                                  const unsigned char *secret, size_t secret_size,
                                  struct blyi_signal **out)
{
    struct blyi_signal_name name = {kind, index, generation, secret, secret_size};
    struct blyi_signal *made = make_local(false), *found = NULL;
    if (made == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a shared %s",
                         blyi_signal_noun(kind));
    blyi_lock_take(&lock);
    blyi_ledger_lock();
    bly_status status = blyi_signal_hold_locked(&name, &generation);
    blyi_ledger_unlock();
    if (status == BLY_OK) {
        BLYI_LIST_FOR(node, &all)
        {
            struct blyi_signal *signal = BLYI_CONTAINER(node, struct blyi_signal, link);
            if (signal->index == index && signal->generation == generation)
                found = signal;
        }
        if (found != NULL)
            found->refs++;
        else
            add_local_locked(made, index);
    }
    blyi_lock_drop(&lock);
    if (status != BLY_OK || found != NULL)
        blyi_host_free(made);
    if (status == BLY_OK)
        *out = found != NULL ? found : made;
    return status;
}
