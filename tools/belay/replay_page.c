/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_page.c - the rows of a replay for a browser: what each policy held over the events, and a
 * table. There is no script.
 */
#include "replay_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/size.h"
#include "chart.h"

#define HEIGHT 340.0

static uint64_t top_of(const struct replay_report *report)
{
    uint64_t top = 1;
    for (size_t i = 0; i < report->n_rows; i++) {
        uint64_t peak = report->rows[i].result.figures.peak_reserved;
        top = peak > top ? peak : top;
    }
    return report->trace->peak_live > top ? report->trace->peak_live : top;
}

/* Of a column that no event fell into, the one before holds. */
static void draw_curve(FILE *out, const char *colour, const char *name, const uint64_t *bytes,
                       uint64_t top)
{
    fprintf(out, "<g><polyline class=\"%s\" points=\"", colour);
    double drawn = -1;
    for (size_t x = 0; x < REPLAY_COLUMNS; x++) {
        double y = HEIGHT - (double)bytes[x] / (double)top * HEIGHT;
        if (y != drawn || x + 1 == REPLAY_COLUMNS)
            fprintf(out, "%zu,%.1f %zu,%.1f ", x, y, x + 1, y);
        drawn = y;
    }
    fputs("\"><title>", out);
    chart_text(out, name);
    fputs("</title></polyline></g>\n", out);
}

static void draw(const struct replay_report *report, FILE *out)
{
    uint64_t top = chart_top(top_of(report));
    char last[32], text[BLYI_SIZE_TEXT];
    const struct replay_curve *any = NULL;
    fputs("<p><span class=\"key live\"></span>live", out);
    for (size_t i = 0; i < report->n_rows; i++)
        if (report->rows[i].curve != NULL)
            fprintf(out, "<span class=\"key s%zu\"></span>%s", i, report->rows[i].policy->name);
    fputs("</p>\n", out);
    chart_begin(out, "bytes reserved by each policy, and live, over the events", HEIGHT, top);
    for (size_t i = 0; i < report->n_rows; i++) {
        char colour[] = {'s', (char)('0' + i % 6), '\0'};
        if (report->rows[i].curve == NULL)
            continue;
        any = report->rows[i].curve;
        draw_curve(out, colour, report->rows[i].policy->name, any->reserved, top);
    }
    if (any != NULL)
        draw_curve(out, "live", "live", any->live, top);
    if (report->rows[0].setup.capacity < top + top / 8)
        chart_line(out, HEIGHT - (double)report->rows[0].setup.capacity / (double)top * HEIGHT,
                   blyi_size_short(report->rows[0].setup.capacity, text));
    chart_end(out, HEIGHT, top);
    snprintf(last, sizeof(last), "event %zu", report->trace->n_events);
    chart_ends(out, "event 1", last);
}

static void put_ratio(const struct replay_report *report, uint64_t bytes, FILE *out)
{
    double ratio;
    if (replay_ratio(report, bytes, &ratio))
        fprintf(out, "<td>%.4f", ratio);
    else
        fputs("<td>-", out);
}

static void put_row(const struct replay_report *report, const struct replay_row *row, FILE *out)
{
    const struct blyi_replay_figures *f = &row->result.figures;
    char text[BLYI_SIZE_TEXT];
    fprintf(out, "<tr><th title=\"");
    chart_text(out, row->policy->about);
    fprintf(out, "\">%s", row->policy->name);
    if (row->result.status != BLY_OK) {
        fputs("<td colspan=\"9\">does not fit\n", out);
        return;
    }
    fprintf(out, "<td title=\"%" PRIu64 " bytes\">%s", f->peak_reserved,
            blyi_size_short(f->peak_reserved, text));
    put_ratio(report, f->peak_reserved, out);
    fprintf(out, "<td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64 "<td>%" PRIu64,
            f->ranges_mapped, f->ranges_unmapped, f->handles_mapped + f->handles_unmapped, f->waits,
            replay_flushes(row));
    if (row->has_least) {
        fprintf(out, "<td title=\"%" PRIu64 " bytes\">%s", row->least,
                blyi_size_short(row->least, text));
        put_ratio(report, row->least, out);
    }
    fputc('\n', out);
}

void replay_page(const struct replay_report *report, FILE *out)
{
    char text[BLYI_SIZE_TEXT];
    bool least = report->rows[0].has_least;
    chart_page(out, report->path);
    fprintf(out,
            "<p>%zu events, %zu allocations, peak live %s; each request has %" PRIu64
            " bytes more than asked for.</p>\n<h2>Memory over events</h2>\n",
            report->trace->n_events, report->trace->n_allocs,
            blyi_size_text(report->trace->peak_live, text), report->rows[0].setup.pad);
    if (report->trace->n_events > 0)
        draw(report, out);
    else
        fputs("<p>There are no events, so there is nothing to draw.</p>\n", out);
    fprintf(out,
            "<h2>Policies</h2>\n<table><tr><th><th>peak reserved<th>ratio<th>ranges mapped"
            "<th>unmapped<th>handle operations<th>waits<th>flushes%s\n",
            least ? "<th>smallest card<th>ratio" : "");
    for (size_t i = 0; i < report->n_rows; i++)
        put_row(report, &report->rows[i], out);
    fputs("</table>\n<p>Ratios are to the peak of live bytes.", out);
    for (size_t i = 0; i < report->n_rows; i++)
        fprintf(out, "<br>%s: %s.", report->rows[i].policy->name, report->rows[i].policy->about);
    fputs("</p>\n</html>\n", out);
}
