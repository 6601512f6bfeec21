/* SPDX-License-Identifier: Apache-2.0
 *
 * insight.c - see insight.h.
 */
#include "observe/insight.h"

#include <stdlib.h>
#include "base/fail.h"
#include "base/host.h"

static int by_live(const void *a, const void *b)
{
    const struct blyi_thing_row *x = a, *y = b;
    if (x->live + x->reset != y->live + y->reset)
        return x->live + x->reset > y->live + y->reset ? -1 : 1;
    if (x->made != y->made)
        return x->made > y->made ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

static bly_status count_things(struct blyi_insight *in)
{
    const struct blyi_history *h = &in->history;
    size_t n_labels = blyi_labels_count(in->labels), n = 0, most = n_labels * BLYI_THING_KINDS;
    struct blyi_thing_row *rows = blyi_host_calloc(most + 1, sizeof(*rows));
    if (rows == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to count its streams",
                         in->info->name);
    for (size_t i = 0; i < h->n_things; i++) {
        const struct blyi_thing *thing = &h->things[i];
        uint32_t label = blyi_label_of_site(in->labels, thing->site, 0);
        struct blyi_thing_row *row = &rows[label * BLYI_THING_KINDS + thing->kind];
        row->kind = thing->kind;
        row->label = label;
        row->made++;
        if (thing->live && row->live++ == 0)
            row->oldest_ns = thing->born_ns;
        row->reset += thing->reset;
    }
    for (size_t i = 0; i < most; i++)
        if (rows[i].made > 0)
            rows[n++] = rows[i];
    qsort(rows, n, sizeof(*rows), by_live);
    in->things = rows;
    in->n_things = n;
    return BLY_OK;
}

/* A handle from before recording may be mapped without the file knowing. */
static bly_status count_orphans(struct blyi_insight *in)
{
    in->orphans_by_label =
        blyi_host_calloc(blyi_labels_count(in->labels) + 1, sizeof(*in->orphans_by_label));
    if (in->orphans_by_label == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to count its handles",
                         in->info->name);
    for (size_t i = in->history.n_start; i < in->history.n_lives; i++) {
        const struct blyi_life *life = &in->history.lives[i];
        if (life->class_ != BLYI_TRACE_HANDLE || !blyi_is_card(life) || life->n_maps > 0 ||
            (life->died_at != BLYI_STILL && !life->reset))
            continue;
        uint32_t label = blyi_label_of(in->labels, life, BLYI_BY_SITE);
        in->orphans.several = in->orphans.count > 0 && label != in->orphans.label;
        if (in->orphans.count == 0)
            in->orphans.label = label;
        in->orphans.count++;
        in->orphans.bytes += life->backed;
        in->orphans_by_label[label].count++;
        in->orphans_by_label[label].bytes += life->asked;
    }
    return BLY_OK;
}

static bly_status make_holdings(struct blyi_insight *in)
{
    struct blyi_holdings *const to[BLYI_LABEL_BYS] = {&in->sites, &in->names, &in->ranges};
    bly_status status = BLY_OK;
    for (int by = 0; by < BLYI_LABEL_BYS && status == BLY_OK; by++) {
        struct blyi_holding_query query = {(enum blyi_label_by)by, BLYI_ALL_CARDS,
                                           in->peaks[BLYI_ALL_CARDS].at,
                                           blyi_history_end(&in->history)};
        status = blyi_holdings_make(&in->history, in->labels, &query, to[by]);
    }
    return status;
}

static int by_growth(const void *a, const void *b)
{
    const struct blyi_holding *x = a, *y = b;
    int64_t grown_x = (int64_t)(x->second.bytes - x->first.bytes);
    int64_t grown_y = (int64_t)(y->second.bytes - y->first.bytes);
    if (grown_x != grown_y)
        return grown_x > grown_y ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

/* By falling growth; those that did not grow are dropped. */
static void sort_growers(struct blyi_holdings *growers)
{
    size_t n = 0;
    for (size_t i = 0; i < growers->n; i++)
        if (growers->rows[i].second.bytes > growers->rows[i].first.bytes)
            growers->rows[n++] = growers->rows[i];
    growers->n = n;
    if (n > 0)
        qsort(growers->rows, n, sizeof(*growers->rows), by_growth);
}

static bly_status make_growth(struct blyi_insight *in)
{
    bly_status status = blyi_cycles_make(&in->history, BLYI_ALL_CARDS, &in->cycles);
    if (status != BLY_OK)
        return status;
    blyi_growth_of(in->cycles.live, in->cycles.n, &in->growth);
    if (in->has_pool)
        blyi_growth_of(in->cycles.reserved, in->cycles.n, &in->pool_growth);
    if (in->cycles.n >= BLYI_CYCLES_MIN) {
        size_t from = in->growth.kind == BLYI_GROWTH_CREEP ? in->growth.from : 0;
        struct blyi_holding_query query = {BLYI_BY_SITE, BLYI_ALL_CARDS, in->cycles.at[from],
                                           in->cycles.at[in->cycles.n - 1]};
        status = blyi_holdings_make(&in->history, in->labels, &query, &in->growers);
        if (status != BLY_OK)
            return status;
        sort_growers(&in->growers);
    }
    return blyi_ramps_make(&in->history, in->labels, in->ramps, &in->n_ramps);
}

static bly_status make(struct blyi_insight *in)
{
    const struct blyi_history *h = &in->history;
    bly_status status = blyi_history_make(in->trace, &in->history);
    if (status == BLY_OK)
        status = blyi_labels_make(h, &in->labels);
    if (status != BLY_OK)
        return status;
    blyi_peaks_make(h, in->peaks);
    in->has_pool = h->n_pieces > 0;
    in->is_over = in->info->state == BLYI_TRACE_ENDED && in->info->lost == 0 &&
                  in->info->damaged == 0 && in->info->unknown == 0 &&
                  (in->info->flags & (BLYI_TRACE_IMPORTED | BLYI_TRACE_CUT)) == 0;
    blyi_waste_make(h, in->peaks[BLYI_ALL_CARDS].at, &in->waste);
    status = make_holdings(in);
    if (status == BLY_OK)
        status = make_growth(in);
    if (status == BLY_OK)
        status = blyi_uses_make(h, in->labels, &in->uses);
    if (status == BLY_OK)
        status =
            blyi_fragments_make(h, in->labels, BLYI_ALL_CARDS, blyi_history_end(h), &in->fragments);
    if (status == BLY_OK)
        status = count_things(in);
    if (status == BLY_OK)
        status = blyi_latencies_make(h, &in->latencies);
    return status == BLY_OK ? count_orphans(in) : status;
}

bly_status blyi_insight_make(struct blyi_trace *trace, struct blyi_insight **out)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct blyi_insight *in = blyi_host_calloc(1, sizeof(*in));
    if (in == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to look at it", info->name);
    in->trace = trace;
    in->info = info;
    bly_status status = make(in);
    if (status == BLY_OK)
        *out = in;
    else
        blyi_insight_free(in);
    return status;
}

void blyi_insight_free(struct blyi_insight *in)
{
    if (in == NULL)
        return;
    blyi_history_fini(&in->history);
    blyi_labels_free(in->labels);
    blyi_host_free(in->sites.rows);
    blyi_host_free(in->names.rows);
    blyi_host_free(in->ranges.rows);
    blyi_host_free(in->growers.rows);
    blyi_cycles_fini(&in->cycles);
    blyi_host_free(in->uses.rows);
    blyi_latencies_fini(&in->latencies);
    blyi_host_free(in->fragments.pins);
    blyi_host_free(in->things);
    blyi_host_free(in->orphans_by_label);
    blyi_host_free(in);
}

const struct blyi_trace_card *blyi_insight_card(const struct blyi_insight *in, uint8_t card)
{
    size_t n;
    const struct blyi_trace_card *cards = blyi_trace_cards(in->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (cards[i].card == (int32_t)card)
            return &cards[i];
    return NULL;
}

struct blyi_amount blyi_insight_left(const struct blyi_holding *holding)
{
    return (struct blyi_amount){holding->second.count + holding->reset.count,
                                holding->second.bytes + holding->reset.bytes};
}
