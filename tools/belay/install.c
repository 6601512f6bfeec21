/* SPDX-License-Identifier: Apache-2.0 */
#include "install.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "observe/module.h"

/* `beside` is relative to the folder of this command. */
static bool folder_beside(const char *beside, char folder[PATH_MAX])
{
    char self[PATH_MAX], joined[PATH_MAX + 40];
    blyi_module_program(self);
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    snprintf(joined, sizeof(joined), "%s/%s", self, beside);
    if (realpath(joined, folder) == NULL)
        snprintf(folder, PATH_MAX, "%.*s", PATH_MAX - 1, joined);
    return true;
}

bool install_library_folder(char folder[PATH_MAX])
{
    return folder_beside("../lib64", folder);
}

bool install_python_folder(char folder[PATH_MAX])
{
    char module[PATH_MAX + 16];
    if (!folder_beside("../python/site-packages", folder))
        return false;
    snprintf(module, sizeof(module), "%s/acl.abi3.so", folder);
    return access(module, R_OK) == 0;
}

bool install_library(char path[PATH_MAX])
{
    char folder[PATH_MAX];
    if (!install_library_folder(folder) ||
        snprintf(path, PATH_MAX, "%s/libascendcl.so", folder) >= PATH_MAX)
        return false;
    return access(path, R_OK) == 0;
}
