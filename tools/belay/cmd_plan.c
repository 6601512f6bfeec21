/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c - `belay plan`: offsets for buffers whose lifetimes are known.
 */
#include "command.h"
#include "plan_input.h"
#include "plan_page.h"
#include "plan_report.h"
#include "plan_step.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/check.h"

struct request {
    const char *path, *offsets;
    const bly_plan_input *input;
    bool json, html, step;
    uint64_t capacity;
    bly_plan_opts opts;
};

/* "1s", "250ms", "1.5" (seconds). */
static bool read_duration(const char *text, uint64_t *ns)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    double unit = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1e9
                  : strcmp(end, "ms") == 0                      ? 1e6
                  : strcmp(end, "us") == 0                      ? 1e3
                  : strcmp(end, "min") == 0                     ? 60e9
                                                                : 0;
    if (errno != 0 || end == text || !(value > 0) || unit == 0 || !(value * unit < 1e18))
        return false;
    *ns = (uint64_t)(value * unit);
    return *ns > 0;
}

static bool read_count(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *value <= most;
}

/* ---- output ------------------------------------------------------------------------------ */

static bool has_gaps(const bly_plan_input *input)
{
    for (size_t i = 0; i < input->n; i++) {
        if (input->buffers[i].n_gaps > 0)
            return true;
    }
    return false;
}

static void write_gaps(FILE *out, const bly_plan_buffer *b)
{
    for (size_t g = 0; g < b->n_gaps; g++) {
        const bly_plan_gap *gap = &b->gaps[g];
        fprintf(out, "%s%" PRId64 "-%" PRId64, g > 0 ? " " : "", gap->lower, gap->upper);
        if (gap->keep_lower < gap->keep_upper)
            fprintf(out, "@%" PRIu64 ":%" PRIu64, gap->keep_lower, gap->keep_upper);
    }
}

static bool write_offsets(const char *path, const bly_plan_input *input,
                          const bly_plan_result *result)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (out == NULL) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    bool gaps = has_gaps(input);
    fprintf(out, "id,lower,upper,size,offset%s\n", gaps ? ",gaps" : "");
    for (size_t i = 0; i < input->n; i++) {
        const bly_plan_buffer *b = &input->buffers[i];
        fprintf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "%s", input->ids[i],
                b->lower, b->upper, b->size, result->offset[i], gaps ? "," : "");
        write_gaps(out, b);
        putc('\n', out);
    }
    bool ok = fflush(out) == 0 && !ferror(out);
    if (out != stdout)
        ok = fclose(out) == 0 && ok;
    if (!ok)
        say("%s: %s", path, strerror(errno));
    return ok;
}

/* ---- the plan --------------------------------------------------------------------------- */

static bool show(const struct request *request, const bly_plan_input *input,
                 const struct plan_step *step, const bly_plan_result *result)
{
    bool ok = true;
    struct plan_notes notes = {.step = step};
    if (input->is_trace)
        notes.has_stock =
            stock_simulate(request->input, step != NULL ? step->upper : INT64_MAX, &notes.stock);
    if (request->offsets != NULL)
        ok = write_offsets(request->offsets, input, result);
    if (request->html)
        return plan_page(stdout, request->path, input, result) && ok;
    if (request->json)
        return plan_json(result, &notes) && ok;
    if (request->offsets == NULL || strcmp(request->offsets, "-") != 0)
        plan_text(input, result, &notes);
    return ok;
}

static int plan(const struct request *request)
{
    struct plan_step step = {0};
    bly_plan_result result = {0};
    if (blyi_plan_check(request->input->buffers, request->input->n, &request->opts,
                        request->input->ids) != BLY_OK) {
        say("%s: %s", request->path, bly_last_error());
        return 1;
    }
    if (request->step && !plan_step_take(request->path, request->input, &step))
        return 1;
    const bly_plan_input *input = request->step ? &step.input : request->input;
    int status = 1;
    if (bly_plan(input->buffers, input->n, &request->opts, &result) != BLY_OK)
        say("%s: %s", request->path, bly_last_error());
    else
        status = show(request, input, request->step ? &step : NULL, &result) ? 0 : 1;
    bly_plan_release(&result);
    plan_step_release(&step);
    return status;
}

/* ---- arguments --------------------------------------------------------------------------- */

static const struct option options[] = {
    {"capacity", required_argument, NULL, 'c'},
    {"deadline", required_argument, NULL, 'd'},
    {"align", required_argument, NULL, 'a'},
    {"threads", required_argument, NULL, 't'},
    {"seed", required_argument, NULL, 's'},
    {"nodes", required_argument, NULL, 'n'},
    {"improve", no_argument, NULL, 'i'},
    {"step", no_argument, NULL, 'p'},
    {"json", no_argument, NULL, 'j'},
    {"html", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool read_option(struct request *request, int option, const char *value)
{
    uint64_t count;
    switch (option) {
    case 'c':
        request->opts.capacity = &request->capacity;
        return blyi_size_try_parse(value, &request->capacity) && request->capacity > 0;
    case 'd':
        return read_duration(value, &request->opts.deadline_ns);
    case 'a':
        return blyi_size_try_parse(value, &request->opts.align) && request->opts.align > 0;
    case 't':
        if (!read_count(value, 1024, &count))
            return false;
        request->opts.n_threads = (uint32_t)count;
        return true;
    case 's':
        return read_count(value, UINT64_MAX, &request->opts.seed);
    case 'n':
        return read_count(value, UINT64_MAX, &request->opts.node_budget);
    case 'o':
        request->offsets = value;
        return true;
    case 'i':
        request->opts.improve = 1;
        return true;
    case 'p':
        return request->step = true;
    case 'j':
        return request->json = true;
    case 'h':
        return request->html = true;
    default:
        return false;
    }
}

static int run(int argc, char **argv)
{
    struct request request = {.opts = bly_plan_opts_default()};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "o:", options, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return usage_error("plan", "plan: cannot make sense of \"%s\"", argv[optind - 1]);
        if (!read_option(&request, option, optarg))
            return usage_error("plan", "plan: \"%s\" is no value for this option", optarg);
    }
    if (optind + 1 != argc)
        return usage_error("plan", "plan: %s",
                           optind == argc ? "which file?" : "one file at a time");
    if (request.json && request.html)
        return usage_error("plan", "plan: --json or --html, not both");
    request.path = argv[optind];
    bly_plan_input input;
    if (!plan_input_read(request.path, &input))
        return 1;
    request.input = &input;
    int status = plan(&request);
    bly_plan_input_release(&input);
    return status;
}

const struct command command_plan = {
    .name = "plan",
    .usage =
        "FILE [--capacity N] [--deadline 1s] [--align N] [--threads N] [--seed N]\n"
        "                  [--nodes N] [--improve] [--step] [-o offsets.csv] [--json | --html]",
    .summary = "Offsets for buffers whose lifetimes are known.",
    .help =
        "FILE is a CSV (id, lower, upper, size; optional alignment, gaps, offset, hint, region)\n"
        "or a TSV allocation trace, which may be compressed by zstd.\n"
        "\n"
        "  --capacity N   stop as soon as a plan fits; fail when none does\n"
        "  --improve      do not stop there\n"
        "  --deadline T   how long to look for better plans (default 1s)\n"
        "  --nodes N      the same in steps of search: equal results on every machine\n"
        "  --align N      of every offset\n"
        "  --threads N    default: one per core\n"
        "  --seed N       of every random choice\n"
        "  --step         find the step that a trace repeats, and plan one\n"
        "  -o FILE        write id,lower,upper,size,offset (-: to the screen)\n"
        "  --json         for scripts\n"
        "  --html         a page with the packing before and after\n"
        "\n"
        "example: belay plan buffers.csv --capacity 1MiB -o offsets.csv\n",
    .run = run,
};
