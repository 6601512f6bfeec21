/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_rows.h - the memory pools of the process, for reports and sentences: whoever has pools says
 * how to ask for their figures.
 */
#ifndef BLYI_POOL_ROWS_H
#define BLYI_POOL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLYI_POOL_ROW_NAME    64
#define BLYI_POOL_ROW_REGIONS 4
#define BLYI_POOL_ROW_STREAMS 8  /* of those with idle memory, who has it longest */
#define BLYI_FLUSHES          16 /* of a pool, the last ones */

/* Why idle memory moved or went back to the card. */
#define BLYI_FLUSH_KINDS(X)                                                                        \
    X(REQUEST, "request")     /* that the card had no room for, or that had to wait */             \
    X(TRIM, "trim")           /* the program asked for it */                                       \
    X(THRESHOLD, "threshold") /* a stream was waited for */                                        \
    X(AGE, "age")             /* it was idle for long */                                           \
    X(RECLAIM, "reclaim")     /* others were short of memory */
enum blyi_flush_kind {
#define BLYI_FLUSH_KIND(kind, name) BLYI_FLUSH_##kind,
    BLYI_FLUSH_KINDS(BLYI_FLUSH_KIND)
#undef BLYI_FLUSH_KIND
};

struct blyi_flush {
    enum blyi_flush_kind kind;
    bool failed;    /* REQUEST */
    uint64_t times; /* of one kind in a row: the figures are of all, at_ns of the last */
    uint64_t at_ns; /* when it began, since the pool was made */
    uint64_t took_ns;
    uint64_t bytes, pieces;           /* unmapped in so many ranges */
    uint64_t asked, card_free, waits; /* REQUEST: free as it began */
};

/* Idle memory of one stream, in stretches of a granule or more. */
struct blyi_pool_idle {
    uint32_t stream; /* number; 0: of none */
    uint64_t bytes, pieces;
    uint64_t oldest_ns; /* since the last free in the one that has rested longest */
};

/* Of a region: these add up to the pool's, but for the peak. */
#define BLYI_POOL_REGION_FIELDS(X)                                                                 \
    X(held)                                                                                        \
    X(live)                                                                                        \
    X(live_peak)                                                                                   \
    X(asked)                                                                                       \
    X(parked)                                                                                      \
    X(idle)                                                                                        \
    X(waiting)                                                                                     \
    X(blocks)

struct blyi_pool_region {
    const char *name; /* static storage */
#define BLYI_POOL_REGION_FIELD(field) uint64_t field;
    BLYI_POOL_REGION_FIELDS(BLYI_POOL_REGION_FIELD)
#undef BLYI_POOL_REGION_FIELD
};

/* Figures, in bytes or how many. held == live + parked + idle + waiting; `pieces` are idle
 * stretches of a granule or more. */
#define BLYI_POOL_ROW_FIELDS(X)                                                                    \
    X(held)                                                                                        \
    X(held_peak)                                                                                   \
    X(live)                                                                                        \
    X(live_peak)                                                                                   \
    X(asked)                                                                                       \
    X(asked_peak)                                                                                  \
    X(parked)                                                                                      \
    X(idle)                                                                                        \
    X(waiting)                                                                                     \
    X(releasable)                                                                                  \
    X(largest)                                                                                     \
    X(pieces)                                                                                      \
    X(blocks)                                                                                      \
    X(allocs)                                                                                      \
    X(frees)                                                                                       \
    X(maps)                                                                                        \
    X(unmaps)                                                                                      \
    X(handle_ops)                                                                                  \
    X(waits)                                                                                       \
    X(flushes)                                                                                     \
    X(limit)                                                                                       \
    X(threshold)                                                                                   \
    X(prefill)                                                                                     \
    X(reserve)                                                                                     \
    X(reserve_used)                                                                                \
    X(split)                                                                                       \
    X(split_refused)                                                                               \
    X(split_refused_bytes)                                                                         \
    X(split_idle_least)                                                                            \
    X(split_idle_most)                                                                             \
    X(split_without)

/* Of a pool that has ended: as it was before its end. */
struct blyi_pool_row {
    char name[BLYI_POOL_ROW_NAME];
    uint32_t number; /* from 1, in the order of their making */
    int card;
    bool has_ended;
#define BLYI_POOL_ROW_FIELD(field) uint64_t field;
    BLYI_POOL_ROW_FIELDS(BLYI_POOL_ROW_FIELD)
#undef BLYI_POOL_ROW_FIELD
    struct blyi_pool_region regions[BLYI_POOL_ROW_REGIONS]; /* all, or none has a name (quick) */
    struct blyi_pool_idle idle_by[BLYI_POOL_ROW_STREAMS];
    uint32_t n_idle_by;
    struct blyi_flush flushes_seen[BLYI_FLUSHES]; /* oldest first */
    uint32_t n_flushes_seen;
};

/* Fills up to `max` rows by rising number, returns how many there are. `quick`: without waiting for
 * a lock, so that it may be asked under any; pools that are busy are left out. */
typedef size_t blyi_pool_rows_fn(struct blyi_pool_row *rows, size_t max, bool quick);
void blyi_pool_rows_offer(blyi_pool_rows_fn *fn);
size_t blyi_pool_rows(struct blyi_pool_row *rows, size_t max, bool quick); /* 0: nobody has pools */

#endif
