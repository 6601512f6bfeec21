/* SPDX-License-Identifier: Apache-2.0
 *
 * sources.h - function, file and line of addresses in one module, from its debug information
 * or, without that, its symbols.
 */
#ifndef BELAY_SOURCES_H
#define BELAY_SOURCES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct sources; /* one module, opened */

struct source {
    char function[512]; /* "" when unknown; of the innermost inlined call; demangled */
    char file[PATH_MAX];
    int line;
    bool has_behind; /* the line is not known, the function is by its symbol */
    uint64_t behind; /* bytes from the function's start */
};

/* NULL when the file cannot be read, is no ELF file, or has another build id than `build_id`
 * (hex; "" accepts any): it is not what was loaded. */
struct sources *sources_open(const char *path, const char *build_id);
void sources_close(struct sources *sources);
/* False when nothing is known. `offset` is an address as the file counts them. */
bool sources_find(struct sources *sources, uint64_t offset, struct source *out);

#endif
