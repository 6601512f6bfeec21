/* SPDX-License-Identifier: Apache-2.0
 *
 * inner.c - see inner.h.
 */
#include "plan/inner.h"

#include "base/fail.h"
#include "base/host.h"
#include "plan/bound.h"

#define NODES ((uint64_t)400000)

static bly_status solve(struct blyi_solve *s)
{
    bly_status status = blyi_bound_load(s->pack, NULL, &s->bound);
    if (status == BLY_OK)
        status = blyi_solve_first(s);
    if (status == BLY_OK && !blyi_solve_done(s) && !blyi_stop_now(&s->stop))
        status = blyi_solve_race(s);
    return status;
}

bly_status blyi_solve_inner(struct blyi_solve *outer, const bly_plan_buffer *buffers, size_t n,
                            const struct blyi_stop *stop, int64_t *offset, int64_t *peak)
{
    struct blyi_pack pack;
    bly_status status = blyi_pack_init(&pack, buffers, NULL, n, 1);
    if (status != BLY_OK)
        return status;
    struct blyi_solve s = {.pack = &pack, .seed = outer->seed, .stop = *stop};
    uint64_t left = outer->node_budget - outer->nodes;
    s.began_ns = blyi_clock_ns();
    s.enough = outer->bound / pack.unit;
    s.node_budget = left < NODES ? left : NODES;
    s.n_threads = outer->n_threads;
    s.peak = INT64_MAX;
    s.offset = blyi_host_alloc((n + 1) * sizeof(*s.offset));
    s.spare = blyi_host_alloc((n + 1) * sizeof(*s.spare));
    if (s.offset == NULL || s.spare == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory", n);
    else
        status = solve(&s);
    outer->nodes += s.nodes;
    for (size_t x = 0; status == BLY_OK && x < n; x++)
        offset[x] = s.offset[x] * pack.unit;
    *peak = status == BLY_OK ? s.peak * pack.unit : 0;
    blyi_host_free(s.offset);
    blyi_host_free(s.spare);
    blyi_pack_fini(&pack);
    return status;
}
