/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_check.c - `belay check`: the checker over a recording.
 */
#include "command.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/host.h"
#include "base/json.h"
#include "observe/check.h"
#include "observe/check_quiet.h"
#include "check_recording.h"
#include "trace_command.h"
#include "trace_input.h"

#define FINDINGS_MAX 1000

struct request {
    const char *file, *check, *json, *suppressions;
    long exit_code, limit;
};

static bool take_number(const char *text, long max, long *to)
{
    char *end;
    *to = strtol(text, &end, 10);
    return end != text && *end == '\0' && *to >= 0 && *to <= max;
}

/* Value of an option that is written --name VALUE or --name=VALUE; NULL: not this one. */
static const char *value_of(int argc, char **argv, int *at, const char *name)
{
    size_t length = strlen(name);
    if (argv[*at] == NULL || strncmp(argv[*at], name, length) != 0)
        return NULL;
    if (argv[*at][length] == '=')
        return argv[*at] + length + 1;
    if (argv[*at][length] != '\0')
        return NULL;
    return *at + 1 < argc ? argv[++*at] : "";
}

/* "-" alone is a file. */
static bool is_flag(const char *word)
{
    return word != NULL && word[0] == '-' && word[1] != '\0';
}

static int take_arguments(int argc, char **argv, struct request *request)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (argv[i] == NULL)
            break;
        if ((value = value_of(argc, argv, &i, "--check")) != NULL)
            request->check = value;
        else if ((value = value_of(argc, argv, &i, "--json")) != NULL)
            request->json = value;
        else if ((value = value_of(argc, argv, &i, "--suppressions")) != NULL)
            request->suppressions = value;
        else if ((value = value_of(argc, argv, &i, "--error-exitcode")) != NULL) {
            if (!take_number(value, 255, &request->exit_code))
                return usage_error("check", "check: --error-exitcode '%s' is not 0 .. 255", value);
        } else if ((value = value_of(argc, argv, &i, "--print-limit")) != NULL) {
            if (!take_number(value, 1000000, &request->limit))
                return usage_error("check", "check: --print-limit '%s' is not 0 .. 1000000", value);
        } else if (is_flag(argv[i]))
            return usage_error("check", "check: unknown argument \"%s\"", argv[i]);
        else if (request->file != NULL)
            return usage_error("check", "check: one file at a time; \"%s\" is a second one",
                               argv[i]);
        else
            request->file = argv[i];
    }
    return request->file != NULL ? 0 : usage_error("check", "check: no file given");
}

/* ── Places ───────────────────────────────────────────────────────────────────────────────── */

struct texts { /* of the site asked for last */
    const struct blyi_trace *trace;
    char function[BLYI_TRACE_SITE_TEXT];
};

static struct blyi_source source_of(void *arg, uint32_t id)
{
    struct texts *texts = arg;
    struct blyi_trace_site site;
    struct blyi_source source = {texts->function, (char *)(uintptr_t) "", 0};
    if (!blyi_trace_site(texts->trace, id, &site) || site.function[0] == '\0') {
        blyi_trace_site_text(texts->trace, id, texts->function);
        return source;
    }
    snprintf(texts->function, sizeof(texts->function), "%s", site.function);
    source.file = (char *)(uintptr_t)site.source;
    source.line = site.line;
    return source;
}

/* ── What is written ──────────────────────────────────────────────────────────────────────── */

static size_t drop_quiet(struct blyi_finding *list, size_t n, const struct blyi_quiet *quiet,
                         const struct blyi_finding_places *places)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!blyi_quiet_fits(quiet, &list[i], places))
            list[kept++] = list[i];
    return kept;
}

static void write_text(const struct request *request, const struct blyi_trace *trace,
                       const struct blyi_finding *list, size_t n, struct blyi_finding_places places)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    char folder[PATH_MAX];
    places.folder = getcwd(folder, sizeof(folder));
    printf("==== Belay: findings in %s, process %" PRIu32 ", %" PRIu64 " events ====\n",
           info->program, info->pid, info->kept);
    for (size_t i = 0; i < n && i < (size_t)request->limit; i++)
        blyi_finding_write_text(stdout, i + 1, &list[i], &places);
    if (n > (size_t)request->limit)
        printf("\n... and %zu more (--print-limit)\n", n - (size_t)request->limit);
    if (!check_is_complete(info))
        printf("\nthe recording is not whole: reads of memory that nobody wrote, and frees of what "
               "was never\nallocated, are not looked for\n");
    printf("\nERROR SUMMARY: %zu finding%s\n", n, n == 1 ? "" : "s");
}

static int write_json(const char *path, const struct blyi_trace *trace,
                      const struct blyi_finding *list, size_t n,
                      const struct blyi_finding_places *places)
{
    const struct blyi_trace_info *info = blyi_trace_info(trace);
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *out = to_stdout ? stdout : fopen(path, "we");
    struct blyi_json json;
    if (out == NULL) {
        say("check: %s cannot be written", path);
        return 1;
    }
    blyi_json_init(&json, out);
    blyi_json_begin_object(&json, NULL);
    blyi_json_text(&json, "version", bly_version());
    blyi_json_text(&json, "program", info->program);
    blyi_json_int(&json, "pid", info->pid);
    blyi_json_bool(&json, "complete", check_is_complete(info));
    blyi_json_begin_array(&json, "findings");
    for (size_t i = 0; i < n; i++)
        blyi_finding_write_json(&json, &list[i], places);
    blyi_json_end_array(&json);
    blyi_json_end_object(&json);
    fputc('\n', out);
    bool failed = ferror(out) != 0;
    if ((to_stdout ? fflush(out) : fclose(out)) != 0 || failed) {
        say("check: %s cannot be written", path);
        return 1;
    }
    return 0;
}

static int report(const struct request *request, struct blyi_trace *trace,
                  const struct blyi_check *check, const struct blyi_quiet *quiet)
{
    struct texts texts = {.trace = trace};
    const struct blyi_finding_places places = {source_of, &texts, NULL};
    size_t n;
    struct blyi_finding *list = (struct blyi_finding *)(uintptr_t)blyi_check_findings(check, &n);
    trace_name_sites(trace);
    n = drop_quiet(list, n, quiet, &places);
    if (request->json == NULL || strcmp(request->json, "-") != 0)
        write_text(request, trace, list, n, places);
    int status = request->json != NULL ? write_json(request->json, trace, list, n, &places) : 0;
    if (blyi_check_stopped(check) != NULL) {
        say("check: ended early: %s", blyi_check_stopped(check));
        return 1;
    }
    return status == 0 && n > 0 ? (int)request->exit_code : status;
}

static int check_file(const struct request *request)
{
    uint32_t groups;
    struct trace_input input;
    struct blyi_quiet quiet;
    struct blyi_check *check = NULL;
    if (blyi_check_parse(request->check, &groups) != BLY_OK ||
        blyi_quiet_read(request->suppressions, &quiet) != BLY_OK)
        return usage_error("check", "check: %s", bly_last_error());
    if (!trace_input_open(request->file, &input)) {
        blyi_quiet_fini(&quiet);
        return 1;
    }
    int status = 1;
    if (check_recording(input.trace, groups, &check) != BLY_OK)
        say("check: %s", bly_last_error());
    else
        status = report(request, input.trace, check, &quiet);
    blyi_check_destroy(check);
    trace_input_close(&input);
    blyi_quiet_fini(&quiet);
    return status;
}

static int run(int argc, char **argv)
{
    struct request request = {.check = "all", .suppressions = "", .limit = FINDINGS_MAX};
    int status = take_arguments(argc, argv, &request);
    return status != 0 ? status : check_file(&request);
}

const struct command command_check = {
    .name = "check",
    .usage = "TRACE [--check LIST] [--json FILE]",
    .summary = "Look for faults in a recording: races, use after free, leaks and more.",
    .help = "  --check LIST          all, or some of leak,uaf,oob,race,uninit,host,unmap,pinned\n"
            "  --json FILE           as JSON; - is stdout, without the text\n"
            "  --error-exitcode N    exit status when something was found; 0\n"
            "  --print-limit N       findings in the text; 1000\n"
            "  --suppressions FILE   lines of KIND FUNCTION FILE, with * and ?, to leave out\n"
            "\n"
            "The same is found while a program runs by belay run --check all -- PROGRAM.\n"
            "\n"
            "Example: belay check app.trace --error-exitcode 3\n",
    .run = run,
};
