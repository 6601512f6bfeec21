/* SPDX-License-Identifier: Apache-2.0
 *
 * site.h - where in the program a thing was made: a small id for a return address, or for a line
 * of a script (frame.h).
 *
 * Ids are dense from 1; 0 is "unknown". Interning a known address takes no lock and no
 * system call. Function, file and line are found when somebody reads (symbol.h).
 */
#ifndef BLYI_SITE_H
#define BLYI_SITE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"

/* The id of a return address; 0 when the table cannot grow or `pc` is NULL. [any] */
uint32_t blyi_site_intern(const void *pc);
/* NULL for 0 and unknown ids; of a line of a script the first return address seen there. */
const void *blyi_site_pc(uint32_t site);
uint32_t blyi_site_count(void); /* ids are 1 .. count */

/* The line of the script that the thread stands in, else `code`. */
uint32_t blyi_frames_site(const void *code);
extern atomic_bool blyi_frames_used; /* some thread has ever stood in one */

static inline uint32_t blyi_site_of_call(const void *code)
{
    if (unlikely(atomic_load_explicit(&blyi_frames_used, memory_order_relaxed)))
        return blyi_frames_site(code);
    return blyi_site_intern(code);
}

/* Where the calling function was called, as a site. */
#define BLYI_SITE_HERE() blyi_site_of_call(__builtin_return_address(0))

#define BLYI_SITE_TEXT 256
/* "function+0x1c (module)", from the module's symbol table; without lines, never fails, never
 * blocks long. For sentences. */
const char *blyi_site_text(uint32_t site, char buf[BLYI_SITE_TEXT]);

/* Calls line(arg, i, text) for each site in order, with file and line if the layer above has
 * offered a way to find them (it may start a process and take seconds). For reports only. */
typedef void blyi_site_line(void *arg, size_t i, const char *text);
typedef void blyi_site_describer(const uint32_t *sites, size_t n, blyi_site_line *line, void *arg);
void blyi_site_describe(const uint32_t *sites, size_t n, blyi_site_line *line, void *arg);
void blyi_site_set_describer(blyi_site_describer *describer);

#endif
