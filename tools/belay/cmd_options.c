/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/option.h"
#include "base/size.h"

static const char *const type_names[] = {
    [BLYI_OPTION_SIZE] = "size", [BLYI_OPTION_INT] = "number",    [BLYI_OPTION_BOOL] = "on|off",
    [BLYI_OPTION_TEXT] = "text", [BLYI_OPTION_CHOICE] = "choice",
};

/* "a|b|c" of a choice, which its help begins with. */
static void choice_text(const struct blyi_option_info *info, char *buf, size_t size)
{
    const char *end = strchr(info->help, ':');
    snprintf(buf, size, "%.*s", end ? (int)(end - info->help) : 0, info->help);
}

static void range_text(const struct blyi_option_info *info, char *buf, size_t size)
{
    char low[BLYI_SIZE_TEXT], high[BLYI_SIZE_TEXT];
    buf[0] = '\0';
    if (info->type == BLYI_OPTION_CHOICE)
        choice_text(info, buf, size);
    else if (info->type == BLYI_OPTION_BOOL)
        snprintf(buf, size, "on|off");
    else if (info->type == BLYI_OPTION_SIZE)
        snprintf(buf, size, "%s to %s", blyi_size_short((uint64_t)info->min, low),
                 blyi_size_short((uint64_t)info->max, high));
    else if (info->type == BLYI_OPTION_INT && info->max == INT64_MAX)
        snprintf(buf, size, "%" PRId64 " or more", info->min);
    else if (info->type == BLYI_OPTION_INT)
        snprintf(buf, size, "%" PRId64 " to %" PRId64, info->min, info->max);
}

/* Help without the choices that the range shows. */
static const char *help_text(const struct blyi_option_info *info)
{
    const char *colon = info->type == BLYI_OPTION_CHOICE ? strstr(info->help, ": ") : NULL;
    return colon ? colon + 2 : info->help;
}

static void print_text(const struct blyi_option_info *info)
{
    char range[128];
    const char *set = getenv(info->variable);
    range_text(info, range, sizeof(range));
    printf("%s, --%s\n    %s\n    %s", info->variable, info->flag, help_text(info),
           info->type == BLYI_OPTION_TEXT ? "text" : range);
    printf("; default %s\n", info->def[0] ? info->def : "empty");
    if (set != NULL)
        printf("    now: %s\n", set);
    printf("\n");
}

static json_t *to_json(const struct blyi_option_info *info)
{
    char range[128];
    range_text(info, range, sizeof(range));
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "variable", info->variable, "flag",
                               info->flag, "type", type_names[info->type], "default", info->def,
                               "range", range, "help", help_text(info));
    const char *set = getenv(info->variable);
    json_object_set_new(object, "value", set ? json_string(set) : json_null());
    if (info->type == BLYI_OPTION_SIZE || info->type == BLYI_OPTION_INT) {
        json_object_set_new(object, "min", json_integer(info->min));
        json_object_set_new(object, "max", json_integer(info->max));
    }
    return object;
}

static int print_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        json_array_append_new(list, to_json(blyi_option_info((enum blyi_option)i)));
    json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(list);
    return 0;
}

static int run(int argc, char **argv)
{
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !json)
        return usage_error("options", "options: unknown argument \"%s\"", argv[1]);
    if (json)
        return print_json();
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        print_text(blyi_option_info((enum blyi_option)i));
    return 0;
}

const struct command command_options = {
    .name = "options",
    .usage = "[--json]",
    .summary = "List every option: its variable, flag, range, default and present value.",
    .help = "A variable is set in the environment, a flag is given to belay run. Sizes take\n"
            "KiB, MiB, GiB and TiB.\n"
            "\n"
            "  --json   the same for scripts\n"
            "\n"
            "example: belay options | grep -A2 BELAY_HBM\n",
    .run = run,
};
