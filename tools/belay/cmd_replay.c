/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_replay.c - `belay replay`: a trace against the policies of allocators.
 */
#include "command.h"
#include "replay_input.h"
#include "replay_pool.h"
#include "replay_report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "trace_convert.h"

static const struct blyi_replay_policy *const policies[] = {
    &blyi_replay_stock, &blyi_replay_caching, &blyi_replay_expandable, &blyi_replay_firstfit,
    &replay_pool};

#define N_POLICIES BLYI_COUNT(policies)

struct request {
    const char *path, *policy; /* NULL: all */
    bool json, html, timed, least;
    int card;
    uint64_t within; /* of the smallest capacity */
    struct blyi_replay_setup setup;
};

/* ---- running ----------------------------------------------------------------------------- */

struct painter {
    struct replay_curve *curve;
    size_t n_events, column;
};

/* Columns between two events hold what was there before. */
static void paint(void *context, size_t event, uint64_t reserved, uint64_t live)
{
    struct painter *p = context;
    size_t column = event * REPLAY_COLUMNS / p->n_events;
    size_t end = (event + 1) * REPLAY_COLUMNS / p->n_events;
    uint64_t *most_reserved = p->curve->reserved, *most_live = p->curve->live;
    do {
        most_reserved[column] = reserved > most_reserved[column] ? reserved : most_reserved[column];
        most_live[column] = live > most_live[column] ? live : most_live[column];
    } while (++column < end);
}

static bool say_failed(const struct request *request)
{
    say("%s: %s", request->path, bly_last_error());
    return false;
}

/* False: said why. A row that does not fit is one all the same. */
static bool run_row(const struct request *request, struct replay_row *row)
{
    struct painter painter = {.curve = row->curve, .n_events = request->setup.trace->n_events};
    row->setup = request->setup;
    bly_status status = blyi_replay_run(row->policy, &row->setup, row->curve != NULL ? paint : NULL,
                                        &painter, &row->result);
    if (status == BLY_OK && request->least) {
        status = blyi_replay_least(row->policy, &row->setup, request->within, &row->least,
                                   &row->at_least);
        row->has_least = status == BLY_OK;
    }
    return status == BLY_OK || say_failed(request);
}

static bool make_curve(const struct request *request, struct replay_row *row)
{
    if (!request->html)
        return true;
    row->curve = calloc(1, sizeof(*row->curve));
    if (row->curve == NULL)
        say("%s: no host memory for the curves of a page", request->path);
    return row->curve != NULL;
}

static bool print(const struct request *request, const struct replay_report *report)
{
    if (request->html)
        replay_page(report, stdout);
    else if (request->json)
        return replay_json(report, stdout);
    else
        replay_text(report, stdout);
    return true;
}

static int replay(const struct request *request)
{
    struct replay_row rows[N_POLICIES] = {0};
    struct replay_report report = {.path = request->path,
                                   .trace = request->setup.trace,
                                   .rows = rows,
                                   .as_list = request->policy == NULL,
                                   .timed = request->timed};
    bool ok = true;
    for (size_t i = 0; i < N_POLICIES; i++) {
        if (request->policy != NULL && strcmp(request->policy, policies[i]->name) != 0)
            continue;
        struct replay_row *row = &rows[report.n_rows++];
        row->policy = policies[i];
        ok = make_curve(request, row) && run_row(request, row) && ok;
    }
    if (report.as_list || ok)
        ok = print(request, &report) && ok;
    for (size_t i = 0; i < report.n_rows; i++)
        free(rows[i].curve);
    return ok ? 0 : 1;
}

/* ---- arguments --------------------------------------------------------------------------- */

static const struct option options[] = {
    {"policy", required_argument, NULL, 'p'},
    {"capacity", required_argument, NULL, 'c'},
    {"pad", required_argument, NULL, 'b'},
    {"lag", required_argument, NULL, 'l'},
    {"within", required_argument, NULL, 'w'},
    {"threads", required_argument, NULL, 'n'},
    {"card", required_argument, NULL, 'd'},
    {"time", no_argument, NULL, 't'},
    {"json", no_argument, NULL, 'j'},
    {"html", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool read_count(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && *value <= most;
}

static bool read_capacity(struct request *request, const char *text)
{
    request->least = strcmp(text, "min") == 0;
    if (request->least)
        return true;
    return blyi_size_try_parse(text, &request->setup.capacity) && request->setup.capacity > 0 &&
           request->setup.capacity <= BLYI_REPLAY_UNBOUNDED;
}

static bool read_option(struct request *request, int option, const char *value)
{
    uint64_t count;
    switch (option) {
    case 'p':
        request->policy = strcmp(value, "all") != 0 ? value : NULL;
        return true;
    case 'c':
        return read_capacity(request, value);
    case 'b':
        return read_count(value, 32, &request->setup.pad) && request->setup.pad % 32 == 0;
    case 'l':
        if (!read_count(value, UINT32_MAX, &count))
            return false;
        request->setup.lag = (uint32_t)count;
        return true;
    case 'n':
        if (!read_count(value, 256, &count) || count == 0)
            return false;
        request->setup.threads = (uint32_t)count;
        return true;
    case 'w':
        return blyi_size_try_parse(value, &request->within);
    case 'd':
        if (!read_count(value, 63, &count))
            return false;
        request->card = (int)count;
        return true;
    case 't':
        return request->timed = request->setup.unchecked = true;
    case 'j':
        return request->json = true;
    case 'h':
        return request->html = true;
    default:
        return false;
    }
}

static int unknown_policy(const char *name)
{
    const char *names[N_POLICIES + 1] = {"all"};
    for (size_t i = 0; i < N_POLICIES; i++)
        names[i + 1] = policies[i]->name;
    const char *meant = suggest(name, names, BLYI_COUNT(names));
    if (meant != NULL)
        return usage_error("replay", "replay: no policy \"%s\"; did you mean \"%s\"?", name, meant);
    return usage_error("replay", "replay: no policy \"%s\"", name);
}

static bool is_policy(const char *name)
{
    for (size_t i = 0; i < N_POLICIES; i++)
        if (strcmp(policies[i]->name, name) == 0)
            return true;
    return false;
}

static int run(int argc, char **argv)
{
    struct blyi_replay_trace trace;
    struct request request = {
        .card = EXPORT_ANY_CARD,
        .setup = {.trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED, .lag = 32}};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == '?' || option == ':')
            return usage_error("replay", "replay: cannot make sense of \"%s\"", argv[optind - 1]);
        if (!read_option(&request, option, optarg))
            return usage_error("replay", "replay: \"%s\" is no value for this option", optarg);
    }
    if (request.policy != NULL && !is_policy(request.policy))
        return unknown_policy(request.policy);
    if (optind + 1 != argc)
        return usage_error("replay", "replay: %s",
                           optind == argc ? "which trace?" : "one trace at a time");
    if (request.json && request.html)
        return usage_error("replay", "replay: --json or --html, not both");
    request.path = argv[optind];
    if (!replay_input_read(request.path, request.card, &trace))
        return 1;
    int status = replay(&request);
    replay_input_release(&trace);
    return status;
}

const struct command command_replay = {
    .name = "replay",
    .usage = "TRACE [--policy NAME] [--capacity N|min] [--within N] [--pad 0|32]\n"
             "                    [--lag N] [--threads N] [--card N] [--time] [--json | --html]",
    .summary = "A trace against allocators: what each would take from the card.",
    .help =
        "TRACE is a recording of Belay, a PyTorch memory snapshot, RMM's log, or the TSV of\n"
        "allocation traces; each may be compressed by zstd.\n"
        "\n"
        "  --policy NAME  one of these (default: all)\n"
        "                   stock       each block from the driver, in pages of its own\n"
        "                   caching     PyTorch's caching allocator\n"
        "                   expandable  the same with expandable segments\n"
        "                   firstfit    one arena, blind to the order between streams\n"
        "                   pool        Belay's own pool, on a simulated device\n"
        "  --capacity N   on a card of N: fails where a policy has no room even after giving\n"
        "                 back what is idle\n"
        "  --capacity min the smallest card on which the trace completes, to 2 MiB; flushes\n"
        "                 are those of the run on it\n"
        "  --within N     how exactly that is to be found (default 2MiB)\n"
        "  --pad 32       every request has 32 bytes more, as aclrtMalloc's have (default 0)\n"
        "  --lag N        events until work on another stream is over, where the trace does not\n"
        "                 tell (default 32)\n"
        "  --threads N    that call the pool in turn (default 1); what is simulated has no caches\n"
        "                 by thread\n"
        "  --card N       of a trace with several\n"
        "  --time         how long a policy took for an event\n"
        "  --json         for scripts: the same bytes in every run, unless --time is given\n"
        "  --html         a page with the curves\n"
        "\n"
        "example: belay replay train.trace --capacity min\n",
    .run = run,
};
