/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_latency.h - how long calls took that made memory and gave it back: by size, over time,
 * and where that changed. Of files that tell it: recordings of Belay itself.
 *
 * Time is from the call's beginning in the runtime to its event, waits for locks included.
 * Percentiles are of the nearest rank: times that some call did take.
 */
#ifndef BLYI_INSIGHT_LATENCY_H
#define BLYI_INSIGHT_LATENCY_H

#include "observe/insight_history.h"

/* By bytes asked: up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB, 4 GiB, and more. */
#define BLYI_LATENCY_CLASSES 7
#define BLYI_LATENCY_ALL     BLYI_LATENCY_CLASSES      /* in place of a class */
uint64_t blyi_latency_class_most(unsigned size_class); /* UINT64_MAX: no limit */
const char *blyi_call_key(enum blyi_call_op op);       /* "alloc", "free", "host-alloc", ... */

struct blyi_latency {
    uint64_t count, sum_ns, p50_ns, p99_ns, max_ns;
    uint64_t max_seq, max_at_ns; /* the first call that took longest: its event and moment */
};

struct blyi_latency_row {
    enum blyi_call_op op;
    unsigned size_class; /* or ALL, when calls are of more than one class; before its classes */
    struct blyi_latency latency;
};

/* A part of all calls of one kind, as many calls in each. */
#define BLYI_LATENCY_WINDOWS 64
struct blyi_latency_window {
    enum blyi_call_op op;
    uint64_t from_ns, to_ns;
    uint32_t at;  /* behind its last call */
    uint8_t card; /* of its last call */
    struct blyi_latency latency;
    uint64_t blocks; /* of that memory then */
};

/* The p50 of calls of one kind and size class changes at one call at least by the factor. */
#define BLYI_BEND_FACTOR 2
struct blyi_bend {
    enum blyi_call_op op;
    unsigned size_class;
    uint64_t seq, ns; /* the first call behind it */
    uint8_t card;     /* of that call; BLYI_NO_CARD: pinned memory */
    struct blyi_latency before, after;
    struct blyi_bend_state { /* of that memory, behind the first call of all and behind this one */
        uint32_t at;
        uint64_t blocks, backed;
        uint64_t free; /* of the card, where free_told */
    } first, then;
    bool free_told;
    uint32_t moment; /* mark or range begun last before it, + 1; 0: none */
};

struct blyi_latencies {
    struct blyi_latency_row *rows; /* by op, then size class; none: the file does not tell */
    size_t n_rows;
    struct blyi_latency_window *windows; /* by op, then time */
    size_t n_windows;
    struct blyi_bend *bends; /* by falling time that calls behind took more or less altogether */
    size_t n_bends;
};
/* E_HOST_MEMORY. Ended by blyi_latencies_fini(). */
bly_status blyi_latencies_make(const struct blyi_history *history, struct blyi_latencies *out);
void blyi_latencies_fini(struct blyi_latencies *latencies);

#endif
