/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_diff.c - `belay diff`: which sites hold more in one recording than in another.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "command.h"
#include "insight_input.h"
#include "insight_report.h"

#define ROWS 20

struct change {
    const char *name;
    struct blyi_holding a, b; /* zeros where the file has none */
};

struct diff {
    struct insight_input *a, *b;
    struct change *rows;
    size_t n;
};

enum value { AT_PEAK, LEFT, ALTOGETHER, N_VALUES };

static uint64_t value_of(const struct blyi_holding *row, enum value value)
{
    return value == AT_PEAK ? row->first.bytes
           : value == LEFT  ? blyi_insight_left(row).bytes
                            : row->all.bytes;
}

static uint64_t moved(const struct change *row, enum value value)
{
    uint64_t a = value_of(&row->a, value), b = value_of(&row->b, value);
    return a > b ? a - b : b - a;
}

/* By how far the bytes at the peak moved, then those left, then altogether. */
static int by_move(const void *x_, const void *y_)
{
    const struct change *x = x_, *y = y_;
    for (int value = 0; value < N_VALUES; value++) {
        uint64_t of_x = moved(x, (enum value)value), of_y = moved(y, (enum value)value);
        if (of_x != of_y)
            return of_x > of_y ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct change *)x)->name, ((const struct change *)y)->name);
}

static const struct blyi_holdings *rows_of(const struct insight_input *input, bool names)
{
    return names ? &input->in->names : &input->in->sites;
}

static void take(struct diff *diff, const struct insight_input *input, bool names, bool second)
{
    const struct blyi_holdings *holdings = rows_of(input, names);
    for (size_t i = 0; i < holdings->n; i++) {
        struct change *row = &diff->rows[diff->n++];
        *row = (struct change){.name = blyi_label_text(input->in->labels, holdings->rows[i].label)};
        *(second ? &row->b : &row->a) = holdings->rows[i];
    }
}

/* Rows of one name, one of each file, become one. */
static void join(struct diff *diff)
{
    size_t n = 0;
    if (diff->n > 0)
        qsort(diff->rows, diff->n, sizeof(*diff->rows), by_name);
    for (size_t i = 0; i < diff->n; i++) {
        struct change *row = &diff->rows[i];
        if (n == 0 || strcmp(diff->rows[n - 1].name, row->name) != 0) {
            diff->rows[n++] = *row;
            continue;
        }
        if (row->a.all.count > 0)
            diff->rows[n - 1].a = row->a;
        else
            diff->rows[n - 1].b = row->b;
    }
    diff->n = n;
    if (n > 0)
        qsort(diff->rows, n, sizeof(*diff->rows), by_move);
}

static bool make(struct diff *diff, bool names)
{
    diff->rows =
        calloc(rows_of(diff->a, names)->n + rows_of(diff->b, names)->n + 1, sizeof(*diff->rows));
    if (diff->rows == NULL)
        return false;
    take(diff, diff->a, names, false);
    take(diff, diff->b, names, true);
    join(diff);
    return true;
}

static bool is_same(const struct change *row)
{
    return moved(row, AT_PEAK) == 0 && moved(row, LEFT) == 0 && moved(row, ALTOGETHER) == 0;
}

/* ── Output ───────────────────────────────────────────────────────────────────────────────── */

static void put_signed(uint64_t a, uint64_t b, int width)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%" PRIu64,
             b > a   ? "+"
             : a > b ? "-"
                     : "",
             b > a ? b - a : a - b);
    printf("%*s", width, text);
}

static void put_row(const char *name, uint64_t a, uint64_t b)
{
    printf("%-18s%18" PRIu64 "%18" PRIu64, name, a, b);
    put_signed(a, b, 18);
    putchar('\n');
}

static const struct blyi_peak *peak_of(const struct insight_input *input)
{
    return &input->in->peaks[BLYI_ALL_CARDS];
}

static void print_text(const struct diff *diff, size_t limit)
{
    const struct blyi_peak *a = peak_of(diff->a), *b = peak_of(diff->b);
    char label[INSIGHT_LABEL];
    size_t shown = 0, n = 0;
    printf("%-18s%18s%18s%18s\n", "in bytes", "A", "B", "B - A");
    put_row("peak", a->at_peak.asked, b->at_peak.asked);
    put_row("peak, backed", a->backed, b->backed);
    if (a->reserved + b->reserved > 0)
        put_row("peak, pool", a->reserved, b->reserved);
    put_row("at the end", a->end.asked, b->end.asked);
    for (size_t i = 0; i < diff->n; i++)
        n += !is_same(&diff->rows[i]);
    if (n == 0)
        printf("\nno site differs\n");
    else
        printf("\n%18s%18s%18s  site\n", "at the peak", "left at the end", "altogether");
    for (size_t i = 0; i < diff->n && shown < limit; i++) {
        const struct change *row = &diff->rows[i];
        if (is_same(row))
            continue;
        for (int value = 0; value < N_VALUES; value++)
            put_signed(value_of(&row->a, (enum value)value), value_of(&row->b, (enum value)value),
                       18);
        bool only_a = row->b.all.count == 0, only_b = row->a.all.count == 0;
        const struct insight_input *of = only_b ? diff->b : diff->a;
        uint32_t number = only_b ? row->b.label : row->a.label;
        printf("  %s%s\n", insight_label(of->in, number, label),
               only_a   ? " (A alone)"
               : only_b ? " (B alone)"
                        : "");
        shown++;
    }
    if (n > shown)
        printf("%54s  and %zu more\n", "", n - shown);
}

static void json_side(struct blyi_json *json, const char *key, const struct blyi_holding *row)
{
    blyi_json_begin_object(json, key);
    blyi_json_uint(json, "peak_bytes", row->first.bytes);
    blyi_json_uint(json, "left_bytes", blyi_insight_left(row).bytes);
    blyi_json_uint(json, "bytes", row->all.bytes);
    blyi_json_uint(json, "count", row->all.count);
    blyi_json_end_object(json);
}

static void json_file(struct blyi_json *json, const char *key, const struct insight_input *input)
{
    const struct blyi_peak *peak = peak_of(input);
    blyi_json_begin_object(json, key);
    insight_json_file(json, "file", input->in, input->input.format);
    blyi_json_uint(json, "peak", peak->at_peak.asked);
    blyi_json_uint(json, "peak_backed", peak->backed);
    blyi_json_uint(json, "peak_reserved", peak->reserved);
    blyi_json_uint(json, "end", peak->end.asked);
    blyi_json_end_object(json);
}

static void print_json(const struct diff *diff)
{
    struct blyi_json json;
    blyi_json_init(&json, stdout);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "version", 1);
    json_file(&json, "a", diff->a);
    json_file(&json, "b", diff->b);
    blyi_json_begin_array(&json, "sites");
    for (size_t i = 0; i < diff->n; i++) {
        if (is_same(&diff->rows[i]))
            continue;
        blyi_json_begin_object(&json, NULL);
        blyi_json_text(&json, "site", diff->rows[i].name);
        json_side(&json, "a", &diff->rows[i].a);
        json_side(&json, "b", &diff->rows[i].b);
        blyi_json_end_object(&json);
    }
    blyi_json_end_array(&json);
    blyi_json_end_object(&json);
    putchar('\n');
}

static int compare(struct insight_input *a, struct insight_input *b,
                   const struct insight_request *request)
{
    struct diff diff = {.a = a, .b = b};
    if (!make(&diff, request->by != NULL && strcmp(request->by, "name") == 0)) {
        say("no host memory to compare them");
        return 1;
    }
    if (request->json)
        print_json(&diff);
    else
        print_text(&diff, request->limit > 0 ? request->limit : ROWS);
    free(diff.rows);
    return 0;
}

static int run(int argc, char **argv)
{
    struct insight_request request;
    struct insight_input a, b;
    int status = insight_arguments("diff", "jbn", 2, argc, argv, &request);
    if (status != 0)
        return status;
    if (request.by != NULL && strcmp(request.by, "site") != 0 && strcmp(request.by, "name") != 0)
        return usage_error("diff", "diff: --by site or name, not \"%s\"", request.by);
    if (!insight_open(request.files[0], &a))
        return 1;
    if (!insight_open(request.files[1], &b)) {
        insight_close(&a);
        return 1;
    }
    status = compare(&a, &b, &request);
    insight_close(&b);
    insight_close(&a);
    return status;
}

const struct command command_diff = {
    .name = "diff",
    .usage = "A B [--by site|name] [-n ROWS] [--json]",
    .summary = "Which sites hold more in one recording than in another.",
    .help = "Of each site that differs: bytes live at the peak, left at the end, and asked for\n"
            "altogether, B less A. A and B may be of different formats.\n"
            "\n"
            "  --by name   tags and operators instead of sites\n"
            "  -n ROWS     how many (default 20)\n"
            "  --json      for scripts\n"
            "\n"
            "example: belay diff before.trace after.trace\n",
    .run = run,
};
