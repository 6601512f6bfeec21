/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.c - lower bounds: live sums, and subset sums on tight sections.
 */
#include "plan/bound.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

#define UNITS_MAX 8192                         /* largest capacity whose sums are kept as bits */
#define WORK_MAX  ((uint64_t)20 * 1000 * 1000) /* words touched */

bly_status blyi_bound_load(const struct blyi_pack *pack, int64_t *load, int64_t *bound)
{
    int64_t *sum = blyi_host_calloc_dense(pack->n_sections + (size_t)2, sizeof(*sum));
    if (sum == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "bounding %u buffers: the host has no memory", pack->n);
    for (uint32_t i = 0; i < pack->n; i++) {
        struct blyi_pack_piece own;
        uint32_t count;
        const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
        for (uint32_t c = 0; c < count; c++) {
            sum[p[c].first] += p[c].hi - p[c].lo;
            sum[p[c].last + 1] -= p[c].hi - p[c].lo;
        }
    }
    int64_t now = 0, most = 0;
    for (uint32_t s = 0; s < pack->n_sections; s++) {
        now += sum[s];
        most = now > most ? now : most;
        if (load != NULL)
            load[s] = now;
    }
    blyi_host_free(sum);
    for (uint32_t i = 0; i < pack->n; i++) {
        int64_t start = blyi_pack_is_fixed(pack, i) ? pack->fixed[i] : 0;
        most = start + pack->items[i].size > most ? start + pack->items[i].size : most;
    }
    *bound = most;
    return BLY_OK;
}

/* Sets of offsets 0 .. units as bits. */
struct sets {
    size_t words;
    uint64_t *sums, *allowed; /* words, n * words */
    uint64_t work;
};

/* set |= set << by */
static void shift_or(uint64_t *set, size_t words, uint64_t by)
{
    size_t skip = by / 64;
    unsigned bits = by % 64;
    for (size_t w = words; w-- > skip;) {
        uint64_t v = set[w - skip] << bits;
        if (bits != 0 && w > skip)
            v |= set[w - skip - 1] >> (64 - bits);
        set[w] |= v;
    }
}

/* Sums of the sizes of the section's items without item i, then widened by the slack. */
static void sums_without(struct sets *sets, const struct blyi_pack *pack, const uint32_t *in,
                         size_t n_in, uint32_t i, int64_t slack)
{
    memset(sets->sums, 0, sets->words * sizeof(uint64_t));
    sets->sums[0] = 1;
    for (size_t k = 0; k < n_in; k++) {
        if (in[k] != i)
            shift_or(sets->sums, sets->words, (uint64_t)pack->items[in[k]].size);
    }
    for (int64_t width = 1; width <= slack;) {
        int64_t step = width <= slack - width + 1 ? width : slack - width + 1;
        shift_or(sets->sums, sets->words, (uint64_t)step);
        width += step;
    }
    sets->work += sets->words * n_in;
}

static bool is_empty(const uint64_t *set, size_t words)
{
    for (size_t w = 0; w < words; w++) {
        if (set[w] != 0)
            return false;
    }
    return true;
}

/* False: some item has no place left at this capacity, so no plan ends there. */
static bool may_fit(struct sets *sets, const struct blyi_pack *pack, const struct blyi_graph *graph,
                    int64_t capacity, uint32_t *in, struct blyi_stop *stop)
{
    memset(sets->allowed, 0xff, (size_t)pack->n * sets->words * sizeof(uint64_t));
    for (uint32_t s = 0; s < pack->n_sections; s++) {
        int64_t slack = capacity - graph->load[s];
        size_t n_in = 0;
        for (uint32_t i = 0; i < pack->n; i++) {
            if (pack->items[i].first <= s && s <= pack->items[i].last)
                in[n_in++] = i;
        }
        if (slack > capacity / 16)
            continue;
        for (size_t k = 0; k < n_in; k++) {
            uint64_t *allowed = sets->allowed + in[k] * sets->words;
            sums_without(sets, pack, in, n_in, in[k], slack);
            for (size_t w = 0; w < sets->words; w++)
                allowed[w] &= sets->sums[w];
            /* it must end at or below the capacity */
            uint64_t top = (uint64_t)(capacity - pack->items[in[k]].size) + 1;
            for (size_t w = top / 64; w < sets->words; w++)
                allowed[w] &= w == top / 64 ? ((uint64_t)1 << top % 64) - 1 : 0;
            if (is_empty(allowed, sets->words))
                return false;
        }
        if (sets->work > WORK_MAX || blyi_stop_now(stop))
            return true;
    }
    return true;
}

bly_status blyi_bound_subsets(const struct blyi_pack *pack, const struct blyi_graph *graph,
                              int64_t limit, struct blyi_stop *stop, int64_t *bound)
{
    if (pack->pieces != NULL || pack->fixed != NULL || pack->align != NULL || limit > UNITS_MAX ||
        pack->n == 0)
        return BLY_OK;
    struct sets sets = {(size_t)limit / 64 + 1, NULL, NULL, 0};
    sets.sums = blyi_host_alloc_dense(sets.words * sizeof(uint64_t));
    sets.allowed = blyi_host_alloc_dense((size_t)pack->n * sets.words * sizeof(uint64_t));
    uint32_t *in = blyi_host_alloc_dense(pack->n * sizeof(*in));
    bly_status status = BLY_OK;
    if (sets.sums == NULL || sets.allowed == NULL || in == NULL)
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "bounding %u buffers: the host has no memory", pack->n);
    while (status == BLY_OK && *bound < limit && !may_fit(&sets, pack, graph, *bound, in, stop))
        ++*bound;
    blyi_host_free(sets.sums);
    blyi_host_free(sets.allowed);
    blyi_host_free(in);
    return status;
}
