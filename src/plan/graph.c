/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c - which buffers meet, as flat arrays.
 */
#include "plan/search.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* How far above item i item k must lie if it lies above it at all; 0: they never meet. */
static int64_t lift_over(const struct blyi_pack *pack, uint32_t i, uint32_t k)
{
    struct blyi_pack_piece own_i, own_k;
    uint32_t n_i, n_k;
    const struct blyi_pack_piece *a = blyi_pack_pieces(pack, i, &n_i, &own_i);
    const struct blyi_pack_piece *b = blyi_pack_pieces(pack, k, &n_k, &own_k);
    int64_t lift = INT64_MIN;
    for (uint32_t x = 0, y = 0; x < n_i && y < n_k;) {
        if (a[x].first <= b[y].last && b[y].first <= a[x].last && a[x].hi - b[y].lo > lift)
            lift = a[x].hi - b[y].lo;
        if (a[x].last < b[y].last)
            x++;
        else
            y++;
    }
    return lift;
}

/* Calls for each pair i < k (in order of first section) whose spans meet. */
static void sort_by_first(const struct blyi_pack *pack, struct blyi_graph *g)
{
    memset(g->first_at, 0, (pack->n_sections + (size_t)2) * sizeof(*g->first_at));
    for (uint32_t i = 0; i < pack->n; i++)
        g->first_at[pack->items[i].first + 1]++;
    for (uint32_t s = 0; s < pack->n_sections; s++)
        g->first_at[s + 1] += g->first_at[s];
    for (uint32_t i = 0; i < pack->n; i++)
        g->by_first[g->first_at[pack->items[i].first]++] = i;
    memmove(g->first_at + 1, g->first_at, pack->n_sections * sizeof(*g->first_at));
    g->first_at[0] = 0;
}

uint64_t blyi_graph_pairs(const struct blyi_pack *pack, uint64_t limit)
{
    /* A pair is counted where the later one begins: live there, minus itself. */
    uint64_t pairs = 0;
    int64_t *live = blyi_host_calloc(pack->n_sections + (size_t)2, 2 * sizeof(*live));
    if (live == NULL)
        return limit;
    int64_t *born = live + pack->n_sections + 1;
    for (uint32_t i = 0; i < pack->n; i++) {
        born[pack->items[i].first]++;
        live[pack->items[i].last + 1]--;
    }
    int64_t now = 0;
    for (uint32_t s = 0; s < pack->n_sections && pairs < limit; s++) {
        now += live[s];
        pairs += (uint64_t)(now * born[s] + born[s] * (born[s] - 1) / 2);
        now += born[s];
    }
    blyi_host_free(live);
    return pairs < limit ? pairs : limit;
}

static void fill_near(const struct blyi_pack *pack, struct blyi_graph *g, bool counting)
{
    for (uint32_t x = 0; x < pack->n; x++) {
        uint32_t i = g->by_first[x];
        for (uint32_t y = x + 1; y < pack->n; y++) {
            uint32_t k = g->by_first[y];
            if (pack->items[k].first > pack->items[i].last)
                break;
            if (pack->pieces != NULL && lift_over(pack, i, k) == INT64_MIN)
                continue;
            if (counting) {
                g->near_at[i + 1]++;
                g->near_at[k + 1]++;
                continue;
            }
            if (g->lift != NULL) {
                g->lift[g->near_at[i]] = lift_over(pack, i, k);
                g->lift[g->near_at[k]] = lift_over(pack, k, i);
            }
            g->near[g->near_at[i]++] = k;
            g->near[g->near_at[k]++] = i;
        }
    }
}

static bool is_twin(const struct blyi_pack *pack, uint32_t i, uint32_t k)
{
    return pack->items[i].first == pack->items[k].first &&
           pack->items[i].last == pack->items[k].last &&
           pack->items[i].size == pack->items[k].size &&
           (pack->align == NULL || pack->align[i] == pack->align[k]) &&
           !blyi_pack_is_fixed(pack, i) && !blyi_pack_is_fixed(pack, k);
}

static void find_twins(const struct blyi_pack *pack, struct blyi_graph *g)
{
    for (uint32_t x = 0; x < pack->n; x++) {
        uint32_t i = g->by_first[x];
        g->twin[i] = BLYI_PACK_NONE;
        if (pack->pieces != NULL)
            continue;
        for (uint32_t y = g->first_at[pack->items[i].first]; y < x; y++) {
            if (is_twin(pack, i, g->by_first[y]))
                g->twin[i] = g->by_first[y];
        }
    }
}

static void sum_load(const struct blyi_pack *pack, struct blyi_graph *g)
{
    memset(g->load, 0, (pack->n_sections + (size_t)1) * sizeof(*g->load));
    for (uint32_t i = 0; i < pack->n; i++) {
        struct blyi_pack_piece own;
        uint32_t count;
        const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
        for (uint32_t c = 0; c < count; c++) {
            for (uint32_t s = p[c].first; s <= p[c].last; s++)
                g->load[s] += p[c].hi - p[c].lo;
        }
    }
}

static bool list_live(const struct blyi_pack *pack, struct blyi_graph *g)
{
    size_t sections = pack->n_sections;
    g->live_at = blyi_host_calloc(sections + 2, sizeof(*g->live_at));
    if (g->live_at == NULL)
        return false;
    for (uint32_t i = 0; i < pack->n; i++) {
        for (uint32_t s = pack->items[i].first; s <= pack->items[i].last; s++)
            g->live_at[s + 1]++;
    }
    for (size_t s = 0; s < sections; s++)
        g->live_at[s + 1] += g->live_at[s];
    g->live = blyi_host_calloc(g->live_at[sections] + (size_t)1, sizeof(*g->live));
    if (g->live == NULL)
        return false;
    for (uint32_t i = 0; i < pack->n; i++) {
        for (uint32_t s = pack->items[i].first; s <= pack->items[i].last; s++)
            g->live[g->live_at[s]++] = i;
    }
    memmove(g->live_at + 1, g->live_at, sections * sizeof(*g->live_at));
    g->live_at[0] = 0;
    return true;
}

bly_status blyi_graph_init(struct blyi_graph *g, const struct blyi_pack *pack)
{
    memset(g, 0, sizeof(*g));
    size_t n = pack->n, sections = pack->n_sections;
    g->near_at = blyi_host_calloc(n + 2, sizeof(*g->near_at));
    g->by_first = blyi_host_alloc((n + 1) * sizeof(*g->by_first));
    g->first_at = blyi_host_alloc((sections + 2) * sizeof(*g->first_at));
    g->twin = blyi_host_alloc((n + 1) * sizeof(*g->twin));
    g->load = blyi_host_alloc((sections + 1) * sizeof(*g->load));
    if (!g->near_at || !g->by_first || !g->first_at || !g->twin || !g->load)
        goto fail;
    sort_by_first(pack, g);
    fill_near(pack, g, true);
    for (size_t i = 0; i < n; i++)
        g->near_at[i + 1] += g->near_at[i];
    size_t links = g->near_at[n];
    g->near = blyi_host_alloc((links + 1) * sizeof(*g->near));
    if (pack->pieces != NULL)
        g->lift = blyi_host_alloc((links + 1) * sizeof(*g->lift));
    if (!g->near || (pack->pieces != NULL && !g->lift) || !list_live(pack, g))
        goto fail;
    fill_near(pack, g, false);
    memmove(g->near_at + 1, g->near_at, n * sizeof(*g->near_at));
    g->near_at[0] = 0;
    find_twins(pack, g);
    sum_load(pack, g);
    return BLY_OK;

fail:
    blyi_graph_fini(g);
    return blyi_fail(BLY_E_HOST_MEMORY, "planning %zu buffers: the host has no memory for a graph",
                     n);
}

void blyi_graph_fini(struct blyi_graph *g)
{
    blyi_host_free(g->near_at);
    blyi_host_free(g->near);
    blyi_host_free(g->lift);
    blyi_host_free(g->by_first);
    blyi_host_free(g->first_at);
    blyi_host_free(g->twin);
    blyi_host_free(g->load);
    blyi_host_free(g->live_at);
    blyi_host_free(g->live);
    memset(g, 0, sizeof(*g));
}
