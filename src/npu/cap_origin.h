/* SPDX-License-Identifier: Apache-2.0
 *
 * cap_origin.h - the caps that a process was born with, whatever became of its parents.
 *
 * An ancestor may have ended, or may never have used a card; so groups of caps also travel in
 * the environment, as BELAY_CAP_GROUP: "ID:BYTES,ID:BYTES", inner ones first. The high half of an
 * ID is the pid of who began the group, the low half is random.
 */
#ifndef BLYI_CAP_ORIGIN_H
#define BLYI_CAP_ORIGIN_H

#include "npu/ledger_layout.h"

struct blyi_cap_origin {
    uint64_t group, cap;
};

/* Those of BELAY_CAP_GROUP, and how many; entries that cannot be read are left out. [any] */
uint32_t blyi_cap_origins(struct blyi_cap_origin out[BLYI_SLOT_CAPS]);

/* Where BELAY_CAP is less than all of them, it is put in front of them, for this process and what
 * it starts from here on. Done as the library is loaded, and by who starts a program under
 * it, which exec() leaves its pid. The environment is changed: one thread only. */
void blyi_cap_begin(void);

/* The group that this process began, or may begin. Under the ledger's lock, or in one thread. */
uint64_t blyi_cap_own_group(void);
static inline uint32_t blyi_cap_group_pid(uint64_t group)
{
    return (uint32_t)(group >> 32);
}

#endif
