/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_latency.c - how long calls took, for people and for scripts.
 */
#include <inttypes.h>

#include "base/size.h"
#include "insight_input.h"
#include "insight_report.h"

#define BENDS 3 /* told to people */

const char *insight_class(unsigned size_class, char buf[INSIGHT_CLASS])
{
    char size[BLYI_SIZE_TEXT];
    if (size_class == BLYI_LATENCY_ALL)
        snprintf(buf, INSIGHT_CLASS, "all sizes");
    else if (size_class == BLYI_LATENCY_CLASSES - 1)
        snprintf(buf, INSIGHT_CLASS, "above %s",
                 blyi_size_short(blyi_latency_class_most(size_class - 1), size));
    else
        snprintf(buf, INSIGHT_CLASS, "up to %s",
                 blyi_size_short(blyi_latency_class_most(size_class), size));
    return buf;
}

static void put_state(const struct blyi_bend *bend, const char *when,
                      const struct blyi_bend_state *state, FILE *out)
{
    char size[BLYI_SIZE_TEXT];
    if (bend->card == BLYI_NO_CARD)
        fprintf(out, "    pinned");
    else
        fprintf(out, "    card %u", bend->card);
    fprintf(out, " %s: %" PRIu64 " block%s on %s", when, state->blocks,
            state->blocks == 1 ? "" : "s", blyi_size_text(state->backed, size));
    if (bend->free_told)
        fprintf(out, ", free %s", blyi_size_text(state->free, size));
    fputc('\n', out);
}

static void put_bend(const struct blyi_insight *in, const struct blyi_bend *bend, FILE *out)
{
    char text[INSIGHT_CLASS], time[INSIGHT_TIME], name[INSIGHT_LABEL];
    const struct blyi_latency *before = &bend->before, *after = &bend->after;
    fprintf(out, "  > %s, %s: %s from event no. %" PRIu64 " on, at %s", blyi_call_key(bend->op),
            insight_class(bend->size_class, text),
            after->p50_ns > before->p50_ns ? "slower" : "faster", bend->seq,
            insight_time(in, bend->ns, time));
    if (bend->moment > 0)
        fprintf(out, ", behind the mark or range \"%s\"",
                insight_clean(
                    blyi_trace_name(in->trace, in->history.moments[bend->moment - 1].name), name));
    fprintf(out, "\n    before: p50 %" PRIu64 " ns, p99 %" PRIu64 " ns in %" PRIu64 " calls\n",
            before->p50_ns, before->p99_ns, before->count);
    fprintf(out, "    behind: p50 %" PRIu64 " ns, p99 %" PRIu64 " ns in %" PRIu64 " calls\n",
            after->p50_ns, after->p99_ns, after->count);
    put_state(bend, "at the first call", &bend->first, out);
    put_state(bend, "there", &bend->then, out);
}

void insight_write_latency(const struct blyi_insight *in, FILE *out)
{
    const struct blyi_latencies *all = &in->latencies;
    char text[INSIGHT_CLASS], time[INSIGHT_TIME];
    enum blyi_call_op last = BLYI_CALL_OPS;
    if (all->n_rows > 0)
        fprintf(out, "\n%-12s%-14s%10s%14s%14s%14s  longest\n", "calls took", "", "calls",
                "p50, ns", "p99, ns", "most, ns");
    for (size_t i = 0; i < all->n_rows; i++) {
        const struct blyi_latency_row *row = &all->rows[i];
        const struct blyi_latency *l = &row->latency;
        fprintf(out,
                "%-12s%-14s%10" PRIu64 "%14" PRIu64 "%14" PRIu64 "%14" PRIu64 "  event no. %" PRIu64
                ", at %s\n",
                row->op != last ? blyi_call_key(row->op) : "", insight_class(row->size_class, text),
                l->count, l->p50_ns, l->p99_ns, l->max_ns, l->max_seq,
                insight_time(in, l->max_at_ns, time));
        last = row->op;
    }
    insight_write_bends(in, out);
}

void insight_write_bends(const struct blyi_insight *in, FILE *out)
{
    const struct blyi_latencies *all = &in->latencies;
    for (size_t i = 0; i < all->n_bends && i < BENDS; i++)
        put_bend(in, &all->bends[i], out);
    if (all->n_bends > BENDS)
        fprintf(out, "  and %zu more\n", all->n_bends - BENDS);
}

/* ── For scripts ──────────────────────────────────────────────────────────────────────────── */

static void json_class(struct blyi_json *json, enum blyi_call_op op, unsigned size_class)
{
    blyi_json_text(json, "call", blyi_call_key(op));
    if (size_class < BLYI_LATENCY_CLASSES - 1)
        blyi_json_uint(json, "size_most", blyi_latency_class_most(size_class));
    if (size_class > 0 && size_class < BLYI_LATENCY_CLASSES)
        blyi_json_uint(json, "size_above", blyi_latency_class_most(size_class - 1));
}

static void json_figures(struct blyi_json *json, const struct blyi_latency *l)
{
    blyi_json_uint(json, "count", l->count);
    blyi_json_uint(json, "sum_ns", l->sum_ns);
    blyi_json_uint(json, "p50_ns", l->p50_ns);
    blyi_json_uint(json, "p99_ns", l->p99_ns);
    blyi_json_uint(json, "max_ns", l->max_ns);
    blyi_json_uint(json, "max_event", l->max_seq);
}

static void json_state(struct blyi_json *json, const char *key, const struct blyi_bend *bend,
                       const struct blyi_bend_state *state)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "blocks", state->blocks);
    blyi_json_uint(json, "backed", state->backed);
    if (bend->free_told)
        blyi_json_uint(json, "free", state->free);
    blyi_json_end_object(json);
}

static void json_bend(struct blyi_json *json, const struct blyi_insight *in,
                      const struct blyi_bend *bend)
{
    blyi_json_begin_object(json, NULL);
    json_class(json, bend->op, bend->size_class);
    blyi_json_uint(json, "event", bend->seq);
    blyi_json_uint(json, "ns", bend->ns);
    blyi_json_int(json, "card", bend->card == BLYI_NO_CARD ? -1 : (int64_t)bend->card);
    blyi_json_begin_object(json, "before");
    json_figures(json, &bend->before);
    blyi_json_end_object(json);
    blyi_json_begin_object(json, "after");
    json_figures(json, &bend->after);
    blyi_json_end_object(json);
    json_state(json, "at_first", bend, &bend->first);
    json_state(json, "there", bend, &bend->then);
    if (bend->moment > 0)
        blyi_json_text(json, "behind",
                       blyi_trace_name(in->trace, in->history.moments[bend->moment - 1].name));
    blyi_json_end_object(json);
}

void insight_json_latency(struct blyi_json *json, const struct blyi_insight *in)
{
    const struct blyi_latencies *all = &in->latencies;
    blyi_json_begin_object(json, "latency");
    blyi_json_bool(json, "told", all->n_rows > 0);
    blyi_json_begin_array(json, "calls");
    for (size_t i = 0; i < all->n_rows; i++) {
        blyi_json_begin_object(json, NULL);
        json_class(json, all->rows[i].op, all->rows[i].size_class);
        json_figures(json, &all->rows[i].latency);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_begin_array(json, "over_time");
    for (size_t i = 0; i < all->n_windows; i++) {
        const struct blyi_latency_window *window = &all->windows[i];
        blyi_json_begin_object(json, NULL);
        blyi_json_text(json, "call", blyi_call_key(window->op));
        blyi_json_uint(json, "from_ns", window->from_ns);
        blyi_json_uint(json, "to_ns", window->to_ns);
        json_figures(json, &window->latency);
        blyi_json_uint(json, "blocks", window->blocks);
        blyi_json_end_object(json);
    }
    blyi_json_end_array(json);
    blyi_json_begin_array(json, "bends");
    for (size_t i = 0; i < all->n_bends; i++)
        json_bend(json, in, &all->bends[i]);
    blyi_json_end_array(json);
    blyi_json_end_object(json);
}
