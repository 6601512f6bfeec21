/* SPDX-License-Identifier: Apache-2.0
 *
 * program.h - what must be known of a program before it is run with our library.
 */
#ifndef BELAY_PROGRAM_H
#define BELAY_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct program {
    char path[PATH_MAX];   /* of the program, by PATH as execvp looks for it */
    char binary[PATH_MAX]; /* of what is really run: the interpreter of a script */
    bool is_elf;           /* the rest is known */
    bool is_static;        /* has no dynamic loader, so nothing can be loaded into it */
    bool is_privileged;    /* set-user-id: the loader ignores LD_LIBRARY_PATH */
    bool has_rpath;        /* searched before LD_LIBRARY_PATH */
    char sanitizer[64];    /* the sanitizer's library that it needs; "" when none */
};

/* 0, or 127 (not found) or 126 (found, cannot be run) and a message on stderr. */
int program_look(const char *name, struct program *out);

#endif
