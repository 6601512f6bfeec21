/* SPDX-License-Identifier: Apache-2.0
 *
 * main.c - the command `belay`: a table of subcommands.
 */
#include "command.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <belay/base.h>
#include "base/log.h"

static const struct command *const commands[] = {
    &command_run,    &command_trace,      &command_check,   &command_report,  &command_diagnose,
    &command_diff,   &command_top_ops,    &command_view,    &command_compare, &command_replay,
    &command_doctor, &command_smi,        &command_defrag,  &command_options, &command_symbolize,
    &command_plan,   &command_checkpoint, &command_version,
};

void say(const char *fmt, ...)
{
    va_list args;
    fputs("belay: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

int usage_error(const char *command, const char *fmt, ...)
{
    va_list args;
    fputs("belay: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nbelay: see belay %s%s--help\n", command, command[0] ? " " : "");
    return EXIT_USAGE;
}

static int print_overview(void)
{
    printf("usage: belay COMMAND [ARGUMENTS]\n"
           "\n"
           "Accelerator memory for Ascend NPUs: run AscendCL programs on any machine and see\n"
           "where their memory goes.\n"
           "\n"
           "commands:\n");
    for (size_t i = 0; i < BLYI_COUNT(commands); i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("  %-10s %s\n", "help", "help on a command");
    printf("\n"
           "belay COMMAND --help tells more.\n"
           "\n"
           "example: belay run --hbm 1GiB -- ./service\n");
    return 0;
}

int print_help(const struct command *command)
{
    printf("usage: belay %s%s%s\n\n%s\n\n%s", command->name, command->usage[0] ? " " : "",
           command->usage, command->summary, command->help);
    return 0;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < BLYI_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *names[BLYI_COUNT(commands)];
    for (size_t i = 0; i < BLYI_COUNT(commands); i++)
        names[i] = commands[i]->name;
    const char *meant = suggest(name, names, BLYI_COUNT(commands));
    if (meant != NULL)
        return usage_error("", "no command \"%s\"; did you mean \"%s\"?", name, meant);
    return usage_error("", "no command \"%s\"", name);
}

bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int help(int argc, char **argv)
{
    if (argc < 2)
        return print_overview();
    const struct command *command = find(argv[1]);
    return command ? print_help(command) : unknown_command(argv[1]);
}

/* A full disk must not look like success. */
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    say("cannot write the output");
    return status == 0 ? 1 : status;
}

int main(int argc, char **argv)
{
    /* Values in the environment are the watched program's business; doctor looks at them. */
    blyi_log_set_level(BLYI_LOG_ERROR);
    if (argc < 2) {
        print_overview();
        return finish(EXIT_USAGE);
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return finish(help(argc - 1, argv + 1));
    if (strcmp(argv[1], "--version") == 0)
        return finish(command_version.run(1, argv + 1));
    const struct command *command = find(argv[1]);
    if (command == NULL)
        return unknown_command(argv[1]);
    if (argc > 2 && is_help(argv[2]))
        return finish(print_help(command));
    return finish(command->run(argc - 1, argv + 1));
}
