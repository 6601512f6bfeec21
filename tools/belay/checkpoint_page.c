/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint_page.c - see checkpoint_page.h. Drawings are SVG; there is no script.
 */
#include "checkpoint_page.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/size.h"

#define WIDTH  1000.0
#define HEIGHT 320.0

static const char *const style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}table{border-collapse:collapse}td,th{padding:.2em 1em .2em 0;"
    "text-align:left}svg{width:100%;height:auto;background:#f6f7f9}.forward{fill:#8ab4d8}"
    ".save{fill:#3b76af}.recompute{fill:#e39b3c}.drop{fill:#bbb}.backward{fill:#5a9e6f}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1d}svg{background:#23262b}}";

static void print_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if (*text == '"')
            fputs("&quot;", out);
        else
            fputc(*text, out);
    }
}

static double scaled(uint64_t value, uint64_t whole, double length)
{
    return whole > 0 ? (double)value / (double)whole * length : 0;
}

/* ── The memory curve ─────────────────────────────────────────────────────────────────────── */

struct curve {
    size_t n;
    uint64_t *memory;
    bly_ckpt_replay replay;
};

static bly_status curve_of(const bly_chain *chain, const bly_ckpt_op *ops, size_t n,
                           struct curve *curve)
{
    curve->n = n;
    curve->memory = calloc(n, sizeof(*curve->memory));
    if (curve->memory == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a curve of %zu steps", n);
    return bly_checkpoint_replay(chain, ops, n, &curve->replay, curve->memory);
}

/* Of the schedule that saves every stage once. */
static bly_status curve_before(const bly_chain *chain, struct curve *curve)
{
    size_t n = chain->n * 2;
    bly_ckpt_op *ops = calloc(n, sizeof(*ops));
    if (ops == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a schedule of %zu steps", n);
    for (uint32_t i = 0; i < chain->n; i++) {
        ops[i] = (bly_ckpt_op){BLY_CKPT_SAVE, i + 1};
        ops[n - 1 - i] = (bly_ckpt_op){BLY_CKPT_BACKWARD, i + 1};
    }
    bly_status status = curve_of(chain, ops, n, curve);
    free(ops);
    return status;
}

static void print_curve(FILE *out, const struct curve *curve, uint64_t top, const char *colour)
{
    fputs("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", out);
    fprintf(out, "%s\" points=\"", colour);
    for (size_t i = 0; i < curve->n; i++) {
        double y = HEIGHT - scaled(curve->memory[i], top, HEIGHT);
        fprintf(out, "%.1f,%.1f %.1f,%.1f ", scaled(i, curve->n, WIDTH), y,
                scaled(i + 1, curve->n, WIDTH), y);
    }
    fputs("\"/>\n", out);
}

static void print_curves(FILE *out, const struct curve *before, const struct curve *after,
                         uint64_t budget)
{
    uint64_t top =
        before->replay.peak > after->replay.peak ? before->replay.peak : after->replay.peak;
    fprintf(out, "<svg viewBox=\"0 -4 %.0f %.0f\">\n", WIDTH, HEIGHT + 8);
    print_curve(out, before, top, "#999");
    print_curve(out, after, top, "#c03d3e");
    if (budget <= top) {
        double y = HEIGHT - scaled(budget, top, HEIGHT);
        fprintf(out,
                "<line x1=\"0\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#3b76af\" "
                "stroke-dasharray=\"6 4\"/>\n",
                WIDTH, y, y);
    }
    fputs("</svg>\n", out);
}

/* ── Steps and buffers ────────────────────────────────────────────────────────────────────── */

static void print_steps(FILE *out, const bly_chain *chain, const bly_ckpt_schedule *schedule)
{
    fprintf(out, "<svg viewBox=\"0 0 %.0f 24\">\n", WIDTH);
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const bly_ckpt_op *op = &schedule->ops[i];
        const char *name = chain->stages[op->stage - 1].name;
        fprintf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"24\"><title>",
                bly_ckpt_kind_name(op->kind), scaled(i, schedule->n_ops, WIDTH),
                WIDTH / (double)schedule->n_ops);
        fprintf(out, "%zu: %s %u ", i + 1, bly_ckpt_kind_name(op->kind), op->stage);
        print_escaped(out, name ? name : "");
        fputs("</title></rect>\n", out);
    }
    fputs("</svg>\n", out);
}

static void print_packing(FILE *out, const bly_ckpt_schedule *schedule)
{
    fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\">\n", WIDTH, HEIGHT);
    for (size_t i = 0; i < schedule->n_buffers; i++) {
        const bly_plan_buffer *buffer = &schedule->buffers[i];
        char size[BLYI_SIZE_TEXT];
        double height = scaled(buffer->size, schedule->packed_peak, HEIGHT);
        fprintf(out,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%zu 45%% "
                "60%%)\" stroke=\"#fff\" stroke-width=\".4\"><title>steps %" PRId64 " to %" PRId64
                ", %s at %" PRIu64 "</title></rect>\n",
                scaled((uint64_t)buffer->lower, schedule->n_ops, WIDTH),
                HEIGHT - scaled(schedule->offsets[i], schedule->packed_peak, HEIGHT) - height,
                scaled((uint64_t)(buffer->upper - buffer->lower), schedule->n_ops, WIDTH), height,
                i * 47 % 360, buffer->lower + 1, buffer->upper, blyi_size_short(buffer->size, size),
                schedule->offsets[i]);
    }
    fputs("</svg>\n", out);
}

static void print_row(FILE *out, const char *name, uint64_t time_ns, uint64_t base_ns,
                      uint64_t peak, uint64_t packed)
{
    char live[BLYI_SIZE_TEXT], end[BLYI_SIZE_TEXT];
    fprintf(out, "<tr><td>%s<td>%.3f ms<td>%.2f %%<td>%s<td>%s\n", name, (double)time_ns / 1e6,
            base_ns ? 100.0 * (double)(time_ns - base_ns) / (double)base_ns : 0.0,
            blyi_size_short(peak, live), packed ? blyi_size_short(packed, end) : "");
}

static void print_page(FILE *out, const char *path, const bly_chain *chain,
                       const bly_ckpt_schedule *schedule, const struct curve *before,
                       const struct curve *after)
{
    char budget[BLYI_SIZE_TEXT];
    fprintf(out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>");
    print_escaped(out, path);
    fprintf(out, "</title><style>%s</style>\n<h1>", style);
    print_escaped(out, path);
    fprintf(out,
            "</h1>\n<p>%zu stages, budget %s.</p>\n<table><tr><th><th>time<th>overhead"
            "<th>live peak<th>packed peak\n",
            chain->n, blyi_size_short(schedule->budget, budget));
    print_row(out, "all saved", before->replay.time_ns, schedule->base_ns, before->replay.peak, 0);
    print_row(out, "checkpointed", schedule->time_ns, schedule->base_ns, schedule->peak,
              schedule->packed_peak);
    fputs("</table>\n<h2>Memory, step by step</h2>\n<p>Grey: all saved. Red: checkpointed. Dashed: "
          "the budget. Each curve spans its own steps.</p>\n",
          out);
    print_curves(out, before, after, schedule->budget);
    fputs("<h2>Steps</h2>\n<p>Light blue: forward. Blue: save. Orange: recompute. Grey: drop. "
          "Green: backward.</p>\n",
          out);
    print_steps(out, chain, schedule);
    fputs("<h2>Offsets</h2>\n", out);
    print_packing(out, schedule);
    fputs("</html>\n", out);
}

bly_status checkpoint_page(FILE *out, const char *path, const bly_chain *chain,
                           const bly_ckpt_schedule *schedule)
{
    struct curve before = {0}, after = {0};
    bly_status status = curve_before(chain, &before);
    if (status == BLY_OK)
        status = curve_of(chain, schedule->ops, schedule->n_ops, &after);
    if (status == BLY_OK)
        print_page(out, path, chain, schedule, &before, &after);
    free(before.memory);
    free(after.memory);
    return status;
}
