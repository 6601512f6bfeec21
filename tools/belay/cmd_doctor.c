/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"
#include "doctor.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WRAP 88

static const struct {
    const char *name;
    void (*check)(struct result *result);
} checks[] = {
#define DOCTOR_ROW(function, name) {name, function},
    DOCTOR_CHECKS(DOCTOR_ROW)
#undef DOCTOR_ROW
};

static const char *const levels[] = {"ok", "note", "problem"};

void put_value(struct result *result, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->value, sizeof(result->value), fmt, args);
    va_end(args);
}

void put_meaning(struct result *result, enum level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->meaning, sizeof(result->meaning), fmt, args);
    va_end(args);
    result->level = level;
}

void put_advice(struct result *result, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(result->advice, sizeof(result->advice), fmt, args);
    va_end(args);
}

const char *read_line_of(const char *path, char *buf, size_t size)
{
    FILE *file = fopen(path, "re");
    buf[0] = '\0';
    if (file == NULL)
        return buf;
    if (fgets(buf, (int)size, file) == NULL)
        buf[0] = '\0';
    fclose(file);
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

/* Words of `text`, indented, in lines of at most WRAP characters. */
static void print_wrapped(const char *first_indent, const char *text)
{
    size_t indent = strlen(first_indent), column = indent;
    fputs(first_indent, stdout);
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > WRAP) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        fwrite(text, 1, length, stdout);
        column += length;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void print_text(const char *name, const struct result *result)
{
    printf("%-8s %-16s %s\n", levels[result->level], name, result->value);
    print_wrapped("                         ", result->meaning);
    if (result->advice[0] != '\0')
        print_wrapped("                      -> ", result->advice);
}

static json_t *to_json(const char *name, const struct result *result)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", name, "level", levels[result->level],
                     "value", result->value, "meaning", result->meaning, "advice", result->advice);
}

static void print_verdict(const int *count)
{
    if (count[LEVEL_PROBLEM] > 0)
        printf("\n%d problem%s to solve first, %d note%s\n", count[LEVEL_PROBLEM],
               count[LEVEL_PROBLEM] == 1 ? "" : "s", count[LEVEL_NOTE],
               count[LEVEL_NOTE] == 1 ? "" : "s");
    else
        printf("\nBelay runs here: no problems, %d note%s\n", count[LEVEL_NOTE],
               count[LEVEL_NOTE] == 1 ? "" : "s");
}

static int run(int argc, char **argv)
{
    int count[3] = {0};
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 && !json)
        return usage_error("doctor", "doctor: unknown argument \"%s\"", argv[1]);
    json_t *list = json_array();
    for (size_t i = 0; i < BLYI_COUNT(checks); i++) {
        struct result result = {0};
        checks[i].check(&result);
        count[result.level]++;
        if (json)
            json_array_append_new(list, to_json(checks[i].name, &result));
        else
            print_text(checks[i].name, &result);
    }
    if (json) {
        json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_verdict(count);
    }
    json_decref(list);
    return count[LEVEL_PROBLEM] > 0 ? 1 : 0;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[--json]",
    .summary = "Check what this machine gives the software NPU, and say what each thing means.",
    .help =
        "Each check is ok, a note (Belay works, with less), or a problem. The exit status is 1\n"
        "when there is a problem, else 0.\n"
        "\n"
        "  --json   a list of {check, level, value, meaning, advice}\n"
        "\n"
        "example: belay doctor\n",
    .run = run,
};
