/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot.h - a process that stands still: no new work, then no memory on the cards.
 *
 *   RUNNING ── lock ──> LOCKED ── backup ──> BACKED_UP
 *      ^                  ^ └──────────────────┐ │
 *      │                  └───── restore ──────│─┘
 *      └────────────────── unlock ─────────────┘ (from BACKED_UP it restores first)
 *
 * The thread that made the last of these calls is the *keeper*: its other calls pass while the
 * process is LOCKED and are refused while it is BACKED_UP, as nobody else could end its wait. Those
 * of all other threads wait for unlock.
 */
#ifndef BLYI_SNAPSHOT_H
#define BLYI_SNAPSHOT_H

#include <belay/base.h>
#include "base/compiler.h"
#include "npu/runtime.h"

enum blyi_snapshot_state {
    BLYI_SNAPSHOT_RUNNING,
    BLYI_SNAPSHOT_LOCKED,
    BLYI_SNAPSHOT_BACKED_UP,
    BLYI_SNAPSHOT_DRAINING /* to LOCKED or BACKED_UP: queued work ends, and what it calls passes */
};

/* In the order of AscendCL's stages. */
enum blyi_snapshot_stage {
    BLYI_SNAPSHOT_LOCK_PRE,
    BLYI_SNAPSHOT_BACKUP_PRE,
    BLYI_SNAPSHOT_BACKUP_POST,
    BLYI_SNAPSHOT_RESTORE_PRE,
    BLYI_SNAPSHOT_RESTORE_POST,
    BLYI_SNAPSHOT_UNLOCK_POST,
    BLYI_SNAPSHOT_STAGES
};

extern uint32_t blyi_snapshot_now; /* enum blyi_snapshot_state; futex of those who wait */
bly_status blyi_snapshot_wait(void);

/* Whoever changes what the card holds, or gives it work, calls it first, with no lock held. Waits
 * while the process is locked by another thread. E_STATE: by this one, and its memory is away. */
static inline bly_status blyi_snapshot_pass(void)
{
    /* relaxed: who misses the change is met by the gate (gate.h) or the card's lock (away.h) */
    if (likely(__atomic_load_n(&blyi_snapshot_now, __ATOMIC_RELAXED) == BLYI_SNAPSHOT_RUNNING))
        return BLY_OK;
    return blyi_snapshot_wait();
}

/* Whether it would go through at once. */
bool blyi_snapshot_passes(void);

/* The calling thread is (until it is not) in the middle of a change under a lock of a pool, which
 * whoever locks the process takes before the memory goes (blyi_pool_blocks_settle()): it passes. */
void blyi_snapshot_begun(bool is_begun);

/* The same, and then into the runtime (runtime.h): how most calls begin. */
static inline bly_status blyi_snapshot_enter(void)
{
    bly_status status = blyi_snapshot_pass();
    return status == BLY_OK ? blyi_runtime_enter() : status;
}

static inline bly_status blyi_snapshot_check(void)
{
    bly_status status = blyi_snapshot_pass();
    return status == BLY_OK ? blyi_runtime_check() : status;
}

/* Whoever is to hear of the stages; E_CANCELLED, with a sentence, stops what is under way. */
void blyi_snapshot_listen(bly_status (*fn)(enum blyi_snapshot_stage stage));

/* New work waits from now on; what is queued ends first, within BELAY_SNAPSHOT_WAIT_MS.
 * E_STATE        not RUNNING, another of these calls is under way, or work that needs this thread
 * E_TIMEOUT      some stream's work did not end; RUNNING again
 * E_CANCELLED    a listener refused
 * E_UNSUPPORTED  the model has no snapshots. The others fail so as well. [any] */
bly_status blyi_snapshot_lock(void);
/* The content of all card memory is in host memory afterwards, its frames are everybody's.
 * E_STATE        not LOCKED; or memory is shared with other processes
 * E_HOST_MEMORY, E_SYSTEM  the host cannot hold it
 * E_TIMEOUT, E_CANCELLED   as above. LOCKED still, and nothing has changed. */
bly_status blyi_snapshot_backup(void);
/* Frames again, the same content at the same addresses.
 * E_STATE        not BACKED_UP
 * E_NO_MEMORY, E_CAP, E_HOST_MEMORY, E_SYSTEM  no room; BACKED_UP still, and nothing is lost
 * E_CANCELLED    as above; by the last listener: LOCKED, with its memory */
bly_status blyi_snapshot_restore(void);
/* E_STATE: RUNNING already. From BACKED_UP as blyi_snapshot_restore(), but for its stages.
 * E_CANCELLED: RUNNING, but a listener was not content. */
bly_status blyi_snapshot_unlock(void);

/* The calling thread runs queued work, and user code with it: it passes while that is waited for.
 */
void blyi_snapshot_serve(void);
/* Refuses what cannot wait while memory is away: E_STATE. [any] */
bly_status blyi_snapshot_check_present(const char *what);
/* The runtime ends: who waits goes on. */
void blyi_snapshot_end(void);
/* In the child of a fork. */
void blyi_snapshot_forget(void);

#endif
