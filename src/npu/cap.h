/* SPDX-License-Identifier: Apache-2.0
 *
 * cap.h - BELAY_CAP: bytes of a process and its children on all cards, live blocks and handles as
 * backed and the runtime's overhead.
 *
 * A process with a cap begins a group. A child finds the nearest ancestor that is in groups and
 * joins all of them for its life; its own cap, if smaller, applies in addition and begins a group
 * inside. What members have booked stands in their slots (ledger_layout.h) and is summed up and
 * added to under the ledger's lock, so that two processes cannot pass a cap together. A process in
 * no group takes no lock here. [any]
 */
#ifndef BLYI_CAP_H
#define BLYI_CAP_H

#include <stdbool.h>
#include <stdint.h>

/* Books bytes; false, and nothing booked, when a cap would be passed. Below the ledger's lock. */
bool blyi_cap_take(uint64_t bytes);
void blyi_cap_give(uint64_t bytes);

/* Finds the groups of this process, which is attached to the ledger; cheap when it is known. Done
 * by the first booking at the latest. */
void blyi_cap_join(void);
/* Another slot is in a group with us. No lock. */
bool blyi_cap_shares_group(uint32_t slot);

#define BLYI_CAP_ROWS 3
struct blyi_cap_member {
    uint32_t pid;
    char name[32];
    uint64_t booked;
};
/* The cap in the way of so many bytes: the first, from the inside, that they would pass; else the
 * one that leaves least. */
struct blyi_cap_view {
    uint64_t cap;      /* 0: there is none */
    uint64_t used;     /* by the whole group */
    uint64_t mine;     /* of that, by this process */
    uint64_t imported; /* of that, memory of processes outside the group that is open in it */
    bool is_own;       /* this process began the group */
    uint32_t pid;      /* who did; 0: it has ended */
    char name[32];
    uint32_t n_others;                          /* other members that have booked something */
    struct blyi_cap_member rows[BLYI_CAP_ROWS]; /* of those, the largest */
};
void blyi_cap_view(uint64_t bytes, struct blyi_cap_view *out);

#endif
