/* SPDX-License-Identifier: Apache-2.0
 *
 * cap_group.h - the groups of caps as they stand in the slots. All under the ledger's lock.
 */
#ifndef BLYI_CAP_GROUP_H
#define BLYI_CAP_GROUP_H

#include "npu/cap.h"
#include "npu/ledger.h"

/* Writes the groups of our slot: those of the nearest ancestor and of the environment
 * (cap_origin.h), and our own for `cap` (0: none). `parent` is what blyi_cap_parent() found. */
void blyi_cap_write_locked(uint64_t parent, uint64_t cap);
/* The cookie of the nearest ancestor that is in groups; 0: none. Reads /proc; no lock. */
uint64_t blyi_cap_parent(void);

/* All members of a group together: what they booked, and the shares of others that they have open,
 * each once. */
uint64_t blyi_cap_used_locked(uint64_t group);
/* Of those, the second. */
uint64_t blyi_cap_imported_locked(uint64_t group);
/* So many bytes more pass none of our groups. */
bool blyi_cap_fits_locked(uint64_t bytes);
bool blyi_cap_is_member(const struct blyi_slot *slot, uint64_t group);

#endif
