/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.h - sites that are lines of a script (belay/frame.h), and those the thread stands in.
 */
#ifndef BLYI_FRAME_H
#define BLYI_FRAME_H

#include <belay/frame.h>
#include <stdatomic.h>
#include <stdbool.h>

#define BLYI_FRAME_TEXT 1024 /* function or file, its end included */

/* Never changes but for `code`, never goes away. */
struct blyi_line {
    struct blyi_line *next;      /* of the same hash */
    const char *function, *file; /* never NULL */
    uint32_t number;
    _Atomic(const void *) code; /* return address of the first call from there; NULL: none yet */
};

/* The line that a site is; NULL: an address of the machine, or unknown. [any] */
const struct blyi_line *blyi_line_of_site(uint32_t site);

/* For site.c alone: the same of what was interned. */
const struct blyi_line *blyi_line_of_key(const void *key);

/* What the thread's frames and its last call say together, for a recorder that runs in the call. */
struct blyi_frames_here {
    const bly_frames *frames;
    const void *code; /* return address of the call */
};
/* False when `site` is not the innermost of the thread's lines. */
bool blyi_frames_here(uint32_t site, struct blyi_frames_here *out);

/* In a module of bly_frames_hide(). [any] */
bool blyi_frames_hidden(const void *code);

/* What bly_frames_wanted() tells; 0 is 1. */
void blyi_frames_want(uint32_t depth);

#endif
