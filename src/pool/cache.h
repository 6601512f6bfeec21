/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h - free slots of one arena that one thread keeps at hand. Taking one and keeping one is
 * done by the thread alone, with no lock and no locked instruction.
 *
 * Others may empty a cache all the same (memory is short, the thread sleeps): they hide its keys,
 * make every running thread see that (membarrier), wait until the owner is not `busy`, and then own
 * the slots until they show the keys again. The owner raises `busy`, compares the key, and takes
 * the slow path if it does not match, as it does for a cache that is the wrong one.
 *
 *     owner   busy = 1; key?                            ...slots...  busy = 0
 *     other             key = none; barrier; busy?  ...slots...                key = back
 *
 * A bin has room for so many entries as its cache was granted bytes for (grant.h), so there is one
 * comparison for both. blyi_caches_lock (rank CACHES) guards who has which cache, grants, emptying.
 */
#ifndef BLYI_CACHE_H
#define BLYI_CACHE_H

#include "base/assert.h"
#include "base/ended.h"
#include "pool/depot.h"

struct blyi_thread;

struct blyi_bin_entry {
    uintptr_t address; /* 0 below the first */
    uint16_t *state;
};

struct blyi_bin {
    struct blyi_bin_entry *top; /* one above the last entry; that of an empty bin is at `base` */
    struct blyi_bin_entry *end; /* as far as `top` may grow */
    struct blyi_bin_entry *base;
    uint32_t size; /* of a slot */
    uint16_t room; /* entries that there is host memory for */
    /* Entries when it was last asked to give room, and how often nothing had changed then. */
    uint8_t seen, still;
};

struct blyi_cache {
    /* Keys: what it serves now. NULL: it is somebody else's for a moment, or nobody's. */
    bly_pool *pool_key;
    bly_stream stream;
    struct blyi_depot *depot_key;
    uint64_t small; /* largest size it serves */
    uint64_t ended; /* when pool and stream were last seen to be alive (base/ended.h) */
    uint32_t busy;

    /* Figures, the owner's; read by anybody. */
    uint64_t allocs;
    uint64_t waste; /* of slots handed out less those that came back: may wrap below 0 */

    /* Indexed by class; the last one keeps nothing. */
    struct blyi_bin bins[BLYI_CLASSES + 1];

    /* Under blyi_caches_lock; the owner may read what is its own. */
    bly_pool *pool;
    struct blyi_depot *depot; /* NULL: the pool has ended */
    uint64_t limit;           /* bytes of the room of its bins, and spare ones */
    uint64_t seen;            /* allocs when somebody last looked for idle caches */
    bool hidden;
    /* The owner's: how often a grant was refused, which bin gives room to another next, and what
     * was left over then. */
    uint32_t denied, victim;
    uint64_t spare;
    struct blyi_thread *thread;
    struct blyi_list of_thread, of_front;
};

extern struct blyi_lock blyi_caches_lock;
/* The cache that this thread used last; never NULL, but then it is nobody's. */
extern BLYI_HOT_THREAD_LOCAL struct blyi_cache *blyi_cache_last;

/* This thread's cache of a pool and a stream, or of a depot, which is then its last; nobody's,
 * whose `depot` is NULL, when there is none yet. */
struct blyi_cache *blyi_cache_of(bly_pool *pool, bly_stream stream);
struct blyi_cache *blyi_cache_at(const struct blyi_depot *depot);
/* The same, made if need be; NULL: no host memory, or the thread is ending. It serves sizes up to
 * `small` and belongs to `stream` from now on. */
struct blyi_cache *blyi_cache_need(struct blyi_depot *depot, bly_stream stream, uint64_t small);
/* The pool ends: its caches are nobody's. Nobody uses them. */
void blyi_cache_disown(struct blyi_front *front);

/* The slow way out of the cache and into it: batches from and to the depot. Errors of
 * blyi_depot_take(). The caller counts the slot; its state is free. */
bly_status blyi_cache_refill(struct blyi_cache *cache, unsigned class, struct blyi_parcel *slot);
void blyi_cache_spill(struct blyi_cache *cache, const struct blyi_parcel *slot);

/* For those who own the slots: all go home, bins have no room. Bytes that went. */
uint64_t blyi_cache_empty(struct blyi_cache *cache);
void blyi_cache_init_bins(struct blyi_cache *cache);
void blyi_cache_free_bins(struct blyi_cache *cache);
/* Bytes that are parked, and how many slots that is. By anybody. */
uint64_t blyi_cache_parked(const struct blyi_cache *cache, uint64_t *n);

/* Slabs know where their class's bin lies, counted from the cache's begin. */
#define BLYI_BIN_PLACE(class)                                                                      \
    ((uint16_t)(offsetof(struct blyi_cache, bins) + (class) * sizeof(struct blyi_bin)))
/* The same of each size that slots serve, by steps of BLYI_SLOT_MIN: the first is of sizes up to
 * one step. */
#define BLYI_BIN_SIZES (BLYI_SLOT_MAX / BLYI_SLOT_MIN)
BLYI_HOT_EXTERN uint16_t blyi_cache_places[BLYI_BIN_SIZES];
void blyi_cache_init_places(void);
static inline struct blyi_bin *blyi_cache_bin(struct blyi_cache *cache, uint16_t place)
{
    return (struct blyi_bin *)(void *)((char *)cache + place);
}

static inline void blyi_cache_enter(struct blyi_cache *cache)
{
    __atomic_store_n(&cache->busy, 1, __ATOMIC_RELAXED);
    /* The processor's order is the other side's business (grant.c). */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void blyi_cache_leave(struct blyi_cache *cache)
{
    /* Release: what we did to the cache. */
    __atomic_store_n(&cache->busy, 0, __ATOMIC_RELEASE);
}

/* As far as its keys tell; behind enter(). Acquire: what others did to the cache. */
static inline bool blyi_cache_serves(const struct blyi_cache *cache, const bly_pool *pool,
                                     bly_stream stream)
{
    return likely(BLYI_WORD_IS(cache->pool_key, pool)) &&
           likely(BLYI_WORD_IS(cache->stream, stream));
}

static inline bool blyi_cache_is_at(const struct blyi_cache *cache, const struct blyi_depot *depot)
{
    return BLYI_WORD_IS(cache->depot_key, depot);
}

static inline void blyi_bin_set_top(struct blyi_bin *bin, struct blyi_bin_entry *top)
{
    __atomic_store_n(&bin->top, top, __ATOMIC_RELAXED); /* figures look at it */
}

/* One entry more (1) or less (-1). */
static inline void blyi_bin_move_top(struct blyi_bin *bin, int n)
{
#if defined(BLYI_WORDS_IN_PLACE)
    __asm__("addq %1, %0" : "+m"(bin->top) : "er"(n * (int64_t)sizeof(*bin->top)) : "cc");
#else
    blyi_bin_set_top(bin, bin->top + n);
#endif
}

/* Behind enter() and a matching key. The address of a slot of a bin for `size` bytes; 0: it is
 * empty. */
static inline uintptr_t blyi_cache_pop(struct blyi_cache *cache, struct blyi_bin *bin,
                                       uint64_t size)
{
    struct blyi_bin_entry *top = bin->top;
    uintptr_t address = top[-1].address;
    if (likely(address != 0)) {
        uint64_t waste = bin->size - size;
        bly_assert_msg(BLYI_READ(*top[-1].state) == BLYI_SLOT_FREE,
                       "the slot at 0x%lx was freed by two threads at once",
                       (unsigned long)address);
        __atomic_store_n(top[-1].state, (uint16_t)waste, __ATOMIC_RELAXED);
        blyi_bin_move_top(bin, -1);
        blyi_word_add(&cache->waste, waste);
        blyi_word_add(&cache->allocs, 1);
    }
    return address;
}

/* Behind enter() and a matching key. Keeps a slot whose state is `place`; false: the bin is full.
 */
static inline bool blyi_cache_push(struct blyi_cache *cache, struct blyi_bin *bin,
                                   uintptr_t address, uint16_t *place, uint16_t state)
{
    struct blyi_bin_entry *entry = bin->top;
    bool kept = entry != bin->end;
    if (likely(kept)) {
        __atomic_store_n(place, BLYI_SLOT_FREE, __ATOMIC_RELAXED);
        *entry = (struct blyi_bin_entry){address, place};
        blyi_bin_move_top(bin, 1);
        blyi_word_take(&cache->waste, state);
    }
    return kept;
}

#endif
