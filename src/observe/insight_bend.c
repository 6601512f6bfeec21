/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_bend.c - see insight_bend.h.
 *
 * Calls are cut into windows of equal length. Of all cuts between two windows the best is the one
 * with the fewest windows on the wrong side: a window is wrong when its p50 is nearer, as a ratio,
 * to the typical window of the other side. In the two windows around that cut the same is asked of
 * single calls. A few slow calls, and a cold start of less than two windows, are no bend.
 */
#include "observe/insight_bend.h"

#include <stdlib.h>
#include "base/compiler.h"
#include "base/host.h"
#include "observe/insight_peak.h"

#define WINDOW_MIN   16 /* calls */
#define SIDE_MIN     2  /* windows on either side */
#define WRONG_MOST   8  /* one window of so many may be on the wrong side */
#define WINDOWS_MOST 64

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t median(const uint64_t *numbers, size_t n)
{
    uint64_t sorted[WINDOWS_MOST];
    for (size_t i = 0; i < n; i++)
        sorted[i] = numbers[i];
    qsort(sorted, n, sizeof(*sorted), by_number);
    return sorted[(n + 1) / 2 - 1];
}

/* Nearer to `far` than to `near`, as a ratio. */
static bool is_nearer(uint64_t x, uint64_t near, uint64_t far)
{
    __extension__ typedef unsigned __int128 wide;
    wide square = (wide)x * x, middle = (wide)near * far;
    return near < far ? square > middle : square < middle;
}

static uint64_t times_factor(uint64_t ns)
{
    return ns > UINT64_MAX / BLYI_BEND_FACTOR ? UINT64_MAX : ns * BLYI_BEND_FACTOR;
}

static bool is_factor(uint64_t a, uint64_t b)
{
    return a > 0 && b > 0 && (a >= times_factor(b) || b >= times_factor(a));
}

struct cut {
    size_t at; /* first window behind it; 0: none */
    size_t wrong;
    uint64_t before, after;
};

static struct cut try_cut(const uint64_t *p50, size_t n, size_t at)
{
    struct cut cut = {.at = at, .before = median(p50, at), .after = median(p50 + at, n - at)};
    for (size_t i = 0; i < n; i++)
        cut.wrong += i < at ? is_nearer(p50[i], cut.before, cut.after)
                            : is_nearer(p50[i], cut.after, cut.before);
    return cut;
}

static uint64_t ratio(const struct cut *cut) /* in 1/1024 */
{
    uint64_t more = cut->before > cut->after ? cut->before : cut->after;
    uint64_t less = cut->before > cut->after ? cut->after : cut->before;
    return more > UINT64_MAX / 1024 ? more / less * 1024 : more * 1024 / less;
}

static struct cut best_cut(const uint64_t *p50, size_t n)
{
    struct cut best = {0};
    for (size_t at = SIDE_MIN; at + SIDE_MIN <= n; at++) {
        struct cut cut = try_cut(p50, n, at);
        if (!is_factor(cut.before, cut.after) || cut.wrong * WRONG_MOST > n)
            continue;
        if (best.at == 0 || cut.wrong < best.wrong ||
            (cut.wrong == best.wrong && ratio(&cut) > ratio(&best)))
            best = cut;
    }
    return best;
}

/* The first call behind the bend, of those from `from` to `to`. */
static size_t first_behind(const struct blyi_call *const *calls, size_t from, size_t to,
                           const struct cut *cut)
{
    size_t wrong = 0, least, at = from;
    for (size_t i = from; i < to; i++) /* all of them behind */
        wrong += is_nearer(calls[i]->took_ns, cut->after, cut->before);
    least = wrong;
    for (size_t i = from; i < to; i++) {
        if (is_nearer(calls[i]->took_ns, cut->after, cut->before))
            wrong--;
        else if (is_nearer(calls[i]->took_ns, cut->before, cut->after))
            wrong++;
        if (wrong < least) {
            least = wrong;
            at = i + 1;
        }
    }
    return at;
}

bool blyi_bend_find(const struct blyi_call *const *calls, size_t n, uint64_t *room,
                    struct blyi_bend *out)
{
    uint64_t p50[WINDOWS_MOST];
    struct blyi_latency latency;
    size_t n_windows = n / WINDOW_MIN < WINDOWS_MOST ? n / WINDOW_MIN : WINDOWS_MOST;
    for (size_t i = 0; i < n_windows; i++) {
        size_t from = i * n / n_windows, to = (i + 1) * n / n_windows;
        blyi_latency_of(calls + from, to - from, room, &latency);
        p50[i] = latency.p50_ns;
    }
    struct cut cut = best_cut(p50, n_windows);
    if (cut.at == 0)
        return false;
    size_t at =
        first_behind(calls, (cut.at - 1) * n / n_windows, (cut.at + 1) * n / n_windows, &cut);
    *out = (struct blyi_bend){.seq = calls[at]->seq,
                              .ns = calls[at]->ns,
                              .card = calls[at]->card,
                              .first.at = calls[0]->at,
                              .then.at = calls[at]->at};
    blyi_latency_of(calls, at, room, &out->before);
    blyi_latency_of(calls + at, n - at, room, &out->after);
    return is_factor(out->before.p50_ns, out->after.p50_ns);
}

/* ── What else was there ──────────────────────────────────────────────────────────────────── */

/* A position, and what is to be written down there. */
struct wish {
    uint32_t at;
    uint8_t card;
    uint64_t *blocks, *backed; /* backed may be NULL */
};

static int by_position(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void fulfil(const struct blyi_history *history, struct wish *wishes, size_t n)
{
    struct blyi_curve curve;
    size_t i = 0;
    qsort(wishes, n, sizeof(*wishes), by_position);
    blyi_curve_begin(&curve, history);
    do {
        for (; i < n && wishes[i].at <= curve.at; i++) {
            *wishes[i].blocks = curve.live[wishes[i].card].count;
            if (wishes[i].backed != NULL)
                *wishes[i].backed = curve.live[wishes[i].card].backed;
        }
    } while (i < n && blyi_curve_next(&curve));
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void tell_free(const struct blyi_history *history, struct blyi_bend *bend)
{
    size_t n;
    const struct blyi_trace_card *cards = blyi_trace_cards(history->trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (cards[i].card != bend->card || cards[i].total == 0)
            continue;
        bend->free_told = true;
        bend->first.free = less(cards[i].total, cards[i].overhead + bend->first.backed);
        bend->then.free = less(cards[i].total, cards[i].overhead + bend->then.backed);
    }
}

static void tell_moment(const struct blyi_history *history, struct blyi_bend *bend)
{
    for (size_t i = 0; i < history->n_moments && history->moments[i].at < bend->then.at; i++)
        bend->moment = (uint32_t)i + 1;
}

bool blyi_bend_states(const struct blyi_history *history, struct blyi_latencies *latencies)
{
    size_t n = 0;
    struct wish *wishes =
        blyi_host_alloc((latencies->n_windows + 2 * latencies->n_bends) * sizeof(*wishes));
    if (wishes == NULL)
        return false;
    for (size_t i = 0; i < latencies->n_windows; i++) {
        struct blyi_latency_window *window = &latencies->windows[i];
        wishes[n++] = (struct wish){window->at, window->card, &window->blocks, NULL};
    }
    for (size_t i = 0; i < latencies->n_bends; i++) {
        struct blyi_bend *bend = &latencies->bends[i];
        struct blyi_bend_state *const states[] = {&bend->first, &bend->then};
        for (int k = 0; k < 2; k++)
            wishes[n++] =
                (struct wish){states[k]->at, bend->card, &states[k]->blocks, &states[k]->backed};
    }
    fulfil(history, wishes, n);
    blyi_host_free(wishes);
    for (size_t i = 0; i < latencies->n_bends; i++) {
        tell_free(history, &latencies->bends[i]);
        tell_moment(history, &latencies->bends[i]);
    }
    return true;
}
