/* SPDX-License-Identifier: Apache-2.0
 *
 * backing_inside.h - what backing.c, backing_commit.c and backing_trim.c share.
 */
#ifndef BLYI_BACKING_INSIDE_H
#define BLYI_BACKING_INSIDE_H

#include <stdatomic.h>
#include "base/lock.h"
#include "base/own_fd.h"
#include "npu/backing.h"
#include "npu/commit.h"
#include "npu/ledger.h"

struct blyi_backing {
    int card;
    struct blyi_own_fd fd;
    bool told;                /* that it is closed. Atomic */
    struct blyi_stock *stock; /* NULL: memory of the host, this process's alone */
    uint32_t *words;          /* of the card's frames (ledger_layout.h); NULL likewise */
    char *alias;              /* all of it, mapped for the library alone; NULL: none */
    char name[32];            /* for sentences */
    enum blyi_commit_pages pages;
    uint32_t n_frames, n_words;
    uint64_t resident_limit; /* bytes that may stay spare */
    struct blyi_lock lock;   /* guards all below */
    uint32_t n_committed, n_huge;
    _Atomic uint32_t n_spare; /* also read as a hint without the lock */
    uint64_t retirements;
    uint64_t *committed, *huge, *spare; /* bits; `spare` is read as a hint without the lock */
    uint64_t *age;                      /* per word of `spare` */
};

/* relaxed, here and below: a word says which pages there are; what is in them is ordered by the
 * program, as on a card */
static inline uint32_t blyi_backing_word(const struct blyi_backing *b, uint32_t frame)
{
    return __atomic_load_n(&b->words[frame], __ATOMIC_RELAXED);
}

static inline uint32_t blyi_backing_unsure(void)
{
    return BLYI_FRAME_UNSURE | blyi_ledger_slot() << BLYI_FRAME_SLOT_SHIFT;
}

#define BLYI_UNSURE_BITS (BLYI_FRAME_UNSURE | UINT32_C(0xff) << BLYI_FRAME_SLOT_SHIFT)

/* relaxed: readers without the lock (blyi_backing_prefer) take it as a hint */
static inline void blyi_spare_store(struct blyi_backing *b, uint32_t word, uint64_t bits)
{
    __atomic_store_n(&b->spare[word], bits, __ATOMIC_RELAXED);
}

static inline void blyi_spare_add_locked(struct blyi_backing *b, int64_t n)
{
    uint32_t now = atomic_load_explicit(&b->n_spare, memory_order_relaxed);
    atomic_store_explicit(&b->n_spare, (uint32_t)(now + n), memory_order_relaxed);
}

/* Ends a claim on a frame's pages: it has these (COMMITTED, HUGE), or none. */
void blyi_backing_settle_claim(struct blyi_backing *backing, uint32_t frame, uint32_t pages);

#endif
