/* SPDX-License-Identifier: Apache-2.0
 *
 * top.c - belay/top.h over the insight library: texts of the rows in one piece.
 */
#include <belay/top.h>

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "observe/insight_top.h"

/* The last mark or range of that name; NULL: none. */
static const struct blyi_moment *find_mark(const struct blyi_history *h, const char *name)
{
    for (size_t i = h->n_moments; i > 0; i--)
        if (strcmp(blyi_trace_name(h->trace, h->moments[i - 1].name), name) == 0)
            return &h->moments[i - 1];
    return NULL;
}

static bly_status find_window(const struct blyi_history *h, const char *from, const char *to,
                              uint32_t *first, uint32_t *last)
{
    const struct blyi_trace_info *info = blyi_trace_info(h->trace);
    const struct blyi_moment *begins = from ? find_mark(h, from) : NULL;
    const struct blyi_moment *ends = to ? find_mark(h, to) : NULL;
    bool is_dropped = from != NULL && begins == NULL && info->dropped > 0;
    if ((from != NULL && begins == NULL && !is_dropped) || (to != NULL && ends == NULL))
        return blyi_fail(BLY_E_INVALID, "%s: no mark \"%.200s\" is in it", info->name,
                         from != NULL && begins == NULL && !is_dropped ? from : to);
    *first = begins ? begins->at : 0;
    *last = ends ? ends->at : blyi_history_end(h);
    if (*last < *first)
        return blyi_fail(BLY_E_INVALID, "%s: the mark \"%.200s\" comes before \"%.200s\"",
                         info->name, to, from);
    return BLY_OK;
}

static size_t texts_of(const struct blyi_top *top, const struct blyi_labels *labels)
{
    size_t size = 1;
    for (size_t i = 0; i < top->n; i++)
        size += strlen(blyi_label_text(labels, top->rows[i].name)) +
                strlen(blyi_label_text(labels, top->rows[i].site)) + 2;
    return size;
}

static const char *put(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);
    *at += size;
    return copy;
}

static bly_status copy_out(const struct blyi_top *top, const struct blyi_labels *labels,
                           bly_top *out)
{
    char *at = blyi_host_alloc(texts_of(top, labels));
    bly_top_row *rows = blyi_host_calloc(top->n + 1, sizeof(*rows));
    if (at == NULL || rows == NULL) {
        blyi_host_free(at);
        blyi_host_free(rows);
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for %zu rows", top->n);
    }
    *out = (bly_top){.n = top->n,
                     .rows = rows,
                     .peak_bytes = top->peak.bytes,
                     .peak_blocks = top->peak.count,
                     .total_bytes = top->all.bytes,
                     .total_blocks = top->all.count,
                     .duration_ns = top->to_ns > top->from_ns ? top->to_ns - top->from_ns : 0,
                     .texts = at};
    for (size_t i = 0; i < top->n; i++) {
        const struct blyi_top_row *row = &top->rows[i];
        rows[i] = (bly_top_row){.name = put(&at, blyi_label_text(labels, row->name)),
                                .from = put(&at, blyi_label_text(labels, row->site)),
                                .peak_bytes = row->peak.bytes,
                                .peak_blocks = row->peak.count,
                                .total_bytes = row->all.bytes,
                                .total_blocks = row->all.count,
                                .left_bytes = row->left.bytes,
                                .left_blocks = row->left.count};
        out->left_bytes += row->left.bytes;
        out->left_blocks += row->left.count;
    }
    return BLY_OK;
}

static bly_status look(const struct blyi_history *h, const struct blyi_labels *labels,
                       const char *from, const char *to, bly_top *out)
{
    const struct blyi_trace_info *info = blyi_trace_info(h->trace);
    uint32_t first, last;
    struct blyi_top top;
    bly_status status = find_window(h, from, to, &first, &last);
    if (status == BLY_OK)
        status = blyi_top_make(h, labels, first, last, &top);
    if (status != BLY_OK)
        return status;
    status = copy_out(&top, labels, out);
    blyi_host_free(top.rows);
    if (status != BLY_OK)
        return status;
    out->events = info->kept;
    out->dropped = info->dropped;
    out->lost = info->lost;
    for (size_t i = 0; i < h->n_refusals; i++)
        out->refused += h->refusals[i].at >= first && h->refusals[i].at <= last;
    return BLY_OK;
}

bly_status bly_top_read(const char *path, const char *from, const char *to, bly_top *top)
{
    struct blyi_trace *trace;
    struct blyi_history history;
    struct blyi_labels *labels = NULL;
    if (path == NULL || top == NULL)
        return blyi_fail(BLY_E_INVALID, "the largest users of memory: %s is NULL",
                         path == NULL ? "path" : "top");
    bly_status status = blyi_trace_open(path, &trace);
    if (status != BLY_OK)
        return status;
    status = blyi_history_make(trace, &history);
    if (status == BLY_OK) {
        status = blyi_labels_make(&history, &labels);
        if (status == BLY_OK)
            status = look(&history, labels, from, to, top);
        blyi_labels_free(labels);
        blyi_history_fini(&history);
    }
    blyi_trace_close(trace);
    return status;
}

static uint64_t weight(const bly_top_row *row, bly_top_by by)
{
    return by == BLY_TOP_PEAK    ? row->peak_bytes
           : by == BLY_TOP_TOTAL ? row->total_bytes
                                 : row->total_blocks;
}

static int compare(const void *a, const void *b, void *by)
{
    const bly_top_row *x = a, *y = b;
    uint64_t weight_x = weight(x, *(bly_top_by *)by), weight_y = weight(y, *(bly_top_by *)by);
    if (weight_x != weight_y)
        return weight_x > weight_y ? -1 : 1;
    if (x->total_bytes != y->total_bytes)
        return x->total_bytes > y->total_bytes ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name; /* as they were copied */
}

bly_status bly_top_order(bly_top *top, bly_top_by by)
{
    if (top == NULL || (unsigned)by > BLY_TOP_COUNT)
        return blyi_fail(BLY_E_INVALID, "rows cannot be put into order %d", (int)by);
    if (top->n > 0)
        qsort_r(top->rows, top->n, sizeof(*top->rows), compare, &by);
    return BLY_OK;
}

void bly_top_release(bly_top *top)
{
    if (top == NULL)
        return;
    blyi_host_free(top->rows);
    blyi_host_free(top->texts);
    *top = (bly_top){0};
}
