/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_top.c - see insight_top.h.
 */
#include "observe/insight_top.h"

#include <stdlib.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/map.h"

static void count(struct blyi_amount *amount, const struct blyi_life *life)
{
    amount->count++;
    amount->bytes += life->asked;
}

static bool is_in(const struct blyi_life *life, const struct blyi_top *top)
{
    return blyi_is_card(life) && life->born_at <= top->to && life->died_at > top->from;
}

/* The first moment with the most bytes live on all cards, from `from` on up to `to`. */
static void find_peak(const struct blyi_history *h, struct blyi_top *top)
{
    struct blyi_curve curve;
    uint64_t most = 0;
    blyi_curve_begin(&curve, h);
    top->at_peak = top->from;
    do {
        const struct blyi_live *live = &curve.live[BLYI_ALL_CARDS];
        if (curve.at < top->from || (curve.at > top->from && live->asked <= most))
            continue;
        most = live->asked;
        top->at_peak = (uint32_t)curve.at;
    } while (curve.at < top->to && blyi_curve_next(&curve));
}

static void add(struct blyi_top_row *row, const struct blyi_life *life, const struct blyi_top *top)
{
    count(&row->all, life);
    if (blyi_lives_at(life, top->at_peak))
        count(&row->peak, life);
    if (life->born_at > top->from && life->died_at > top->to)
        count(&row->left, life);
}

/* ── Where each asks from ─────────────────────────────────────────────────────────────────── */

struct from_site {
    uint32_t name, site;
    struct blyi_amount peak, all;
};

static bool is_more(const struct from_site *a, const struct from_site *b)
{
    if (a->peak.bytes != b->peak.bytes)
        return a->peak.bytes > b->peak.bytes;
    return a->all.bytes > b->all.bytes;
}

static struct from_site *site_of(struct blyi_map *map, struct from_site *sites, size_t *n,
                                 uint32_t name, uint32_t site)
{
    uint64_t key = (uint64_t)name << 32 | site;
    uintptr_t known = (uintptr_t)blyi_map_get(map, key);
    if (known != 0)
        return &sites[known - 1];
    if (blyi_map_put(map, key, (void *)(*n + 1)) != BLY_OK)
        return NULL;
    sites[*n] = (struct from_site){.name = name, .site = site};
    return &sites[(*n)++];
}

static bool find_sites(const struct blyi_history *h, const struct blyi_labels *labels,
                       struct blyi_top *top)
{
    struct from_site *sites = blyi_host_calloc(h->n_lives + 1, sizeof(*sites)), **best;
    struct blyi_map map;
    size_t n = 0;
    best = blyi_host_calloc(blyi_labels_count(labels) + 1, sizeof(struct from_site *));
    bool ok = sites != NULL && best != NULL;
    blyi_map_init(&map);
    for (size_t i = 0; ok && i < h->n_lives; i++) {
        const struct blyi_life *life = &h->lives[i];
        if (!is_in(life, top))
            continue;
        struct from_site *of = site_of(&map, sites, &n, blyi_label_of(labels, life, BLYI_BY_NAME),
                                       blyi_label_of(labels, life, BLYI_BY_SITE));
        ok = of != NULL;
        if (ok)
            count(&of->all, life);
        if (ok && blyi_lives_at(life, top->at_peak))
            count(&of->peak, life);
    }
    for (size_t i = 0; ok && i < n; i++)
        if (best[sites[i].name] == NULL || is_more(&sites[i], best[sites[i].name]))
            best[sites[i].name] = &sites[i];
    for (size_t i = 0; ok && i < top->n; i++)
        top->rows[i].site = best[top->rows[i].name]->site;
    blyi_map_fini(&map);
    blyi_host_free(sites);
    blyi_host_free(best);
    return ok;
}

/* ── All of it ────────────────────────────────────────────────────────────────────────────── */

static bool make_rows(const struct blyi_history *h, const struct blyi_labels *labels,
                      struct blyi_top *top)
{
    size_t n = blyi_labels_count(labels);
    top->rows = blyi_host_calloc(n + 1, sizeof(*top->rows));
    if (top->rows == NULL)
        return false;
    for (size_t i = 0; i < h->n_lives; i++)
        if (is_in(&h->lives[i], top))
            add(&top->rows[blyi_label_of(labels, &h->lives[i], BLYI_BY_NAME)], &h->lives[i], top);
    for (size_t i = 0; i < n; i++) {
        struct blyi_top_row *row = &top->rows[i];
        if (row->all.count == 0)
            continue;
        row->name = (uint32_t)i;
        top->peak.count += row->peak.count;
        top->peak.bytes += row->peak.bytes;
        top->all.count += row->all.count;
        top->all.bytes += row->all.bytes;
        top->rows[top->n++] = *row;
    }
    return find_sites(h, labels, top);
}

bly_status blyi_top_make(const struct blyi_history *h, const struct blyi_labels *labels,
                         uint32_t from, uint32_t to, struct blyi_top *out)
{
    struct blyi_top top = {.from = from, .to = to};
    top.from_ns = from > 0 ? h->change_ns[from - 1] : 0;
    top.to_ns = to == blyi_history_end(h) ? h->end_ns : to > 0 ? h->change_ns[to - 1] : 0;
    find_peak(h, &top);
    if (!make_rows(h, labels, &top)) {
        blyi_host_free(top.rows);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to tell its largest users",
                         blyi_trace_info(h->trace)->name);
    }
    blyi_top_order(&top, BLYI_TOP_PEAK);
    *out = top;
    return BLY_OK;
}

uint64_t blyi_top_weight(const struct blyi_top_row *row, enum blyi_top_by by)
{
    return by == BLYI_TOP_PEAK    ? row->peak.bytes
           : by == BLYI_TOP_TOTAL ? row->all.bytes
                                  : row->all.count;
}

static int compare(const void *a, const void *b, void *by)
{
    const struct blyi_top_row *x = a, *y = b;
    enum blyi_top_by order = *(const enum blyi_top_by *)by;
    uint64_t weight_x = blyi_top_weight(x, order), weight_y = blyi_top_weight(y, order);
    if (weight_x != weight_y)
        return weight_x > weight_y ? -1 : 1;
    if (x->all.bytes != y->all.bytes)
        return x->all.bytes > y->all.bytes ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

void blyi_top_order(struct blyi_top *top, enum blyi_top_by by)
{
    if (top->n > 0)
        qsort_r(top->rows, top->n, sizeof(*top->rows), compare, &by);
}
