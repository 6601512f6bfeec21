/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_use.c - see insight_use.h.
 */
#include "observe/insight_use.h"

#include <stdlib.h>
#include "base/fail.h"
#include "base/host.h"

const char *blyi_slack_key(enum blyi_slack slack)
{
    static const char *const keys[] = {"early", "idle", "late"};
    return keys[slack];
}

/* Sums of bytes times time end at the largest number rather than wrap. */
static uint64_t add_up(uint64_t sum, uint64_t bytes, uint64_t ns)
{
    uint64_t product;
    if (__builtin_mul_overflow(bytes, ns, &product) || __builtin_add_overflow(sum, product, &sum))
        return UINT64_MAX;
    return sum;
}

static void note(struct blyi_use_row *row, enum blyi_slack slack, const struct blyi_life *life,
                 uint64_t ns, uint64_t threshold)
{
    if (ns < threshold || ns == 0)
        return;
    row->slack[slack].count++;
    row->slack[slack].bytes += life->asked;
    if (ns > row->slack[slack].longest_ns)
        row->slack[slack].longest_ns = ns;
    row->byte_ns = add_up(row->byte_ns, life->asked, ns);
}

static void look(struct blyi_uses *uses, struct blyi_use_row *row, const struct blyi_life *life)
{
    if (life->seq == 0 || life->class_ != BLYI_TRACE_CARD_BLOCK)
        return; /* one cannot know when it was used before */
    if (life->n_uses == 0) {
        uses->n_unused++;
        uses->unused_bytes += life->asked;
        return;
    }
    uses->n_used++;
    note(row, BLYI_SLACK_EARLY, life, life->first_use_ns - life->born_ns, uses->threshold_ns);
    note(row, BLYI_SLACK_IDLE, life, life->idle_ns, uses->threshold_ns);
    if (life->died_at != BLYI_STILL && !life->reset)
        note(row, BLYI_SLACK_LATE, life, life->died_ns - life->last_use_ns, uses->threshold_ns);
}

static int by_weight(const void *a, const void *b)
{
    const struct blyi_use_row *x = a, *y = b;
    if (x->byte_ns != y->byte_ns)
        return x->byte_ns > y->byte_ns ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

bly_status blyi_uses_make(const struct blyi_history *h, const struct blyi_labels *labels,
                          struct blyi_uses *out)
{
    size_t n_labels = blyi_labels_count(labels), n = 0;
    struct blyi_uses uses = {.threshold_ns = h->end_ns / 10};
    struct blyi_use_row *rows = blyi_host_calloc(n_labels + 1, sizeof(*rows));
    if (rows == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to look at its uses",
                         blyi_trace_info(h->trace)->name);
    for (size_t i = 0; i < h->n_lives; i++)
        look(&uses, &rows[blyi_label_of(labels, &h->lives[i], BLYI_BY_SITE)], &h->lives[i]);
    for (size_t i = 0; i < n_labels; i++) {
        if (rows[i].byte_ns == 0)
            continue;
        rows[i].label = (uint32_t)i;
        rows[n++] = rows[i];
    }
    qsort(rows, n, sizeof(*rows), by_weight);
    uses.told = uses.n_used > 0;
    uses.rows = rows;
    uses.n = n;
    *out = uses;
    return BLY_OK;
}
