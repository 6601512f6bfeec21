/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_report.c - `belay report`: what happened to memory in a recording.
 */
#include <stdio.h>

#include "command.h"
#include "insight_input.h"
#include "insight_report.h"

static int run(int argc, char **argv)
{
    struct insight_request request;
    struct insight_input input;
    int status = insight_arguments("report", "j", 1, argc, argv, &request);
    if (status != 0)
        return status;
    if (!insight_open(request.files[0], &input))
        return 1;
    bly_status written = request.json ? insight_write_json(input.in, input.input.format, stdout)
                                      : insight_write_text(input.in, input.input.format, stdout);
    if (written != BLY_OK)
        say("%s", bly_last_error());
    insight_close(&input);
    return written == BLY_OK ? 0 : 1;
}

const struct command command_report = {
    .name = "report",
    .usage = "FILE [--json]",
    .summary = "What happened to memory in a recording: peaks, holders, growth, waste.",
    .help =
        "FILE is a recording of Belay, a PyTorch memory snapshot, RMM's log, or the TSV of\n"
        "allocation traces; each may be compressed by zstd. docs/insight.md says what each word "
        "means.\n"
        "\n"
        "  --json   for scripts\n"
        "\n"
        "example: belay trace record -- ./service && belay report belay.*.trace\n",
    .run = run,
};
