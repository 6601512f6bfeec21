/* SPDX-License-Identifier: Apache-2.0
 *
 * unfinished.h - what a JSON report holds until a process that used a card ends: an object that
 * says so. The first section replaces it. A process that is killed leaves it behind, so the file
 * can be read.
 */
#ifndef BLYI_UNFINISHED_H
#define BLYI_UNFINISHED_H

#include <stdbool.h>
#include <stddef.h>

enum blyi_unfinished {
    BLYI_UNFINISHED_NOT,     /* a section, or nothing */
    BLYI_UNFINISHED_WAITING, /* of nobody yet, as `belay run` begins a file */
    BLYI_UNFINISHED_RUNNING, /* of a process that has not ended */
    BLYI_UNFINISHED_UNUSED,  /* the report of a process that used no card */
};

/* WAITING, or RUNNING: of this process. A text to be freed with free(), NULL when host memory is
 * short. */
char *blyi_unfinished_text(enum blyi_unfinished kind);

/* How much of a file's beginning blyi_unfinished_kind() needs. */
#define BLYI_UNFINISHED_HEAD 64
enum blyi_unfinished blyi_unfinished_kind(const char *text, size_t length);

#endif
