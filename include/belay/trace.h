/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/trace.h - recording what happens to memory, and saying what the program is doing.
 *
 * A recording also begins by itself where BELAY_TRACE names a file. Its format is described in
 * docs/trace-format.md; `belay trace` reads it.
 *
 * Names  are texts of at most 1023 bytes, kept for the life of the process (a longer one is cut);
 *        a process keeps at most a million different ones, the rest share one name that says so.
 * Threads  [any] for all functions here; ranges of push and pop belong to the calling thread.
 */
#ifndef BLY_TRACE_H
#define BLY_TRACE_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start from bly_trace_opts_default(). New fields are only ever appended, and struct_size says
 * which ones exist. */
typedef struct bly_trace_opts {
    uint32_t struct_size;
    uint32_t stack_depth; /* frames kept of each call, at most 128; 0: the caller alone */
    uint64_t ring;        /* events kept, at most 2^32: the newest; 0: all */
} bly_trace_opts;

static inline bly_trace_opts bly_trace_opts_default(void)
{
    bly_trace_opts o = {0, 0, 0};
    o.struct_size = (uint32_t)sizeof(o);
    return o;
}

/* Record from here on. What is live already is written down as made before recording. The file
 * can be read at any time, whatever becomes of the process.
 * path  %p in it becomes the process's number; NULL: memory, for bly_trace_dump() alone
 * opts  NULL: the defaults
 * E_STATE        a recording is under way
 * E_INVALID      opts outside its contract, or a path that is too long
 * E_IO           the file cannot be made
 * E_HOST_MEMORY  host memory for the recorder */
BLY_API bly_status bly_trace_start(const char *path, const bly_trace_opts *opts);

/* End the recording and close its file. When the file could not grow any more, recording ended at
 * that moment; this call then still closes the file and returns E_IO with the reason.
 * E_STATE        nothing is recorded */
BLY_API bly_status bly_trace_stop(void);

/* Write what is known now to a file of its own: the state, and the history when a recording is
 * under way, which goes on.
 * E_INVALID, E_IO, E_HOST_MEMORY  as bly_trace_start() */
BLY_API bly_status bly_trace_dump(const char *path);

/* What this thread does from here on is part of `name`, inside what it was part of before.
 * E_INVALID      NULL
 * E_HOST_MEMORY  host memory for a new name; no range was begun */
BLY_API bly_status bly_range_push(const char *name);

/* The thread's innermost range ends. E_STATE: there is none. */
BLY_API bly_status bly_range_pop(void);

/* One moment, with a name. E_INVALID, E_HOST_MEMORY as bly_range_push(). */
BLY_API bly_status bly_mark(const char *name);

/* The block around `address` is known as `name` from here on; the last name given counts.
 * E_INVALID, E_HOST_MEMORY as bly_range_push(); E_INVALID also for address NULL. */
BLY_API bly_status bly_tag(const void *address, const char *name);

#ifdef __cplusplus
}
#endif
#endif
