/* SPDX-License-Identifier: Apache-2.0
 *
 * physical.h - memory without an address: what aclrtMallocPhysical's handles name.
 *
 * A handle counts the program's references; each mapping counts one beside them. The handle ends
 * with the last reference of the program, the memory with the last of either kind.
 */
#ifndef BLYI_PHYSICAL_H
#define BLYI_PHYSICAL_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/probe.h"

struct blyi_card;

#define BLYI_PHYSICAL_HOST (-1) /* in place of a card */

struct blyi_physical_request {
    struct blyi_card *card;        /* NULL: memory of the host */
    uint64_t size;                 /* as asked */
    enum blyi_page_kind page_kind; /* HUGE, or GIANT on a card */
    bool contiguous;               /* peer-to-peer: one run of frames */
    bool on_node;                  /* host: asked for on a memory node */
    bool of_pool;                  /* a pool's: not told to probes as the program's; no reclaim, and
                                      no sentence where memory is short */
    uint32_t numa;                 /* which */
    uint32_t site;
};

/* E_INVALID size 0 or above 2^50; E_NO_MEMORY, E_CAP, E_UNSUPPORTED, E_HOST_MEMORY, E_SYSTEM as
 * blyi_mem_alloc; E_PIN_LIMIT for the host's memory. Reclaims once. [any] */
bly_status blyi_physical_create(const struct blyi_physical_request *request, void **handle);
/* Drops one reference of the program. E_HANDLE; E_INVALID: a pool's, of which the program has none.
 * [any] */
bly_status blyi_physical_release(void *handle, uint32_t site);
/* Drops the pool's own reference. What the program has retained is the program's from then on. */
bly_status blyi_physical_release_pooled(void *handle);

struct blyi_physical_info {
    int card;     /* or BLYI_PHYSICAL_HOST */
    int for_card; /* imported: whose work it is for; else as `card` */
    uint64_t asked, size;
    enum blyi_page_kind page_kind;
    bool contiguous;
    bool on_node;
    bool of_pool;
    uint32_t numa;
    uint32_t refs, n_mappings;
    uint32_t site;
    uint64_t time_ns;
    void *handle; /* NULL: the program has no reference left */
};
bly_status blyi_physical_info(void *handle, struct blyi_physical_info *out);
/* The handle behind a mapping's start, with one more reference; a new handle when the program had
 * given up its last. E_INVALID: nothing is mapped from there. */
bly_status blyi_physical_retain(uintptr_t address, uint32_t site, void **handle);

/* Takes back all physical memory of a card (reset): mappings go first, handles become stale. */
void blyi_physical_free_all(struct blyi_card *card);

/* Under the card's lock: bytes, handles, and those that no address reaches. */
struct blyi_physical_sums {
    uint64_t bytes, count, orphan_bytes, orphans;
    uint64_t frames;
};
void blyi_physical_sums_locked(const struct blyi_card *card, struct blyi_physical_sums *out);
/* Calls fn for each handle of a card (by rising age), under the card's lock. */
void blyi_physical_walk_locked(struct blyi_card *card,
                               void (*fn)(void *arg, const struct blyi_physical_info *info),
                               void *arg);

#endif
