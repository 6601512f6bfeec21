/* SPDX-License-Identifier: Apache-2.0
 *
 * range.h - names that the program gives, and the nested ranges that each thread is in.
 *
 * A path is a range inside its parent: a small number, so that all a thread must keep is the
 * path it is in. Names and paths are never given back. Reading takes no lock.
 */
#ifndef BLYI_RANGE_H
#define BLYI_RANGE_H

#include <belay/base.h>
#include <stdint.h>
#include "base/compiler.h"

#define BLYI_NAME_MAX 1024 /* with the zero */

/* Ids are dense from 1; E_INVALID: NULL; E_HOST_MEMORY. */
bly_status blyi_name_intern(const char *text, uint32_t *id);
const char *blyi_name_text(uint32_t id); /* "" for 0 and unknown ones */

struct blyi_path {
    uint32_t parent; /* 0: outermost */
    uint32_t name;
};
struct blyi_path blyi_path_get(uint32_t path); /* zeros for 0 and unknown ones */
/* Path of this thread; 0: in none. */
BLYI_HOT_EXTERN BLYI_HOT_THREAD_LOCAL uint32_t blyi_range_here;
static inline uint32_t blyi_range_current(void)
{
    return blyi_range_here;
}

/* As bly_range_push() and its kin (trace.h), for a call at `site`. */
bly_status blyi_range_push(const char *name, uint32_t site);
bly_status blyi_range_pop(uint32_t site);
bly_status blyi_mark(const char *name, uint32_t stream, uint32_t site);
bly_status blyi_tag(const void *address, const char *name, uint32_t site);

/* A range that any thread may end. E_INVALID, E_HOST_MEMORY as above. */
bly_status blyi_range_start(const char *name, uint32_t site, uint32_t *number);
/* E_INVALID: no such range is open. */
bly_status blyi_range_stop(uint32_t number, uint32_t site);

#endif
