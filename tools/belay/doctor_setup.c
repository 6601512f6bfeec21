/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_setup.c - the installation and the environment.
 */
#include "doctor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <belay/base.h>
#include "base/option.h"
#include "install.h"
#include "npu/card.h"

void check_library(struct result *result)
{
    char path[PATH_MAX] = "libascendcl.so";
    if (install_library(path)) {
        put_value(result, "%.500s", path);
        put_meaning(result, LEVEL_OK, "what belay run puts before any other libascendcl.so");
        return;
    }
    put_value(result, "%.480s: not found", path);
    put_meaning(result, LEVEL_PROBLEM, "belay run cannot work: the library belongs beside bin/");
    put_advice(result, "build all (make), or install again (make install PREFIX=DIR)");
}

/* A libascendcl.so in `folder` that is not ours. */
static bool is_other(const char *folder, size_t length, const char *ours, char other[PATH_MAX])
{
    char path[PATH_MAX];
    if (length == 0 ||
        snprintf(path, sizeof(path), "%.*s/libascendcl.so", (int)length, folder) >= PATH_MAX)
        return false;
    return realpath(path, other) != NULL && strcmp(other, ours) != 0;
}

void check_other_library(struct result *result)
{
    char ours[PATH_MAX] = "", path[PATH_MAX], other[PATH_MAX];
    if (install_library(path) && realpath(path, ours) == NULL)
        ours[0] = '\0';
    const char *folders = getenv("LD_LIBRARY_PATH");
    for (const char *at = folders ? folders : ""; *at != '\0';) {
        size_t length = strcspn(at, ":");
        if (is_other(at, length, ours, other)) {
            put_value(result, "%.500s", other);
            put_meaning(result, LEVEL_NOTE,
                        "found by LD_LIBRARY_PATH: programs that are not started by belay run "
                        "use it, not the software NPU");
            put_advice(result, "start programs with belay run, which puts its own folder first");
            return;
        }
        at += length + (at[length] == ':');
    }
    put_value(result, "none in LD_LIBRARY_PATH");
    put_meaning(result, LEVEL_OK, "nobody else's libascendcl.so stands in the way");
}

/* "": fine; else what is wrong with a BELAY_* variable. */
static void judge_variable(const char *entry, char *buf, size_t size)
{
    char name[128];
    const char *equals = strchr(entry, '=');
    buf[0] = '\0';
    if (equals == NULL)
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(equals - entry), entry);
    int option = blyi_option_find(name);
    if (option < 0)
        snprintf(buf, size, "%s is no option", name);
    else if (blyi_option_set((enum blyi_option)option, equals + 1) != BLY_OK)
        snprintf(buf, size, "%s", bly_last_error());
}

void check_variables(struct result *result)
{
    int n = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        char wrong[256];
        if (strncmp(*entry, "BELAY_", 6) != 0)
            continue;
        n++;
        judge_variable(*entry, wrong, sizeof(wrong));
        if (wrong[0] != '\0') {
            put_value(result, "%s", wrong);
            put_meaning(result, LEVEL_PROBLEM, "this setting has no effect");
            put_advice(result, "belay options lists names and ranges");
            return;
        }
    }
    if (blyi_card_check_options() != BLY_OK) {
        put_value(result, "%s", bly_last_error());
        put_meaning(result, LEVEL_PROBLEM, "no program can open a card with this setting");
        put_advice(result, "belay options lists names and ranges");
        return;
    }
    put_value(result, "%d BELAY_* set", n);
    put_meaning(result, LEVEL_OK,
                n == 0 ? "all options have their defaults" : "names and values are understood");
}
