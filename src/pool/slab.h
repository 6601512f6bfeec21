/* SPDX-License-Identifier: Apache-2.0
 *
 * slab.h - a span cut into slots of one class, described out of band.
 *
 * A slot is at home (free, in its slab), in a thread's cache (free), or handed out. `state` tells
 * the latter from the former and is written by whoever holds the slot; `home` tells the two former
 * apart and is the depot's. A record is reused for slabs of the same depot and class only, so that
 * who frees what is none reads nothing worse than another slab.
 */
#ifndef BLYI_SLAB_H
#define BLYI_SLAB_H

#include <stdbool.h>
#include "base/list.h"
#include "base/word.h"
#include "pool/arena.h"
#include "pool/class.h"

/* A slot's state: what it has above what was asked for, or one of these. */
#define BLYI_SLOT_FREE         UINT16_C(0xffff)
#define BLYI_SLOT_WAITING      UINT16_C(0xfffe) /* freed, in waiting.c */
#define BLYI_SLOT_USED         UINT16_C(0xfffd) /* handed out, and the depot has a note of it */
#define BLYI_SLOT_PLAIN(state) ((state) < BLYI_SLOT_USED)

struct blyi_depot;

struct blyi_slab {
    /* What a free reads. */
    uintptr_t base;
    struct blyi_depot *depot;
    uint64_t inverse; /* of a slot's size without its factors of two, in 64 bits */
    uint64_t n;
    uint16_t bin;  /* where thread caches have it: BLYI_BIN_PLACE(class), cache.h */
    uint8_t shift; /* those factors */

    uint8_t class;
    uint8_t region;
    uint16_t n_home;
    struct blyi_span *span;
    struct blyi_list link;               /* slabs with slots at home; or unused records */
    uint64_t home[BLYI_SLAB_SLOTS / 64]; /* bits of slots */
    uint16_t state[];
};

struct blyi_slab_page; /* records, which stay together */

/* Adds records of a class to `unused`. Host bytes; 0: there are none. */
size_t blyi_slab_make(struct blyi_slab_page **pages, struct blyi_depot *depot, unsigned class,
                      struct blyi_list *unused);
void blyi_slab_drop(struct blyi_slab_page *pages);
/* `n` slots, all at home, of a region. */
void blyi_slab_reset(struct blyi_slab *slab, bly_pool_region region, unsigned n);
/* A slot that is at home, which it leaves. */
unsigned blyi_slab_take(struct blyi_slab *slab);
/* False: it is at home already. */
bool blyi_slab_put(struct blyi_slab *slab, uint64_t slot);

static inline uint64_t blyi_slab_slot_size(const struct blyi_slab *slab)
{
    return blyi_class_size(slab->class);
}

/* The slot that begins at an address; `n` or more: none does. Exact: of what is no multiple of an
 * odd number its inverse makes more than 2^64 divided by it, and bits below the factors of two come
 * out on top. */
static inline uint64_t blyi_slab_slot(const struct blyi_slab *slab, uintptr_t address)
{
    uint64_t turned = blyi_word_off(address, &slab->base) * slab->inverse;
    return turned >> (slab->shift & 63) | turned << (-slab->shift & 63);
}

static inline uint16_t blyi_slab_state(const struct blyi_slab *slab, uint64_t slot)
{
    return __atomic_load_n(&slab->state[slot], __ATOMIC_RELAXED);
}

/* Relaxed: whoever is handed the slot next is ordered behind by how it is handed over. */
static inline void blyi_slab_set_state(struct blyi_slab *slab, uint64_t slot, uint16_t state)
{
    __atomic_store_n(&slab->state[slot], state, __ATOMIC_RELAXED);
}

#endif
