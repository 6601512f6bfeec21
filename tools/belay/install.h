/* SPDX-License-Identifier: Apache-2.0
 *
 * install.h - where this command's libraries are: ../lib64, in the build tree as when installed,
 * and the Python module acl: ../python/site-packages.
 */
#ifndef BELAY_INSTALL_H
#define BELAY_INSTALL_H

#include <limits.h>
#include <stdbool.h>

/* The folder where libascendcl.so must be. False when this command's own path is unknown: it
 * needs /proc, or to be started by a path. */
bool install_library_folder(char folder[PATH_MAX]);
/* Folder + "/libascendcl.so", and whether it can be read. */
bool install_library(char path[PATH_MAX]);
/* The folder of the Python module acl; false when it was not built. */
bool install_python_folder(char folder[PATH_MAX]);

#endif
