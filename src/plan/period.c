/* SPDX-License-Identifier: Apache-2.0
 *
 * period.c - finds the step that a sequence of allocations repeats: exactly, or with sizes that
 * differ from step to step.
 */
#include <belay/plan.h>

#include <stdbool.h>

#include "base/fail.h"
#include "base/host.h"
#include "plan/check.h"
#include "plan/repeat.h"
#include "plan/sort.h"

#define GROWTH 20 /* of so many births in a step at most one may stay for good */

/* How much is live just before each birth. */
struct levels {
    uint64_t *count, *bytes; /* n + 1 values each, the last behind all births */
};

static void levels_fini(struct levels *levels)
{
    blyi_host_free(levels->count);
    blyi_host_free(levels->bytes);
}

static uint64_t upper_key(const struct blyi_birth *b)
{
    return ((uint64_t)b->lower + b->life) ^ ((uint64_t)1 << 63);
}

static uint64_t lower_key(const struct blyi_birth *b)
{
    return (uint64_t)b->lower ^ ((uint64_t)1 << 63);
}

static bly_status levels_init(struct levels *levels, const struct blyi_births *births)
{
    size_t n = births->n, dead = 0;
    struct blyi_sort_key *keys = blyi_host_alloc_dense((2 * n + 1) * sizeof(*keys));
    levels->count = blyi_host_alloc_dense((n + 1) * sizeof(*levels->count));
    levels->bytes = blyi_host_alloc_dense((n + 1) * sizeof(*levels->bytes));
    if (keys == NULL || levels->count == NULL || levels->bytes == NULL) {
        blyi_host_free(keys);
        levels_fini(levels);
        return blyi_fail(BLY_E_HOST_MEMORY, "looking for steps: the host has no memory");
    }
    for (size_t x = 0; x < n; x++)
        keys[x] = (struct blyi_sort_key){upper_key(&births->at[x]), (uint32_t)x};
    blyi_sort_keys(keys, keys + n, n);
    uint64_t bytes = 0;
    for (size_t x = 0; x <= n; x++) {
        for (; dead < n && (x == n || keys[dead].key <= lower_key(&births->at[x])); dead++)
            bytes -= births->at[keys[dead].value].size;
        levels->count[x] = x - dead;
        levels->bytes[x] = bytes;
        bytes += x < n ? births->at[x].size : 0;
    }
    blyi_host_free(keys);
    return BLY_OK;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A step gives back what it takes: layers of a forward pass and loading weights are none. The
 * first of several may be the one that fills up. */
static bool gives_back(const struct levels *levels, const struct blyi_repeat *r)
{
    size_t steps = r->run / r->distance, from = r->first + (steps > 1 ? r->distance : 0);
    size_t to = r->first + steps * r->distance;
    return apart(levels->count[from], levels->count[to]) <= (to - from) / GROWTH;
}

static bool covers_enough(const struct blyi_repeat *r, size_t n)
{
    return r->run + r->distance >= n / 3;
}

/* Steps begin where least is live; that may cost one of four or more. */
static void set_begin(struct blyi_repeat *r, const struct levels *levels)
{
    size_t spare = r->run % r->distance;
    if (r->run / r->distance > 2)
        spare = r->distance - 1;
    size_t best = r->first;
    for (size_t x = r->first; x <= r->first + spare; x++) {
        if (levels->bytes[x] < levels->bytes[best])
            best = x;
    }
    r->run -= best - r->first;
    r->first = best;
}

static bly_status none_found(const struct blyi_repeat *r, size_t n)
{
    if (r->run == 0)
        return blyi_fail(BLY_E_STATE, "%zu buffers: no step is repeated", n);
    return blyi_fail(
        BLY_E_STATE,
        "%zu buffers: no step is repeated through a third of them (the longest repeat: %zu "
        "born, %zu times)",
        n, r->distance, r->run / r->distance + 1);
}

static bly_status find(const struct blyi_births *births, const struct levels *levels,
                       bly_plan_period *period)
{
    struct blyi_repeat r, longest = {0, 0, 0};
    for (int any_size = 0; any_size < 2; any_size++) {
        bly_status status = blyi_repeat_find(births, any_size != 0, &r);
        if (status != BLY_OK)
            return status;
        if (r.run > 0 && covers_enough(&r, births->n) && gives_back(levels, &r)) {
            set_begin(&r, levels);
            int64_t start = births->at[r.first].lower;
            int64_t next = births->at[r.first + r.distance].lower;
            *period = (bly_plan_period){start,   next - start, r.run / r.distance + 1,
                                        r.first, r.distance,   any_size};
            return BLY_OK;
        }
        longest = any_size == 0 ? r : longest;
    }
    return none_found(&longest, births->n);
}

bly_status bly_plan_find_period(const bly_plan_buffer *buffers, size_t n, bly_plan_period *period)
{
    bly_plan_opts opts = bly_plan_opts_default();
    bly_status status = blyi_plan_check(buffers, n, &opts, NULL);
    if (status != BLY_OK)
        return status;
    struct blyi_births births;
    struct levels levels;
    status = blyi_births_init(&births, buffers, n);
    if (status != BLY_OK)
        return status;
    status = levels_init(&levels, &births);
    if (status == BLY_OK) {
        status = find(&births, &levels, period);
        levels_fini(&levels);
    }
    blyi_births_fini(&births);
    return status;
}
