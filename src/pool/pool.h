/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h - the inside of a pool: what arenas, granules, waiting and the front share.
 */
#ifndef BLYI_POOL_H
#define BLYI_POOL_H

#include <belay/pool.h>
#include <stdbool.h>
#include "backend/backend.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/pool_rows.h"
#include "base/reclaim.h"
#include "base/word.h"
#include "pool/arena.h"
#include "pool/runs.h"
#include "pool/variety.h"

#define BLYI_POOL_NAME   64u
#define BLYI_HANDLE_MOST 64u /* granules */
struct blyi_front;
struct blyi_waiting;

/* A handle of the backend: `count` granules, mapped from the `first` of its extent; or spare. */
struct blyi_chunk {
    uint64_t handle;
    struct blyi_extent *extent; /* NULL: mapped nowhere, in the pool's spare */
    uint32_t first, count;
    uint32_t n_spans;        /* that lie in it, in part at least */
    struct blyi_chunk *next; /* spare, or free records */
};

/* Reserved addresses of one zone, tiled by spans and holes. */
struct blyi_extent {
    struct blyi_list link;
    struct blyi_zone *zone;
    struct blyi_span *leftmost;
    uintptr_t from; /* reserved from here on, so many bytes */
    uint64_t reserved;
    bool leaves; /* its block was exported: the memory goes with it (own.h) */
    uintptr_t base;
    uint64_t n;                 /* granules */
    struct blyi_chunk **chunks; /* of each granule; NULL: not mapped */
    blyi_mark *marks;           /* behind the last free in it */
};

/* What one stream has of one region. A hole that is mapped is in `closed`, by its size (links[0]);
 * others in `open`, by ends[0] and ends[1] where those are not 0, and in `rooms`, by size
 * (links[2]). */
struct blyi_zone {
    struct blyi_arena *arena;
    struct blyi_region *region;
    bool own;                 /* blocks with an extent and a handle each (own.h) */
    struct blyi_span *recent; /* freed last, not joined yet (recent.h); NULL: none */
    struct blyi_runs closed, open, rooms;
    struct blyi_list extents;
    uint64_t reserved; /* bytes of addresses */
};

struct blyi_arena {
    struct blyi_list link;
    bly_pool *pool;
    bly_stream stream;
    struct blyi_lane *lane; /* NULL: of no stream */
    blyi_mark base;         /* added to the lane's marks, */
    const blyi_mark *marks; /* which are read here */
    uint32_t n_waiters;     /* threads in wait(): the lane stays */
    blyi_mark stuck;        /* a wait for it was in vain; 0: none */
    uint32_t number;        /* of the stream, in probes; 0: of none */
    void *front;
    struct blyi_zone *zones[BLYI_ZONES]; /* made at the first use */
};

struct blyi_pool_figures {
    uint64_t held, held_peak;           /* handles, mapped or spare */
    uint64_t spare;                     /* of those, mapped nowhere */
    uint64_t loose;                     /* mapped, and no span lies in them */
    uint64_t live, live_peak;           /* bytes of spans that do not wait */
    uint64_t blocks_live, blocks_asked; /* live spans that are no slabs */
    uint64_t allocs, frees;
    uint64_t waiting; /* bytes of spans in waiting.c */
    uint64_t maps, unmaps, handle_ops, waits, flushes;
    uint64_t unmapped; /* bytes, in all */
    uint64_t metadata;
    uint64_t reserve_used; /* bytes that came out of the reserve */
    uint64_t refused;      /* requests, for want of room */
};

/* How a pool trades memory for mappings and waits. Slacks in 1/10000 of the highest live bytes;
 * UINT32_MAX: up to the limit. */
struct blyi_policy {
    uint32_t slack;        /* up to here fresh memory, beyond it idle memory of other places */
    uint32_t wait_slack;   /* beyond it, idle memory that has to be waited for; at least `slack` */
    uint32_t share;        /* a handle is at most one in so many of what is held, */
    uint32_t handle_most;  /* and so many granules */
    uint32_t share_far;    /* `share` where handles keep too much that is idle, */
    uint32_t share_least;  /* and where that makes requests fail */
    uint32_t ahead;        /* growth is rounded up to so many granules, 1: not at all, */
    uint32_t ahead_handle; /* in handles of so many at most */
    uint64_t patience_ns;  /* a wait, where fresh memory can be had instead */
    uint64_t wait_ns;      /* where it cannot */
};

/* Requests that the limit of splitting refused idle memory (split.h). */
struct blyi_split {
    uint64_t refused, bytes;
    uint64_t idle_least, idle_most; /* of the blocks that they were refused */
};

/* Bytes that are handed out or wait. */
static inline uint64_t blyi_figures_used(const struct blyi_pool_figures *is)
{
    return is->live + is->waiting;
}

/* As others were told last (struct blyi_cells). */
struct blyi_published {
    uint64_t held, idle, spare;
};

/* What is of one region (regions.h). */
struct blyi_region {
    uint64_t held, idle; /* mapped there, and of that in holes; under the lock */
    /* Atomic; of BLY_POOL_ANY the peak alone, the others are what is left. */
    uint64_t live, asked, blocks, waiting;
    uint64_t live_peak;
};

struct bly_pool {
    struct blyi_lock lock; /* rank POOL; guards all below but what is written once */
    struct blyi_backend *backend;
    struct blyi_front *front;
    bly_pool_opts opts;
    char name[BLYI_POOL_NAME];
    int device;
    uint32_t number;  /* of the pool, from 1 */
    bool end_is_told; /* its blocks were told to have ended (told.h) */
    uint64_t granule, total;
    uint64_t align_bits; /* of the address of a large block that are 0 */
    uint64_t limit;      /* UINT64_MAX: none */
    uint64_t reserve;    /* of the card, left free */

    struct blyi_policy policy;
    uint32_t share;              /* as the policy's; grows where handles turn out too large */
    struct blyi_variety variety; /* of the sizes of blocks, */
    struct blyi_variety slots;   /* and of those that the largest slots serve; without the lock */
    uint32_t waited; /* in 1/2^20: how many of the last blocks waited for what others queued */

    struct blyi_list arenas;
    struct blyi_map by_stream;
    uint32_t n_zones;
    uint32_t tick;         /* halves of opts.trim_ms that have gone by (trimmer.h) */
    struct blyi_list idle; /* holes with a granule to spare, least recently freed first */
    struct blyi_chunk *spare[BLYI_HANDLE_MOST]; /* handles mapped nowhere, by granules - 1 */
    uint64_t spare_counts;                      /* bit per length that is there */
    uint32_t spare_since;                       /* the tick when one came there last */
    bool reserve_open;         /* a request has nothing else left: the reserve may be used */
    uint64_t of_reserve;       /* bytes that an attempt has taken of it */
    struct blyi_chunk *chunks; /* unused records */
    struct blyi_span *records; /* unused, linked by `after` */
    struct blyi_record_page *pages;
    struct blyi_list waiting;
    struct blyi_list returning; /* threads that give back what has waited (waiting.c) */
    uint64_t returns;           /* how often one began to */
    struct blyi_pool_figures is;
    struct blyi_split split;
    struct blyi_region regions[BLY_POOL_REGIONS];
    uint64_t made_ns;
    struct blyi_flush flushes[BLYI_FLUSHES]; /* timeline.h */
    uint32_t n_flushes;                      /* so far */
    uint32_t n_relieved;                     /* own requests that ask everybody for memory */
    struct blyi_published published;
    struct blyi_cells cells;
    uint64_t unread[3];   /* cells of a backend that has none */
    uint32_t forks;       /* of the process when it was made; */
    uint32_t plain_forks; /* the same where all that is idle is spare; else ~0 */
    struct blyi_reclaimer reclaimer;
    struct blyi_list of_trimmer; /* pools that are trimmed now and then */
    uint64_t due_ns;
};

/* Over a backend, which it owns from then on; for tests, replays and bly_pool_create(). */
bly_status blyi_pool_make(struct blyi_backend *backend, const bly_pool_opts *opts, bly_pool **pool);
/* Tells other processes what is held and what is idle. */
void blyi_pool_tell_others_locked(bly_pool *pool, uint64_t held, uint64_t idle);
/* So much more is idle, and nothing else is new, of a pool whose plain_forks are the process's. */
static inline void blyi_pool_tell_idle_locked(bly_pool *pool, uint64_t more)
{
    struct blyi_published *was = &pool->published; /* relaxed: figures */
    __atomic_fetch_add(pool->cells.idle, more, __ATOMIC_RELAXED);
    __atomic_fetch_add(pool->cells.spare, more, __ATOMIC_RELAXED);
    blyi_word_add(&was->idle, more);
    blyi_word_add(&was->spare, more);
}
static inline void blyi_pool_publish_locked(bly_pool *pool)
{
    struct blyi_published *was = &pool->published;
    uint64_t held = pool->is.held, idle = held - blyi_figures_used(&pool->is);
    uint64_t more = idle - was->idle;
    if (held != was->held || pool->plain_forks != pool->lock.forks) {
        blyi_pool_tell_others_locked(pool, held, idle);
    } else if (more != 0) {
        blyi_pool_tell_idle_locked(pool, more);
    }
}
/* Each live pool, under the lock of their list (rank POOLS). quick: false when that is not free. */
bool blyi_pools_each(void (*fn)(void *arg, bly_pool *pool), void *arg, bool quick);
/* All figures but struct_size, of a pool that cannot end meanwhile; regions NULL: not those. */
void blyi_pool_fill_info(bly_pool *pool, bly_pool_info *info,
                         bly_pool_region_info regions[BLY_POOL_REGIONS]);
/* BLY_OK; E_HANDLE: not a live pool; E_FORKED. */
bly_status blyi_pool_check(bly_pool *pool);
static inline struct blyi_backend *blyi_pool_backend(const bly_pool *pool)
{
    return pool->backend;
}
/* Bytes held of the card, now. No lock. */
static inline uint64_t blyi_pool_held(const bly_pool *pool)
{
    return __atomic_load_n(&pool->is.held, __ATOMIC_RELAXED);
}

/* Which zone of an arena has the spans of a region; `own`: with a handle each. What most requests
 * of the pool want comes first. */
static inline uint32_t blyi_zone_index(const bly_pool *pool, bly_pool_region region, bool own)
{
    bool all = (pool->opts.flags & BLY_POOL_EXPORTABLE) != 0;
    return (uint32_t)region + (own == all ? 0 : BLY_POOL_REGIONS);
}

/* records.c: room for descriptions, under the lock. */
bool blyi_records_need(bly_pool *pool, unsigned n_spans); /* false: no host memory */
struct blyi_span *blyi_record_take(bly_pool *pool);       /* cannot fail behind need() */
void blyi_record_give(bly_pool *pool, struct blyi_span *span);
struct blyi_chunk *blyi_chunk_take(bly_pool *pool); /* NULL: no host memory */
void blyi_chunk_give(bly_pool *pool, struct blyi_chunk *chunk);
void blyi_records_drop(bly_pool *pool);

/* zone.c: addresses, holes and their index, under the lock. */
bly_status blyi_zone_make(struct blyi_arena *arena, uint32_t index, struct blyi_zone **zone);
/* One more extent with room for `size` bytes. E_SYSTEM (addresses), E_HOST_MEMORY. */
bly_status blyi_zone_grow(struct blyi_zone *zone, uint64_t size);
/* One of just that size and alignment. */
bly_status blyi_zone_add(struct blyi_zone *zone, uint64_t size, uint64_t align);
/* An extent with one hole, in no index, and nothing mapped. */
void blyi_zone_remove(struct blyi_extent *extent);
void blyi_zone_drop(struct blyi_zone *zone);
void blyi_hole_enter(struct blyi_span *hole); /* into the index and the idle list */
void blyi_hole_leave(struct blyi_span *hole);
void blyi_hole_rest(
    struct blyi_span *hole); /* last into the list of those with a granule to spare */
/* Looks in the table of granules how a hole that is in no index is mapped. */
void blyi_hole_measure(struct blyi_span *hole);
/* [address, address + size) of a hole becomes a span; what is left of it stays holes. */
struct blyi_span *blyi_hole_carve(struct blyi_span *hole, uintptr_t address, uint64_t size);

/* Memory for a place. */
struct blyi_need {
    struct blyi_span *hole; /* where; in no index meanwhile */
    uintptr_t from, to;     /* what will be handed out */
    uint32_t end;           /* of the hole, at which it lies */
    bool own;               /* in one handle */
    bool is_dear;           /* the budget is short */
    uint64_t live;          /* bytes that live once it is */
    uint64_t cap;           /* bytes up to where memory of the card is taken */
    /* For E_TIMEOUT: which moment to wait for; is_last: nothing else is left. */
    struct blyi_arena *arena;
    blyi_mark mark;
    bool is_last;
    bool queued; /* another stream's, and most of what is held lies behind such */
};

/* shortage.c: the sentence of E_NO_MEMORY or E_CAP, with no lock held. */
bly_status blyi_shortage(struct blyi_arena *arena, const struct blyi_want *want, bly_status status);

static inline blyi_mark blyi_arena_mark_locked(const struct blyi_arena *arena)
{
    return arena->base + __atomic_load_n(arena->marks, __ATOMIC_ACQUIRE); /* backend.h */
}
bool blyi_arena_passed_locked(const struct blyi_arena *arena, blyi_mark mark);

#endif
