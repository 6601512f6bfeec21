/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_input.h - traces of Belay and of other tools, all read as one: a file of another tool
 * becomes a Belay trace without a name first.
 */
#ifndef BELAY_TRACE_INPUT_H
#define BELAY_TRACE_INPUT_H

#include <belay/base.h>
#include <stdbool.h>
#include "observe/trace_reader.h"
#include "observe/trace_writer.h"

enum trace_format {
    TRACE_FORMAT_UNKNOWN,
    TRACE_FORMAT_BELAY,
    TRACE_FORMAT_TSV,
    TRACE_FORMAT_RMM,
    TRACE_FORMAT_SNAPSHOT, /* PyTorch's pickle */
};
enum trace_format trace_format_of(const void *bytes, size_t size);
const char *trace_format_name(enum trace_format format);

/* The trace in `bytes`, which must stay while it is open. E_PARSE: the sentence names the line or
 * byte and what is wrong there; E_HOST_MEMORY, E_IO. */
bly_status trace_import(const void *bytes, size_t size, const char *name,
                        struct blyi_trace **trace);

/* The same of a file; a large Belay trace is not loaded. False: said why. */
struct file_input;
struct trace_input {
    struct blyi_trace *trace;
    struct file_input *file; /* private; NULL: the trace reads its file itself */
    enum trace_format format;
};
bool trace_input_open(const char *path, struct trace_input *input);
void trace_input_close(struct trace_input *input);

/* One each format: writes what `bytes` say. Errors of the writer are kept in it. */
bly_status import_tsv(const char *text, size_t length, const char *name,
                      struct blyi_tracewriter *w);
bly_status import_rmm(const char *text, size_t length, const char *name,
                      struct blyi_tracewriter *w);
bly_status import_snapshot(const void *bytes, size_t size, const char *name,
                           struct blyi_tracewriter *w);

#endif
