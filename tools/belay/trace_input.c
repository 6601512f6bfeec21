/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_input.c - opens the file of a trace in any form.
 */
#include "trace_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "file_input.h"

/* A Belay trace is read as a stream, and need not be loaded. */
static bool is_plain_belay(const char *path)
{
    char magic[8];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is = read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
              blyi_trace_is(magic, sizeof(magic));
    close(fd);
    return is;
}

bool trace_input_open(const char *path, struct trace_input *input)
{
    *input = (struct trace_input){.format = TRACE_FORMAT_BELAY};
    if (is_plain_belay(path)) {
        if (blyi_trace_open(path, &input->trace) == BLY_OK)
            return true;
        say("%s", bly_last_error());
        return false;
    }
    input->file = malloc(sizeof(*input->file));
    if (input->file == NULL) {
        say("%s: no host memory", path);
        return false;
    }
    if (!file_input_read(path, input->file)) {
        free(input->file);
        return false;
    }
    input->format = trace_format_of(input->file->at, input->file->length);
    if (trace_import(input->file->at, input->file->length, path, &input->trace) == BLY_OK)
        return true;
    say("%s", bly_last_error());
    file_input_release(input->file);
    free(input->file);
    return false;
}

void trace_input_close(struct trace_input *input)
{
    blyi_trace_close(input->trace);
    if (input->file != NULL)
        file_input_release(input->file);
    free(input->file);
}
