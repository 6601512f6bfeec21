/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_latency.c - see insight_latency.h: percentiles by size and over time.
 */
#include "observe/insight_latency.h"

#include <stdlib.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "observe/insight_bend.h"

#define WINDOW_MIN 16 /* calls */

uint64_t blyi_latency_class_most(unsigned size_class)
{
    static const uint64_t most[BLYI_LATENCY_CLASSES] = {4 * KiB,   64 * KiB, MiB,       16 * MiB,
                                                        256 * MiB, 4 * GiB,  UINT64_MAX};
    return size_class < BLYI_LATENCY_CLASSES ? most[size_class] : UINT64_MAX;
}

static unsigned class_of(uint64_t bytes)
{
    unsigned size_class = 0;
    while (bytes > blyi_latency_class_most(size_class))
        size_class++;
    return size_class;
}

const char *blyi_call_key(enum blyi_call_op op)
{
    static const char *const keys[BLYI_CALL_OPS] = {
        "alloc", "free", "host-alloc", "host-free", "phys-create", "phys-free", "alloc-fail"};
    return op < BLYI_CALL_OPS ? keys[op] : "?";
}

/* ── Percentiles ──────────────────────────────────────────────────────────────────────────── */

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t middle_of(uint64_t a, uint64_t b, uint64_t c)
{
    if ((a <= b) == (b <= c))
        return b;
    return (b <= a) == (a <= c) ? a : c;
}

/* The number that would stand at `at` in order; the others are moved so that none before it is
 * larger and none behind it smaller. A file made to be slow ends in a sort. */
static uint64_t pick(uint64_t *numbers, size_t n, size_t at)
{
    size_t from = 0, to = n; /* it is in here */
    for (size_t left = 64; to - from > 16 && left > 0; left--) {
        uint64_t pivot = middle_of(numbers[from], numbers[from + (to - from) / 2], numbers[to - 1]);
        size_t low = from, high = to;
        for (;;) { /* all before `low` are at most the pivot, all from `high` on at least that */
            while (numbers[low] < pivot)
                low++;
            while (numbers[high - 1] > pivot)
                high--;
            if (high - 1 <= low)
                break;
            uint64_t swap = numbers[low];
            numbers[low++] = numbers[high - 1];
            numbers[--high] = swap;
        }
        if (at < low)
            to = low;
        else if (at >= high)
            from = high;
        else
            return numbers[at];
    }
    qsort(numbers + from, to - from, sizeof(*numbers), by_number);
    return numbers[at];
}

void blyi_latency_of(const struct blyi_call *const *calls, size_t n, uint64_t *room,
                     struct blyi_latency *out)
{
    *out = (struct blyi_latency){.count = n};
    for (size_t i = 0; i < n; i++) {
        room[i] = calls[i]->took_ns;
        out->sum_ns += room[i];
        if (room[i] <= out->max_ns)
            continue;
        out->max_ns = room[i];
        out->max_seq = calls[i]->seq;
        out->max_at_ns = calls[i]->ns;
    }
    if (n == 0)
        return;
    size_t half = (n + 1) / 2 - 1, last = (n * 99 + 99) / 100 - 1;
    out->p50_ns = pick(room, n, half);
    out->p99_ns = pick(room + half, n - half, last - half);
}

/* ── Parts ────────────────────────────────────────────────────────────────────────────────── */

struct work {
    const struct blyi_history *h;
    struct blyi_latencies *out;
    const struct blyi_call **calls; /* of one kind, or of one class of it; in the order of events */
    uint64_t *room;
};

static size_t choose(struct work *work, enum blyi_call_op op, unsigned size_class)
{
    size_t n = 0;
    for (size_t i = 0; i < work->h->n_calls; i++) {
        const struct blyi_call *call = &work->h->calls[i];
        if (call->op == op &&
            (size_class == BLYI_LATENCY_ALL || class_of(call->asked) == size_class))
            work->calls[n++] = call;
    }
    return n;
}

static void add_row(struct work *work, enum blyi_call_op op, unsigned size_class, size_t n)
{
    struct blyi_latency_row *row = &work->out->rows[work->out->n_rows++];
    row->op = op;
    row->size_class = size_class;
    blyi_latency_of(work->calls, n, work->room, &row->latency);
}

static void add_windows(struct work *work, enum blyi_call_op op, size_t n)
{
    size_t n_windows = n / WINDOW_MIN;
    if (n_windows > BLYI_LATENCY_WINDOWS)
        n_windows = BLYI_LATENCY_WINDOWS;
    if (n_windows == 0)
        n_windows = 1;
    for (size_t i = 0; i < n_windows; i++) {
        size_t from = i * n / n_windows, to = (i + 1) * n / n_windows;
        struct blyi_latency_window *window = &work->out->windows[work->out->n_windows++];
        *window = (struct blyi_latency_window){.op = op,
                                               .from_ns = work->calls[from]->ns,
                                               .to_ns = work->calls[to - 1]->ns,
                                               .at = work->calls[to - 1]->at,
                                               .card = work->calls[to - 1]->card};
        blyi_latency_of(work->calls + from, to - from, work->room, &window->latency);
    }
}

static void add_op(struct work *work, enum blyi_call_op op)
{
    size_t counts[BLYI_LATENCY_CLASSES], n_classes = 0, n = choose(work, op, BLYI_LATENCY_ALL);
    if (n == 0)
        return;
    memset(counts, 0, sizeof(counts));
    for (size_t i = 0; i < n; i++)
        n_classes += counts[class_of(work->calls[i]->asked)]++ == 0;
    if (n_classes > 1)
        add_row(work, op, BLYI_LATENCY_ALL, n);
    add_windows(work, op, n);
    for (unsigned size_class = 0; size_class < BLYI_LATENCY_CLASSES; size_class++) {
        struct blyi_bend *bend = &work->out->bends[work->out->n_bends];
        if (counts[size_class] == 0)
            continue;
        n = choose(work, op, size_class);
        add_row(work, op, size_class, n);
        if (blyi_bend_find(work->calls, n, work->room, bend)) {
            bend->op = op;
            bend->size_class = size_class;
            work->out->n_bends++;
        }
    }
}

/* What the calls behind it took more than they would have before, or less. */
static uint64_t weight(const struct blyi_bend *bend)
{
    uint64_t a = bend->before.p50_ns, b = bend->after.p50_ns, each = a > b ? a - b : b - a, all;
    return __builtin_mul_overflow(each, bend->after.count, &all) ? UINT64_MAX : all;
}

static int by_weight(const void *a, const void *b)
{
    const struct blyi_bend *x = a, *y = b;
    if (weight(x) != weight(y))
        return weight(x) > weight(y) ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool make_room(struct work *work)
{
    const size_t most = (size_t)BLYI_CALL_OPS * (BLYI_LATENCY_CLASSES + 1);
    struct blyi_latencies *out = work->out;
    size_t n = work->h->n_calls + 1;
    work->calls = blyi_host_alloc(n * sizeof(void *));
    work->room = blyi_host_alloc(n * sizeof(*work->room));
    out->rows = blyi_host_calloc(most, sizeof(*out->rows));
    out->bends = blyi_host_calloc(most, sizeof(*out->bends));
    out->windows =
        blyi_host_calloc((size_t)BLYI_CALL_OPS * BLYI_LATENCY_WINDOWS, sizeof(*out->windows));
    return work->calls && work->room && out->rows && out->bends && out->windows;
}

static bool make(struct work *work)
{
    struct blyi_latencies *out = work->out;
    if (!make_room(work))
        return false;
    for (int op = 0; op < BLYI_CALL_OPS; op++)
        add_op(work, (enum blyi_call_op)op);
    qsort(out->bends, out->n_bends, sizeof(*out->bends), by_weight);
    return blyi_bend_states(work->h, out);
}

bly_status blyi_latencies_make(const struct blyi_history *history, struct blyi_latencies *out)
{
    struct work work = {.h = history, .out = out};
    bly_status status = BLY_OK;
    *out = (struct blyi_latencies){0};
    if (history->n_calls == 0)
        return BLY_OK;
    if (!make(&work)) {
        blyi_latencies_fini(out);
        status = blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for the times of its calls",
                           blyi_trace_info(history->trace)->name);
    }
    blyi_host_free(work.calls);
    blyi_host_free(work.room);
    return status;
}

void blyi_latencies_fini(struct blyi_latencies *latencies)
{
    blyi_host_free(latencies->rows);
    blyi_host_free(latencies->windows);
    blyi_host_free(latencies->bends);
    *latencies = (struct blyi_latencies){0};
}
