/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned.h - page-locked host memory, in a window of its own, so that it is recognised by
 * address. Whole pages of 4 KiB; exact sizes (no power of two); freed pages are returned to
 * the system at once. Locking is best effort (ulimit -l); `belay doctor` tells.
 */
#ifndef BLYI_PINNED_H
#define BLYI_PINNED_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/freed.h"

struct blyi_pinned_block {
    uintptr_t address;
    uint64_t asked, rounded, backed;
    uint32_t site;
    uint16_t module;
    uint64_t time_ns;
    uint64_t serial; /* of this block and no other */
};

/* E_PIN_LIMIT: PIN_CEILING or PIN_LIMIT (sentence: limit, used, asked); E_HOST_MEMORY: the host
 * is short (no OOM kill later: pages are touched here); E_SYSTEM. [any] */
bly_status blyi_pinned_alloc(uint64_t asked, uint64_t rounded, uint32_t site, uint16_t module,
                             void **address);
/* Pages that queued work still uses stay readable until that work ends (blyi_pinned_hold).
 * E_INVALID as blyi_mem_free. [any] */
bly_status blyi_pinned_free(void *address, uint32_t site);
bool blyi_pinned_find(const void *address, struct blyi_pinned_block *out);
/* Calls fn for each block by rising address, those that only queued work holds included; under the
 * lock of rank PINNED. */
void blyi_pinned_walk(void (*fn)(void *arg, const struct blyi_pinned_block *block), void *arg);
/* The last block freed, of 1024, that held the address. [any] */
bool blyi_pinned_freed(uintptr_t address, struct blyi_freed_block *out);

/* Queued work holds the block around `address`: a free meanwhile takes effect at the last
 * release. hold returns false when no live block is there. [any] */
bool blyi_pinned_hold(const void *address, uint64_t size);
void blyi_pinned_release(const void *address);

/* Counts bytes toward the limits that are pinned elsewhere: physical memory of the host (vmm.h),
 * registrations (registered.h). E_PIN_LIMIT. [any] */
bly_status blyi_pinned_book(uint64_t asked, uint64_t backed);
void blyi_pinned_unbook(uint64_t backed);

struct blyi_pinned_figures {
    uint64_t live; /* bytes pinned by blocks */
    uint64_t asked;
    uint64_t peak;
    uint64_t blocks;
    uint64_t locked; /* of `live`, really locked in RAM */
    uint64_t limit;
};
void blyi_pinned_figures(struct blyi_pinned_figures *out);
bool blyi_pinned_audit(void);

#endif
