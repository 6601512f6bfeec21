/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_run.c - starts a program with our libascendcl.so in front of any other. Options travel as
 * BELAY_* variables, so children of the program are watched as well. The program takes this
 * process's place: exit status and signals are its own.
 */
#include "command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/host.h"
#include "base/option.h"
#include "base/sys.h"
#include "install.h"
#include "npu/cap_origin.h"
#include "npu/card.h"
#include "npu/model.h"
#include "npu/peer.h"
#include "observe/check.h"
#include "observe/check_quiet.h"
#include "observe/report_file.h"
#include "observe/trace_reader.h"
#include "program.h"

#define EXIT_NOT_FOUND  127
#define EXIT_CANNOT_RUN 126

static int unknown_option(const char *name)
{
    const char *flags[BLYI_OPTION_COUNT];
    for (int i = 0; i < BLYI_OPTION_COUNT; i++)
        flags[i] = blyi_option_info((enum blyi_option)i)->flag;
    const char *meant = suggest(name, flags, BLYI_OPTION_COUNT);
    if (meant != NULL)
        return usage_error("run", "run: no option \"--%s\"; did you mean \"--%s\"?", name, meant);
    return usage_error("run", "run: no option \"--%s\"; belay options lists them", name);
}

/* FAIL_HOST and FAIL_SYSTEM take effect as they are set; they are meant for the program. */
static void disarm(void)
{
    blyi_host_fail_nth(0);
    blyi_sys_fail_nth(0, 0);
}

static int set_option(const char *name, const char *value)
{
    int option = blyi_option_find(name);
    if (option < 0)
        return unknown_option(name);
    if (option == BLYI_OPT_REPORT && strcmp(value, "none") == 0)
        value = "";
    if (blyi_option_set((enum blyi_option)option, value) != BLY_OK)
        return usage_error("run", "run: %s", bly_last_error());
    setenv(blyi_option_info((enum blyi_option)option)->variable, value, 1);
    disarm();
    return 0;
}

/* Sets what stands before the program; *at is then its place in argv. */
static int take_options(int argc, char **argv, int *at)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2] != '\0'; i++) {
        char name[64];
        const char *equals = strchr(argv[i], '=');
        size_t length = equals ? (size_t)(equals - argv[i] - 2) : strlen(argv[i] + 2);
        snprintf(name, sizeof(name), "%.*s", (int)length, argv[i] + 2);
        if (blyi_option_find(name) < 0)
            return unknown_option(name);
        if (equals == NULL && i + 1 == argc)
            return usage_error("run", "run: --%s needs a value", name);
        int status = set_option(name, equals ? equals + 1 : argv[++i]);
        if (status != 0)
            return status;
    }
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    else if (i < argc && argv[i][0] == '-')
        return usage_error("run", "run: unknown argument \"%s\"", argv[i]);
    *at = i;
    return 0;
}

static bool is_builtin_model(const char *name)
{
    for (int i = 0; blyi_model_builtin(i) != NULL; i++)
        if (strcmp(blyi_model_builtin(i)->name, name) == 0)
            return true;
    return false;
}

/* The program may have left this folder when these files are read. */
static void make_paths_absolute(void)
{
    static const enum blyi_option paths[] = {BLYI_OPT_MODEL, BLYI_OPT_SYMBOLIZER,
                                             BLYI_OPT_SUPPRESSIONS};
    for (size_t i = 0; i < BLYI_COUNT(paths); i++) {
        char path[PATH_MAX];
        const char *value = blyi_option_text(paths[i]);
        bool is_path = paths[i] != BLYI_OPT_MODEL || !is_builtin_model(value);
        if (is_path && value[0] != '\0' && realpath(value, path) != NULL)
            setenv(blyi_option_info(paths[i])->variable, path, 1);
    }
}

/* What any program would fail of at its first call is told before it starts. */
static int check_options(void)
{
    bool can;
    uint32_t groups;
    struct blyi_quiet quiet;
    if (blyi_check_parse(blyi_option_text(BLYI_OPT_CHECK), &groups) != BLY_OK ||
        blyi_quiet_read(blyi_option_text(BLYI_OPT_SUPPRESSIONS), &quiet) != BLY_OK)
        return usage_error("run", "run: %s", bly_last_error());
    blyi_quiet_fini(&quiet);
    if (blyi_card_check_options() != BLY_OK || blyi_peer_can(0, 0, &can) != BLY_OK)
        return usage_error("run", "run: %s", bly_last_error());
    return 0;
}

/* Report files are begun here and not by the first process that watches, so that programs that
 * run one after the other share them. A run within a run adds to what the outer one began. */
static int begin_report(void)
{
    static struct blyi_report_files files;
    static char places[BLYI_REPORT_FILES_MAX * (PATH_MAX + 1)];
    const char *where = getenv("BELAY_REPORT"), *begun = getenv("BELAY_REPORT_APPEND");
    if (where == NULL)
        where = "-";
    if (where[0] == '\0')
        return 0;
    if (blyi_report_files_parse(where, NULL, &files) != BLY_OK)
        return usage_error("run", "run: %s", bly_last_error());
    size_t used = 0;
    bool begin = begun == NULL || strcmp(begun, "on") != 0;
    for (size_t i = 0; i < files.n; i++) {
        const char *path = files.file[i].to_stderr ? "-" : files.file[i].path;
        used += (size_t)snprintf(places + used, sizeof(places) - used, "%s%s", i ? "," : "", path);
        if (begin && blyi_report_file_new(&files.file[i]) != BLY_OK) {
            say("run: %s", bly_last_error());
            return EXIT_USAGE;
        }
    }
    setenv("BELAY_REPORT", places, 1); /* absolute: children may have other folders */
    setenv("BELAY_REPORT_APPEND", "on", 1);
    return 0;
}

static bool is_trace(const char *path)
{
    char magic[8];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool is = fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
              blyi_trace_is(magic, sizeof(magic));
    fclose(file);
    return is;
}

/* Recordings of an earlier run go away here and not at the first process that records, so that
 * programs which run one after the other each keep theirs. */
static int begin_trace(void)
{
    char folder[PATH_MAX] = "", path[PATH_MAX], name[PATH_MAX + 16];
    const char *where = getenv("BELAY_TRACE"), *keep = getenv("BELAY_TRACE_KEEP");
    if (where == NULL || where[0] == '\0')
        return 0;
    if (where[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
        return usage_error("run", "run: the working folder is gone");
    int n = snprintf(path, sizeof(path), "%s%s%s", folder, folder[0] ? "/" : "", where);
    if (n >= PATH_MAX)
        return usage_error("run", "run: --trace: the path is too long");
    setenv("BELAY_TRACE", path, 1); /* absolute: children may have other folders */
    if (keep != NULL && strcmp(keep, "on") == 0)
        return 0;
    snprintf(name, sizeof(name), "%s", path);
    for (int i = 1; strstr(path, "%p") == NULL && is_trace(name) && unlink(name) == 0; i++)
        snprintf(name, sizeof(name), "%s.%d", path, i);
    setenv("BELAY_TRACE_KEEP", "on", 1);
    return 0;
}

static bool prepend(const char *variable, const char *value)
{
    const char *old = getenv(variable);
    char *joined = NULL;
    if (old == NULL || old[0] == '\0')
        return setenv(variable, value, 1) == 0;
    bool done = asprintf(&joined, "%s:%s", value, old) >= 0 && setenv(variable, joined, 1) == 0;
    free(joined);
    return done;
}

/* The loader searches DT_RPATH before LD_LIBRARY_PATH, so a program that has one gets our library
 * as a preload; it then bears the name that the program asks for. Others do not, because
 * AddressSanitizer must be the first library, and here it is put before ours. */
static int preload(const struct program *program, const char *library)
{
    char list[PATH_MAX + 80];
    snprintf(list, sizeof(list), "%s%s%s", program->sanitizer, program->sanitizer[0] ? ":" : "",
             library);
    if (strpbrk(library, ": ") != NULL) {
        say("run: %s has a DT_RPATH, and LD_PRELOAD cannot take a path with a blank or colon: %s",
            program->binary, library);
        return EXIT_CANNOT_RUN;
    }
    return prepend("LD_PRELOAD", list) ? 0 : EXIT_CANNOT_RUN;
}

static int set_library_path(const struct program *program)
{
    char folder[PATH_MAX], library[PATH_MAX];
    if (!install_library_folder(folder)) {
        say("run: this command cannot tell which folder it is in: /proc is not mounted, and it was "
            "not started by a path");
        return EXIT_CANNOT_RUN;
    }
    if (!install_library(library)) {
        say("run: libascendcl.so is not where it belongs beside this command: %s", folder);
        return EXIT_CANNOT_RUN;
    }
    if (program->is_static) {
        say("run: %s is linked statically, so no library can be put under it; link it against "
            "%s",
            program->binary, library);
        return EXIT_CANNOT_RUN;
    }
    if (program->is_privileged) {
        say("run: %s changes its user or group, so the loader ignores LD_LIBRARY_PATH; run a "
            "copy without that permission",
            program->binary);
        return EXIT_CANNOT_RUN;
    }
    if (!prepend("LD_LIBRARY_PATH", folder))
        return EXIT_CANNOT_RUN;
    return program->has_rpath ? preload(program, library) : 0;
}

/* Before the program's own folders, as the library is before any other; they stay as they are. */
static int set_python_path(void)
{
    char folder[PATH_MAX];
    if (!install_python_folder(folder) || strchr(folder, ':') != NULL)
        return 0; /* only a program that imports acl misses it */
    return prepend("PYTHONPATH", folder) ? 0 : EXIT_CANNOT_RUN;
}

static int run(int argc, char **argv)
{
    struct program program;
    int at = 0;
    blyi_option_is_default(BLYI_OPT_FAIL_HOST); /* reads the environment */
    disarm();
    int status = take_options(argc, argv, &at);
    if (status != 0)
        return status;
    if (at == argc)
        return usage_error("run", "run: no program given");
    status = program_look(argv[at], &program);
    if (status == 0)
        status = check_options();
    if (status == 0)
        status = set_library_path(&program);
    if (status == 0)
        status = set_python_path();
    if (status == 0)
        status = begin_report();
    if (status == 0)
        status = begin_trace();
    if (status != 0)
        return status;
    blyi_cap_begin();
    make_paths_absolute();
    execvp(argv[at], argv + at);
    status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    say("run: %s: %s", argv[at], strerror(errno));
    return status;
}

const struct command command_run = {
    .name = "run",
    .usage = "[OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .summary = "Run an AscendCL program on the software NPU and report its memory at exit.",
    .help = "PROGRAM is linked against libascendcl.so, or opens it by name; it needs no\n"
            "recompiling. Its exit status is passed on; 127: not found, 126: cannot be run,\n"
            "2: wrong options.\n"
            "\n"
            "OPTIONS are those of belay options, as --name VALUE or --name=VALUE. The most used:\n"
            "\n"
            "  --report WHERE   - text on stderr (default), FILE.txt, FILE.json, FILE.html, or\n"
            "                   none; %p in a name is the process id\n"
            "  --trace FILE     record everything that happens to memory; see belay trace\n"
            "  --hbm SIZE       memory of each card as the program sees it\n"
            "  --cards N        number of cards\n"
            "  --model NAME     910, 910B, 310P, or the path of a model file\n"
            "  --cap SIZE       hard cap of device memory for the program and its children\n"
            "\n"
            "example: belay run --hbm 1GiB --report memory.json -- ./service --batch 8\n",
    .run = run,
};
