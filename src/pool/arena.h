/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h - the addresses of one stream in a pool: spans that are handed out and holes between
 * them, mapped in part.
 *
 * Below it lie the pool's granules (granules.h), above it the front (front.h), which cuts slabs out
 * of spans. All functions here take the pool's lock themselves.
 */
#ifndef BLYI_ARENA_H
#define BLYI_ARENA_H

#include <belay/pool.h>
#include <stdbool.h>
#include "backend/backend.h"
#include "base/list.h"

struct blyi_arena;
struct blyi_extent;
struct blyi_span;

#define BLYI_QUANTUM  UINT64_C(4096)          /* addresses and sizes of spans are multiples */
#define BLYI_SPAN_MIN UINT64_C(65536)         /* of a span: what is smaller lies in slabs */
#define BLYI_ZONES    (2u * BLY_POOL_REGIONS) /* of an arena: blyi_zone_index() */

/* Inside, beside BLY_POOL_EXPORTABLE: whole granules, of handles that others may share. */
#define BLYI_POOL_WHOLE 128u

/* One use of memory by a stream, and what of it must have passed. */
struct blyi_use {
    struct blyi_arena *arena; /* of that stream */
    blyi_mark mark;
};

struct blyi_want {
    uint64_t asked; /* for figures and sentences */
    uint64_t size;  /* rounded up here */
    uint64_t align; /* a power of two; less than BLYI_QUANTUM counts as that */
    uint32_t zone;  /* blyi_zone_index() */
    uint32_t flags; /* BLY_POOL_EXPORTABLE, BLYI_POOL_WHOLE */
    uint32_t site;
    void *slab; /* the front's: what the span is cut into; NULL: a block */
};

/* A mapped stretch at an end of a hole, as it stands in the index (runs.h). */
struct blyi_run_link {
    struct blyi_run_link *prev, *next;
    uint32_t bin;
    uint32_t end; /* which of the hole's links */
};

/* What is handed out. The front reads it without a lock as long as it holds the span. Records are
 * used for nothing else as long as their pool lives, and address, size and slab are written by
 * relaxed atomic stores: who frees what is none may look at them. */
struct blyi_span {
    uintptr_t address;
    uint64_t size;
    struct blyi_arena *arena;
    uint64_t asked;
    void *slab;
    uint32_t n_uses;             /* by other streams, the front's: bly_pool_use() */
    struct blyi_arena *borrower; /* NULL: of the arena's own stream (borrow.h) */
    uint32_t site;
    uint32_t live; /* the front's: enum blyi_life */
    uint8_t region;
    uint8_t flags;

    /* The arena's, under the pool's lock. A hole is a span that nobody holds. */
    bool hole, waits;
    blyi_mark freed; /* the moment of its last free */
    struct blyi_extent *extent;
    struct blyi_span *before, *after; /* neighbours in the extent */
    uint64_t mapped;                  /* bytes of a hole with memory behind them */
    uint64_t ends[2];                 /* of those, at its left and at its right end; all: both */
    struct blyi_run_link links[3];    /* see struct blyi_zone */
    struct blyi_list idle; /* holes with a granule to spare, least recently freed first */
    uint32_t idle_since;   /* the pool's tick when it came there; */
    uint32_t idle_ms;      /* and the time, since the pool was made */
};

/* The arena of a stream, made when there is none. It lives as long as the pool: those of streams
 * that have ended are taken over by new ones. Callable at any time, with no lock of rank POOL.
 * E_HANDLE (no such stream), E_HOST_MEMORY, E_NO_MEMORY (addresses). */
bly_status blyi_arena_of(bly_pool *pool, bly_stream stream, struct blyi_arena **arena);
bly_pool *blyi_arena_pool(const struct blyi_arena *arena);
bly_stream blyi_arena_stream(const struct blyi_arena *arena);
/* A pointer of the front's own; NULL at first. */
void **blyi_arena_front(struct blyi_arena *arena);

/* A moment of the arena's stream. Grows, also when another stream takes the arena over; 0 has
 * always passed. No lock. */
blyi_mark blyi_arena_mark(struct blyi_arena *arena);
bool blyi_arena_passed(struct blyi_arena *arena, blyi_mark mark);
/* With no lock held. limit_ns of real time; 0: none. E_TIMEOUT; E_STATE: the stream waits for the
 * calling thread. */
bly_status blyi_arena_wait(struct blyi_arena *arena, blyi_mark mark, uint64_t limit_ns);

/* A span, all of it mapped, entered into the table of addresses (pages.h). E_NO_MEMORY and so on
 * as bly_pool_alloc(): the sentence is complete. */
bly_status blyi_arena_take(struct blyi_arena *arena, const struct blyi_want *want,
                           struct blyi_span **span);
/* Back into its arena, in the order of the arena's stream. */
void blyi_arena_give(struct blyi_span *span);
/* The same for one whose memory leaves the pool with it (own.h), when all work on it has passed. */
void blyi_arena_end(struct blyi_span *span);
/* The span was freed, and marks of other streams have not passed: it counts as waiting, no longer
 * as live, until it is given. */
void blyi_arena_retire(struct blyi_span *span);

#endif
