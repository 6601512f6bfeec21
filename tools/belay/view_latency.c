/* SPDX-License-Identifier: Apache-2.0
 *
 * view_latency.c - see view_latency.h. Drawings need no script: a column for each part of the
 * calls, whose text is the browser's own tooltip.
 */
#include "view_latency.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chart.h"
#include "insight_input.h"
#include "insight_report.h"

#define HEIGHT 160.0

/* ── Times ────────────────────────────────────────────────────────────────────────────────── */

#define NS_TEXT 32

/* "870 ns", "1.2 ms", "250 ms"; what is exact stands beside it. */
static const char *ns_text(uint64_t ns, char buf[NS_TEXT])
{
    static const char *const units[] = {"ns", "\u00b5s", "ms", "s"};
    unsigned unit = 0;
    uint64_t one = 1;
    for (; unit < 3 && ns / one >= 1000; unit++)
        one *= 1000;
    uint64_t tenth = one < 10 ? 1 : one / 10, tenths = (ns + tenth / 2) / tenth;
    if (one == 1 || tenths >= 1000)
        snprintf(buf, NS_TEXT, "%" PRIu64 " %s", (ns + one / 2) / one, units[unit]);
    else
        snprintf(buf, NS_TEXT, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
    return buf;
}

/* ── The scale: from a power of two to another ────────────────────────────────────────────── */

struct scale {
    unsigned lowest, highest; /* powers of two, ns */
};

static unsigned power_above(uint64_t ns)
{
    return ns == 0 ? 0 : 64u - (unsigned)__builtin_clzll(ns);
}

static struct scale scale_of(const struct blyi_latency_window *windows, size_t n)
{
    struct scale scale = {.lowest = 64};
    for (size_t i = 0; i < n; i++) {
        unsigned low = power_above(windows[i].latency.p50_ns) - 1;
        unsigned high = power_above(windows[i].latency.max_ns);
        scale.lowest = low < scale.lowest ? low : scale.lowest;
        scale.highest = high > scale.highest ? high : scale.highest;
    }
    return scale;
}

/* Between two powers as if the scale were straight there: no mathematics library. */
static double y_of(const struct scale *scale, uint64_t ns)
{
    unsigned power = power_above(ns) - 1;
    double part =
        power >= 63 ? 0 : (double)(ns - ((uint64_t)1 << power)) / (double)((uint64_t)1 << power);
    double at = (double)power - (double)scale->lowest + part;
    return HEIGHT - at / (double)(scale->highest - scale->lowest) * HEIGHT;
}

/* The next of 1, 2, 5, 10, 20, ... or, in steps of ten, of 1, 10, 100, ... */
static uint64_t next_mark(uint64_t ns, bool tens)
{
    uint64_t ten = 1;
    while (ten <= ns / 10)
        ten *= 10;
    if (tens || ns >= 5 * ten)
        return 10 * ten;
    return ns < 2 * ten ? 2 * ten : 5 * ten;
}

static uint64_t time_of(unsigned power)
{
    return power < 64 ? (uint64_t)1 << power : UINT64_MAX;
}

/* Words over the drawing, not in it: they keep their size in a narrow window. */
static void put_scale(const struct scale *scale, FILE *out)
{
    char text[NS_TEXT];
    bool tens = scale->highest - scale->lowest > 8;
    uint64_t least = time_of(scale->lowest), most = time_of(scale->highest);
    for (uint64_t ns = 1; ns < most && ns < UINT64_MAX / 100; ns = next_mark(ns, tens)) {
        double top = ns > least ? y_of(scale, ns) / HEIGHT * 100 : 100;
        if (top < 92 && top > 0)
            fprintf(out, "<i style=\"top:%.1f%%\">%s</i>", top, ns_text(ns, text));
    }
}

/* ── A drawing for each kind of call ──────────────────────────────────────────────────────── */

static void put_column(const struct scale *scale, double x, double width,
                       const struct blyi_latency_window *window, FILE *out)
{
    const struct blyi_latency *l = &window->latency;
    double p50 = y_of(scale, l->p50_ns), p99 = y_of(scale, l->p99_ns),
           most = y_of(scale, l->max_ns);
    fprintf(out,
            "<g><title>%" PRIu64 " calls, p50 %" PRIu64 " ns, p99 %" PRIu64 " ns, most %" PRIu64
            " ns (event no. %" PRIu64 "); %" PRIu64 " blocks</title>",
            l->count, l->p50_ns, l->p99_ns, l->max_ns, l->max_seq, window->blocks);
    fprintf(out, "<rect class=\"most\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x,
            most, width, HEIGHT - most);
    fprintf(out, "<rect class=\"p99\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x,
            p99, width, HEIGHT - p99);
    fprintf(out, "<rect class=\"p50\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></g>\n",
            x, p50, width, HEIGHT - p50);
}

static void draw(const struct blyi_insight *in, const struct blyi_latency_window *windows, size_t n,
                 FILE *out)
{
    struct scale scale = scale_of(windows, n);
    char first[INSIGHT_TIME], last[INSIGHT_TIME];
    double width = CHART_WIDTH / (double)n;
    fprintf(out,
            "<h3>%s</h3><div class=\"times\"><svg viewBox=\"0 0 %.0f %.0f\" "
            "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"times of %s\">"
            "<rect class=\"back\" width=\"%.0f\" height=\"%.0f\"/>\n",
            blyi_call_key(windows[0].op), CHART_WIDTH, HEIGHT, blyi_call_key(windows[0].op),
            CHART_WIDTH, HEIGHT);
    for (size_t i = 0; i < n; i++)
        put_column(&scale, (double)i * width, width, &windows[i], out);
    fputs("</svg>", out);
    put_scale(&scale, out);
    fprintf(out, "</div>\n<div class=\"span\"><span>%s</span><span>%s</span></div>\n",
            insight_time(in, windows[0].from_ns, first),
            insight_time(in, windows[n - 1].to_ns, last));
}

static void put_number(uint64_t number, FILE *out)
{
    fprintf(out, "<td class=\"n\">%" PRIu64, number);
}

static void put_time(uint64_t ns, FILE *out)
{
    char text[NS_TEXT];
    fprintf(out, "<td class=\"n\" title=\"%" PRIu64 " ns\">%s", ns, ns_text(ns, text));
}

static void put_table(const struct blyi_latencies *all, FILE *out)
{
    char text[INSIGHT_CLASS];
    fputs("<div class=\"wide\"><table class=\"calls\"><thead><tr><th>call<th>bytes asked<th "
          "class=\"n\">calls"
          "<th class=\"n\">p50<th class=\"n\">p99<th class=\"n\">most"
          "<th class=\"n\">event no.<tbody>\n",
          out);
    for (size_t i = 0; i < all->n_rows; i++) {
        const struct blyi_latency *l = &all->rows[i].latency;
        fprintf(out, "<tr><td>%s<td>%s", blyi_call_key(all->rows[i].op),
                insight_class(all->rows[i].size_class, text));
        put_number(l->count, out);
        put_time(l->p50_ns, out);
        put_time(l->p99_ns, out);
        put_time(l->max_ns, out);
        put_number(l->max_seq, out);
        fputc('\n', out);
    }
    fputs("</table></div>\n", out);
}

/* The same words as in the report. */
static void put_bends(const struct blyi_insight *in, FILE *out)
{
    char *text = NULL;
    size_t length = 0;
    FILE *words = open_memstream(&text, &length);
    if (words == NULL)
        return;
    insight_write_bends(in, words);
    if (fclose(words) == 0 && length > 0) {
        fputs("<pre class=\"wide\">", out);
        chart_text(out, text);
        fputs("</pre>\n", out);
    }
    free(text);
}

void view_latency(const struct blyi_insight *in, FILE *out)
{
    const struct blyi_latencies *all = &in->latencies;
    if (all->n_rows == 0)
        return;
    fputs("<h2>How long calls took</h2>\n", out);
    put_table(all, out);
    put_bends(in, out);
    fputs("<p class=\"soft\">Each column is the same number of calls, in their order; dark up to "
          "p50, lighter up to p99, grey up to the longest. The scale is logarithmic.</p>\n",
          out);
    for (size_t i = 0, n; i < all->n_windows; i += n) {
        for (n = 1; i + n < all->n_windows && all->windows[i + n].op == all->windows[i].op; n++)
            ;
        if (n > 1)
            draw(in, &all->windows[i], n, out);
    }
}
