/* SPDX-License-Identifier: Apache-2.0
 *
 * owned.h - to which block an address belonged when work that keeps it for long was made. The
 * block may be freed, and the address given out again, before the work runs: then the memory
 * belongs to another, and the work must not touch it.
 *
 * Memory of a pool may be used as long as it is idle there: the pool still has it. Once it was
 * handed out again it is another's.
 *
 * Reserved addresses (vmm.h) are the program's to map anew behind such work; they are not kept.
 */
#ifndef BLYI_OWNED_H
#define BLYI_OWNED_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_owned {
    const void *at;
    uint64_t serial; /* of the block */
    int32_t card;    /* -1: pinned memory of the host */
};

#define BLYI_OWNED_RANGE 2 /* entries for one range: its first and its last byte */

/* Appends the blocks of a range to list[0 .. n), without those that are there; returns the new n.
 * `list` has room for two more. A range where no block lives adds nothing. [any] */
uint32_t blyi_owned_add(struct blyi_owned *list, uint32_t n, const void *address, uint64_t size);
/* E_FAULT: one of them was freed; sentence: which, where, and whose the memory is now; *lost is the
 * address. *turn is blyi_freed_turn() of the last time that all were found, or 0. lost may be
 * NULL. [any] */
bly_status blyi_owned_check(const struct blyi_owned *list, uint32_t n, uint64_t *turn,
                            const void **lost);

#endif
