/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_holder.c - see insight_holder.h.
 */
#include "observe/insight_holder.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"

static void count(struct blyi_amount *amount, const struct blyi_life *life)
{
    amount->count++;
    amount->bytes += life->asked;
}

static void add(struct blyi_holding *row, const struct blyi_life *life,
                const struct blyi_holding_query *query)
{
    count(&row->all, life);
    if (life->reset)
        count(&row->reset, life);
    if (blyi_lives_at(life, query->first)) {
        count(&row->first, life);
        row->backed_first += life->backed;
    }
    if (blyi_lives_at(life, query->second))
        count(&row->second, life);
}

/* Savings have a peak of their own at each site. */
static bool find_savings(const struct blyi_history *h, const struct blyi_labels *labels,
                         const struct blyi_holding_query *query, struct blyi_holding *rows)
{
    uint64_t *now = blyi_host_calloc(blyi_labels_count(labels) + 1, sizeof(*now));
    if (now == NULL)
        return false;
    for (size_t i = 0; i < h->n_changes; i++) {
        struct blyi_change change = h->changes[i];
        if (change.kind > BLYI_CHANGE_DIED)
            continue;
        const struct blyi_life *life = &h->lives[change.index];
        if (life->saving == 0 || !blyi_is_of(life, query->card))
            continue;
        uint32_t label = blyi_label_of(labels, life, query->by);
        now[label] += change.kind == BLYI_CHANGE_BORN ? life->saving : 0 - life->saving;
        if (now[label] > rows[label].saving)
            rows[label].saving = now[label];
    }
    blyi_host_free(now);
    return true;
}

static int by_bytes(const void *a, const void *b)
{
    const struct blyi_holding *x = a, *y = b;
    if (x->first.bytes != y->first.bytes)
        return x->first.bytes > y->first.bytes ? -1 : 1;
    if (x->all.bytes != y->all.bytes)
        return x->all.bytes > y->all.bytes ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

bly_status blyi_holdings_make(const struct blyi_history *h, const struct blyi_labels *labels,
                              const struct blyi_holding_query *query, struct blyi_holdings *out)
{
    size_t n = blyi_labels_count(labels), kept = 0;
    struct blyi_holding *rows = blyi_host_calloc(n + 1, sizeof(*rows));
    bool ok = rows != NULL;
    for (size_t i = 0; ok && i < h->n_lives; i++)
        if (blyi_is_of(&h->lives[i], query->card))
            add(&rows[blyi_label_of(labels, &h->lives[i], query->by)], &h->lives[i], query);
    ok = ok && find_savings(h, labels, query, rows);
    if (!ok) {
        blyi_host_free(rows);
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to tell who holds its memory",
                         blyi_trace_info(h->trace)->name);
    }
    for (size_t i = 0; i < n; i++) {
        if (rows[i].all.count == 0)
            continue;
        rows[i].label = (uint32_t)i;
        rows[kept++] = rows[i];
    }
    qsort(rows, kept, sizeof(*rows), by_bytes);
    *out = (struct blyi_holdings){rows, kept};
    return BLY_OK;
}
