/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.h - a program's allocations, replayed against an allocator's policy.
 *
 * A trace is an array of events over blocks that are numbered from 0. A policy is an allocator
 * behind four functions; a run gives it one event after the other and asks for its figures. The
 * same events give the same figures on every machine: time is the number of the event. [excl]
 */
#ifndef BLYI_REPLAY_H
#define BLYI_REPLAY_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/compiler.h"

#define BLYI_REPLAY_PAGE      (2 * MiB)           /* what cards map */
#define BLYI_REPLAY_UNBOUNDED ((uint64_t)1 << 62) /* capacity that no trace reaches */
#define BLYI_REPLAY_LIVE_MAX  ((uint64_t)1 << 48) /* of a trace */

enum blyi_replay_op {
    BLYI_REPLAY_ALLOC, /* block bytes stream */
    BLYI_REPLAY_FREE,  /* block; told: its uses elsewhere end by a DONE */
    BLYI_REPLAY_USE,   /* block stream: work there uses it too; before its FREE */
    BLYI_REPLAY_DONE,  /* block: after its FREE, all those uses are over */
    BLYI_REPLAY_SYNC,  /* stream, -1: all: the host waited for it */
    BLYI_REPLAY_MARK,  /* a point for people */
};

struct blyi_replay_event {
    uint64_t bytes;
    uint32_t block;
    int32_t stream;
    uint8_t op;
    bool told;
};

struct blyi_replay_trace {
    struct blyi_replay_event *events;
    size_t n_events, n_allocs;
    uint32_t n_blocks;
    uint64_t peak_live; /* most bytes asked for between ALLOC and FREE */
};

/* What an allocator took from its driver. A range is a run of addresses that one call maps or
 * unmaps, a handle is a piece of memory that the driver knows by itself. */
struct blyi_replay_figures {
    uint64_t reserved, peak_reserved;
    uint64_t ranges_mapped, ranges_unmapped;
    uint64_t handles_mapped, handles_unmapped;
    uint64_t pages_mapped, pages_unmapped; /* BLYI_REPLAY_PAGE */
    uint64_t waits;                        /* times that the host waited for one use to end */
    uint64_t flushes;                      /* times that it waited for all, to give memory back */
};

struct blyi_replay_setup {
    const struct blyi_replay_trace *trace;
    uint64_t capacity; /* of the card */
    uint64_t pad;      /* bytes added to every request */
    uint32_t lag;      /* events after which work is done, where the trace does not tell */
    bool unchecked;    /* for times: a policy need not look whether it is right */
    uint32_t threads;  /* that call in turn; 0: one. Only a policy with caches by thread looks */
};

struct blyi_replay_policy {
    const char *name;
    const char *about; /* one line */
    bool tells;        /* its E_NO_MEMORY leaves a sentence of its own */
    /* E_HOST_MEMORY, or what the allocator behind it says. */
    bly_status (*make)(const struct blyi_replay_setup *setup, void **state);
    /* Event number `now`. E_NO_MEMORY: an ALLOC that does not fit, also after giving back what was
     * idle. E_HOST_MEMORY. After an error only figures and drop may be called. */
    bly_status (*step)(void *state, size_t now, const struct blyi_replay_event *event);
    void (*figures)(const void *state, struct blyi_replay_figures *figures);
    void (*drop)(void *state);
};

extern const struct blyi_replay_policy blyi_replay_stock, blyi_replay_caching,
    blyi_replay_expandable, blyi_replay_firstfit;

struct blyi_replay_result {
    struct blyi_replay_figures figures;
    uint64_t live, ns; /* live bytes where it ended; time in the policy */
    bly_status status;
    size_t failed_at; /* event, where status is not OK */
};

/* Looked at after each event; reserved and live of that moment. */
typedef void blyi_replay_watch(void *context, size_t event, uint64_t reserved, uint64_t live);

/* The whole trace. E_NO_MEMORY and E_HOST_MEMORY stand in the result too, which is always written;
 * the sentence names event, request and what was held. `watch` may be NULL. */
bly_status blyi_replay_run(const struct blyi_replay_policy *policy,
                           const struct blyi_replay_setup *setup, blyi_replay_watch *watch,
                           void *context, struct blyi_replay_result *result);

/* The smallest capacity in pages at which the trace completes, found by halving, so it takes for
 * granted that a card with more memory never does worse. A card smaller by `within` bytes or one
 * page, whichever is more, was tried and fails, or is below the peak of live bytes. `result` is of
 * the run at that capacity. Errors as of blyi_replay_run(). */
bly_status blyi_replay_least(const struct blyi_replay_policy *policy,
                             const struct blyi_replay_setup *setup, uint64_t within,
                             uint64_t *capacity, struct blyi_replay_result *result);

#endif
