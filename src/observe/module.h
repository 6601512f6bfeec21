/* SPDX-License-Identifier: Apache-2.0
 *
 * module.h - which file an address of code was loaded from.
 */
#ifndef BLYI_MODULE_H
#define BLYI_MODULE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define BLYI_BUILD_ID_TEXT 129 /* 64 bytes as hex */

struct blyi_module {
    char path[PATH_MAX];
    uint64_t offset;                   /* the address as the file counts them (p_vaddr) */
    char build_id[BLYI_BUILD_ID_TEXT]; /* of the loaded image; "" when it has none */
};

/* False when the address lies in no module that has a file. A running program whose file was
 * deleted is named by way of /proc. */
bool blyi_module_find(const void *pc, struct blyi_module *out);

/* The path of the running program; as good a name as there is where /proc is not mounted. */
void blyi_module_program(char path[PATH_MAX]);

#endif
