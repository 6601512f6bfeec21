/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_history.h - a recording as arrays: what lived from when to when.
 *
 * Everything that belay tells of a file is computed from this, by functions that change nothing.
 *
 *   changes   born 0 | born 1 | died 0 | piece 0 | born 2 | ...      in the order of events
 *   position  0        1        2        3         4                 after so many changes
 *
 * What lives at position p is what was born at or before it and died behind it. Times are since the
 * start of the recording and never fall, whatever the threads' clocks say.
 */
#ifndef BLYI_INSIGHT_HISTORY_H
#define BLYI_INSIGHT_HISTORY_H

#include <belay/base.h>
#include <stdbool.h>
#include "observe/trace_reader.h"

#define BLYI_STILL   UINT32_MAX /* in place of a position: not yet at the end */
#define BLYI_NO_CARD 64         /* in place of a card: pinned host memory */
#define BLYI_CARDS   64

/* A block, or physical memory behind a handle. */
struct blyi_life {
    uint64_t address, asked, rounded, backed;
    uint64_t saving; /* of `backed`, there for the 32 bytes that aclrtMalloc adds alone */
    uint64_t born_ns, died_ns, done_ns;
    uint64_t seq; /* of the event that made it; 0: there before the first event */
    uint64_t first_use_ns, last_use_ns, idle_ns; /* idle: longest time between two uses */
    uint32_t born_at, died_at, done_at;          /* done: the last stream that used it, too */
    uint32_t n_uses;                             /* by copies, sets and told uses */
    uint32_t n_maps;                             /* of a handle, now */
    uint32_t site, stack, range, name, tag, stream;
    uint8_t card; /* 0 .. 63, or BLYI_NO_CARD */
    uint8_t class_, page_kind;
    bool before;  /* made before recording began */
    bool reset;   /* taken back by a device reset, not by the program */
    bool foreign; /* used on a stream that is not its own */
};

/* Memory that a pool took from the card, or what is left of it when a part was given back. */
struct blyi_piece {
    uint64_t address, size;
    uint64_t born_ns, died_ns;
    uint32_t born_at, died_at;
    uint32_t stream, site, stack;
    uint8_t card;
};

enum blyi_change_kind {
    BLYI_CHANGE_BORN,
    BLYI_CHANGE_DIED,
    BLYI_CHANGE_DONE, /* of a life that had died */
    BLYI_CHANGE_PIECE,
    BLYI_CHANGE_PIECE_GONE,
};
struct blyi_change {
    uint32_t kind : 3, index : 29;
};
#define BLYI_LIVES_MAX ((uint32_t)1 << 28)

/* A request that failed. */
struct blyi_refusal {
    uint64_t seq, ns, asked;
    uint64_t free_told; /* free memory of the card that the file tells; 0: it does not */
    uint64_t needed;    /* bytes in pages, and that is told with `largest`; 0: not told */
    uint64_t largest;   /* request of its kind that would have found room */
    uint32_t at;        /* position before it */
    uint32_t site, stack, range;
    int32_t status; /* bly_status */
    uint8_t card;
};

/* A call that made memory, gave it back or was refused, where the file tells how long it took. */
enum blyi_call_op {
    BLYI_CALL_ALLOC,
    BLYI_CALL_FREE,
    BLYI_CALL_HOST_ALLOC,
    BLYI_CALL_HOST_FREE,
    BLYI_CALL_PHYS_CREATE,
    BLYI_CALL_PHYS_FREE,
    BLYI_CALL_REFUSED,
    BLYI_CALL_OPS
};
struct blyi_call {
    uint64_t seq, ns, took_ns, asked;
    uint32_t at; /* position behind it */
    uint8_t op, card;
};

/* X(name, one of them, many): what has an id. */
#define BLYI_THINGS(X)                                                                             \
    X(STREAM, "stream", "streams")                                                                 \
    X(EVENT, "event", "events")                                                                    \
    X(NOTIFY, "notify", "notifies")                                                                \
    X(GRAPH, "graph", "graphs")                                                                    \
    X(CONTEXT, "context", "contexts")                                                              \
    X(QUEUE, "queue", "queues")
enum blyi_thing_kind {
#define BLYI_THING_KIND(name, one, many) BLYI_THING_##name,
    BLYI_THINGS(BLYI_THING_KIND)
#undef BLYI_THING_KIND
        BLYI_THING_KINDS
};
struct blyi_thing {
    uint64_t born_ns, died_ns;
    uint32_t id, site;
    enum blyi_thing_kind kind;
    bool live, reset;
    uint8_t card;
};

/* A mark, or the beginning of a range. */
struct blyi_moment {
    uint64_t ns;
    uint32_t at;
    uint32_t name;
    uint32_t depth; /* of the range, 0: outermost; of a mark 0 */
};

struct blyi_history {
    const struct blyi_trace *trace;
    struct blyi_life *lives; /* those that were there first come first */
    size_t n_lives, n_start;
    struct blyi_piece *pieces;
    size_t n_pieces;
    struct blyi_change *changes;
    uint64_t *change_ns;
    size_t n_changes;
    struct blyi_refusal *refusals;
    size_t n_refusals;
    struct blyi_thing *things;
    size_t n_things;
    uint64_t thing_peak[BLYI_THING_KINDS];
    struct blyi_moment *moments;
    size_t n_moments;
    struct blyi_call *calls;
    size_t n_calls;
    uint64_t n_copies, n_sets, n_kernels, n_syncs;
    /* What is live at the end is n_start + made - frees - resets + unknown_frees - lost_frees. */
    struct blyi_counts {
        uint64_t made, frees, resets; /* events; a reset takes back what the program did not free */
        uint64_t unknown_frees;       /* of frees and resets: of an address where nothing lived */
        uint64_t lost_frees;          /* without an event: the address was given out again */
    } counts;
    bool expandable;  /* some memory of a pool joins its neighbours and goes back in parts */
    uint64_t end_ns;  /* of the last event */
    uint64_t uses_ns; /* when the last copy, set or use was */
};

/* Reads the whole trace, which must stay open, and leaves it rewound. E_HOST_MEMORY, also for
 * more blocks than can be numbered; E_IO. */
bly_status blyi_history_make(struct blyi_trace *trace, struct blyi_history *out);
void blyi_history_fini(struct blyi_history *history);

static inline bool blyi_lives_at(const struct blyi_life *life, uint32_t at)
{
    return life->born_at <= at && life->died_at > at;
}
/* Freed, and not to be used again before a stream has passed. */
static inline bool blyi_waits_at(const struct blyi_life *life, uint32_t at)
{
    return life->died_at <= at && life->done_at > at;
}
static inline bool blyi_piece_lives_at(const struct blyi_piece *piece, uint32_t at)
{
    return piece->born_at <= at && piece->died_at > at;
}
static inline bool blyi_is_card(const struct blyi_life *life)
{
    return life->card != BLYI_NO_CARD;
}
static inline uint32_t blyi_history_end(const struct blyi_history *history)
{
    return (uint32_t)history->n_changes;
}

#endif
