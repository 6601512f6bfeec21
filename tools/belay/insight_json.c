/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_json.c - the report of a recording for scripts. Names stay; fields are added, never
 * renamed (docs/insight.md).
 */
#include "insight_report.h"

#include "trace_input.h"

#define ROWS 1000

static void put_live(struct blyi_json *json, const char *key, const struct blyi_live *live)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "blocks", live->count);
    blyi_json_uint(json, "asked", live->asked);
    blyi_json_uint(json, "by_rule", live->rounded);
    blyi_json_uint(json, "backed", live->backed);
    blyi_json_uint(json, "reserved", live->reserved);
    blyi_json_uint(json, "waiting", live->waiting);
    blyi_json_end_object(json);
}

void insight_json_file(struct blyi_json *json, const char *key, const struct blyi_insight *in,
                       enum trace_format format)
{
    const struct blyi_trace_info *info = in->info;
    blyi_json_begin_object(json, key);
    blyi_json_text(json, "name", info->name);
    blyi_json_text(json, "format", trace_format_name(format));
    blyi_json_text(json, "program", info->program);
    blyi_json_uint(json, "pid", info->pid);
    blyi_json_bool(json, "history", (info->flags & BLYI_TRACE_NO_HISTORY) == 0);
    blyi_json_bool(json, "program_ended", in->is_over);
    blyi_json_uint(json, "events_seen", info->seen);
    blyi_json_uint(json, "events_kept", info->kept);
    blyi_json_uint(json, "events_dropped", info->dropped);
    blyi_json_uint(json, "events_lost", info->lost);
    blyi_json_uint(json, "duration_ns", in->history.end_ns);
    blyi_json_end_object(json);
}

static void put_card(struct blyi_json *json, const struct blyi_insight *in, uint8_t card)
{
    const struct blyi_peak *peak = &in->peaks[card];
    const struct blyi_trace_card *about = card < BLYI_CARDS ? blyi_insight_card(in, card) : NULL;
    if (card < BLYI_CARDS)
        blyi_json_uint(json, "card", card);
    if (about != NULL) {
        blyi_json_uint(json, "total", about->total);
        blyi_json_uint(json, "overhead", about->overhead);
    }
    blyi_json_uint(json, "peak", peak->at_peak.asked);
    blyi_json_uint(json, "peak_ns", peak->ns);
    blyi_json_uint(json, "peak_event", peak->seq);
    blyi_json_uint(json, "peak_backed", peak->backed);
    blyi_json_uint(json, "peak_reserved", peak->reserved);
    blyi_json_uint(json, "peak_waiting", peak->waiting);
    put_live(json, "start", &peak->start);
    put_live(json, "at_peak", &peak->at_peak);
    put_live(json, "end", &peak->end);
}

static void put_cards(struct blyi_json *json, const struct blyi_insight *in)
{
    blyi_json_begin_array(json, "cards");
    for (uint8_t card = 0; card < BLYI_CARDS; card++) {
        if (!in->peaks[card].used && blyi_insight_card(in, card) == NULL)
            continue;
        blyi_json_begin_object(json, NULL);
        put_card(json, in, card);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_begin_object(json, "all_cards");
    put_card(json, in, BLYI_ALL_CARDS);
    blyi_json_end_object(json);
    blyi_json_begin_object(json, "pinned");
    put_card(json, in, BLYI_NO_CARD);
    blyi_json_end_object(json);
}

static void put_holdings(struct blyi_json *json, const char *key, const char *what,
                         const struct blyi_insight *in, const struct blyi_holdings *holdings)
{
    blyi_json_begin_array(json, key);
    for (size_t i = 0; i < holdings->n && i < ROWS; i++) {
        const struct blyi_holding *row = &holdings->rows[i];
        struct blyi_amount left = blyi_insight_left(row);
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, what, blyi_label_text(in->labels, row->label));
        blyi_json_uint(json, "bytes", row->first.bytes);
        blyi_json_uint(json, "count", row->first.count);
        blyi_json_uint(json, "all_bytes", row->all.bytes);
        blyi_json_uint(json, "all_count", row->all.count);
        blyi_json_uint(json, "left_bytes", left.bytes);
        blyi_json_uint(json, "left_count", left.count);
        blyi_json_uint(json, "saving", row->saving);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
}

static void put_growth(struct blyi_json *json, const char *key, const struct blyi_growth *growth)
{
    blyi_json_begin_object(json, key);
    blyi_json_text(json, "kind", blyi_growth_key(growth->kind));
    blyi_json_uint(json, "rises", growth->rises);
    blyi_json_uint(json, "grown", growth->grown);
    blyi_json_uint(json, "least", growth->least);
    blyi_json_uint(json, "most", growth->most);
    blyi_json_end_object(json);
}

static void put_cycles(struct blyi_json *json, const struct blyi_insight *in)
{
    static const char *const sources[] = {"none", "marks", "curve"};
    blyi_json_begin_object(json, "growth");
    blyi_json_text(json, "cycles_by", sources[in->cycles.source]);
    blyi_json_uint(json, "cycles", in->cycles.n + in->cycles.dropped);
    put_growth(json, "live", &in->growth);
    put_growth(json, "reserved", &in->pool_growth);
    blyi_json_begin_array(json, "sites");
    for (size_t i = 0; i < in->growers.n && i < ROWS; i++) {
        const struct blyi_holding *row = &in->growers.rows[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "site", blyi_label_text(in->labels, row->label));
        blyi_json_uint(json, "grown", row->second.bytes - row->first.bytes);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_begin_array(json, "sizes");
    for (size_t i = 0; i < in->n_ramps; i++) {
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "site", blyi_label_text(in->labels, in->ramps[i].label));
        blyi_json_uint(json, "steps", in->ramps[i].n);
        blyi_json_uint(json, "first", in->ramps[i].first);
        blyi_json_uint(json, "last", in->ramps[i].last);
        blyi_json_uint(json, "step", in->ramps[i].step);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_end_object(json);
}

static void put_pool(struct blyi_json *json, const char *key, const struct blyi_insight *in,
                     const struct blyi_fragments *pool)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "segments", pool->n_pieces);
    blyi_json_uint(json, "reserved", pool->reserved);
    blyi_json_uint(json, "live", pool->live);
    blyi_json_uint(json, "waiting", pool->waiting);
    blyi_json_uint(json, "idle", pool->idle);
    blyi_json_uint(json, "longest_row", pool->largest);
    blyi_json_uint(json, "free_segments", pool->free_pieces);
    blyi_json_uint(json, "releasable", pool->releasable);
    blyi_json_uint(json, "pinned_idle", pool->pinned);
    blyi_json_begin_array(json, "pins");
    for (size_t i = 0; i < pool->n_pins && i < ROWS; i++) {
        const struct blyi_pin *pin = &pool->pins[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_uint(json, "card", pin->card);
        blyi_json_uint(json, "address", pin->address);
        blyi_json_uint(json, "size", pin->size);
        blyi_json_uint(json, "idle", pin->idle);
        blyi_json_uint(json, "blocks", pin->blocks);
        blyi_json_text(json, "site", blyi_label_text(in->labels, pin->label));
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_end_object(json);
}

static void put_waste(struct blyi_json *json, const struct blyi_insight *in)
{
    static const char *const pages[BLYI_PAGE_KIND_COUNT] = {"normal", "huge", "giant"};
    blyi_json_begin_object(json, "waste");
    blyi_json_bool(json, "told", in->waste.told);
    put_live(json, "at_peak", &in->waste.at_peak);
    put_live(json, "all", &in->waste.all);
    for (int i = 0; i < BLYI_PAGE_KIND_COUNT; i++)
        put_live(json, pages[i], &in->waste.pages[i]);
    put_live(json, "pinned", &in->waste.pinned);
    blyi_json_uint(json, "saving", in->waste.saving);
    blyi_json_end_object(json);
}

static void put_uses(struct blyi_json *json, const struct blyi_insight *in)
{
    blyi_json_begin_object(json, "uses");
    blyi_json_bool(json, "told", in->uses.told);
    blyi_json_uint(json, "threshold_ns", in->uses.threshold_ns);
    blyi_json_uint(json, "unused_blocks", in->uses.n_unused);
    blyi_json_uint(json, "unused_bytes", in->uses.unused_bytes);
    blyi_json_begin_array(json, "sites");
    for (size_t i = 0; i < in->uses.n && i < ROWS; i++) {
        const struct blyi_use_row *row = &in->uses.rows[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "site", blyi_label_text(in->labels, row->label));
        for (int k = 0; k < BLYI_SLACK_KINDS; k++) {
            blyi_json_begin_object(json, blyi_slack_key((enum blyi_slack)k));
            blyi_json_uint(json, "count", row->slack[k].count);
            blyi_json_uint(json, "bytes", row->slack[k].bytes);
            blyi_json_uint(json, "longest_ns", row->slack[k].longest_ns);
            blyi_json_end_object(json);
        }
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_end_object(json);
}

/* start + made - frees - resets + unknown_frees - lost_frees is live at the end. */
static void put_counts(struct blyi_json *json, const struct blyi_insight *in)
{
    const struct blyi_counts *counts = &in->history.counts;
    blyi_json_begin_object(json, "blocks");
    blyi_json_uint(json, "start", in->history.n_start);
    blyi_json_uint(json, "made", counts->made);
    blyi_json_uint(json, "frees", counts->frees);
    blyi_json_uint(json, "resets", counts->resets);
    blyi_json_uint(json, "unknown_frees", counts->unknown_frees);
    blyi_json_uint(json, "lost_frees", counts->lost_frees);
    blyi_json_end_object(json);
}

static void put_things(struct blyi_json *json, const struct blyi_insight *in)
{
    static const char *const kinds[BLYI_THING_KINDS] = {
#define THING_ONE(name, one, many) one,
        BLYI_THINGS(THING_ONE)
#undef THING_ONE
    };
    blyi_json_begin_array(json, "objects");
    for (size_t i = 0; i < in->n_things && i < ROWS; i++) {
        const struct blyi_thing_row *row = &in->things[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "kind", kinds[row->kind]);
        blyi_json_text(json, "site", blyi_label_text(in->labels, row->label));
        blyi_json_uint(json, "made", row->made);
        blyi_json_uint(json, "left", row->live + row->reset);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_begin_object(json, "orphans");
    blyi_json_uint(json, "count", in->orphans.count);
    blyi_json_uint(json, "bytes", in->orphans.bytes);
    blyi_json_end_object(json);
}

static void put_refusal(struct blyi_json *json, const struct blyi_insight *in,
                        const struct blyi_explanation *e)
{
    const struct blyi_refusal *refusal = e->refusal;
    blyi_json_begin_object(json, NULL);
    blyi_json_uint(json, "event", refusal->seq);
    blyi_json_uint(json, "ns", refusal->ns);
    blyi_json_int(json, "card", refusal->card == BLYI_NO_CARD ? -1 : (int64_t)refusal->card);
    blyi_json_uint(json, "asked", refusal->asked);
    blyi_json_text(json, "why", blyi_why_key(e->why));
    blyi_json_text(
        json, "site",
        blyi_label_text(in->labels, blyi_label_of_site(in->labels, refusal->site, refusal->stack)));
    put_live(json, "live", &e->live);
    if (e->total_told) {
        blyi_json_uint(json, "total", e->total);
        blyi_json_uint(json, "overhead", e->overhead);
    }
    if (e->total_told || e->free_told)
        blyi_json_uint(json, e->free_told ? "free" : "free_at_most", e->free_most);
    if (e->row_told) {
        blyi_json_uint(json, "in_pages", e->needed);
        blyi_json_uint(json, "largest", refusal->largest);
        blyi_json_uint(json, "others", e->others);
    }
    blyi_json_uint(json, "missing", e->missing);
    put_pool(json, "pool", in, &e->pool);
    blyi_json_end_object(json);
}

static bly_status put_refusals(struct blyi_json *json, const struct blyi_insight *in)
{
    bly_status status = BLY_OK;
    blyi_json_uint(json, "n_refusals", in->history.n_refusals);
    blyi_json_begin_array(json, "refusals");
    for (size_t i = 0; status == BLY_OK && i < in->history.n_refusals && i < BLYI_EXPLAINED_MAX;
         i++) {
        struct blyi_explanation e;
        status = blyi_explain(in, &in->history.refusals[i], &e);
        if (status != BLY_OK)
            break;
        put_refusal(json, in, &e);
        blyi_explanation_fini(&e);
    }
    blyi_json_end_array(json);
    return status;
}

bly_status insight_write_json(const struct blyi_insight *in, enum trace_format format, FILE *out)
{
    struct blyi_json json;
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "version", 1);
    insight_json_file(&json, "file", in, format);
    put_cards(&json, in);
    put_holdings(&json, "holders", "site", in, &in->sites);
    put_holdings(&json, "names", "name", in, &in->names);
    put_holdings(&json, "ranges", "range", in, &in->ranges);
    put_cycles(&json, in);
    put_pool(&json, "pool", in, &in->fragments);
    put_waste(&json, in);
    put_uses(&json, in);
    insight_json_latency(&json, in);
    put_counts(&json, in);
    put_things(&json, in);
    bly_status status = put_refusals(&json, in);
    blyi_json_end_object(&json);
    fputc('\n', out);
    return status;
}
