/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h - is this plan valid? Knows buffers and offsets only, nothing of how they were found.
 */
#ifndef BLYI_PLAN_VERIFY_H
#define BLYI_PLAN_VERIFY_H

#include <belay/plan.h>

/* What a sweep reads of a buffer. */
struct blyi_span {
    int64_t lower, upper;
    uint64_t start, end; /* bytes in use */
    uint32_t buffer;
};

/* Finds two spans that overlap in time and place: their buffers in pair[0 .. 1], or
 * UINT32_MAX twice.
 * E_HOST_MEMORY: nothing is known. */
bly_status blyi_spans_sweep(const struct blyi_span *spans, size_t n, uint32_t pair[2]);

/* Fills spans[0 .. *n) with the parts of a buffer that are in use when it lies at `offset`;
 * room for n_gaps * 2 + 1. */
void blyi_spans_of(const bly_plan_buffer *buffer, uint32_t index, uint64_t offset,
                   struct blyi_span *spans, size_t *n);

#endif
