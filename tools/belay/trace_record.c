/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_record.c - `belay trace record`: belay run with a recording. Where it goes may be said by
 * -o as everywhere in `belay trace`, or by --trace as in `belay run`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "trace_command.h"

#define UNNAMED "--trace=belay.%p.trace"

/* The arguments of `belay run`; owned by whoever began them. */
struct run_arguments {
    char **all;
    int n;
    bool has_trace;
    char *trace; /* --trace= and what -o said */
};

static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 && word[2] != '\0';
}

static bool says_trace(const char *word)
{
    return strcmp(word, "--trace") == 0 || strncmp(word, "--trace=", 8) == 0;
}

/* -o FILE or -oFILE at argv[*at]. */
static int take_output(struct run_arguments *run, int argc, char **argv, int *at)
{
    const char *file = argv[*at] + 2;
    if (file[0] == '\0' && ++*at < argc)
        file = argv[*at];
    if (file[0] == '\0')
        return usage_error("trace", "trace record: -o needs a file");
    if (run->has_trace)
        return usage_error("trace", "trace record: one recording, please: \"%s\" is the second",
                           file);
    if (asprintf(&run->trace, "--trace=%s", file) < 0) {
        run->trace = NULL;
        say("no host memory");
        return 1;
    }
    run->all[run->n++] = run->trace;
    run->has_trace = true;
    return 0;
}

/* What stands before the program; *at is then the place of the rest. */
static int take_options(struct run_arguments *run, int argc, char **argv, int *at)
{
    for (; *at < argc; ++*at) {
        char *word = argv[*at];
        if (strncmp(word, "-o", 2) == 0) {
            int status = take_output(run, argc, argv, at);
            if (status != 0)
                return status;
            continue;
        }
        if (!is_option(word))
            return 0;
        run->has_trace = run->has_trace || says_trace(word);
        run->all[run->n++] = word;
        if (strchr(word, '=') == NULL && *at + 1 < argc)
            run->all[run->n++] = argv[++*at]; /* its value */
    }
    return 0;
}

int trace_record_run(int argc, char **argv)
{
    static char name[] = "run", unnamed[] = UNNAMED;
    struct run_arguments run = {.all = calloc((size_t)argc + 2, sizeof(*run.all))};
    int at = 1;
    if (run.all == NULL) {
        say("no host memory");
        return 1;
    }
    run.all[run.n++] = name;
    int status = take_options(&run, argc, argv, &at);
    if (status == 0) {
        if (!run.has_trace)
            run.all[run.n++] = unnamed;
        while (at < argc)
            run.all[run.n++] = argv[at++];
        status = command_run.run(run.n, run.all); /* comes back when the program does not start */
    }
    free(run.trace);
    free(run.all);
    return status;
}
