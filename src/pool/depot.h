/* SPDX-License-Identifier: Apache-2.0
 *
 * depot.h - what all threads share of the small memory of an arena: slabs by region and class, and
 * notes of the blocks that are not plain.
 *
 * Its lock has rank FRONT: under it slabs and notes change, and whatever thread caches give back or
 * take. Spans are taken and given with no lock of a depot held, as that may wait.
 */
#ifndef BLYI_DEPOT_H
#define BLYI_DEPOT_H

#include "base/lock.h"
#include "base/map.h"
#include "pool/slab.h"

struct blyi_front;

struct blyi_depot {
    struct blyi_arena *arena;
    bly_pool *pool;
    struct blyi_front *front;
    struct blyi_list link; /* in the front's */
    struct blyi_lock lock;

    /* Under the lock. Slabs with slots at home, what is fullest first; unused records. */
    struct blyi_list partial[BLY_POOL_REGIONS][BLYI_CLASSES];
    struct blyi_list unused[BLYI_CLASSES];
    struct blyi_list *gone; /* more of those, by `next`: pushed without the lock */
    struct blyi_slab_page *pages;
    struct blyi_map notes; /* by address, of slots and of blocks */
    uint64_t metadata;

    /* Of slots; written under the lock, read without. The rest is in the caches' counters. */
    uint64_t slab_bytes;
    uint64_t home_bytes;
    uint64_t waiting_bytes;
    uint64_t allocs;
    uint64_t waste; /* may wrap below 0: the sum over depots and caches does not */
    uint64_t n_out; /* slots that are not at home */
    uint64_t n_waiting;
};

/* A slot that is on its way. */
struct blyi_parcel {
    uintptr_t address;
    struct blyi_slab *slab;
};

/* The depot of an arena, made at the first call. E_HOST_MEMORY. */
bly_status blyi_depot_of(struct blyi_front *front, struct blyi_arena *arena,
                         struct blyi_depot **depot);
/* With its pool: its arena and the spans of slabs have gone, and nobody has a slot any more. */
void blyi_depot_destroy(struct blyi_depot *depot);

/* At least one slot and up to `max` of them, `*n` in all; more than one only of slabs that are
 * there already, or of the one that is made. E_HOST_MEMORY, else as blyi_arena_take(). */
bly_status blyi_depot_take(struct blyi_depot *depot, bly_pool_region region, unsigned class,
                           struct blyi_parcel *slots, unsigned max, unsigned *n);
/* Free slots go home; slabs of which none is out any more go back into the arena, after the lock.
 */
void blyi_depot_put(struct blyi_depot *depot, const struct blyi_parcel *slots, unsigned n);

/* Under the lock. */
bool blyi_depot_audit_locked(const struct blyi_depot *depot);

static inline void blyi_depot_add(uint64_t *figure, uint64_t n)
{
    __atomic_store_n(figure, *figure + n, __ATOMIC_RELAXED); /* one writer: the lock's holder */
}

#endif
