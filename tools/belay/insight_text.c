/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_text.c - the report of a recording for people: figures first, then what to do about them.
 */
#include "base/compiler.h"
#include "insight_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "insight_input.h"
#include "trace_command.h"

#define ROWS 10
#define TOP  5

/* Where frees and blocks do not go together, the figures above say less than they seem to. */
static void write_counts(const struct blyi_insight *in, FILE *out)
{
    const struct blyi_counts *counts = &in->history.counts;
    if (counts->unknown_frees > 0)
        fprintf(out, "\nfrees of what is no live block: %" PRIu64 " of %" PRIu64 "\n",
                counts->unknown_frees, counts->frees + counts->resets);
    if (counts->lost_frees > 0)
        fprintf(out, "\nblocks whose address was given out again without a free: %" PRIu64 "\n",
                counts->lost_frees);
}

static void write_things(const struct blyi_insight *in, FILE *out)
{
    static const char *const kinds[BLYI_THING_KINDS] = {
#define THING_MANY(name, one, many) many,
        BLYI_THINGS(THING_MANY)
#undef THING_MANY
    };
    char label[INSIGHT_LABEL];
    if (in->n_things > 0)
        fprintf(out, "\n%-10s%10s%12s  site\n", "created", "", "not ended");
    for (size_t i = 0; i < in->n_things && i < ROWS; i++) {
        const struct blyi_thing_row *row = &in->things[i];
        fprintf(out, "%-10s%10" PRIu64 "%12" PRIu64 "  %s\n", kinds[row->kind], row->made,
                row->live + row->reset, insight_label(in, row->label, label));
    }
    insight_put_rest(out, in->n_things, ROWS);
}

/* ── Growth ───────────────────────────────────────────────────────────────────────────────── */

static void put_growth(const struct blyi_insight *in, const char *what,
                       const struct blyi_growth *growth, const uint64_t *valleys, FILE *out)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    fprintf(out, "%-9s %s: from %s", what, blyi_growth_key(growth->kind),
            blyi_size_text(valleys[0], a));
    fprintf(out, " in the first valley to %s in the last",
            blyi_size_text(valleys[in->cycles.n - 1], a));
    if (growth->kind == BLYI_GROWTH_CREEP) {
        fprintf(out, "; %zu rises in a row, ", growth->rises);
        if (growth->least == growth->most)
            fprintf(out, "of %s each", blyi_size_text(growth->least, a));
        else
            fprintf(out, "of %s to %s", blyi_size_text(growth->least, a),
                    blyi_size_text(growth->most, b));
    }
    fputc('\n', out);
}

static void put_growers(const struct blyi_insight *in, FILE *out)
{
    char label[INSIGHT_LABEL];
    if (in->growers.n > 0 && in->growth.kind != BLYI_GROWTH_SAWTOOTH)
        fprintf(out, "%-32s%8s  site\n", "grown between these valleys", "");
    for (size_t i = 0; in->growth.kind != BLYI_GROWTH_SAWTOOTH && i < in->growers.n && i < TOP;
         i++) {
        const struct blyi_holding *row = &in->growers.rows[i];
        insight_put_size(out, row->second.bytes - row->first.bytes);
        fprintf(out, "%9s  %s\n", "", insight_label(in, row->label, label));
    }
}

static void write_growth(const struct blyi_insight *in, FILE *out)
{
    char label[INSIGHT_LABEL], a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    if (in->cycles.n >= BLYI_CYCLES_MIN) {
        fprintf(out, "\n%zu cycles%s, by ", in->cycles.n + in->cycles.dropped,
                in->cycles.dropped > 0 ? " (the last are judged)" : "");
        if (in->cycles.source == BLYI_CYCLES_MARKS)
            fprintf(out, "the mark or range \"%s\"\n", blyi_trace_name(in->trace, in->cycles.name));
        else
            fprintf(out, "the curve of what is live\n");
        put_growth(in, "live", &in->growth, in->cycles.live, out);
        if (in->has_pool)
            put_growth(in, "pool", &in->pool_growth, in->cycles.reserved, out);
        put_growers(in, out);
    }
    for (size_t i = 0; i < in->n_ramps; i++) {
        const struct blyi_ramp *ramp = &in->ramps[i];
        fprintf(out, "\nmonotone growth of ");
        if (ramp->step > 0)
            fprintf(out, "%s per step, ", blyi_size_text(ramp->step, a));
        fprintf(out, "%" PRIu64 " steps, from %s to %s, site %s\n", ramp->n,
                blyi_size_text(ramp->first, a), blyi_size_text(ramp->last, b),
                insight_label(in, ramp->label, label));
        uint64_t most = (ramp->last + 2 * MiB - 1) / (2 * MiB);
        fprintf(out, "  > reserve %s once\n", blyi_size_text(most * 2 * MiB, a));
    }
}

/* ── Pool, waste, uses ────────────────────────────────────────────────────────────────────── */

static void write_pool(const struct blyi_insight *in, FILE *out)
{
    const struct blyi_fragments *pool = &in->fragments;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], label[INSIGHT_LABEL];
    if (!in->has_pool)
        return;
    fprintf(out, "\npool at the end: %s in %" PRIu64 " segment%s\n",
            blyi_size_text(pool->reserved, a), pool->n_pieces, insight_plural(pool->n_pieces));
    fprintf(out, "  %-10s%s\n", "live", blyi_size_text(pool->live, a));
    fprintf(out, "  %-10s%s\n", "waiting", blyi_size_text(pool->waiting, a));
    fprintf(out, "  %-10s%s, the longest row %s\n", "idle", blyi_size_text(pool->idle, a),
            blyi_size_text(pool->largest, b));
    fprintf(out, "  %-10s%s in %" PRIu64 " segment%s without a block\n", "can go",
            blyi_size_text(pool->releasable, a), pool->free_pieces,
            insight_plural(pool->free_pieces));
    fprintf(out, "  %-10s%s idle in segments with live blocks\n", "pinned",
            blyi_size_text(pool->pinned, a));
    if (pool->sparse > 0) {
        fprintf(out, "  what if: were %" PRIu64 " block%s of %s elsewhere, ", pool->sparse_blocks,
                insight_plural(pool->sparse_blocks), blyi_size_text(pool->sparse_bytes, a));
        fprintf(out, "%" PRIu64 " segment%s at most half used could go: %s\n", pool->sparse,
                insight_plural(pool->sparse),
                blyi_size_text(pool->sparse_bytes + pool->sparse_idle, a));
    }
    if (pool->n_pins > 0)
        fprintf(out, "  %-30s%10s%10s  pinned by\n", "idle", "of", "blocks");
    for (size_t i = 0; i < pool->n_pins && i < TOP; i++) {
        const struct blyi_pin *pin = &pool->pins[i];
        insight_put_size(out, pin->idle);
        fprintf(out, "%12s%10" PRIu64 "  %s\n", blyi_size_short(pin->size, a), pin->blocks,
                insight_label(in, pin->label, label));
    }
    insight_put_rest(out, pool->n_pins, TOP);
}

static void put_waste(const char *name, const struct blyi_live *live, FILE *out)
{
    uint64_t waste = live->backed > live->asked ? live->backed - live->asked : 0;
    if (live->count > 0)
        fprintf(out, "%-18s%10" PRIu64 "%17" PRIu64 "%17" PRIu64 "%17" PRIu64 "%17" PRIu64 "\n",
                name, live->count, live->asked, live->rounded, live->backed, waste);
}

static void write_waste(const struct blyi_insight *in, FILE *out)
{
    static const char *const pages[BLYI_PAGE_KIND_COUNT] = {"  on 4 KiB pages", "  on 2 MiB pages",
                                                            "  on 1 GiB pages"};
    char label[INSIGHT_LABEL], size[BLYI_SIZE_TEXT];
    const struct blyi_waste *waste = &in->waste;
    if (!waste->told || waste->all.count + waste->pinned.count == 0)
        return;
    fprintf(out, "\n%-18s%10s%17s%17s%17s%17s\n", "waste, in bytes", "blocks", "asked", "by rule",
            "backed", "waste");
    put_waste("at the peak", &waste->at_peak, out);
    put_waste("all allocations", &waste->all, out);
    for (int i = 0; i < BLYI_PAGE_KIND_COUNT && !(in->info->flags & BLYI_TRACE_IMPORTED); i++)
        put_waste(pages[i], &waste->pages[i], out);
    put_waste("pinned memory", &waste->pinned, out);
    for (size_t n = 0, i = 0; i < in->sites.n && n < TOP; i++)
        if (in->sites.rows[i].saving > 0) {
            fprintf(out, "  > %s: use aclrtMallocAlign32 here, saves %s\n",
                    insight_label(in, in->sites.rows[i].label, label),
                    blyi_size_text(in->sites.rows[i].saving, size));
            n++;
        }
}

static void write_uses(const struct blyi_insight *in, FILE *out)
{
    char label[INSIGHT_LABEL], time[INSIGHT_TIME], size[BLYI_SIZE_TEXT];
    const struct blyi_uses *uses = &in->uses;
    if (!uses->told)
        return;
    fprintf(out, "\nthere and not used for %s or more, as far as copies and sets tell%s\n",
            insight_time(in, uses->threshold_ns, time),
            in->history.n_kernels > 0 ? " (kernels ran; what they touched is not recorded)" : "");
    if (uses->n == 0)
        fprintf(out, "  none\n");
    for (size_t i = 0; i < uses->n && i < TOP; i++)
        for (int k = 0; k < BLYI_SLACK_KINDS; k++) {
            if (uses->rows[i].slack[k].count == 0)
                continue;
            fprintf(out, "  %-5s %" PRIu64 " blocks, %s, up to %s  %s\n",
                    blyi_slack_key((enum blyi_slack)k), uses->rows[i].slack[k].count,
                    blyi_size_text(uses->rows[i].slack[k].bytes, size),
                    insight_time(in, uses->rows[i].slack[k].longest_ns, time),
                    insight_label(in, uses->rows[i].label, label));
        }
    insight_put_rest(out, uses->n, TOP);
}

/* ── Refusals ─────────────────────────────────────────────────────────────────────────────── */

static bly_status write_refusals(const struct blyi_insight *in, FILE *out)
{
    size_t n = in->history.n_refusals;
    for (size_t i = 0; i < n && i < TOP; i++) {
        struct blyi_explanation e;
        bly_status status = blyi_explain(in, &in->history.refusals[i], &e);
        if (status != BLY_OK)
            return status;
        fputc('\n', out);
        insight_write_refusal(in, &e, out);
        blyi_explanation_fini(&e);
    }
    insight_put_rest(out, n, TOP);
    return BLY_OK;
}

bly_status insight_write_text(const struct blyi_insight *in, enum trace_format format, FILE *out)
{
    trace_print_about(in->trace, (int)format, out);
    insight_write_memory(in, out);
    write_counts(in, out);
    write_growth(in, out);
    write_pool(in, out);
    write_waste(in, out);
    write_uses(in, out);
    insight_write_latency(in, out);
    write_things(in, out);
    return write_refusals(in, out);
}
