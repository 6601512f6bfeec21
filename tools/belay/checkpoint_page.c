/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint_page.c - see checkpoint_page.h. Drawings are SVG; there is no script.
 */
#include "checkpoint_page.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/size.h"
#include "chart.h"

#define WIDTH     CHART_WIDTH
#define HEIGHT    320.0
#define FOCUS_MAX 2000 /* rectangles that the keyboard can reach; of more, none */

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

static void print_curve(FILE *out, const struct curve *curve, uint64_t top, const char *class)
{
    fprintf(out, "<polyline class=\"%s\" points=\"", class);
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
    uint64_t top = chart_top(before->replay.peak > after->replay.peak ? before->replay.peak
                                                                      : after->replay.peak);
    chart_begin(out, "memory of each step", HEIGHT, top);
    print_curve(out, before, top, "before");
    print_curve(out, after, top, "after");
    if (budget <= top)
        chart_line(out, HEIGHT - scaled(budget, top, HEIGHT), "budget");
    chart_end(out, HEIGHT, top);
    chart_ends(out, "first step", "last step");
}

/* ── Steps and buffers ────────────────────────────────────────────────────────────────────── */

static void print_steps(FILE *out, const bly_chain *chain, const bly_ckpt_schedule *schedule)
{
    bool focus = schedule->n_ops <= FOCUS_MAX;
    chart_begin(out, "steps", 24, 0);
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const bly_ckpt_op *op = &schedule->ops[i];
        const char *name = chain->stages[op->stage - 1].name;
        chart_rect(out, bly_ckpt_kind_name(op->kind), scaled(i, schedule->n_ops, WIDTH), 0,
                   WIDTH / (double)schedule->n_ops, 24, focus);
        fprintf(out, "%zu: %s %u ", i + 1, bly_ckpt_kind_name(op->kind), op->stage);
        chart_text(out, name ? name : "");
        chart_rect_end(out, focus);
    }
    chart_end(out, 24, 0);
}

static void print_packing(FILE *out, const bly_ckpt_schedule *schedule)
{
    static const char *const colours[] = {"c0", "c1", "c2", "c3", "c4"};
    uint64_t top = chart_top(schedule->packed_peak);
    bool focus = schedule->n_buffers <= FOCUS_MAX;
    chart_begin(out, "offsets of buffers", HEIGHT, top);
    for (size_t i = 0; i < schedule->n_buffers; i++) {
        const bly_plan_buffer *buffer = &schedule->buffers[i];
        char size[BLYI_SIZE_TEXT];
        double height = scaled(buffer->size, top, HEIGHT);
        chart_rect(out, colours[i % 5], scaled((uint64_t)buffer->lower, schedule->n_ops, WIDTH),
                   HEIGHT - scaled(schedule->offsets[i], top, HEIGHT) - height,
                   scaled((uint64_t)(buffer->upper - buffer->lower), schedule->n_ops, WIDTH),
                   height, focus);
        fprintf(out, "steps %" PRId64 " to %" PRId64 ", %s at %" PRIu64, buffer->lower + 1,
                buffer->upper, blyi_size_short(buffer->size, size), schedule->offsets[i]);
        chart_rect_end(out, focus);
    }
    chart_end(out, HEIGHT, top);
    chart_ends(out, "first step", "last step");
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
    chart_page(out, path);
    fprintf(out,
            "<p>%zu stages, budget %s.</p>\n<table><tr><th><th>time<th>overhead"
            "<th>live peak<th>packed peak\n",
            chain->n, blyi_size_short(schedule->budget, budget));
    print_row(out, "all saved", before->replay.time_ns, schedule->base_ns, before->replay.peak, 0);
    print_row(out, "checkpointed", schedule->time_ns, schedule->base_ns, schedule->peak,
              schedule->packed_peak);
    fputs("</table>\n<h2>Memory, step by step</h2>\n<p>Each curve spans its own steps.</p>\n<p>"
          "<span class=\"key before\"></span>all saved<span class=\"key after\"></span>"
          "checkpointed</p>\n",
          out);
    print_curves(out, before, after, schedule->budget);
    fputs("<h2>Steps</h2>\n<p>", out);
    for (bly_ckpt_kind kind = BLY_CKPT_FORWARD; kind <= BLY_CKPT_BACKWARD; kind++)
        fprintf(out, "<span class=\"key %s\"></span>%s", bly_ckpt_kind_name(kind),
                bly_ckpt_kind_name(kind));
    fputs("</p>\n", out);
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
