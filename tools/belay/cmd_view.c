/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_view.c - `belay view`: a recording as a page for a browser.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "insight_input.h"
#include "trace_command.h"
#include "view_page.h"

static bool write_page(const struct insight_input *input,
                       const struct blyi_cause causes[BLYI_CAUSE_COUNT], const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (out == NULL) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    bly_status status = view_page(input->in, input->input.format, causes, out);
    bool ok = fflush(out) == 0 && !ferror(out);
    int error = errno;
    if (out != stdout && fclose(out) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (status != BLY_OK)
        say("%s", bly_last_error());
    else if (!ok)
        say("%s: %s", path, strerror(error));
    if ((status != BLY_OK || !ok) && out != stdout)
        unlink(path);
    return status == BLY_OK && ok;
}

static int run(int argc, char **argv)
{
    static struct blyi_cause causes[BLYI_CAUSE_COUNT];
    struct insight_request request;
    struct insight_input input;
    int status = insight_arguments("view", "o", 1, argc, argv, &request);
    if (status != 0)
        return status;
    if (request.output == NULL)
        return usage_error("view", "view: -o page.html, please (-: to the screen)");
    if (trace_is_same_file(request.files[0], request.output))
        return usage_error("view", "view: %s would replace what is read", request.output);
    if (!insight_open(request.files[0], &input))
        return 1;
    bool ok = blyi_causes_make(input.in, NULL, causes) == BLY_OK;
    if (!ok)
        say("%s", bly_last_error());
    ok = ok && write_page(&input, causes, request.output);
    insight_close(&input);
    return ok ? 0 : 1;
}

const struct command command_view = {
    .name = "view",
    .usage = "FILE -o page.html",
    .summary = "A recording as one page for a browser.",
    .help =
        "The page has the curve of memory, holders and blocks over time, findings, and tables\n"
        "by site and by name. It needs nothing else, and no network. FILE is a recording of\n"
        "Belay, a PyTorch memory snapshot, RMM's log, or the TSV of allocation traces; each may\n"
        "be compressed by zstd.\n"
        "\n"
        "example: belay view train.trace -o train.html\n",
    .run = run,
};
