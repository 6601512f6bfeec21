/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_memory.c - of the report for people: what was live, and who held it.
 */
#include "insight_report.h"

#include <inttypes.h>

#include "base/size.h"
#include "insight_input.h"

#define ROWS 10

void insight_put_size(FILE *out, uint64_t bytes)
{
    char brief[BLYI_SIZE_TEXT], text[BLYI_SIZE_TEXT + 3] = "";
    if (bytes >= 1024)
        snprintf(text, sizeof(text), "(%s)", blyi_size_short(bytes, brief));
    fprintf(out, "%16" PRIu64 " B %-11s", bytes, text);
}

void insight_put_rest(FILE *out, size_t n, size_t shown)
{
    if (n > shown)
        fprintf(out, "%32s  and %zu more\n", "", n - shown);
}

/* ── Cards ────────────────────────────────────────────────────────────────────────────────── */

static void put_moment(const char *name, const char *what, const struct blyi_live *live,
                       const char *more, FILE *out)
{
    fprintf(out, "%-11s %-9s", name, what);
    insight_put_size(out, live->asked);
    insight_put_size(out, live->backed);
    fprintf(out, "%9" PRIu64 "  %s\n", live->count, more);
}

static void put_card(const struct blyi_insight *in, uint8_t card, const char *name, FILE *out)
{
    const struct blyi_peak *peak = &in->peaks[card];
    char time[INSIGHT_TIME], more[96] = "before the first event", size[BLYI_SIZE_TEXT];
    if (peak->seq > 0)
        snprintf(more, sizeof(more), "at %s, event no. %" PRIu64, insight_time(in, peak->ns, time),
                 peak->seq);
    put_moment(name, "at start", &peak->start, "", out);
    put_moment("", "peak", &peak->at_peak, peak->at_peak.count > 0 ? more : "", out);
    put_moment("", "at end", &peak->end, "", out);
    const struct blyi_trace_card *about = card < BLYI_CARDS ? blyi_insight_card(in, card) : NULL;
    if (about != NULL) {
        fprintf(out, "%-11s %-9s %s", "", "total", blyi_size_text(about->total, size));
        fprintf(out, ", of which the runtime takes %s\n", blyi_size_text(about->overhead, size));
    }
    if (peak->reserved > 0) {
        fprintf(out, "%-11s %-9s at most %s", "", "pool", blyi_size_text(peak->reserved, size));
        fprintf(out, ", at the end %s\n", blyi_size_text(peak->end.reserved, size));
    }
    if (peak->waiting > 0)
        fprintf(out, "%-11s %-9s at most %s freed and still in use by other streams\n", "",
                "waiting", blyi_size_text(peak->waiting, size));
}

static void write_cards(const struct blyi_insight *in, FILE *out)
{
    char name[16];
    int n = 0;
    fprintf(out, "\n%-21s%18s%30s%21s\n", "memory", "asked", "backed", "blocks");
    for (uint8_t card = 0; card < BLYI_CARDS; card++) {
        if (!in->peaks[card].used && blyi_insight_card(in, card) == NULL)
            continue;
        snprintf(name, sizeof(name), "card %u", card);
        put_card(in, card, name, out);
        n++;
    }
    if (n != 1)
        put_card(in, BLYI_ALL_CARDS, "all cards", out);
    if (in->peaks[BLYI_NO_CARD].used)
        put_card(in, BLYI_NO_CARD, "pinned", out);
}

/* ── Holders ──────────────────────────────────────────────────────────────────────────────── */

static void write_holdings(const struct blyi_insight *in, const char *title,
                           const struct blyi_holdings *holdings, FILE *out)
{
    char label[INSIGHT_LABEL];
    size_t n = 0;
    while (n < holdings->n && holdings->rows[n].first.count > 0)
        n++;
    if (n == 0)
        return;
    fprintf(out, "\n%-32s%8s  %s\n", "held at the peak", "blocks", title);
    for (size_t i = 0; i < n && i < ROWS; i++) {
        insight_put_size(out, holdings->rows[i].first.bytes);
        fprintf(out, "%9" PRIu64 "  %s\n", holdings->rows[i].first.count,
                insight_label(in, holdings->rows[i].label, label));
    }
    insight_put_rest(out, n, ROWS);
}

static void write_holders(const struct blyi_insight *in, FILE *out)
{
    write_holdings(in, "site", &in->sites, out);
    if (insight_says_more(&in->names, &in->sites))
        write_holdings(in, "name", &in->names, out);
    if (insight_says_more(&in->ranges, &in->sites))
        write_holdings(in, "range", &in->ranges, out);
}

/* The row that has most left behind row `before` (SIZE_MAX: of all), in falling order of bytes. */
static size_t next_left(const struct blyi_insight *in, size_t before)
{
    size_t best = SIZE_MAX;
    uint64_t most = 0, limit = UINT64_MAX;
    if (before != SIZE_MAX)
        limit = blyi_insight_left(&in->sites.rows[before]).bytes;
    for (size_t i = 0; i < in->sites.n; i++) {
        struct blyi_amount left = blyi_insight_left(&in->sites.rows[i]);
        bool is_behind =
            left.bytes < limit || (left.bytes == limit && (before == SIZE_MAX || i > before));
        if (left.count > 0 && is_behind && (best == SIZE_MAX || left.bytes > most)) {
            best = i;
            most = left.bytes;
        }
    }
    return best;
}

static void write_left(const struct blyi_insight *in, FILE *out)
{
    char label[INSIGHT_LABEL];
    size_t n = 0, shown = 0;
    for (size_t i = 0; i < in->sites.n; i++)
        n += blyi_insight_left(&in->sites.rows[i]).count > 0;
    if (n == 0)
        return;
    fprintf(out, "\n%-32s%8s  site\n", in->is_over ? "never freed" : "live at the end", "blocks");
    for (size_t at = next_left(in, SIZE_MAX); at != SIZE_MAX && shown < ROWS;
         at = next_left(in, at), shown++) {
        struct blyi_amount left = blyi_insight_left(&in->sites.rows[at]);
        insight_put_size(out, left.bytes);
        fprintf(out, "%9" PRIu64 "  %s\n", left.count,
                insight_label(in, in->sites.rows[at].label, label));
    }
    insight_put_rest(out, n, shown);
}

void insight_write_memory(const struct blyi_insight *in, FILE *out)
{
    write_cards(in, out);
    write_holders(in, out);
    write_left(in, out);
}
