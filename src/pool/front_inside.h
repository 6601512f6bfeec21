/* SPDX-License-Identifier: Apache-2.0
 *
 * front_inside.h - what the parts of the front share.
 */
#ifndef BLYI_FRONT_INSIDE_H
#define BLYI_FRONT_INSIDE_H

#include "pool/cache.h"
#include "pool/front.h"
#include "pool/pages.h"
#include "pool/pool.h"

struct blyi_front {
    bly_pool *pool;
    uint64_t small;

    /* Under blyi_caches_lock. */
    struct blyi_list depots;
    struct blyi_list caches;
    uint32_t n_caches;
    uint64_t granted; /* sum of their limits */

    uint64_t out; /* bytes of slots that are not at home; without a lock */

    /* Raised by whoever sees more; without a lock. */
    uint64_t raw_peak; /* of live bytes and those of thread caches: above this somebody looks, */
    uint64_t raw_all;  /* which is a little more than the most that somebody saw, */
    uint64_t raw_any;  /* or the same without what is of named regions (regions.h) */
    uint64_t live_peak, asked_peak;
};

/* Of a block; of spans these are the values of `live`. */
enum blyi_life { BLYI_LIFE_FREE, BLYI_LIFE_LIVE, BLYI_LIFE_WAITING };

/* Two threads that free the same block at once: one of them gets it. */
static inline bool blyi_span_claim(struct blyi_span *span)
{
    uint32_t live = BLYI_LIFE_LIVE;
    return __atomic_compare_exchange_n(&span->live, &live, BLYI_LIFE_FREE, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

/* What lies at an address, whether it lives or not. */
struct blyi_spot {
    uintptr_t address; /* where it begins */
    struct blyi_span *span;
    struct blyi_slab *slab; /* NULL: a block of its own */
    unsigned slot;
};

/* false: nothing of a pool is there. */
bool blyi_spot_find(uintptr_t address, struct blyi_spot *spot);
bly_pool *blyi_spot_pool(const struct blyi_spot *spot);
uint64_t blyi_spot_size(const struct blyi_spot *spot);
/* E_INVALID, unless a block lives there that begins at the address; `verb` is for the sentence. */
bly_status blyi_spot_live(const struct blyi_spot *spot, uintptr_t address, const char *verb);
/* E_INVALID: nothing of a pool is there. */
bly_status blyi_spot_none(uintptr_t address, const char *verb);
enum blyi_life blyi_spot_life(const struct blyi_spot *spot);
uint64_t blyi_spot_asked(const struct blyi_spot *spot); /* while it lives */
/* Of the stream that it was allocated on. */
static inline struct blyi_arena *blyi_spot_arena(const struct blyi_spot *spot)
{
    return spot->span->borrower != NULL ? spot->span->borrower : spot->span->arena;
}
bool blyi_spot_has_note(const struct blyi_spot *spot);

/* notes.c: uses of blocks by other streams. */
/* The arena's stream uses a live block of another arena, with all that is queued on it now.
 * E_HOST_MEMORY. */
bly_status blyi_note_use(const struct blyi_spot *spot, struct blyi_arena *arena);
/* The number by which a live block is known again: from now on it has a note. 0: no host memory. */
uint64_t blyi_note_keep(const struct blyi_spot *spot);
uint64_t blyi_note_serial(const struct blyi_spot *spot); /* 0: nobody keeps it */
bool blyi_note_has_uses(const struct blyi_spot *spot);
/* A block that has a note is freed. *deferred: waiting.c has it now. Else all its uses have passed,
 * and it is as one without a note. E_HOST_MEMORY: it lives on. */
bly_status blyi_note_free(const struct blyi_spot *spot, bool *deferred);
uint64_t blyi_note_asked(const struct blyi_spot *spot); /* of a slot that has a note */

/* figures.c: an allocation has made more live than ever, or parked slots are handed out. */
void blyi_front_raise(struct blyi_front *front, uint64_t raw);
/* What lives of named regions has changed: from where on somebody looks. */
void blyi_front_aim(struct blyi_front *front);
/* A peak that several threads raise. */
void blyi_front_peak_to(uint64_t *peak, uint64_t value);

/* Whether so many bytes more in blocks of their own are more than ever. */
static inline bool blyi_front_would_peak(const struct blyi_front *front, uint64_t bytes)
{
    uint64_t raw = BLYI_READ(front->pool->is.blocks_live) + BLYI_READ(front->out);
    return unlikely(raw + bytes > BLYI_READ(front->raw_peak));
}

static inline void blyi_front_peak(struct blyi_front *front)
{
    uint64_t raw = BLYI_READ(front->pool->is.blocks_live) + BLYI_READ(front->out);
    if (unlikely(raw > BLYI_READ(front->raw_peak)))
        blyi_front_raise(front, raw);
}

#endif
