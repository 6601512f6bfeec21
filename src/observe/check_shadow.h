/* SPDX-License-Identifier: Apache-2.0
 *
 * check_shadow.h - what is known of the bytes of one piece of memory: who wrote them last, who has
 * read them since, and whether anybody ever wrote them.
 *
 * Segments, by rising offset, not overlapping; bytes in none were never touched. When they become
 * too many, all is forgotten: what is not known is no evidence.
 */
#ifndef BLYI_CHECK_SHADOW_H
#define BLYI_CHECK_SHADOW_H

#include "base/tree.h"
#include "observe/check_clock.h"

enum blyi_work {
    BLYI_WORK_COPY,
    BLYI_WORK_SET,
    BLYI_WORK_REDUCE,
    BLYI_WORK_KERNEL,
    BLYI_WORK_VALUE,
    BLYI_WORK_OTHER,
};

/* One access, by a task or by the host (slot 0). It is before whatever knows of its clock. */
struct blyi_epoch {
    uint64_t clock;
    uint64_t task;   /* number in its stream */
    uint64_t when;   /* how many tasks had ended */
    uint32_t slot;   /* component of clocks */
    uint32_t stream; /* id; 0: the host */
    uint32_t site;
    uint32_t area; /* through which addresses */
    uint8_t work;  /* enum blyi_work */
};

struct blyi_shadow {
    struct blyi_tree segments;
    uint32_t refs;
    bool forgot;      /* all of it, once */
    bool is_shared;   /* other processes may write there, which nobody tells of */
    bool tracks_init; /* whether bytes that nobody wrote can be told */
    uint64_t unknown; /* how much unknown work there was when the memory was made */
};

/* An access that the new one is in no order with. */
struct blyi_conflict {
    struct blyi_epoch with;
    bool with_write;
    uint64_t lo, hi; /* where the two meet, offsets */
};
#define BLYI_CONFLICTS 4

/* Enters an access and finds the first few that it conflicts with, one for each other access.
 * `known`: what the one who makes it knows, itself included. False: no host memory. */
bool blyi_shadow_access(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                        const struct blyi_epoch *epoch, const struct blyi_vc *known, bool writes,
                        struct blyi_conflict *conflicts, uint32_t *n_conflicts);
/* Written, but not as evidence of an order. when: as of an epoch. False: no host memory. */
bool blyi_shadow_fill(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi, uint64_t when);
/* Whether a task may have written there since so many had ended. */
bool blyi_shadow_written_since(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                               uint64_t when);

struct blyi_gap {
    uint64_t lo, hi;
};
#define BLYI_GAPS 32
/* Bytes in the range that nobody wrote; the first gaps of them. More gaps than BLYI_GAPS: 0. */
uint64_t blyi_shadow_gaps(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                          struct blyi_gap gaps[BLYI_GAPS], uint32_t *n);
/* The bytes count as written by nobody again (a copy of such bytes). False: no host memory. */
bool blyi_shadow_unwrite(struct blyi_shadow *shadow, uint64_t lo, uint64_t hi);

/* Accesses in the range that `known` does not know. */
typedef void blyi_shadow_fn(void *arg, const struct blyi_epoch *epoch, bool write);
void blyi_shadow_unknown(const struct blyi_shadow *shadow, uint64_t lo, uint64_t hi,
                         const struct blyi_vc *known, blyi_shadow_fn *fn, void *arg);

void blyi_shadow_forget(struct blyi_shadow *shadow);
bool blyi_shadow_audit(const struct blyi_shadow *shadow);

#endif
