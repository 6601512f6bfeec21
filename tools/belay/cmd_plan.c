/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c - `belay plan`: offsets for buffers whose lifetimes are known.
 */
#include "command.h"
#include "plan_input.h"
#include "plan_page.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

struct request {
    const char *path, *offsets;
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

static bool write_offsets(const char *path, const bly_plan_input *input,
                          const bly_plan_result *result)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (out == NULL) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    fputs("id,lower,upper,size,offset\n", out);
    for (size_t i = 0; i < input->n; i++) {
        const bly_plan_buffer *b = &input->buffers[i];
        fprintf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRIu64 "\n", input->ids[i],
                b->lower, b->upper, b->size, result->offset[i]);
    }
    bool ok = fflush(out) == 0 && !ferror(out);
    if (out != stdout)
        ok = fclose(out) == 0 && ok;
    if (!ok)
        say("%s: %s", path, strerror(errno));
    return ok;
}

static json_t *json_bytes(uint64_t bytes)
{
    return json_integer((json_int_t)bytes);
}

static bool print_json(const bly_plan_result *result, const bly_plan_period *period)
{
    json_t *object = json_object();
    json_object_set_new(object, "buffers", json_bytes(result->n));
    json_object_set_new(object, "lower_bound", json_bytes(result->lower_bound));
    json_object_set_new(object, "peak", json_bytes(result->peak));
    json_object_set_new(object, "gap", json_real(result->gap));
    json_object_set_new(object, "optimal", json_boolean(result->optimal));
    json_object_set_new(object, "seconds", json_real((double)result->elapsed_ns / 1e9));
    json_object_set_new(object, "solver", json_string(result->solver));
    json_object_set_new(object, "nodes", json_bytes(result->nodes));
    if (period != NULL) {
        json_t *step = json_object();
        json_object_set_new(step, "start", json_integer(period->start));
        json_object_set_new(step, "length", json_integer(period->length));
        json_object_set_new(step, "steps", json_bytes(period->n_steps));
        json_object_set_new(step, "buffers", json_bytes(period->n_buffers));
        json_object_set_new(object, "step", step);
    }
    int status = json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    putchar('\n');
    return status == 0;
}

static void print_text(const bly_plan_input *input, const bly_plan_result *result,
                       const bly_plan_period *period)
{
    char text[BLYI_SIZE_TEXT];
    uint64_t before;
    if (period != NULL)
        printf("step         %zu buffers born in %lld, the same %zu times\n", period->n_buffers,
               (long long)period->length, period->n_steps);
    printf("buffers      %zu\n", result->n);
    uint64_t *offset = result->n <= 200000 ? plan_first_fit(input, &before) : NULL;
    if (offset != NULL)
        printf("first fit    %s, not knowing the future\n", blyi_size_text(before, text));
    free(offset);
    printf("peak         %s\n", blyi_size_text(result->peak, text));
    printf("lower bound  %s\n", blyi_size_text(result->lower_bound, text));
    printf("gap          %.4f %%%s\n", 100 * result->gap,
           result->optimal ? ", proven optimal" : "");
    printf("found by     %s in %.3f s\n", result->solver, (double)result->elapsed_ns / 1e9);
}

/* ---- one step ---------------------------------------------------------------------------- */

/* Keeps what is live in the second of the repeated steps, which is past what start-up leaves
 * behind; lifetimes are cut to the step. */
static bool keep_step(bly_plan_input *input, bly_plan_period *period)
{
    if (bly_plan_find_period(input->buffers, input->n, period) != BLY_OK) {
        say("%s", bly_last_error());
        return false;
    }
    int64_t from = period->start + period->length, to = from + period->length;
    size_t kept = 0;
    for (size_t i = 0; i < input->n; i++) {
        bly_plan_buffer b = input->buffers[i];
        if (b.upper <= from || b.lower >= to)
            continue;
        b.lower = b.lower > from ? b.lower : from;
        b.upper = b.upper < to ? b.upper : to;
        b.n_gaps = 0;
        b.gaps = NULL;
        input->ids[kept] = input->ids[i];
        input->buffers[kept++] = b;
    }
    input->n = kept;
    return true;
}

static int plan(const struct request *request, bly_plan_input *input)
{
    bly_plan_period period = {0};
    bly_plan_result result = {0};
    if (request->step && !keep_step(input, &period))
        return 1;
    if (bly_plan(input->buffers, input->n, &request->opts, &result) != BLY_OK) {
        say("%s: %s", request->path, bly_last_error());
        return 1;
    }
    const bly_plan_period *step = request->step ? &period : NULL;
    bool ok = true;
    if (request->offsets != NULL)
        ok = write_offsets(request->offsets, input, &result);
    if (request->html)
        ok = plan_page(stdout, request->path, input, &result) && ok;
    else if (request->json)
        ok = print_json(&result, step) && ok;
    else if (request->offsets == NULL || strcmp(request->offsets, "-") != 0)
        print_text(input, &result, step);
    bly_plan_release(&result);
    return ok ? 0 : 1;
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
    int status = plan(&request, &input);
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
