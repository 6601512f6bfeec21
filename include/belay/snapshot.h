/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/snapshot.h - what AscendCL has no question for: where a process stands between
 * aclrtSnapShotProcessLock and aclrtSnapShotProcessUnlock.
 *
 * Threads  [any]
 */
#ifndef BLY_SNAPSHOT_H
#define BLY_SNAPSHOT_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bly_snapshot_state {
    BLY_SNAPSHOT_RUNNING,
    BLY_SNAPSHOT_LOCKED,   /* new work of other threads waits */
    BLY_SNAPSHOT_BACKED_UP /* and the content of card memory is in host memory */
} bly_snapshot_state;

/* struct_size comes from the caller: fields behind it are not written. Fields are only appended. */
typedef struct bly_snapshot {
    uint32_t struct_size;
    uint32_t state;   /* a bly_snapshot_state */
    uint64_t away;    /* bytes of card memory that were given back to the cards */
    uint64_t content; /* bytes of host memory that hold what was in it */
} bly_snapshot;

/* E_INVALID: struct_size below 8; E_FORKED. */
BLY_API bly_status bly_snapshot_info(bly_snapshot *info);

#ifdef __cplusplus
}
#endif
#endif
