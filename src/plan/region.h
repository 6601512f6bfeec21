/* SPDX-License-Identifier: Apache-2.0
 *
 * region.h - the plan of one region, in bytes.
 */
#ifndef BLYI_PLAN_REGION_H
#define BLYI_PLAN_REGION_H

#include <belay/plan.h>
#include "plan/stop.h"

struct blyi_region_job {
    /* given */
    const bly_plan_buffer *buffers;
    const uint32_t *members; /* NULL: all buffers */
    size_t n;                /* members */
    const bly_plan_opts *opts;
    uint64_t capacity;    /* UINT64_MAX: none */
    uint64_t node_budget; /* UINT64_MAX: none */
    uint64_t started_ns;
    bool reports; /* call opts->progress */
    struct blyi_stop stop;
    /* found */
    uint64_t *offset; /* by buffer, owned by the caller */
    uint64_t peak, bound, nodes;
    const char *solver;
};

/* E_NO_MEMORY: no plan within the capacity was found; E_HOST_MEMORY. */
bly_status blyi_region_plan(struct blyi_region_job *job);

/* Chooses which of members[0 .. *n) the region takes: first what is fixed there, then by area
 * while it fits below the capacity. The others move to rest[0 .. *n_rest).
 * E_HOST_MEMORY: members and rest are unspecified. */
bly_status blyi_region_fill(struct blyi_region_job *job, uint32_t region, uint32_t *members,
                            size_t *n, uint32_t *rest, size_t *n_rest);

/* Largest live sum of all buffers, whatever their region.
 * E_HOST_MEMORY: *sum is unspecified. */
bly_status blyi_region_live_sum(const bly_plan_buffer *buffers, size_t n, uint64_t *sum);

#endif
