/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_reap.c - records whose holders died, and whether all records make sense.
 */
#include "npu/signal_inside.h"
#include <string.h>

/* The records that the dead one queued will never run: said lane by lane, before its bit goes. */
static void lose_locked(struct blyi_signal_record *record, uint32_t slot)
{
    const struct blyi_slot *dead = blyi_ledger_slot_at(slot);
    __atomic_store_n(&record->lost_pid, dead->pid, __ATOMIC_RELEASE);
    memcpy(record->lost_name, dead->name, sizeof record->lost_name);
    record->lost_name[sizeof record->lost_name - 1] = '\0';
    for (uint32_t i = 0; record->kind == BLYI_SIGNAL_EVENT && i < BLYI_SIGNAL_LANES; i++) {
        struct blyi_signal_lane *lane = &record->lanes[i];
        if (lane->owner != slot + 1 || lane->n_open == 0)
            continue;
        __atomic_store_n(&lane->lost_at, lane->done, __ATOMIC_RELAXED);
        __atomic_store_n(&lane->lost_pid, dead->pid, __ATOMIC_RELEASE);
        blyi_ledger_step();
        __atomic_store_n(&lane->n_open, 0, __ATOMIC_RELEASE);
    }
}

void blyi_signal_reap_locked(uint32_t slot)
{
    uint32_t n = blyi_signal_records();
    for (uint32_t i = 0; i < n; i++) {
        struct blyi_signal_record *record = blyi_signal_record_at(i);
        uint32_t life = __atomic_load_n(&record->life, __ATOMIC_ACQUIRE);
        if (life == BLYI_SIGNAL_FORMING && record->maker == slot + 1) {
            __atomic_store_n(&record->life, BLYI_SIGNAL_FREE, __ATOMIC_RELEASE);
        } else if (life == BLYI_SIGNAL_LIVE && blyi_signal_has(record, slot)) {
            lose_locked(record, slot);
            blyi_signal_leave_locked(record, slot);
            blyi_signal_wake_locked(record);
        } else if (life == BLYI_SIGNAL_LIVE && !blyi_signal_has_holders(record)) {
            __atomic_store_n(&record->life, BLYI_SIGNAL_FREE, __ATOMIC_RELEASE);
        }
    }
}

static bool holders_exist(const struct blyi_signal_record *record)
{
    uint64_t strange = 0;
    for (uint32_t i = 0; i < BLYI_SLOTS / 64; i++)
        strange |= record->holders[i] & ~blyi_ledger_header()->used[i];
    return strange == 0;
}

const char *blyi_signal_audit_locked(void)
{
    for (uint32_t i = 0; i < blyi_signal_records(); i++) {
        const struct blyi_signal_record *record = blyi_signal_record_at(i);
        if (record->life == BLYI_SIGNAL_FREE)
            continue;
        if (record->life != BLYI_SIGNAL_LIVE)
            return "a shared event or notify is half made";
        if (!blyi_signal_has_holders(record) || !holders_exist(record))
            return "a shared event or notify has no holder, or one that does not exist";
        for (uint32_t k = 0; record->kind == BLYI_SIGNAL_EVENT && k < BLYI_SIGNAL_LANES; k++)
            if (record->lanes[k].n_open > 0 &&
                (record->lanes[k].owner == 0 ||
                 !blyi_signal_has(record, (record->lanes[k].owner - 1) % BLYI_SLOTS)))
                return "a shared event has records under way that are nobody's";
    }
    return NULL;
}
