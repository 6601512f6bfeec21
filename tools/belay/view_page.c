/* SPDX-License-Identifier: Apache-2.0
 *
 * view_page.c - see view_page.h. Figures are in the page's text; only drawings need its script.
 */
#include "view_page.h"

#include <inttypes.h>

#include "base/host.h"
#include "base/size.h"
#include "chart.h"
#include "insight_input.h"
#include "view_data.h"
#include "view_latency.h"

#define ROWS 200

static void put_head(const struct blyi_insight *in, FILE *out)
{
    fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\">"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"><title>",
          out);
    chart_text(out, in->info->name);
    fprintf(out, "</title><style>%s</style>\n<h1>", view_page_css);
    chart_text(out, in->info->name);
    fputs("</h1>\n", out);
}

static void put_about(const struct blyi_insight *in, enum trace_format format, FILE *out)
{
    const struct blyi_trace_info *info = in->info;
    char time[INSIGHT_TIME];
    fprintf(out, "<p class=\"soft\">%s", trace_format_name(format));
    if (format == TRACE_FORMAT_BELAY) {
        fputs(" of ", out);
        chart_text(out, info->program);
        fprintf(out, ", process %u", info->pid);
    }
    if (info->flags & BLYI_TRACE_NO_HISTORY)
        fputs("; no history: recording was off, this is the state of one moment", out);
    else
        fprintf(out, "; %" PRIu64 " events, %s", info->kept,
                insight_time(in, in->history.end_ns, time));
    if (info->dropped > 0)
        fprintf(out, "; %" PRIu64 " seen, %" PRIu64 " oldest dropped, first kept no. %" PRIu64,
                info->seen, info->dropped, info->first_seq);
    if (info->lost > 0)
        fprintf(out, "; %" PRIu64 " lost", info->lost);
    fputs("</p>\n", out);
}

static void put_bytes(FILE *out, uint64_t bytes)
{
    char text[BLYI_SIZE_TEXT];
    fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\" title=\"%" PRIu64 " B\">%s", bytes, bytes,
            blyi_size_short(bytes, text));
}

/* ── Memory ───────────────────────────────────────────────────────────────────────────────── */

static void put_card(const struct blyi_insight *in, uint8_t card, const char *name, FILE *out)
{
    const struct blyi_peak *peak = &in->peaks[card];
    char time[INSIGHT_TIME];
    const struct blyi_trace_card *about = card < BLYI_CARDS ? blyi_insight_card(in, card) : NULL;
    fprintf(out, "<tr><td>%s", name);
    put_bytes(out, peak->start.asked);
    put_bytes(out, peak->at_peak.asked);
    fprintf(out, "<td>%s", peak->seq > 0 ? insight_time(in, peak->ns, time) : "");
    put_bytes(out, peak->end.asked);
    put_bytes(out, peak->backed);
    if (peak->reserved > 0)
        put_bytes(out, peak->reserved);
    else
        fputs("<td>", out);
    if (about != NULL)
        put_bytes(out, about->total);
    fputc('\n', out);
}

static void put_cards(const struct blyi_insight *in, FILE *out)
{
    char name[16];
    int n = 0;
    fputs("<div class=\"wide\"><table><thead><tr><th><th class=\"n\">at start<th class=\"n\">peak"
          "<th>when<th class=\"n\">at end<th class=\"n\">most backed<th class=\"n\">most in pools"
          "<th class=\"n\">total<tbody>\n",
          out);
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
    fputs("</table></div>\n", out);
}

static void put_drawings(FILE *out)
{
    static const struct {
        const char *id, *title, *about;
    } drawings[] = {
        {"curve", "Memory over time",
         "Live bytes; the lighter part lies between the least and the most of each step. Grey: "
         "what "
         "pools took. Red across: what the card gives; red upright: a request that failed."},
        {"stack", "Holders over time", "What the largest holders at the peak have, by name."},
        {"blocks", "Blocks over time", ""},
    };
    fputs(
        "<div class=\"bar\"><label>memory <select id=\"memory\"></select></label>"
        "<button id=\"axis\" aria-pressed=\"false\">by time</button>"
        "<button id=\"whole\">whole recording</button>"
        "<label>find <input id=\"find\" type=\"search\" placeholder=\"site or name\"></label>"
        "<span id=\"found\" class=\"soft\" aria-live=\"polite\"></span></div>"
        "<details class=\"soft\"><summary>Keys and mouse</summary>On a drawing: drag or "
        "<kbd>shift</kbd> <kbd>&larr;</kbd> <kbd>&rarr;</kbd> moves, <kbd>+</kbd> <kbd>-</kbd>, a "
        "double click or the wheel (with <kbd>ctrl</kbd>) zooms, <kbd>0</kbd> shows all, "
        "<kbd>&larr;</kbd> <kbd>&rarr;</kbd>, <kbd>,</kbd> <kbd>.</kbd>, <kbd>home</kbd> and "
        "<kbd>end</kbd> move the cursor, a click or <kbd>n</kbd> <kbd>p</kbd> (largest first) "
        "picks a block, <kbd>t</kbd> is by time, <kbd>esc</kbd> lets go. Anywhere: "
        "<kbd>/</kbd> finds.</details>\n"
        "<noscript><p>The drawings need this page's own script; the figures do "
        "not.</p></noscript>\n",
        out);
    for (size_t i = 0; i < sizeof(drawings) / sizeof(drawings[0]); i++)
        fprintf(out,
                "<h2>%s</h2><p class=\"soft\"%s>%s</p><canvas id=\"%s\" tabindex=\"0\" "
                "role=\"application\" aria-label=\"%s\"></canvas>"
                "<div class=\"ends\"><span></span><span></span></div>%s%s\n",
                drawings[i].title, i == 2 ? " id=\"drawn\"" : "", drawings[i].about, drawings[i].id,
                drawings[i].title, i == 1 ? "<div id=\"key\"></div>" : "",
                i == 0   ? "<p class=\"told\" id=\"told\" aria-live=\"polite\"></p>"
                : i == 2 ? "<p class=\"told\" id=\"block\" aria-live=\"polite\"></p>"
                         : "");
}

/* ── Findings ─────────────────────────────────────────────────────────────────────────────── */

static void put_cause(const struct blyi_cause *cause, FILE *out)
{
    fprintf(out, "<div class=\"cause %s\"><p><b>%s</b><span class=\"soft\">%s</span></p><p>",
            blyi_verdict_key(cause->verdict), blyi_cause_title(cause->kind),
            blyi_verdict_words(cause->verdict));
    chart_text(out, cause->evidence);
    fputs("</p>", out);
    if (cause->cure[0] != '\0') {
        fputs("<p>&#8594; ", out);
        chart_text(out, cause->cure);
        fputs("</p>", out);
    }
    fputs("</div>\n", out);
}

static void put_findings(const struct blyi_cause causes[BLYI_CAUSE_COUNT], FILE *out)
{
    size_t n = 0;
    fputs("<h2>Findings</h2>\n", out);
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++)
        if (causes[i].verdict == BLYI_APPLIES) {
            put_cause(&causes[i], out);
            n++;
        }
    if (n == 0)
        fputs("<p>None of the known causes of trouble applies.</p>\n", out);
    fputs("<details><summary>What does not apply, and what the file cannot tell</summary>\n", out);
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++)
        if (causes[i].verdict == BLYI_CANNOT_TELL)
            put_cause(&causes[i], out);
    for (int i = 0; i < BLYI_CAUSE_COUNT; i++)
        if (causes[i].verdict == BLYI_DOES_NOT)
            put_cause(&causes[i], out);
    fputs("</details>\n", out);
}

/* ── Tables ───────────────────────────────────────────────────────────────────────────────── */

static void put_holdings(const struct blyi_insight *in, const char *title, const char *what,
                         const struct blyi_holdings *holdings, FILE *out)
{
    if (holdings->n == 0)
        return;
    fprintf(out,
            "<h2>%s</h2><div class=\"wide\"><table class=\"sort\"><thead><tr>"
            "<th class=\"n\"><button>at the peak</button><th class=\"n\"><button>blocks</button>"
            "<th class=\"n\"><button>at the end</button><th class=\"n\"><button>altogether"
            "</button><th class=\"n\"><button>made</button><th><button>%s</button><tbody>\n",
            title, what);
    for (size_t i = 0; i < holdings->n && i < ROWS; i++) {
        const struct blyi_holding *row = &holdings->rows[i];
        char label[INSIGHT_LABEL];
        fputs("<tr>", out);
        put_bytes(out, row->first.bytes);
        fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\">%" PRIu64, row->first.count,
                row->first.count);
        put_bytes(out, blyi_insight_left(row).bytes);
        put_bytes(out, row->all.bytes);
        fprintf(out, "<td class=\"n\" data-v=\"%" PRIu64 "\">%" PRIu64 "<td class=\"site\">",
                row->all.count, row->all.count);
        chart_text(out, insight_label(in, row->label, label));
        fputc('\n', out);
    }
    fputs("</table></div>\n", out);
    if (holdings->n > ROWS)
        fprintf(out, "<p class=\"soft\">and %zu more</p>\n", holdings->n - ROWS);
}

bly_status view_page(const struct blyi_insight *in, enum trace_format format,
                     const struct blyi_cause causes[BLYI_CAUSE_COUNT], FILE *out)
{
    put_head(in, out);
    put_about(in, format, out);
    put_cards(in, out);
    if (in->history.n_lives == 0)
        fputs("<p>Nothing was allocated, so there is nothing to draw.</p>\n", out);
    else
        put_drawings(out);
    put_findings(causes, out);
    view_latency(in, out);
    put_holdings(in, "Holders by site", "site", &in->sites, out);
    if (insight_says_more(&in->names, &in->sites))
        put_holdings(in, "Holders by name", "name", &in->names, out);
    if (insight_says_more(&in->ranges, &in->sites))
        put_holdings(in, "Holders by range", "range", &in->ranges, out);
    if (in->history.n_lives == 0)
        return BLY_OK;
    fputs("<script type=\"application/json\" id=\"data\">", out);
    bly_status status = view_write_data(in, format, out);
    fprintf(out, "</script>\n<script>%s%s</script>\n", view_page_js, view_table_js);
    return status;
}
