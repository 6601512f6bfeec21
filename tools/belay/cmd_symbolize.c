/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_symbolize.c - the helper that libbelay.so runs for its reports; observe/symbolise.h has
 * the format of the two streams.
 */
#include "command.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sources.h"

/* Modules opened so far. A failure to open is kept as well, so that it is met once. */
struct module {
    struct module *next;
    struct sources *sources;
    char *build_id;
    char path[];
};

static struct module *modules;

static struct sources *module_sources(const char *path, const char *build_id)
{
    for (struct module *module = modules; module != NULL; module = module->next)
        if (strcmp(module->path, path) == 0 && strcmp(module->build_id, build_id) == 0)
            return module->sources;
    size_t size = strlen(path) + 1;
    struct module *module = malloc(sizeof(*module) + size);
    char *id = strdup(build_id);
    if (module == NULL || id == NULL) {
        free(module);
        free(id);
        return NULL;
    }
    memcpy(module->path, path, size);
    module->build_id = id;
    module->sources = sources_open(path, build_id);
    module->next = modules;
    modules = module;
    return module->sources;
}

static void close_modules(void)
{
    while (modules != NULL) {
        struct module *next = modules->next;
        sources_close(modules->sources);
        free(modules->build_id);
        free(modules);
        modules = next;
    }
}

static bool parse_offset(const char *text, uint64_t *offset)
{
    char *end;
    *offset = strtoull(text, &end, 16);
    return text[0] != '\0' && *end == '\0';
}

static void answer(const char *path, const char *offset_text, const char *build_id)
{
    struct source source;
    uint64_t offset;
    struct sources *sources = path[0] ? module_sources(path, build_id) : NULL;
    if (sources != NULL && parse_offset(offset_text, &offset) &&
        sources_find(sources, offset, &source)) {
        printf("%s\t%s\t", source.function, source.file);
        if (source.line > 0)
            printf("%d", source.line);
        putchar('\t');
        if (source.has_behind)
            printf("%" PRIx64, source.behind);
        putchar('\n');
    } else {
        puts("\t\t\t");
    }
}

static void answer_line(char *line)
{
    char *path = strsep(&line, "\t"), *offset = strsep(&line, "\t"), *id = strsep(&line, "\t");
    answer(path, offset ? offset : "", id ? id : "");
}

/* All questions are read before the first answer, so that neither side can block the other. */
static int answer_input(void)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getdelim(&text, &size, '\0', stdin);
    char *rest = n > 0 ? text : NULL;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (line[0] != '\0' || rest != NULL)
            answer_line(line);
    free(text);
    return 0;
}

static int run(int argc, char **argv)
{
    if (argc == 2)
        return usage_error("symbolize", "symbolize: a module needs at least one offset");
    if (argc == 1)
        answer_input();
    for (int i = 2; i < argc; i++)
        answer(argv[1], argv[i], "");
    close_modules();
    return 0;
}

const struct command command_symbolize = {
    .name = "symbolize",
    .usage = "[MODULE OFFSET...]",
    .summary = "Name function, file and line of code addresses.",
    .help =
        "MODULE is a program or library, OFFSET a hexadecimal address as the file counts\n"
        "them. Each answer is a line: function, tab, file, tab, line, tab, and, where the line\n"
        "is not known, how far behind the function's start the address is, hexadecimal. What\n"
        "is not known is empty. Without arguments the questions come from stdin, one a line:\n"
        "MODULE, tab, OFFSET, and after another tab the build id that the module must have.\n"
        "Reports use this by themselves.\n"
        "\n"
        "example: belay symbolize ./service 11a9\n",
    .run = run,
};
