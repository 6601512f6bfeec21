/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_top_ops.c - `belay top-ops`: the largest users of memory by name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/size.h"
#include "command.h"
#include "insight_input.h"
#include "insight_report.h"
#include "observe/insight_top.h"

#define ROWS 10

/* Rounded down to tenths of a percent, without a product that wraps. */
static uint64_t permille(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return 0;
    return whole < UINT64_MAX / 1000 ? part * 1000 / whole : part / (whole / 1000);
}

/* Of all rows, also of those that are not shown. */
static uint64_t whole(const struct blyi_top *top, enum blyi_top_by by)
{
    return by == BLYI_TOP_PEAK    ? top->peak.bytes
           : by == BLYI_TOP_TOTAL ? top->all.bytes
                                  : top->all.count;
}

static void print_text(const struct insight_input *input, const struct blyi_top *top,
                       enum blyi_top_by by, size_t limit)
{
    char label[INSIGHT_LABEL], from[INSIGHT_LABEL], size[BLYI_SIZE_TEXT], total[BLYI_SIZE_TEXT];
    printf("%16s%8s%18s%10s  name\n", "at the peak, B", "share", "altogether, B", "blocks");
    for (size_t i = 0; i < top->n && i < limit; i++) {
        const struct blyi_top_row *row = &top->rows[i];
        uint64_t share = permille(blyi_top_weight(row, by), whole(top, by));
        printf("%16" PRIu64 "%4" PRIu64 ".%" PRIu64 " %%%18" PRIu64 "%10" PRIu64 "  %s",
               row->peak.bytes, share / 10, share % 10, row->all.bytes, row->all.count,
               insight_label(input->in, row->name, label));
        if (row->site != row->name)
            printf("  from %s", insight_label(input->in, row->site, from));
        putchar('\n');
    }
    if (top->n > limit)
        printf("%52s  and %zu more\n", "", top->n - limit);
    printf("peak %s, altogether %s; the share is of the %s\n",
           blyi_size_text(top->peak.bytes, size), blyi_size_text(top->all.bytes, total),
           by == BLYI_TOP_PEAK    ? "peak"
           : by == BLYI_TOP_TOTAL ? "bytes altogether"
                                  : "blocks");
}

static void print_json(const struct insight_input *input, const struct blyi_top *top,
                       enum blyi_top_by by, size_t limit)
{
    const struct blyi_labels *labels = input->in->labels;
    struct blyi_json json;
    blyi_json_init(&json, stdout);
    blyi_json_begin_object(&json, NULL);
    blyi_json_uint(&json, "version", 1);
    insight_json_file(&json, "file", input->in, input->input.format);
    blyi_json_uint(&json, "peak", top->peak.bytes);
    blyi_json_uint(&json, "total", top->all.bytes);
    blyi_json_begin_array(&json, "ops");
    for (size_t i = 0; i < top->n && i < limit; i++) {
        const struct blyi_top_row *row = &top->rows[i];
        blyi_json_begin_object(&json, NULL);
        blyi_json_text(&json, "name", blyi_label_text(labels, row->name));
        blyi_json_text(&json, "from", blyi_label_text(labels, row->site));
        blyi_json_uint(&json, "peak_bytes", row->peak.bytes);
        blyi_json_uint(&json, "peak_count", row->peak.count);
        blyi_json_uint(&json, "bytes", row->all.bytes);
        blyi_json_uint(&json, "count", row->all.count);
        blyi_json_uint(&json, "left_bytes", row->left.bytes);
        blyi_json_uint(&json, "left_count", row->left.count);
        blyi_json_uint(&json, "share_permille", permille(blyi_top_weight(row, by), whole(top, by)));
        blyi_json_end_object(&json);
    }
    blyi_json_end_array(&json);
    blyi_json_end_object(&json);
    putchar('\n');
}

static bool read_order(const char *by, enum blyi_top_by *order)
{
    static const char *const names[] = {"peak", "total", "count"};
    *order = BLYI_TOP_PEAK;
    for (size_t i = 0; by != NULL && i < BLYI_COUNT(names); i++)
        if (strcmp(by, names[i]) == 0) {
            *order = (enum blyi_top_by)i;
            return true;
        }
    return by == NULL;
}

static int run(int argc, char **argv)
{
    struct insight_request request;
    struct insight_input input;
    struct blyi_top top;
    enum blyi_top_by by;
    int status = insight_arguments("top-ops", "jbn", 1, argc, argv, &request);
    if (status != 0)
        return status;
    if (!read_order(request.by, &by))
        return usage_error("top-ops", "top-ops: --by peak, total or count, not \"%s\"", request.by);
    if (!insight_open(request.files[0], &input))
        return 1;
    const struct blyi_history *history = &input.in->history;
    if (blyi_top_make(history, input.in->labels, 0, blyi_history_end(history), &top) != BLY_OK) {
        say("%s", bly_last_error());
        insight_close(&input);
        return 1;
    }
    blyi_top_order(&top, by);
    size_t limit = request.limit > 0 ? request.limit : ROWS;
    if (request.json)
        print_json(&input, &top, by, limit);
    else
        print_text(&input, &top, by, limit);
    blyi_host_free(top.rows);
    insight_close(&input);
    return 0;
}

const struct command command_top_ops = {
    .name = "top-ops",
    .usage = "FILE [--by peak|total|count] [-n ROWS] [--json]",
    .summary = "The largest users of memory in a recording, by name.",
    .help =
        "A block's name is its tag, else the operator that the file tells, else the range that\n"
        "the thread was in, else the line of the program that asked. \"from\" is the line that\n"
        "asked for most of it, where that is another name.\n"
        "\n"
        "  --by peak    bytes live at the peak (default)\n"
        "  --by total   bytes asked for altogether\n"
        "  --by count   blocks\n"
        "  -n ROWS      how many (default 10)\n"
        "  --json       for scripts\n"
        "\n"
        "example: belay top-ops train.trace -n 5\n",
    .run = run,
};
