/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_compare.c - the same program with stock allocation and with the pool, side by side.
 */
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/size.h"
#include "compare_page.h"
#include "compare_run.h"
#include "program.h"

struct order {
    bool json, html, show, smallest;
    uint64_t hbm;
    char **program;
};

/* ---- runs --------------------------------------------------------------------------------- */

static int cannot(void)
{
    say("compare: %s", bly_last_error());
    return 1;
}

static void clean(const char *folder)
{
    static const char *const names[] = {"stock.json", "pool.json", "stock.out", "pool.out"};
    char path[PATH_MAX + 16];
    for (size_t i = 0; i < BLYI_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static int tell_failure(const struct compare_side *side, const char *folder)
{
    if (!side->result.reported && side->result.exit == 0) {
        say("compare: with --alloc %s the program used no card", side->alloc);
        clean(folder);
    } else {
        say("compare: with --alloc %s the program ended with %d; what it said is in %s/%s.out",
            side->alloc, side->result.exit, folder, side->alloc);
    }
    return 1;
}

static int run_side(const struct order *order, const char *folder, struct compare_side *side)
{
    struct compare_setup setup = {.folder = folder,
                                  .alloc = side->alloc,
                                  .hbm = order->hbm,
                                  .program = order->program,
                                  .show = order->show};
    struct compare_result *r = &side->result;
    if (compare_run(&setup, r) != BLY_OK)
        return cannot();
    side->n_runs = 1;
    if (r->exit != 0 || !r->reported)
        return tell_failure(side, folder);
    if (!order->smallest)
        return 0;
    /* What was asked for at the peak can never do; what was backed then should. */
    setup.show = false;
    uint64_t most = r->peak_backed + r->overhead;
    struct compare_result tried;
    setup.hbm = most;
    if (compare_run(&setup, &tried) != BLY_OK)
        return cannot();
    side->n_runs++;
    if (tried.exit != 0)
        most = r->total;
    if (compare_smallest(&setup, r->peak_asked, most, &side->smallest, &side->n_runs) != BLY_OK)
        return cannot();
    return 0;
}

/* ---- results ------------------------------------------------------------------------------ */

static json_t *side_json(const struct compare_side *side)
{
    const struct compare_result *r = &side->result;
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I}", "alloc",
                  side->alloc, "peak_asked", (json_int_t)r->peak_asked, "peak_backed",
                  (json_int_t)r->peak_backed, "allocs", (json_int_t)r->allocs, "frees",
                  (json_int_t)r->frees, "driver_calls", (json_int_t)r->driver_calls, "alloc_ns",
                  (json_int_t)r->alloc_ns, "left", (json_int_t)r->left, "findings",
                  (json_int_t)r->findings, "pools", (json_int_t)r->pools, "overhead",
                  (json_int_t)r->overhead, "seconds", r->seconds, "runs", (json_int_t)side->n_runs);
    if (side->smallest > 0)
        json_object_set_new(object, "smallest_card", json_integer((json_int_t)side->smallest));
    return object;
}

static int print_json(const struct compare_side sides[2])
{
    json_t *all = json_pack("[o, o]", side_json(&sides[0]), side_json(&sides[1]));
    int failed = json_dumpf(all, stdout, JSON_INDENT(2));
    json_decref(all);
    putchar('\n');
    return failed != 0;
}

static void print_row(const struct compare_row *row)
{
    printf("%-34s %16s %16s %9s\n", row->name, row->text[0], row->text[1], row->ratio);
}

static void print_text(const struct compare_side sides[2])
{
    struct compare_row rows[COMPARE_ROWS];
    size_t n = compare_rows(sides, rows);
    char note[256];
    printf("%-34s %16s %16s %9s\n", "", sides[0].alloc, sides[1].alloc, "ratio");
    for (size_t i = 0; i < n; i++)
        print_row(&rows[i]);
    if (compare_note(sides, note, sizeof(note)))
        printf("\n%s\n", note);
}

static int print_results(const struct order *order, const struct compare_side sides[2])
{
    if (order->json)
        return print_json(sides);
    if (order->html)
        compare_page(stdout, order->program, sides);
    else
        print_text(sides);
    return 0;
}

static bool make_folder(char folder[PATH_MAX])
{
    const char *parent = getenv("TMPDIR");
    int n = snprintf(folder, PATH_MAX, "%s/belay-compare-XXXXXX",
                     parent != NULL && parent[0] == '/' ? parent : "/tmp");
    if (n < PATH_MAX && mkdtemp(folder) != NULL)
        return true;
    say("compare: %s: %s", folder, n < PATH_MAX ? strerror(errno) : "the path is too long");
    return false;
}

/* ---- command ------------------------------------------------------------------------------ */

static int take_option(struct order *order, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    static const char *const flags[] = {"--json", "--show", "--no-smallest", "--html", "--hbm"};
    if (strcmp(word, "--json") == 0)
        order->json = true;
    else if (strcmp(word, "--show") == 0)
        order->show = true;
    else if (strcmp(word, "--no-smallest") == 0)
        order->smallest = false;
    else if (strcmp(word, "--html") == 0)
        order->html = true;
    else if (strcmp(word, "--hbm") == 0) {
        if (*at + 1 == argc || strcmp(argv[*at + 1], "--") == 0)
            return usage_error("compare", "compare: %s needs a value", word);
        const char *value = argv[++*at];
        if (blyi_size_parse(value, &order->hbm) != BLY_OK || order->hbm == 0)
            return usage_error("compare", "compare: --hbm: \"%s\" is no size", value);
    } else {
        const char *meant = suggest(word, flags, BLYI_COUNT(flags));
        return meant ? usage_error("compare", "compare: no option \"%s\"; did you mean \"%s\"?",
                                   word, meant)
                     : usage_error("compare", "compare: no option \"%s\"", word);
    }
    return 0;
}

/* order->program is set on success only. */
static int take_arguments(struct order *order, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0'; i++) {
        int status = take_option(order, argc, argv, &i);
        if (status != 0)
            return status;
    }
    if (order->json + order->html + order->show > 1)
        return usage_error("compare", "compare: --json, --html and --show are for one output each");
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    if (i == argc)
        return usage_error("compare", "compare: which program?");
    order->program = argv + i;
    return 0;
}

static int run_compare(int argc, char **argv)
{
    struct order order = {.smallest = true};
    struct compare_side sides[2] = {{.alloc = "stock"}, {.alloc = "pool"}};
    struct program program;
    char folder[PATH_MAX];
    int status = take_arguments(&order, argc, argv);
    if (order.program == NULL)
        return status;
    status = program_look(order.program[0], &program);
    if (status != 0)
        return status;
    if (!make_folder(folder))
        return 1;
    for (int i = 0; i < 2 && status == 0; i++)
        status = run_side(&order, folder, &sides[i]);
    if (status != 0)
        return status; /* what a program said that failed stays */
    clean(folder);
    return print_results(&order, sides);
}

const struct command command_compare = {
    .name = "compare",
    .usage = "[--hbm SIZE] [--no-smallest] [--show] [--json | --html] -- PROGRAM [ARGUMENT...]",
    .summary = "A program with stock allocation and with the pool, side by side.",
    .help =
        "Runs the program with --alloc stock and with --alloc pool, on a card of its own, and "
        "says\n"
        "what each took: peak, calls to the driver, time in allocation, and the smallest card on\n"
        "which it still ends with status 0. That is searched by running it on smaller cards, some\n"
        "more times.\n"
        "\n"
        "  --hbm SIZE      the card of the first runs; default: as the model says\n"
        "  --no-smallest   one run each\n"
        "  --show          show what the program prints in these runs\n"
        "  --json          one object for each: sizes in bytes, times in ns and seconds\n"
        "  --html          a page\n"
        "\n"
        "Example: belay compare --hbm 8GiB -- ./app\n",
    .run = run_compare,
};
