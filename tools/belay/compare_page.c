/* SPDX-License-Identifier: Apache-2.0 */
#include "compare_page.h"

#include <inttypes.h>
#include <string.h>

#include "chart.h"

#define BAR_WIDTH 320.0

static void set_ratio(struct compare_row *row)
{
    if (row->value[0] > 0)
        snprintf(row->ratio, sizeof(row->ratio), "%.2f", row->value[1] / row->value[0]);
}

static struct compare_row *add(struct compare_row *rows, size_t *n, const char *name)
{
    struct compare_row *row = &rows[(*n)++];
    *row = (struct compare_row){.name = name};
    return row;
}

static void add_bytes(struct compare_row *rows, size_t *n, const char *name, uint64_t stock,
                      uint64_t pool)
{
    struct compare_row *row = add(rows, n, name);
    const uint64_t values[2] = {stock, pool};
    row->is_size = true;
    for (int i = 0; i < 2; i++) {
        row->value[i] = (double)values[i];
        blyi_size_short(values[i], row->text[i]);
    }
    set_ratio(row);
}

static void add_count(struct compare_row *rows, size_t *n, const char *name, uint64_t stock,
                      uint64_t pool)
{
    struct compare_row *row = add(rows, n, name);
    const uint64_t values[2] = {stock, pool};
    for (int i = 0; i < 2; i++) {
        row->value[i] = (double)values[i];
        snprintf(row->text[i], sizeof(row->text[i]), "%" PRIu64, values[i]);
    }
    set_ratio(row);
}

static void add_seconds(struct compare_row *rows, size_t *n, const char *name, double stock,
                        double pool)
{
    struct compare_row *row = add(rows, n, name);
    row->value[0] = stock;
    row->value[1] = pool;
    for (int i = 0; i < 2; i++)
        snprintf(row->text[i], sizeof(row->text[i]), "%.3f s", row->value[i]);
    set_ratio(row);
}

size_t compare_rows(const struct compare_side sides[2], struct compare_row rows[COMPARE_ROWS])
{
    const struct compare_result *a = &sides[0].result, *b = &sides[1].result;
    size_t n = 0;
    add_bytes(rows, &n, "peak of what was asked for", a->peak_asked, b->peak_asked);
    add_bytes(rows, &n, "peak of what the card gave", a->peak_backed, b->peak_backed);
    if (sides[0].smallest > 0 && sides[1].smallest > 0)
        add_bytes(rows, &n, "smallest card", sides[0].smallest, sides[1].smallest);
    add_count(rows, &n, "allocations", a->allocs, b->allocs);
    add_count(rows, &n, "calls to the driver", a->driver_calls, b->driver_calls);
    add_seconds(rows, &n, "time in allocation", (double)a->alloc_ns / 1e9,
                (double)b->alloc_ns / 1e9);
    add_seconds(rows, &n, "time of the program", a->seconds, b->seconds);
    add_bytes(rows, &n, "live at exit", a->left, b->left);
    add_count(rows, &n, "findings", a->findings, b->findings);
    return n;
}

static double largest_size(const struct compare_row *rows, size_t n)
{
    double top = 0;
    for (size_t i = 0; i < n; i++)
        for (int s = 0; s < 2 && rows[i].is_size; s++)
            top = rows[i].value[s] > top ? rows[i].value[s] : top;
    return top;
}

/* Both sizes of a row as bars, on the one scale of all rows. */
static void draw_sizes(FILE *out, const struct compare_row *row, double top)
{
    if (!row->is_size || top <= 0)
        return;
    fprintf(out, "<svg width=\"%.0f\" height=\"20\">", BAR_WIDTH);
    for (int s = 0; s < 2; s++)
        fprintf(out, "<rect class=\"c%d\" y=\"%d\" width=\"%.1f\" height=\"8\"/>", s, 2 + s * 9,
                row->value[s] / top * BAR_WIDTH);
    fputs("</svg>", out);
}

bool compare_note(const struct compare_side sides[2], char *text, size_t size)
{
    uint64_t n = sides[0].result.pools; /* with stock allocation all are the program's */
    snprintf(text, size,
             "The program has %" PRIu64 " pool%s of its own: --alloc changes aclrtMalloc alone, so "
             "what %s hold%s is the same on both sides.",
             n, n == 1 ? "" : "s", n == 1 ? "it" : "they", n == 1 ? "s" : "");
    return n > 0;
}

void compare_page(FILE *out, char *const *program, const struct compare_side sides[2])
{
    struct compare_row rows[COMPARE_ROWS];
    size_t n = compare_rows(sides, rows);
    const char *slash = strrchr(program[0], '/');
    char title[256], note[256];
    snprintf(title, sizeof(title), "%s: stock allocation and the pool",
             slash ? slash + 1 : program[0]);
    chart_page(out, title);
    fprintf(out, "<table><tr><th><th>%s<th>%s<th>ratio<th>%s above %s\n", sides[0].alloc,
            sides[1].alloc, sides[0].alloc, sides[1].alloc);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "<tr><td>%s<td>%s<td>%s<td>%s<td>", rows[i].name, rows[i].text[0],
                rows[i].text[1], rows[i].ratio);
        draw_sizes(out, &rows[i], largest_size(rows, n));
        fputc('\n', out);
    }
    fputs("</table>\n", out);
    if (compare_note(sides, note, sizeof(note)))
        fprintf(out, "<p>%s\n", note);
}
