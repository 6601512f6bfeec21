/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_input.c - buffers and TSV traces as they stand in a file; every other trace by way of TSV.
 */
#include "plan_input.h"

#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "file_input.h"
#include "observe/trace_reader.h"
#include "trace_convert.h"
#include "trace_input.h"

static bool parse(const char *path, const char *text, size_t length, bly_plan_input *input)
{
    bly_status status = bly_plan_parse(text, length, path, input);
    if (status != BLY_OK)
        say("%s", bly_last_error());
    return status == BLY_OK;
}

static bool parse_trace(const char *path, const struct file_input *file, bly_plan_input *input)
{
    struct blyi_trace *trace;
    char *text = NULL;
    size_t length = 0;
    if (trace_import(file->at, file->length, path, &trace) != BLY_OK) {
        say("%s", bly_last_error());
        return false;
    }
    FILE *out = open_memstream(&text, &length);
    bly_status status = BLY_E_HOST_MEMORY;
    if (out != NULL) {
        status = export_tsv(trace, &(struct export_opts){.card = EXPORT_ANY_CARD}, out);
        fclose(out);
    }
    blyi_trace_close(trace);
    bool ok = status == BLY_OK && text != NULL && parse(path, text, length, input);
    if (status != BLY_OK)
        say("%s", bly_last_error());
    free(text);
    return ok;
}

bool plan_input_read(const char *path, bly_plan_input *input)
{
    struct file_input file;
    if (!file_input_read(path, &file))
        return false;
    enum trace_format format = trace_format_of(file.at, file.length);
    bool ok = format == TRACE_FORMAT_UNKNOWN || format == TRACE_FORMAT_TSV
                  ? parse(path, file.at, file.length, input)
                  : parse_trace(path, &file, input);
    file_input_release(&file);
    return ok;
}
