/* SPDX-License-Identifier: Apache-2.0
 *
 * signal_open.c - becoming a holder of a record that another process made.
 */
#include "npu/signal_inside.h"
#include "base/fail.h"
#include <inttypes.h>
#include <unistd.h>

/* As long for a wrong secret as for the right one. */
static bool same_secret(const unsigned char *a, const unsigned char *b, size_t size)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < size; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

const char *blyi_signal_noun(enum blyi_signal_kind kind)
{
    return kind == BLYI_SIGNAL_EVENT ? "event" : "notify";
}

static bool is_allowed(const struct blyi_signal_record *record, int32_t pid)
{
    if (record->kind == BLYI_SIGNAL_EVENT || record->any_pid)
        return true;
    uint32_t n = record->n_pids < BLYI_SIGNAL_PIDS ? record->n_pids : BLYI_SIGNAL_PIDS;
    for (uint32_t i = 0; i < n; i++)
        if (record->pids[i] == pid)
            return true;
    return false;
}

/* Makes this process a holder of the record. */
bly_status blyi_signal_hold_locked(const struct blyi_signal_name *name, uint32_t *generation)
{
    uint32_t slot = blyi_ledger_slot();
    struct blyi_signal_record *record =
        name->index < blyi_signal_records() ? blyi_signal_record_at(name->index) : NULL;
    if (record == NULL || record->life != BLYI_SIGNAL_LIVE || record->kind != name->kind ||
        record->card < 0 || record->card >= (int)BLYI_LEDGER_CARDS ||
        ((record->generation ^ name->generation) & 0xffff) != 0 ||
        !same_secret(record->secret, name->secret, name->secret_size))
        return blyi_fail(BLY_E_INVALID,
                         "no %s has this %s: all who had it open have closed it or ended, or it "
                         "comes from another state (BELAY_STATE)",
                         blyi_signal_noun(name->kind),
                         name->kind == BLYI_SIGNAL_EVENT ? "handle" : "key");
    if (record->maker == slot + 1)
        return blyi_fail(BLY_E_INVALID,
                         "this %s was made by this very process: it is imported by "
                         "others only",
                         blyi_signal_noun(name->kind));
    if (!is_allowed(record, (int32_t)getpid()))
        return blyi_fail(BLY_E_PERMISSION,
                         "process %ld is not among the %" PRIu32
                         " that may import this notify (aclrtNotifySetImportPid)",
                         (long)getpid(), record->n_pids);
    __atomic_fetch_or(&record->holders[slot / 64], (uint64_t)1 << (slot % 64), __ATOMIC_RELEASE);
    *generation = record->generation;
    return BLY_OK;
}
