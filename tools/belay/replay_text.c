/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_text.c - the rows of a replay as a table.
 */
#include "replay_report.h"

#include <inttypes.h>

#include "base/size.h"

bool replay_ratio(const struct replay_report *report, uint64_t bytes, double *ratio)
{
    if (report->trace->peak_live == 0)
        return false;
    *ratio = (double)bytes / (double)report->trace->peak_live;
    return true;
}

uint64_t replay_flushes(const struct replay_row *row)
{
    return row->has_least ? row->at_least.figures.flushes : row->result.figures.flushes;
}

static void put_ratio(const struct replay_report *report, uint64_t bytes, FILE *out)
{
    double ratio;
    if (replay_ratio(report, bytes, &ratio))
        fprintf(out, "  %6.4f", ratio);
    else
        fprintf(out, "  %6s", "-");
}

static void put_row(const struct replay_report *report, const struct replay_row *row, bool least,
                    FILE *out)
{
    const struct blyi_replay_figures *f = &row->result.figures;
    fprintf(out, "%-10s", row->policy->name);
    if (row->result.status != BLY_OK) {
        fprintf(out, "  does not fit\n");
        return;
    }
    fprintf(out, "  %14" PRIu64, f->peak_reserved);
    put_ratio(report, f->peak_reserved, out);
    const uint64_t counts[] = {f->ranges_mapped,
                               f->ranges_unmapped,
                               f->pages_mapped,
                               f->pages_unmapped,
                               f->handles_mapped + f->handles_unmapped,
                               f->waits,
                               replay_flushes(row)};
    for (size_t i = 0; i < BLYI_COUNT(counts); i++)
        fprintf(out, "  %8" PRIu64, counts[i]);
    if (least && row->has_least) {
        fprintf(out, "  %14" PRIu64, row->least);
        put_ratio(report, row->least, out);
    }
    if (report->timed && report->trace->n_events > 0)
        fprintf(out, "  %8.1f", (double)row->result.ns / (double)report->trace->n_events);
    fputc('\n', out);
}

void replay_text(const struct replay_report *report, FILE *out)
{
    char text[BLYI_SIZE_TEXT];
    bool least = false;
    for (size_t i = 0; i < report->n_rows; i++)
        least = least || report->rows[i].has_least;
    fprintf(out, "trace      %s: %zu events, %zu allocations\n", report->path,
            report->trace->n_events, report->trace->n_allocs);
    fprintf(out, "peak live  %s\n", blyi_size_text(report->trace->peak_live, text));
    uint64_t capacity = report->rows[0].setup.capacity;
    if (capacity != BLYI_REPLAY_UNBOUNDED)
        fprintf(out, "card       %s\n", blyi_size_text(capacity, text));
    fprintf(out, "request    %" PRIu64 " bytes more than asked for\n\n", report->rows[0].setup.pad);
    fprintf(out, "%-10s  %14s  %6s  %8s  %8s  %8s  %8s\n", "", "peak", "", "ranges", "ranges",
            "pages", "pages");
    fprintf(out, "%-10s  %14s  %6s  %8s  %8s  %8s  %8s  %8s  %8s  %8s", "policy", "reserved",
            "ratio", "mapped", "unmapped", "mapped", "unmapped", "handles", "waits", "flushes");
    if (least)
        fprintf(out, "  %14s  %6s", "smallest card", "ratio");
    fprintf(out, "%s\n", report->timed ? "  ns/event" : "");
    for (size_t i = 0; i < report->n_rows; i++)
        put_row(report, &report->rows[i], least, out);
}
