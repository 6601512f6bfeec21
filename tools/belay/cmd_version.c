/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <stdio.h>
#include <belay/base.h>

static int run(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return usage_error("version", "version takes no arguments");
    printf("belay %s\n", bly_version());
    return 0;
}

const struct command command_version = {
    .name = "version",
    .usage = "",
    .summary = "Print the version.",
    .help = "example: belay version\n",
    .run = run,
};
