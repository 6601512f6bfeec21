/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_cause.h - the known causes of trouble with memory, each held against a recording.
 *
 * A cause applies, does not apply, or the file cannot tell. Evidence has exact figures; where the
 * file cannot tell it says what is missing. Nothing is guessed.
 */
#ifndef BLYI_INSIGHT_CAUSE_H
#define BLYI_INSIGHT_CAUSE_H

#include "observe/insight.h"
#include "observe/insight_refusal.h"

/* X(name, key, title) */
#define BLYI_CAUSES(X)                                                                             \
    X(FRAGMENTATION, "fragmentation", "fragmentation")                                             \
    X(CACHED, "cached", "memory cached by a pool")                                                 \
    X(OTHERS, "other-process", "another process on the card")                                      \
    X(LEAK, "leak", "a leak")                                                                      \
    X(THINGS, "leaked-objects", "leaked streams, events or notifies")                              \
    X(ORPHAN, "orphan-physical", "physical memory that no address reaches")                        \
    X(SYNC, "missing-sync", "missing synchronisation")                                             \
    X(POOL_GROWTH, "pool-growth", "a pool that grows")                                             \
    X(ROUNDING, "over-rounding", "rounding")                                                       \
    X(CAP, "cap", "the cap of the process")                                                        \
    X(PINNED, "pinned-limit", "the limit of pinned host memory")                                   \
    X(DEVICE, "wrong-device", "the wrong card")                                                    \
    X(TOO_SMALL, "too-small", "more than the card has")                                            \
    X(HOST, "host-memory", "a host short of memory")

enum blyi_cause_kind {
#define BLYI_CAUSE_ENUM(name, key, title) BLYI_CAUSE_##name,
    BLYI_CAUSES(BLYI_CAUSE_ENUM)
#undef BLYI_CAUSE_ENUM
        BLYI_CAUSE_COUNT
};

enum blyi_verdict { BLYI_APPLIES, BLYI_DOES_NOT, BLYI_CANNOT_TELL };

#define BLYI_CAUSE_TEXT 1536
struct blyi_cause {
    enum blyi_cause_kind kind;
    enum blyi_verdict verdict;
    uint64_t bytes; /* that it is about; 0: not a matter of bytes */
    char evidence[BLYI_CAUSE_TEXT];
    char cure[BLYI_CAUSE_TEXT]; /* "" unless it applies */
};

/* What a checker of order found in the same file. */
struct blyi_order_findings {
    uint64_t n;
    const char *first; /* its sentence */
};

const char *blyi_cause_key(enum blyi_cause_kind kind);
const char *blyi_cause_title(enum blyi_cause_kind kind);
const char *blyi_verdict_key(enum blyi_verdict verdict);
const char *blyi_verdict_words(enum blyi_verdict verdict);

/* order: NULL when nobody looked. E_HOST_MEMORY. */
bly_status blyi_causes_make(const struct blyi_insight *insight,
                            const struct blyi_order_findings *order,
                            struct blyi_cause causes[BLYI_CAUSE_COUNT]);

#endif
