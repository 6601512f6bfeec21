/* SPDX-License-Identifier: Apache-2.0
 *
 * command.h - the shape of a subcommand of `belay`, and what all of them share.
 *
 * Results go to stdout, errors to stderr as "belay: ...". A subcommand returns its exit status.
 */
#ifndef BELAY_COMMAND_H
#define BELAY_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include "base/compiler.h"

#define EXIT_USAGE 2

struct command {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *help;    /* what --help prints behind usage and summary; ends with an example */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name */
};

extern const struct command command_run, command_doctor, command_options, command_symbolize,
    command_version, command_checkpoint, command_plan, command_smi, command_trace, command_defrag,
    command_check, command_report, command_diagnose, command_diff, command_top_ops, command_view,
    command_compare, command_replay;

/* What `belay COMMAND --help` prints; returns the exit status. */
int print_help(const struct command *command);
/* Asks for help: --help, -h. */
bool is_help(const char *word);
/* "belay: " + message, newline added. */
void say(const char *fmt, ...) BLYI_PRINTF(1, 2);
/* The same, then how to get help; returns EXIT_USAGE. */
int usage_error(const char *command, const char *fmt, ...) BLYI_PRINTF(2, 3);

/* The candidate that `word` was probably meant to be, NULL when none is close. */
const char *suggest(const char *word, const char *const *candidates, size_t n);

#endif
