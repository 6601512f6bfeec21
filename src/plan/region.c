/* SPDX-License-Identifier: Apache-2.0
 *
 * region.c - from buffers to a problem, from its solution back to bytes.
 */
#include "plan/region.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "plan/bound.h"
#include "plan/fit.h"
#include "plan/shelf.h"
#include "plan/solve.h"

/* The sweep over the result takes so many halves of the time that building the problem took, and
 * at most so long a buffer where that was slow because memory was new. */
#define FINISH     6
#define FINISH_MAX 300 /* ns */

static uint32_t member(const struct blyi_region_job *job, size_t k)
{
    return job->members == NULL ? (uint32_t)k : job->members[k];
}

/* Sizes are rounded up where one alignment holds for all: the most that this adds to one. */
static uint64_t rounding(const struct blyi_region_job *job, const struct blyi_pack *pack)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < pack->n; k++) {
        uint64_t rounded = (uint64_t)(pack->items[k].size * pack->unit);
        uint64_t added = rounded - job->buffers[member(job, k)].size;
        most = added > most ? added : most;
    }
    return most;
}

/* Largest live sum of the sizes as they are. */
static bly_status live_sum(const struct blyi_region_job *job, const struct blyi_pack *pack,
                           uint64_t *sum)
{
    int64_t *change = blyi_host_calloc_dense(pack->n_sections + (size_t)2, sizeof(*change));
    if (change == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory", job->n);
    for (uint32_t k = 0; k < pack->n; k++) {
        struct blyi_pack_piece own;
        uint32_t count;
        const struct blyi_pack_piece *p = blyi_pack_pieces(pack, k, &count, &own);
        int64_t size = (int64_t)job->buffers[member(job, k)].size;
        for (uint32_t c = 0; c < count; c++) {
            int64_t hi = p[c].hi * pack->unit < size ? p[c].hi * pack->unit : size;
            change[p[c].first] += hi - p[c].lo * pack->unit;
            change[p[c].last + 1] -= hi - p[c].lo * pack->unit;
        }
    }
    int64_t now = 0, most = 0;
    for (uint32_t s = 0; s < pack->n_sections; s++) {
        now += change[s];
        most = now > most ? now : most;
    }
    blyi_host_free(change);
    *sum = (uint64_t)most;
    return BLY_OK;
}

static void to_bytes(struct blyi_region_job *job, const struct blyi_pack *pack,
                     const int64_t *offset)
{
    job->peak = 0;
    for (uint32_t k = 0; k < pack->n; k++) {
        uint32_t i = member(job, k);
        job->offset[i] = (uint64_t)(offset[k] * pack->unit);
        uint64_t end = job->offset[i] + job->buffers[i].size;
        job->peak = end > job->peak ? end : job->peak;
    }
}

static void raise_bound(struct blyi_region_job *job, const struct blyi_pack *pack, int64_t units,
                        uint64_t added)
{
    uint64_t bytes = (uint64_t)(units * pack->unit);
    bytes = bytes > added ? bytes - added : 0;
    job->bound = bytes > job->bound ? bytes : job->bound;
}

/* Checked like the result, since the caller may use it as one. */
static void report(struct blyi_solve *s)
{
    struct blyi_region_job *job = s->report_arg;
    to_bytes(job, s->pack, s->offset);
    uint64_t peak = 0;
    bly_status status =
        bly_plan_verify(job->buffers, job->n, job->opts->align, job->offset, NULL, &peak);
    bly_check_msg(status == BLY_OK || status == BLY_E_HOST_MEMORY, "solver %s: %s", s->solver,
                  blyi_fail_text());
    bly_plan_progress progress = {peak, job->bound, blyi_clock_ns() - job->started_ns, s->solver};
    if (status == BLY_OK)
        job->opts->progress(&progress, job->opts->progress_arg);
}

static bly_status solve(struct blyi_region_job *job, const struct blyi_pack *pack,
                        struct blyi_solve *s)
{
    bly_status status = blyi_bound_load(pack, NULL, &s->bound);
    if (status != BLY_OK)
        return status;
    uint64_t added = rounding(job, pack);
    status = live_sum(job, pack, &job->bound);
    if (status != BLY_OK)
        return status;
    raise_bound(job, pack, s->bound, added);
    if (job->bound > job->capacity)
        return blyi_fail(BLY_E_NO_MEMORY,
                         "%zu buffers: no plan fits into %llu bytes, because %llu are live or "
                         "fixed at once",
                         job->n, (unsigned long long)job->capacity, (unsigned long long)job->bound);
    status = blyi_solve_first(s);
    if (status == BLY_OK && !blyi_solve_done(s) && !blyi_stop_now(&s->stop))
        status = blyi_solve_race(s);
    if (s->peak == INT64_MAX)
        return status != BLY_OK ? status
                                : blyi_fail(BLY_E_CANCELLED,
                                            "planning %zu buffers: cancelled before "
                                            "there was a plan",
                                            job->n);
    /* What was found stands, even if the host ran out of memory while looking for better. */
    raise_bound(job, pack, s->bound, added);
    to_bytes(job, pack, s->offset);
    job->bound = job->bound < job->peak ? job->bound : job->peak;
    job->nodes = s->nodes;
    job->solver = s->solver;
    return BLY_OK;
}

bly_status blyi_region_live_sum(const bly_plan_buffer *buffers, size_t n, uint64_t *sum)
{
    struct blyi_region_job job = {.buffers = buffers, .n = n};
    struct blyi_pack pack;
    bly_status status = blyi_pack_init(&pack, buffers, NULL, n, 1);
    if (status != BLY_OK)
        return status;
    status = live_sum(&job, &pack, sum);
    blyi_pack_fini(&pack);
    return status;
}

static int64_t enough_units(const struct blyi_region_job *job, const struct blyi_pack *pack)
{
    if (job->capacity == UINT64_MAX || job->opts->improve != 0)
        return 0;
    return (int64_t)(job->capacity / (uint64_t)pack->unit);
}

/* Brings the deadline forward by what is still to be done after it, by half of the rest at most. */
static void leave_time(struct blyi_stop *stop, uint64_t needed_ns)
{
    uint64_t now = blyi_clock_ns();
    if (stop->deadline_ns == UINT64_MAX || stop->deadline_ns <= now)
        return;
    uint64_t most = (stop->deadline_ns - now) / 2;
    stop->deadline_ns -= needed_ns < most ? needed_ns : most;
}

bly_status blyi_region_plan(struct blyi_region_job *job)
{
    job->peak = job->bound = job->nodes = 0;
    job->solver = "none";
    if (job->n == 0)
        return BLY_OK;
    struct blyi_pack pack;
    uint64_t began_ns = blyi_clock_ns();
    bly_status status = blyi_pack_init(&pack, job->buffers, job->members, job->n, job->opts->align);
    if (status != BLY_OK)
        return status;
    leave_time(&job->stop, FINISH * (blyi_clock_ns() - began_ns) / 2);
    struct blyi_solve s = {.pack = &pack, .seed = job->opts->seed, .stop = job->stop};
    s.began_ns = began_ns;
    s.enough = enough_units(job, &pack);
    s.n_threads = job->opts->n_threads;
    s.node_budget = job->node_budget;
    s.peak = INT64_MAX;
    if (job->reports) {
        s.report = report;
        s.report_arg = job;
    }
    s.offset = blyi_host_alloc_dense(job->n * sizeof(*s.offset));
    s.spare = blyi_host_alloc_dense(job->n * sizeof(*s.spare));
    if (s.offset == NULL || s.spare == NULL)
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory", job->n);
    else
        status = solve(job, &pack, &s);
    blyi_host_free(s.offset);
    blyi_host_free(s.spare);
    blyi_pack_fini(&pack);
    if (status == BLY_OK && job->peak > job->capacity)
        return blyi_fail(BLY_E_NO_MEMORY,
                         "%zu buffers: no plan within %llu bytes was found; the best takes %llu, "
                         "and none takes less than %llu",
                         job->n, (unsigned long long)job->capacity, (unsigned long long)job->peak,
                         (unsigned long long)job->bound);
    return status;
}

/* Puts what fits on a shelf; taken[k] says whether member k found room. */
static bly_status fill_shelf(struct blyi_region_job *job, uint32_t region,
                             const struct blyi_pack *pack, const uint32_t *order, bool *taken)
{
    struct blyi_shelf shelf;
    bly_status status = blyi_shelf_init(&shelf, pack);
    if (status != BLY_OK)
        return status;
    int64_t capacity =
        job->capacity == UINT64_MAX ? INT64_MAX : (int64_t)(job->capacity / (uint64_t)pack->unit);
    for (int pass = 0; pass < 2; pass++) { /* those that must lie here come first */
        for (uint32_t x = 0; x < pack->n; x++) {
            uint32_t k = order[x];
            int32_t wish = job->buffers[member(job, k)].region;
            bool must = wish == (int32_t)region || blyi_pack_is_fixed(pack, k);
            if (taken[k] || (pass == 0) != must || (!must && wish != BLY_PLAN_FREE))
                continue;
            int64_t offset =
                blyi_pack_is_fixed(pack, k) ? pack->fixed[k] : blyi_shelf_room(&shelf, k, false);
            taken[k] =
                must || (offset + pack->items[k].size <= capacity && !blyi_stop_poll(&job->stop));
            if (taken[k] && !blyi_pack_is_fixed(pack, k))
                blyi_shelf_put(&shelf, k, offset);
        }
    }
    blyi_shelf_fini(&shelf);
    return BLY_OK;
}

/* Fixed offsets count in region 0 unless the buffer names another one. */
static bool belongs_elsewhere(const bly_plan_buffer *b, uint32_t region)
{
    if (b->region >= 0)
        return (uint32_t)b->region != region;
    return b->offset >= 0 && region != 0;
}

bly_status blyi_region_fill(struct blyi_region_job *job, uint32_t region, uint32_t *members,
                            size_t *n, uint32_t *rest, size_t *n_rest)
{
    size_t n_here = 0;
    *n_rest = 0;
    for (size_t k = 0; k < *n; k++) {
        if (belongs_elsewhere(&job->buffers[members[k]], region))
            rest[(*n_rest)++] = members[k];
        else
            members[n_here++] = members[k];
    }
    *n = n_here;
    if (job->capacity == UINT64_MAX || n_here == 0)
        return BLY_OK;
    job->members = members;
    job->n = n_here;
    struct blyi_pack pack;
    bly_status status = blyi_pack_init(&pack, job->buffers, members, n_here, job->opts->align);
    if (status != BLY_OK)
        return status;
    uint32_t *order = blyi_host_alloc_dense(n_here * sizeof(*order));
    bool *taken = blyi_host_calloc_dense(n_here, sizeof(*taken));
    if (order == NULL || taken == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory", *n);
    if (status == BLY_OK)
        status = blyi_fit_order(&pack, BLYI_FIT_AREA, 0, order);
    if (status == BLY_OK)
        status = fill_shelf(job, region, &pack, order, taken);
    for (size_t k = n_here = 0; status == BLY_OK && k < *n; k++) {
        if (taken[k])
            members[n_here++] = members[k];
        else
            rest[(*n_rest)++] = members[k];
    }
    *n = n_here;
    blyi_host_free(order);
    blyi_host_free(taken);
    blyi_pack_fini(&pack);
    return status;
}
