/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_event.c - what a shared record says: which records of an event are done or lost, and the
 * value of a notify.
 */
#include "npu/signal_inside.h"
#include "npu/wait.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/sys.h"
#include <inttypes.h>
#include <string.h>

#define LOOK_NS         ((uint64_t)500 * 1000000) /* the dead are looked for so often */
#define VIRTUAL_LOOK_NS 1000000u

/* Generations of lanes have 16 bits, so that lane, generation and position fit in one word. */
#define GENERATIONS 0xffffu
#define POSITIONS   (((uint64_t)1 << 44) - 1)

static uint64_t pack(uint32_t lane, uint32_t generation, uint64_t position)
{
    return (uint64_t)1 << 63 | (uint64_t)lane << 60 | (uint64_t)(generation & GENERATIONS) << 44 |
           (position & POSITIONS);
}

void blyi_signal_last(const struct blyi_signal *signal, struct blyi_signal_point *point)
{
    uint64_t last = __atomic_load_n(&signal->record->last, __ATOMIC_ACQUIRE);
    point->lane = last == 0 ? BLYI_SIGNAL_LANES : (uint32_t)(last >> 60) & (BLYI_SIGNAL_LANES - 1);
    point->generation = (uint32_t)(last >> 44) & GENERATIONS;
    point->position = last & POSITIONS;
}

enum blyi_signal_state blyi_signal_state(const struct blyi_signal *signal,
                                         const struct blyi_signal_point *point)
{
    if (point->lane >= BLYI_SIGNAL_LANES)
        return BLYI_SIGNAL_DONE;
    const struct blyi_signal_lane *lane = &signal->record->lanes[point->lane];
    /* The generation before and after: a lane is given to another stream only when all of it is
     * done. */
    if (__atomic_load_n(&lane->generation, __ATOMIC_ACQUIRE) != point->generation)
        return BLYI_SIGNAL_DONE;
    uint32_t lost = __atomic_load_n(&lane->lost_pid, __ATOMIC_ACQUIRE);
    uint64_t lost_at = __atomic_load_n(&lane->lost_at, __ATOMIC_ACQUIRE);
    uint64_t done = __atomic_load_n(&lane->done, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&lane->generation, __ATOMIC_ACQUIRE) != point->generation ||
        done > point->position)
        return BLYI_SIGNAL_DONE;
    return lost != 0 && point->position >= lost_at ? BLYI_SIGNAL_LOST : BLYI_SIGNAL_PENDING;
}

/* The lane of a stream of ours, else one that nobody needs; rather not one that tells of a loss. */
static struct blyi_signal_lane *find_lane_locked(struct blyi_signal_record *record, uint32_t stream)
{
    uint32_t owner = blyi_ledger_slot() + 1;
    struct blyi_signal_lane *best = NULL;
    for (uint32_t i = 0; i < BLYI_SIGNAL_LANES; i++) {
        struct blyi_signal_lane *lane = &record->lanes[i];
        if (lane->owner == owner && lane->stream == stream)
            return lane;
        if (__atomic_load_n(&lane->n_open, __ATOMIC_ACQUIRE) == 0 &&
            (best == NULL || (best->lost_pid != 0 && lane->lost_pid == 0)))
            best = lane;
    }
    if (best == NULL)
        return NULL;
    __atomic_store_n(&best->generation, (best->generation + 1) & GENERATIONS, __ATOMIC_RELEASE);
    blyi_ledger_step();
    __atomic_store_n(&best->lost_pid, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&best->done, 0, __ATOMIC_RELEASE);
    best->stream = stream;
    blyi_ledger_step();
    best->owner = owner;
    return best;
}

bly_status blyi_signal_begin(struct blyi_signal *signal, uint32_t stream, uint32_t *lane)
{
    struct blyi_signal_record *record = signal->record;
    blyi_ledger_lock();
    struct blyi_signal_lane *found = find_lane_locked(record, stream);
    if (found != NULL)
        __atomic_fetch_add(&found->n_open, 1, __ATOMIC_ACQ_REL);
    blyi_ledger_unlock();
    if (found == NULL)
        return blyi_fail(BLY_E_NO_EVENT,
                         "the shared event has records under way on %u streams, which is as many "
                         "as it can have; wait for one of them",
                         BLYI_SIGNAL_LANES);
    *lane = (uint32_t)(found - record->lanes);
    return BLY_OK;
}

void blyi_signal_issue(struct blyi_signal *signal, uint32_t lane, uint64_t position)
{
    struct blyi_signal_record *record = signal->record;
    uint32_t generation = __atomic_load_n(&record->lanes[lane].generation, __ATOMIC_RELAXED);
    uint64_t mine = pack(lane, generation, position);
    uint64_t now = __atomic_load_n(&record->last, __ATOMIC_RELAXED);
    do /* of two threads with one stream, the later position stands */
        if (now >> 44 == mine >> 44 && now >= mine)
            return;
    while (!__atomic_compare_exchange_n(&record->last, &now, mine, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
}

void blyi_signal_done(struct blyi_signal *signal, uint32_t lane, uint64_t position)
{
    struct blyi_signal_lane *there = &signal->record->lanes[lane];
    __atomic_store_n(&there->done, (position & POSITIONS) + 1, __ATOMIC_SEQ_CST);
    blyi_ledger_step();
    __atomic_fetch_sub(&there->n_open, 1, __ATOMIC_RELEASE);
    blyi_signal_tell(signal);
}

void blyi_signal_cancel(struct blyi_signal *signal, uint32_t lane)
{
    __atomic_fetch_sub(&signal->record->lanes[lane].n_open, 1, __ATOMIC_RELEASE);
    blyi_signal_tell(signal);
}

const uint32_t *blyi_signal_pending(const struct blyi_signal *signal, uint32_t lane)
{
    return &signal->record->lanes[lane % BLYI_SIGNAL_LANES].n_open;
}

bly_status blyi_signal_lost(const struct blyi_signal *signal, const struct blyi_signal_point *point)
{
    const struct blyi_signal_record *record = signal->record;
    char name[sizeof record->lost_name] = "";
    blyi_ledger_lock(); /* the name changes under it */
    uint32_t pid = record->lanes[point->lane % BLYI_SIGNAL_LANES].lost_pid;
    if (pid == record->lost_pid)
        for (size_t i = 0; i + 1 < sizeof name && record->lost_name[i] != '\0'; i++) {
            char c = record->lost_name[i];
            name[i] = c;
            if (c < ' ' || c > '~')
                name[i] = '?';
            name[i + 1] = '\0';
        }
    blyi_ledger_unlock();
    return blyi_fail(BLY_E_PEER_ENDED,
                     "process %" PRIu32 "%s%s%s, which had recorded the shared event, ended before "
                     "that record ran",
                     pid, name[0] ? " (" : "", name, name[0] ? ")" : "");
}

/* Sleeps until the record has changed; false: the deadline has passed. */
static bool sleep_at(struct blyi_signal_record *record, uint32_t turn, uint64_t deadline)
{
    uint64_t limit = LOOK_NS;
    if (deadline != UINT64_MAX) {
        uint64_t now = blyi_clock_ns();
        if (now >= deadline)
            return false;
        if (deadline - now < limit)
            limit = deadline - now;
        if (blyi_clock_is_virtual())
            limit = VIRTUAL_LOOK_NS;
    }
    if (blyi_sys_futex_wait_shared(&record->turn, turn, limit) != 0)
        blyi_ledger_reap();
    return true;
}

bly_status blyi_signal_await(struct blyi_signal *signal, const struct blyi_signal_point *point,
                             uint64_t timeout_ns)
{
    struct blyi_signal_record *record = signal->record;
    uint64_t deadline = blyi_wait_deadline(timeout_ns);
    enum blyi_signal_state state = blyi_signal_state(signal, point);
    bly_status status = BLY_OK;
    if (state == BLYI_SIGNAL_PENDING) {
        /* Sequentially consistent against blyi_signal_tell(). */
        __atomic_fetch_add(&record->sleepers, 1, __ATOMIC_SEQ_CST);
        while (status == BLY_OK) {
            uint32_t turn = __atomic_load_n(&record->turn, __ATOMIC_SEQ_CST);
            state = blyi_signal_state(signal, point);
            if (state != BLYI_SIGNAL_PENDING)
                break;
            if (!sleep_at(record, turn, deadline))
                status = BLY_E_TIMEOUT;
        }
        __atomic_fetch_sub(&record->sleepers, 1, __ATOMIC_SEQ_CST);
    }
    return state == BLYI_SIGNAL_LOST ? blyi_signal_lost(signal, point) : status;
}

/* ── Notifies ─────────────────────────────────────────────────────────────────────────────── */

void blyi_signal_set(struct blyi_signal *signal, uint32_t value)
{
    __atomic_store_n(&signal->record->value, value, __ATOMIC_SEQ_CST);
    blyi_signal_tell(signal);
}

void blyi_signal_begin_value(struct blyi_signal *signal, uint32_t value)
{
    __atomic_store_n(&signal->record->value, value, __ATOMIC_SEQ_CST);
}

bool blyi_signal_take(struct blyi_signal *signal)
{
    uint32_t one = 1;
    return __atomic_compare_exchange_n(&signal->record->value, &one, 0, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

bool blyi_signal_is_alone(const struct blyi_signal *signal)
{
    const struct blyi_signal_record *record = signal->record;
    if (__atomic_load_n(&record->lost_pid, __ATOMIC_ACQUIRE) == 0)
        return false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < BLYI_SLOTS / 64; i++)
        n += (uint32_t)__builtin_popcountll(__atomic_load_n(&record->holders[i], __ATOMIC_ACQUIRE));
    return n == 1;
}

bly_status blyi_signal_left_alone(const struct blyi_signal *signal)
{
    return blyi_fail(BLY_E_PEER_ENDED,
                     "process %" PRIu32 ", which shared the notify, has ended: nobody is left who "
                     "could record it",
                     __atomic_load_n(&signal->record->lost_pid, __ATOMIC_ACQUIRE));
}
