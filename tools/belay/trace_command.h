/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_command.h - the actions of `belay trace`. argv[0] is the action's name; each returns the
 * exit status.
 */
#ifndef BELAY_TRACE_COMMAND_H
#define BELAY_TRACE_COMMAND_H

#include <stdbool.h>
#include <stdio.h>
#include "observe/trace_reader.h"

int trace_info_run(int argc, char **argv);
int trace_cut_run(int argc, char **argv);
int trace_convert_run(int argc, char **argv);
int trace_record_run(int argc, char **argv);

/* What the file is and how much of it is there; format: an enum trace_format. */
void trace_print_about(const struct blyi_trace *trace, int format, FILE *out);
/* Adds functions and lines that the file does not have, from modules that are here with the build
 * ids that were recorded. */
void trace_name_sites(struct blyi_trace *trace);
/* Writing to the file that is read would lose it. */
bool trace_is_same_file(const char *a, const char *b);
/* Copies what the trace says about ids. */
struct blyi_tracewriter;
void trace_copy_names(const struct blyi_trace *trace, struct blyi_tracewriter *w);

#endif
