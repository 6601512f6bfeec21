/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_process.h - whether the process of a slot lives, when its record lock does not tell: it
 * may have closed all its descriptors, or become another program.
 */
#ifndef BLYI_LEDGER_PROCESS_H
#define BLYI_LEDGER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include "npu/ledger_layout.h"

/* A file as /proc/PID/maps shows it, which need not be what fstat() says of it. */
struct blyi_mapped {
    uint64_t device, inode; /* both 0: not known */
};
/* Finds out by mapping a page of it for a moment; touches nothing. */
struct blyi_mapped blyi_mapped_learn(int fd);

/* Field 22 of /proc/PID/stat; 0: no such process, or it has ended, or /proc does not tell. */
uint64_t blyi_process_start(uint32_t pid);
/* What /proc calls it; false: no such process, or /proc does not tell. */
bool blyi_process_name(uint32_t pid, char name[BLYI_SLOT_NAME]);
/* By a signal; false when that is not known. */
bool blyi_process_is_stopped(uint32_t pid);

/* For a slot whose byte nobody holds, or of which that cannot be found out (`unknown`). A process
 * lives while the one of that number began when the slot says and maps the ledger: after exec() it
 * does not. What cannot be found out counts as life. */
bool blyi_ledger_process_lives(const struct blyi_slot *slot, struct blyi_mapped ledger,
                               bool unknown);

#endif
