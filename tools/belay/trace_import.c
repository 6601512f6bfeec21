/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_import.c - tells formats apart by how they begin.
 */
#include "trace_input.h"

#include <string.h>

#include "base/fail.h"
#include "plan/text.h"

static bool begins(struct blyi_slice line, const char *word)
{
    size_t n = strlen(word);
    return line.length >= n && memcmp(line.at, word, n) == 0;
}

static enum trace_format format_of_text(const char *text, size_t size)
{
    struct blyi_text cursor = {"", text, text + size, 0};
    struct blyi_slice line;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        cursor.at += 3;
    if (!blyi_text_line(&cursor, &line))
        return TRACE_FORMAT_UNKNOWN;
    if (begins(line, "time_us\t"))
        return TRACE_FORMAT_TSV;
    return begins(line, "Thread,Time,Action,") ? TRACE_FORMAT_RMM : TRACE_FORMAT_UNKNOWN;
}

enum trace_format trace_format_of(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    if (blyi_trace_is(bytes, size))
        return TRACE_FORMAT_BELAY;
    if (size >= 2 && at[0] == 0x80 && at[1] >= 2 && at[1] <= 5)
        return TRACE_FORMAT_SNAPSHOT;
    return format_of_text(bytes, size);
}

const char *trace_format_name(enum trace_format format)
{
    static const char *const names[] = {"unknown", "Belay trace", "TSV", "RMM CSV",
                                        "PyTorch snapshot"};
    return names[format];
}

static bly_status import_to(enum trace_format format, const void *bytes, size_t size,
                            const char *name, struct blyi_tracewriter *w)
{
    switch (format) {
    case TRACE_FORMAT_TSV:
        return import_tsv(bytes, size, name, w);
    case TRACE_FORMAT_RMM:
        return import_rmm(bytes, size, name, w);
    default:
        return import_snapshot(bytes, size, name, w);
    }
}

bly_status trace_import(const void *bytes, size_t size, const char *name, struct blyi_trace **trace)
{
    enum trace_format format = trace_format_of(bytes, size);
    if (format == TRACE_FORMAT_BELAY)
        return blyi_trace_open_memory(bytes, size, name, trace);
    if (format == TRACE_FORMAT_UNKNOWN)
        return blyi_fail(BLY_E_PARSE,
                         "%s: not a trace: neither Belay's, nor the TSV of allocation traces, nor "
                         "RMM's log, nor a PyTorch snapshot",
                         name);
    struct blyi_tracewriter *w;
    struct blyi_tracewriter_opts opts = {.program = name, .flags = BLYI_TRACE_IMPORTED};
    bly_status status = blyi_tracewriter_new(&opts, &w);
    if (status != BLY_OK)
        return status;
    status = import_to(format, bytes, size, name, w);
    if (status == BLY_OK)
        return blyi_tracewriter_finish(w, 0, 0, trace);
    blyi_tracewriter_abandon(w);
    return status;
}
