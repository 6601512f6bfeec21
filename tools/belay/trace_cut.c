/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_cut.c - `belay trace cut`: events of a range, and before them what was live at its start.
 * Numbers of events stay. Nothing is held in memory but the live blocks.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace_command.h"
#include "trace_input.h"
#include "trace_live.h"

struct cut {
    const char *path, *out;
    uint64_t from_ns, to_ns; /* since the start */
    uint64_t first, last;    /* numbers of events */
};

/* "1.5s", "20ms", "300us", "1000ns"; without a unit, seconds. */
static bool read_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || !(value >= 0))
        return false;
    for (size_t i = 0; i < BLYI_COUNT(units); i++)
        if (strcmp(end, units[i].unit) == 0 && value * units[i].ns < 9e18) {
            *ns = (uint64_t)(value * units[i].ns + 0.5);
            return true;
        }
    return false;
}

static bool read_numbers(const char *text, uint64_t *first, uint64_t *last)
{
    char *end;
    errno = 0;
    *first = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '-')
        return false;
    text = end + 1;
    *last = *text == '\0' ? UINT64_MAX : strtoull(text, &end, 10);
    return errno == 0 && (*text == '\0' || (*text >= '0' && *text <= '9' && *end == '\0')) &&
           *first <= *last;
}

static int read_arguments(int argc, char **argv, struct cut *cut)
{
    static const struct option options[] = {{"from", required_argument, NULL, 'f'},
                                            {"to", required_argument, NULL, 't'},
                                            {"events", required_argument, NULL, 'e'},
                                            {"output", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    *cut = (struct cut){.to_ns = UINT64_MAX, .last = UINT64_MAX};
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
        if (c == 'o')
            cut->out = optarg;
        else if (c == 'f' && !read_time(optarg, &cut->from_ns))
            return usage_error("trace", "trace cut: --from \"%s\" is not a time", optarg);
        else if (c == 't' && !read_time(optarg, &cut->to_ns))
            return usage_error("trace", "trace cut: --to \"%s\" is not a time", optarg);
        else if (c == 'e' && !read_numbers(optarg, &cut->first, &cut->last))
            return usage_error("trace", "trace cut: --events \"%s\" is not FIRST-LAST", optarg);
        else if (c == '?' || c == ':')
            return usage_error("trace", "trace cut: argument \"%s\"", argv[optind - 1]);
    }
    if (optind + 1 != argc || cut->out == NULL)
        return usage_error("trace", "trace cut: one file and -o OUT, please");
    cut->path = argv[optind];
    if (trace_is_same_file(cut->path, cut->out))
        return usage_error("trace", "trace cut: %s would replace what is read", cut->out);
    return 0;
}

void trace_copy_names(const struct blyi_trace *trace, struct blyi_tracewriter *w)
{
    size_t cursor = 0, length;
    uint32_t type;
    const void *bytes;
    while (blyi_trace_record(trace, &cursor, &type, &bytes, &length))
        if (type != BLYI_TRACE_META_KIND && type != BLYI_TRACE_META_BLOCK)
            blyi_tracewriter_meta(w, (enum blyi_trace_meta)type, bytes, length, NULL, 0);
}

static void put_state(struct blyi_tracewriter *w, const struct live *live)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&live->blocks); node != NULL;
         node = blyi_tree_next(node))
        blyi_tracewriter_block(w, &live_block_of(node)->is);
}

static bly_status new_writer(const struct cut *cut, const struct blyi_trace_info *info,
                             uint64_t first, struct blyi_tracewriter **w)
{
    struct blyi_tracewriter_opts opts = {.path = cut->out,
                                         .program = info->program,
                                         .flags = info->flags | BLYI_TRACE_CUT,
                                         .pid = info->pid,
                                         .start_ns = info->start_ns,
                                         .start_wall_ns = info->start_wall_ns,
                                         .first_seq = first};
    return blyi_tracewriter_new(&opts, w);
}

static bool is_before(const struct cut *cut, const struct blyi_trace_event *event, uint64_t since)
{
    return since < cut->from_ns || event->seq < cut->first;
}

static bool is_behind(const struct cut *cut, const struct blyi_trace_event *event, uint64_t since)
{
    return since > cut->to_ns || event->seq > cut->last;
}

static bool step(struct live *live, const struct blyi_trace_event *event)
{
    enum live_change change;
    struct live_block *block;
    bool ok = live_step(live, event, &change, &block);
    if (change == LIVE_ENDED)
        free(block);
    return ok;
}

static bly_status copy(const struct cut *cut, struct blyi_trace *trace)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    uint64_t base = info->start_ns;
    struct blyi_tracewriter *w = NULL;
    struct blyi_trace_event event;
    struct live live;
    uint64_t last = info->first_seq - 1;
    bool ok = live_begin(&live, trace);
    bly_status status = BLY_OK;
    while (ok && status == BLY_OK && blyi_trace_next(trace, &event)) {
        uint64_t time = event.probe.time_ns, since = time > base ? time - base : 0;
        if (is_behind(cut, &event, since))
            break; /* times of threads may cross a little; numbers are the order */
        if (w == NULL && is_before(cut, &event, since)) {
            ok = step(&live, &event);
            last = event.seq;
            continue;
        }
        if (w == NULL) {
            status = new_writer(cut, info, last + 1, &w);
            if (status != BLY_OK)
                break;
            trace_copy_names(trace, w);
            put_state(w, &live);
        }
        blyi_tracewriter_event(w, &event);
        last = event.seq;
    }
    if (ok && status == BLY_OK && w == NULL) { /* nothing in the range: the state alone */
        status = new_writer(cut, info, last + 1, &w);
        if (status == BLY_OK) {
            trace_copy_names(trace, w);
            put_state(w, &live);
        }
    }
    live_end(&live);
    if (status == BLY_OK && blyi_trace_status(trace) != BLY_OK)
        status = blyi_trace_status(trace);
    if (status == BLY_OK && ok)
        return blyi_tracewriter_finish(w, last, info->end_ns, NULL);
    blyi_tracewriter_abandon(w);
    return status != BLY_OK ? status : BLY_E_HOST_MEMORY;
}

int trace_cut_run(int argc, char **argv)
{
    struct cut cut;
    struct trace_input input;
    int usage = read_arguments(argc, argv, &cut);
    if (usage != 0)
        return usage;
    if (!trace_input_open(cut.path, &input))
        return 1;
    bly_status status = copy(&cut, input.trace);
    if (status != BLY_OK)
        say("%s", bly_last_error()[0] ? bly_last_error() : bly_status_text(status));
    trace_input_close(&input);
    return status == BLY_OK ? 0 : 1;
}
