/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_forms.c - `belay trace convert`.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "trace_command.h"
#include "trace_convert.h"
#include "trace_input.h"

static const struct form {
    const char *name, *ending;
    export_fn *export; /* NULL: Belay's own */
    bool is_binary;
} forms[] = {
    {"tsv", ".tsv", export_tsv, false},         {"snapshot", ".pickle", export_snapshot, true},
    {"chrome", ".json", export_chrome, false},  {"folded", ".folded", export_folded, false},
    {"rmm", NULL, export_rmm, false}, /* two forms end with .csv */
    {"memscope", NULL, export_memscope, false}, {"belay", ".trace", NULL, true},
};

struct convert {
    const char *path, *out;
    const struct form *form;
    struct export_opts opts;
};

static const struct form *form_named(const char *name)
{
    for (size_t i = 0; i < BLYI_COUNT(forms); i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    return NULL;
}

static const struct form *form_of_ending(const char *path)
{
    const char *ending = path != NULL ? strrchr(path, '.') : NULL;
    for (size_t i = 0; ending != NULL && i < BLYI_COUNT(forms); i++)
        if (forms[i].ending != NULL && strcmp(forms[i].ending, ending) == 0)
            return &forms[i];
    return NULL;
}

static bool read_weight(const char *text, enum export_weight *weight)
{
    static const char *const names[] = {"peak", "leaked", "total"};
    for (int i = 0; i < WEIGHT_COUNT; i++)
        if (strcmp(text, names[i]) == 0) {
            *weight = (enum export_weight)i;
            return true;
        }
    return false;
}

static bool read_card(const char *text, int *card)
{
    char *end;
    long value = strtol(text, &end, 10);
    *card = (int)value;
    return end != text && *end == '\0' && value >= 0 && value < 64;
}

static int read_arguments(int argc, char **argv, struct convert *convert)
{
    static const struct option options[] = {{"to", required_argument, NULL, 't'},
                                            {"card", required_argument, NULL, 'c'},
                                            {"weight", required_argument, NULL, 'w'},
                                            {"output", required_argument, NULL, 'o'},
                                            {NULL, 0, NULL, 0}};
    *convert = (struct convert){.opts.card = EXPORT_ANY_CARD};
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
        if (c == 'o')
            convert->out = optarg;
        else if (c == 't' && (convert->form = form_named(optarg)) == NULL)
            return usage_error("trace", "trace convert: no form \"%s\"", optarg);
        else if (c == 'c' && !read_card(optarg, &convert->opts.card))
            return usage_error("trace", "trace convert: --card \"%s\" is not a card", optarg);
        else if (c == 'w' && !read_weight(optarg, &convert->opts.weight))
            return usage_error(
                "trace", "trace convert: --weight \"%s\" is not peak, leaked or total", optarg);
        else if (c == '?' || c == ':')
            return usage_error("trace", "trace convert: argument \"%s\"", argv[optind - 1]);
    }
    if (optind + 1 != argc)
        return usage_error("trace", "trace convert: one file, please");
    convert->path = argv[optind];
    if (convert->form == NULL)
        convert->form = form_of_ending(convert->out);
    if (convert->form == NULL)
        return usage_error("trace", "trace convert: --to which form?");
    if (convert->form->export == NULL && convert->out == NULL)
        return usage_error("trace", "trace convert: --to belay needs -o OUT");
    if (convert->form->is_binary && convert->out == NULL && isatty(STDOUT_FILENO))
        return usage_error("trace", "trace convert: --to %s is not for a terminal; -o OUT",
                           convert->form->name);
    if (convert->out != NULL && trace_is_same_file(convert->path, convert->out))
        return usage_error("trace", "trace convert: %s would replace what is read", convert->out);
    return 0;
}

/* ── Belay's own form ─────────────────────────────────────────────────────────────────────── */

/* Names that were found here go into the file, so that it can be read elsewhere. */
static void put_sources(const struct blyi_trace *trace, struct blyi_tracewriter *w)
{
    struct blyi_trace_site site;
    size_t cursor = 0;
    uint32_t id;
    while (blyi_trace_next_site(trace, &cursor, &id, &site)) {
        char text[BLYI_TRACE_SITE_TEXT * 2];
        uint32_t head[2] = {id, site.line};
        if (site.function[0] == '\0')
            continue;
        int n = snprintf(text, sizeof(text), "%.500s%c%.500s", site.function, '\0', site.source);
        blyi_tracewriter_meta(w, BLYI_TRACE_META_SOURCE, head, sizeof(head), text, (size_t)n);
    }
}

static bly_status write_belay(struct blyi_trace *trace, const char *path)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    struct blyi_tracewriter *w;
    struct blyi_trace_event event;
    struct blyi_tracewriter_opts opts = {.path = path,
                                         .program = info->program,
                                         .flags = info->flags,
                                         .pid = info->pid,
                                         .start_ns = info->start_ns,
                                         .start_wall_ns = info->start_wall_ns,
                                         .first_seq = info->first_seq};
    size_t n;
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    bly_status status = blyi_tracewriter_new(&opts, &w);
    if (status != BLY_OK)
        return status;
    trace_copy_names(trace, w);
    put_sources(trace, w);
    for (size_t i = 0; i < n; i++)
        blyi_tracewriter_block(w, &blocks[i]);
    while (blyi_trace_next(trace, &event))
        blyi_tracewriter_event(w, &event);
    status = blyi_trace_status(trace);
    if (status == BLY_OK)
        return blyi_tracewriter_finish(w, info->seen, info->end_ns, NULL);
    blyi_tracewriter_abandon(w);
    return status;
}

/* ── Other forms ──────────────────────────────────────────────────────────────────────────── */

static int write_form(const struct convert *convert, struct blyi_trace *trace)
{
    struct stat about;
    /* A file that is there makes room and is not cut short: somebody may have it mapped. */
    if (convert->out != NULL && lstat(convert->out, &about) == 0 && S_ISREG(about.st_mode))
        (void)unlink(convert->out);
    FILE *out = convert->out ? fopen(convert->out, "w") : stdout;
    if (out == NULL) {
        say("%s: %s", convert->out, strerror(errno));
        return 1;
    }
    bly_status status = convert->form->export(trace, &convert->opts, out);
    if (status != BLY_OK)
        say("%s", bly_last_error());
    bool written = !ferror(out);
    if (convert->out != NULL)
        written = fclose(out) == 0 && written;
    if (!written && convert->out != NULL)
        say("%s: %s", convert->out, strerror(errno));
    if ((status != BLY_OK || !written) && convert->out != NULL)
        (void)unlink(convert->out); /* half a file looks like a whole one */
    return status == BLY_OK && written ? 0 : 1;
}

int trace_convert_run(int argc, char **argv)
{
    struct convert convert;
    struct trace_input input;
    int result = read_arguments(argc, argv, &convert);
    if (result != 0 || convert.form == NULL)
        return result;
    if (!trace_input_open(convert.path, &input))
        return 1;
    trace_name_sites(input.trace);
    if (convert.form->export != NULL) {
        result = write_form(&convert, input.trace);
    } else if (write_belay(input.trace, convert.out) != BLY_OK) {
        say("%s", bly_last_error());
        result = 1;
    }
    trace_input_close(&input);
    return result;
}
