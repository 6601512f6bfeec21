/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_judge.h - private to insight_cause*.c: one function each cause.
 */
#ifndef BLYI_INSIGHT_JUDGE_H
#define BLYI_INSIGHT_JUDGE_H

#include "base/compiler.h"
#include "base/size.h"
#include "observe/insight_cause.h"

struct blyi_case {
    const struct blyi_insight *in;
    const struct blyi_order_findings *order;
    struct blyi_explanation explained[BLYI_WHY_UNTOLD + 1]; /* the first of each reason */
    struct blyi_explanation first;                          /* of those, the first of all */
    bool has_first;
    uint64_t n_why[BLYI_WHY_UNTOLD + 1];                    /* refusals by reason */
    const struct blyi_refusal *by_why[BLYI_WHY_UNTOLD + 1]; /* the first of each */
    bool imported;
};

typedef void blyi_judge(const struct blyi_case *c, struct blyi_cause *out);
blyi_judge blyi_judge_fragmentation, blyi_judge_cached, blyi_judge_others, blyi_judge_pool_growth,
    blyi_judge_too_small, blyi_judge_device, blyi_judge_leak, blyi_judge_things, blyi_judge_orphan,
    blyi_judge_sync, blyi_judge_rounding, blyi_judge_cap, blyi_judge_pinned, blyi_judge_host;

void blyi_judge_set(struct blyi_cause *out, enum blyi_verdict verdict, const char *fmt, ...)
    BLYI_PRINTF(3, 4);
void blyi_judge_add(struct blyi_cause *out, const char *fmt, ...) BLYI_PRINTF(2, 3);
void blyi_judge_cure(struct blyi_cause *out, const char *fmt, ...) BLYI_PRINTF(2, 3);

/* "4096 B (4 KiB)", in one of eight buffers in turn. */
const char *blyi_judge_size(uint64_t bytes);
const char *blyi_judge_site(const struct blyi_case *c, uint32_t label); /* cut to a line */
static inline const char *blyi_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Enough to speak of: a tenth of the whole, and 1 MiB. */
static inline bool blyi_is_much(uint64_t part, uint64_t whole)
{
    return part >= (uint64_t)1024 * 1024 && part >= whole / 10;
}

#endif
