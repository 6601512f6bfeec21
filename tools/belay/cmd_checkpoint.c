/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_checkpoint.c - `belay checkpoint`: which activations of a chain to keep, and which to
 * compute again.
 */
#include "command.h"
#include "checkpoint_page.h"

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
    const char *path, *budget;
    bool front, json, html;
    bly_ckpt_opts opts;
};

static int failed(void)
{
    say("%s", bly_last_error());
    return 1;
}

/* Memory of the schedule that saves everything; 0: out of host memory. */
static uint64_t full_peak(const bly_chain *chain)
{
    bly_ckpt_op *ops = malloc(2 * chain->n * sizeof(*ops));
    bly_ckpt_replay replay = {0};
    if (ops == NULL)
        return 0;
    for (size_t x = 0; x < chain->n; x++) {
        ops[x] = (bly_ckpt_op){BLY_CKPT_SAVE, (uint32_t)(x + 1)};
        ops[2 * chain->n - 1 - x] = (bly_ckpt_op){BLY_CKPT_BACKWARD, (uint32_t)(x + 1)};
    }
    if (bly_checkpoint_replay(chain, ops, 2 * chain->n, &replay, NULL) != BLY_OK)
        replay.peak = 0;
    free(ops);
    return replay.peak;
}

/* A bare number counts the file's units, a size with a unit bytes, "50%" is of everything
 * saved. */
static bool read_budget(const char *text, const bly_chain *chain, uint64_t *budget)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    if (*end == '%' && end[1] == '\0' && number <= 1000) {
        uint64_t full = full_peak(chain);
        *budget = full / 100 * number + full % 100 * number / 100;
        return true;
    }
    if (*end != '\0')
        return blyi_size_try_parse(text, budget);
    if (number > UINT64_MAX / chain->unit)
        return false;
    *budget = number * chain->unit;
    return true;
}

static double overhead_pct(uint64_t time_ns, uint64_t base_ns)
{
    return base_ns > 0 ? 100.0 * (double)(time_ns - base_ns) / (double)base_ns : 0;
}

/* Microseconds: whole where they are. */
static json_t *json_time(uint64_t ns)
{
    if (ns == UINT64_MAX)
        return json_null();
    return ns % 1000 == 0 ? json_integer((json_int_t)(ns / 1000)) : json_real((double)ns / 1000);
}

/* In the file's units, rounded up, as budgets are given. */
static json_t *json_units(uint64_t bytes, const bly_chain *chain)
{
    uint64_t units = bytes / chain->unit + (bytes % chain->unit != 0);
    return json_integer((json_int_t)units);
}

static int print_json(json_t *object)
{
    int status = json_dumpf(object, stdout, JSON_INDENT(2));
    json_decref(object);
    putchar('\n');
    return status == 0 ? 0 : 1;
}

/* ── One schedule ─────────────────────────────────────────────────────────────────────────── */

/* ran: this stage ran forward before. */
static json_t *json_step(const bly_chain *chain, const bly_ckpt_op *op, bool ran)
{
    json_t *step = json_object();
    const char *name = chain->stages[op->stage - 1].name;
    json_object_set_new(step, "do", json_string(bly_ckpt_kind_name(op->kind)));
    json_object_set_new(step, "stage", json_integer(op->stage));
    if (name != NULL && name[0] != '\0')
        json_object_set_new(step, "name", json_string(name));
    if (op->kind == BLY_CKPT_RECOMPUTE || (op->kind == BLY_CKPT_SAVE && ran))
        json_object_set_new(step, "again", json_true());
    return step;
}

static int print_schedule_json(const bly_chain *chain, const bly_ckpt_schedule *schedule)
{
    json_t *object = json_object(), *steps = json_array();
    json_object_set_new(object, "unit_bytes", json_integer((json_int_t)chain->unit));
    json_object_set_new(object, "budget",
                        json_integer((json_int_t)(schedule->budget / chain->unit)));
    json_object_set_new(object, "time_us", json_time(schedule->time_ns));
    json_object_set_new(object, "overhead_pct",
                        json_real(overhead_pct(schedule->time_ns, schedule->base_ns)));
    json_object_set_new(object, "peak", json_units(schedule->peak, chain));
    json_object_set_new(object, "packed_peak", json_units(schedule->packed_peak, chain));
    json_object_set_new(object, "base_us", json_time(schedule->base_ns));
    json_object_set_new(object, "persistent_us", json_time(schedule->persistent_ns));
    json_object_set_new(object, "exact", json_boolean(schedule->exact));
    bool ran[BLY_CHAIN_STAGES_MAX + 1] = {false};
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const bly_ckpt_op *op = &schedule->ops[i];
        json_array_append_new(steps, json_step(chain, op, ran[op->stage]));
        ran[op->stage] = true;
    }
    json_object_set_new(object, "schedule", steps);
    return print_json(object);
}

static void print_schedule_text(const bly_chain *chain, const bly_ckpt_schedule *schedule)
{
    char text[BLYI_SIZE_TEXT];
    size_t count[BLY_CKPT_BACKWARD + 1] = {0};
    for (size_t i = 0; i < schedule->n_ops; i++)
        count[schedule->ops[i].kind]++;
    printf("budget       %s\n", blyi_size_text(schedule->budget, text));
    printf("time         %.3f ms, %.2f %% above the %.3f ms without a limit\n",
           (double)schedule->time_ns / 1e6, overhead_pct(schedule->time_ns, schedule->base_ns),
           (double)schedule->base_ns / 1e6);
    if (schedule->persistent_ns == UINT64_MAX)
        printf("persistent   none fits\n");
    else
        printf("persistent   %.3f ms at best%s\n", (double)schedule->persistent_ns / 1e6,
               schedule->exact ? "" : ", of those looked at");
    printf("live peak    %s\n", blyi_size_text(schedule->peak, text));
    printf("packed peak  %s, %zu buffers\n", blyi_size_text(schedule->packed_peak, text),
           schedule->n_buffers);
    size_t forwards = count[BLY_CKPT_FORWARD] + count[BLY_CKPT_SAVE] + count[BLY_CKPT_RECOMPUTE];
    printf("steps        %zu forward, %zu save, %zu recompute, %zu drop, %zu backward\n",
           count[BLY_CKPT_FORWARD], count[BLY_CKPT_SAVE], count[BLY_CKPT_RECOMPUTE],
           count[BLY_CKPT_DROP], count[BLY_CKPT_BACKWARD]);
    printf("run again    %zu stages\n\n", forwards - chain->n);
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const bly_ckpt_op *op = &schedule->ops[i];
        const char *name = chain->stages[op->stage - 1].name;
        printf("%-9s %4u %s\n", bly_ckpt_kind_name(op->kind), op->stage, name ? name : "");
    }
}

static int run_budget(const struct request *request, const bly_chain *chain)
{
    bly_ckpt_schedule schedule;
    uint64_t budget = 0;
    if (!read_budget(request->budget, chain, &budget))
        return usage_error("checkpoint", "checkpoint: \"%s\" is not a budget", request->budget);
    if (bly_checkpoint(chain, budget, &request->opts, &schedule) != BLY_OK)
        return failed();
    int status = 0;
    if (request->html)
        status = checkpoint_page(stdout, request->path, chain, &schedule) == BLY_OK ? 0 : failed();
    else if (request->json)
        status = print_schedule_json(chain, &schedule);
    else
        print_schedule_text(chain, &schedule);
    bly_ckpt_schedule_release(&schedule);
    return status;
}

/* ── The front ────────────────────────────────────────────────────────────────────────────── */

static int print_front_json(const bly_chain *chain, const bly_ckpt_front *front)
{
    json_t *object = json_object(), *points = json_array();
    json_object_set_new(object, "unit_bytes", json_integer((json_int_t)chain->unit));
    json_object_set_new(object, "base_us", json_time(front->base_ns));
    json_object_set_new(object, "exact", json_boolean(front->exact));
    for (size_t i = 0; i < front->n; i++) {
        const bly_ckpt_point *point = &front->points[i];
        json_t *row = json_object();
        json_object_set_new(row, "budget", json_units(point->budget, chain));
        json_object_set_new(row, "time_us", json_time(point->time_ns));
        json_object_set_new(row, "overhead_pct",
                            json_real(overhead_pct(point->time_ns, front->base_ns)));
        json_object_set_new(row, "persistent_us", json_time(point->persistent_ns));
        json_array_append_new(points, row);
    }
    json_object_set_new(object, "front", points);
    return print_json(object);
}

static int run_front(const struct request *request, const bly_chain *chain)
{
    bly_ckpt_front front;
    int status = 0;
    if (bly_checkpoint_front(chain, &request->opts, &front) != BLY_OK)
        return failed();
    if (request->json) {
        status = print_front_json(chain, &front);
    } else {
        printf("%16s  %14s  %9s  %14s\n", "budget", "time", "overhead", "persistent");
        for (size_t i = 0; i < front.n; i++) {
            const bly_ckpt_point *point = &front.points[i];
            char text[BLYI_SIZE_TEXT], persistent[32] = "-";
            if (point->persistent_ns != UINT64_MAX)
                snprintf(persistent, sizeof(persistent), "%.3f ms",
                         (double)point->persistent_ns / 1e6);
            printf("%16s  %11.3f ms  %7.2f %%  %14s\n", blyi_size_short(point->budget, text),
                   (double)point->time_ns / 1e6, overhead_pct(point->time_ns, front.base_ns),
                   persistent);
        }
    }
    bly_ckpt_front_release(&front);
    return status;
}

/* ── Arguments ────────────────────────────────────────────────────────────────────────────── */

static int read_arguments(struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"budget", required_argument, NULL, 'b'},
        {"front", no_argument, NULL, 'f'},
        {"persistent", no_argument, NULL, 'p'},
        {"align", required_argument, NULL, 'a'},
        {"json", no_argument, NULL, 'j'},
        {"html", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'b')
            request->budget = optarg;
        else if (option == 'f')
            request->front = true;
        else if (option == 'p')
            request->opts.persistent = 1;
        else if (option == 'j')
            request->json = true;
        else if (option == 'h')
            request->html = true;
        else if (option != 'a')
            return usage_error("checkpoint", "checkpoint: cannot make sense of \"%s\"",
                               argv[optind - 1]);
        else if (!blyi_size_try_parse(optarg, &request->opts.align))
            return usage_error("checkpoint", "checkpoint: \"%s\" is not an alignment", optarg);
    }
    if (optind + 1 != argc)
        return usage_error("checkpoint", "checkpoint: %s",
                           optind == argc ? "which chain?" : "one chain at a time");
    request->path = argv[optind];
    if (request->budget != NULL && request->front)
        return usage_error("checkpoint", "checkpoint: --budget or --front, not both");
    if (request->html && (request->json || request->budget == NULL))
        return usage_error("checkpoint", "checkpoint: --html needs --budget, and no --json");
    return 0;
}

static int run(int argc, char **argv)
{
    struct request request = {.opts = bly_ckpt_opts_default()};
    int status = read_arguments(&request, argc, argv);
    if (status != 0)
        return status;
    bly_chain chain;
    if (bly_chain_read(request.path, &chain) != BLY_OK)
        return failed();
    status = request.budget != NULL ? run_budget(&request, &chain) : run_front(&request, &chain);
    bly_chain_release(&chain);
    return status;
}

const struct command command_checkpoint = {
    .name = "checkpoint",
    .usage = "CHAIN.csv [--budget N | --front] [--persistent] [--align N] [--json | --html]",
    .summary = "Which activations of a chain to keep, and which to compute again.",
    .help =
        "The file names each stage's times and sizes: stage, name, fwd_us, bwd_us, out, saved,\n"
        "grad, fwd_tmp, bwd_tmp; see include/belay/checkpoint.h.\n"
        "\n"
        "  --budget N     the fastest schedule whose buffers can be placed within N: units of\n"
        "                 the file, a size (\"14.9GiB\"), or a share of what saving\n"
        "                 everything needs (\"50%\")\n"
        "  --front        all trade-offs between memory and time (the default)\n"
        "  --persistent   only schedules that hold what they keep until its last use\n"
        "  --align N      of every buffer's offset\n"
        "  --json         for scripts; sizes are units of the file\n"
        "  --html         the schedule as a page: memory before and after, and the packing\n"
        "\n"
        "example: belay checkpoint bert.csv --budget 50% --html > bert.html\n",
    .run = run,
};
