/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_trace.c - `belay trace`: what a recording holds, a part of it, and other forms of it.
 */
#include "trace_command.h"

#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} actions[] = {
    {"info", trace_info_run},
    {"cut", trace_cut_run},
    {"convert", trace_convert_run},
    {"record", trace_record_run},
};

static int run(int argc, char **argv)
{
    const char *names[BLYI_COUNT(actions)];
    if (argc < 2)
        return usage_error("trace", "trace: info, cut, convert or record?");
    for (size_t i = 0; i < BLYI_COUNT(actions); i++) {
        if (strcmp(argv[1], actions[i].name) == 0)
            return argc > 2 && is_help(argv[2]) ? print_help(&command_trace)
                                                : actions[i].run(argc - 1, argv + 1);
        names[i] = actions[i].name;
    }
    const char *meant = suggest(argv[1], names, BLYI_COUNT(names));
    if (meant != NULL)
        return usage_error("trace", "trace: no action \"%s\"; did you mean \"%s\"?", argv[1],
                           meant);
    return usage_error("trace", "trace: no action \"%s\"", argv[1]);
}

const struct command command_trace = {
    .name = "trace",
    .usage = "info|cut|convert|record ...",
    .summary = "Record what happens to memory; look at recordings, cut and convert them.",
    .help =
        "  record [OPTIONS] [--] PROGRAM ...   belay run, recorded into belay.PID.trace\n"
        "      -o FILE                         into FILE; %p in it is the process id\n"
        "      other OPTIONS                   those of belay run\n"
        "  info FILE                           what the recording holds\n"
        "  cut FILE -o OUT                     a part of it, as a recording of its own\n"
        "      --from TIME --to TIME           since its start: 1.5s, 20ms, 300us, 1000ns\n"
        "      --events FIRST-LAST             numbers of events\n"
        "  convert FILE                        to another form\n"
        "      --to FORM                       tsv, snapshot (PyTorch), chrome (and Perfetto),\n"
        "                                      folded, rmm, memscope, belay; else by OUT's "
        "ending:\n"
        "                                      .tsv .pickle .json .folded .trace\n"
        "      -o OUT                          else to stdout\n"
        "      --card N                        of forms that know one memory: tsv, rmm\n"
        "      --weight peak|leaked|total      of folded stacks; peak\n"
        "\n"
        "FILE is a recording of Belay, the TSV of allocation traces, RMM's log, or PyTorch's\n"
        "memory snapshot; each may be compressed by zstd. Functions and lines are looked up in\n"
        "the programs that were recorded, as long as they are here and the same.\n"
        "\n"
        "example: belay trace record -o service.trace -- ./service; belay report service.trace\n",
    .run = run,
};
