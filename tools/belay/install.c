/* SPDX-License-Identifier: Apache-2.0 */
#include "install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "observe/module.h"

bool install_library_folder(char folder[PATH_MAX])
{
    char self[PATH_MAX], joined[PATH_MAX + 16];
    blyi_module_program(self);
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    snprintf(joined, sizeof(joined), "%s/../lib64", self);
    if (realpath(joined, folder) == NULL)
        snprintf(folder, PATH_MAX, "%.*s", PATH_MAX - 1, joined);
    return true;
}

bool install_library(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    if (!install_library_folder(folder) ||
        snprintf(path, PATH_MAX, "%s/libascendcl.so", folder) >= PATH_MAX)
        return false;
    return access(path, R_OK) == 0;
}
