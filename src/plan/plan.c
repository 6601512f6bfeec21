/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c - bly_plan(): checks, regions one after another, the sweep over the result.
 */
#include <belay/plan.h>

#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/check.h"
#include "plan/region.h"

#define DEADLINE_NS ((uint64_t)1000 * 1000 * 1000)

struct request {
    const bly_plan_buffer *buffers;
    size_t n;
    bly_plan_opts opts; /* with defaults filled in */
    uint64_t started_ns, deadline_ns, node_budget;
};

static void fill_defaults(struct request *q, const bly_plan_opts *opts)
{
    q->opts = *opts;
    q->started_ns = blyi_clock_ns();
    if (q->opts.align == 0)
        q->opts.align = 1;
    if (q->opts.n_regions == 0)
        q->opts.n_regions = 1;
    if (q->opts.n_threads == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        q->opts.n_threads = cores > 0 ? (uint32_t)cores : 1;
    }
    uint64_t wait = opts->deadline_ns;
    if (wait == 0)
        wait = opts->node_budget == 0 ? DEADLINE_NS : UINT64_MAX;
    q->deadline_ns = wait > UINT64_MAX - q->started_ns ? UINT64_MAX : q->started_ns + wait;
    q->node_budget = opts->node_budget == 0 ? UINT64_MAX : opts->node_budget;
}

static uint64_t capacity_of(const struct request *q, uint32_t region)
{
    if (q->opts.capacity == NULL || q->opts.capacity[region] == 0)
        return UINT64_MAX;
    return q->opts.capacity[region];
}

/* Shares what is left of time and budget with the regions to come. */
static void begin_region(const struct request *q, uint32_t region, uint64_t nodes,
                         struct blyi_region_job *job)
{
    uint64_t left = q->opts.n_regions - region, now = blyi_clock_ns();
    job->buffers = q->buffers;
    job->opts = &q->opts;
    job->capacity = capacity_of(q, region);
    job->started_ns = q->started_ns;
    job->reports = q->opts.progress != NULL && q->opts.n_regions == 1;
    job->node_budget = q->node_budget;
    if (q->node_budget != UINT64_MAX)
        job->node_budget = (q->node_budget - nodes) / left;
    job->stop = (struct blyi_stop){q->deadline_ns, q->opts.cancel, 0, false};
    if (q->deadline_ns != UINT64_MAX && q->deadline_ns > now)
        job->stop.deadline_ns = now + (q->deadline_ns - now) / left;
}

static bly_status plan_single(const struct request *q, bly_plan_result *r)
{
    struct blyi_region_job job = {.n = q->n, .offset = r->offset};
    begin_region(q, 0, 0, &job);
    bly_status status = blyi_region_plan(&job);
    r->region_peak[0] = job.peak;
    r->lower_bound = job.bound;
    r->nodes = job.nodes;
    r->solver = job.solver;
    return status;
}

static bly_status plan_regions(const struct request *q, bly_plan_result *r)
{
    size_t n = q->n, n_rest = 0;
    uint32_t *members = blyi_host_alloc_dense((2 * n + 1) * sizeof(*members));
    if (members == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory", n);
    uint32_t *rest = members + n;
    for (size_t i = 0; i < n; i++)
        members[i] = (uint32_t)i;
    /* At its time, the largest live sum of everything lies below the sum of all peaks. */
    bly_status status = blyi_region_live_sum(q->buffers, n, &r->lower_bound);
    r->solver = "none";
    for (uint32_t g = 0; g < q->opts.n_regions && status == BLY_OK; g++) {
        struct blyi_region_job job = {.offset = r->offset};
        begin_region(q, g, r->nodes, &job);
        status = blyi_region_fill(&job, g, members, &n, rest, &n_rest);
        if (status != BLY_OK)
            break;
        job.members = members;
        job.n = n;
        status = blyi_region_plan(&job);
        for (size_t k = 0; k < n; k++)
            r->region[members[k]] = g;
        r->region_peak[g] = job.peak;
        r->nodes += job.nodes;
        r->solver = n > 0 ? job.solver : r->solver;
        memcpy(members, rest, n_rest * sizeof(*members));
        n = n_rest;
    }
    if (status == BLY_OK && n > 0)
        status = blyi_fail(BLY_E_NO_MEMORY, "%zu of %zu buffers found no room in %u regions", n,
                           q->n, q->opts.n_regions);
    blyi_host_free(members);
    return status;
}

static bly_status make_result(const struct request *q, bly_plan_result *r)
{
    size_t n = q->n;
    memset(r, 0, sizeof(*r));
    r->n = n;
    r->n_regions = q->opts.n_regions;
    r->offset = blyi_host_calloc_dense(n + 1, sizeof(*r->offset));
    r->region_peak = blyi_host_calloc(r->n_regions, sizeof(*r->region_peak));
    if (r->n_regions > 1)
        r->region = blyi_host_calloc_dense(n + 1, sizeof(*r->region));
    if (r->offset != NULL && r->region_peak != NULL && (r->n_regions == 1 || r->region != NULL))
        return BLY_OK;
    bly_plan_release(r);
    return blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory for offsets",
                     n);
}

/* A plan that the sweep refuses is a fault of ours and must not leave the library. */
static bly_status finish(const struct request *q, bly_plan_result *r)
{
    bly_status status =
        bly_plan_verify(q->buffers, q->n, q->opts.align, r->offset, r->region, &r->peak);
    if (status == BLY_E_HOST_MEMORY)
        return status;
    bly_check_msg(status == BLY_OK, "solver %s: %s", r->solver, blyi_fail_text());
    r->optimal = r->peak == r->lower_bound;
    if (r->lower_bound > 0)
        r->gap = (double)(r->peak - r->lower_bound) / (double)r->lower_bound;
    r->cancelled = q->opts.cancel != NULL && *q->opts.cancel != 0;
    r->elapsed_ns = blyi_clock_ns() - q->started_ns;
    return BLY_OK;
}

bly_status bly_plan(const bly_plan_buffer *buffers, size_t n, const bly_plan_opts *opts,
                    bly_plan_result *result)
{
    bly_plan_opts standard = bly_plan_opts_default();
    if (opts == NULL)
        opts = &standard;
    bly_status status = blyi_plan_check(buffers, n, opts, NULL);
    if (status != BLY_OK)
        return status;
    struct request q = {.buffers = buffers, .n = n};
    fill_defaults(&q, opts);
    if (opts->cancel != NULL && *opts->cancel != 0)
        return blyi_fail(BLY_E_CANCELLED, "planning %zu buffers: cancelled before it began", n);
    bly_plan_result r;
    status = make_result(&q, &r);
    if (status != BLY_OK)
        return status;
    status = q.opts.n_regions == 1 ? plan_single(&q, &r) : plan_regions(&q, &r);
    if (status == BLY_OK)
        status = finish(&q, &r);
    if (status != BLY_OK) {
        bly_plan_release(&r);
        return status;
    }
    *result = r;
    return BLY_OK;
}

void bly_plan_release(bly_plan_result *result)
{
    blyi_host_free(result->offset);
    blyi_host_free(result->region);
    blyi_host_free(result->region_peak);
    memset(result, 0, sizeof(*result));
}
