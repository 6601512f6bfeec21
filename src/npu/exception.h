/* SPDX-License-Identifier: Apache-2.0
 *
 * exception.h - somebody above is told of each task that fails, before it counts as ended.
 */
#ifndef BLYI_EXCEPTION_H
#define BLYI_EXCEPTION_H

#include <belay/base.h>

struct blyi_stream;
struct blyi_task;

#define BLYI_EXCEPTION_UNKNOWN UINT32_MAX

struct blyi_exception {
    int card;
    uint32_t stream, task;
    uint32_t thread; /* that queued it, or UNKNOWN */
    bly_status status;
    /* Of a kernel; else NULL and 0. Valid during the call. */
    void *args;
    uint32_t args_size;
    void *function;
};

typedef void (*blyi_exception_fn)(const struct blyi_exception *exception);

/* One listener; NULL: none. Called by an engine thread, without locks. */
void blyi_exception_listen(blyi_exception_fn fn);
/* Owner only, with the thread's sentence, which is kept. */
void blyi_exception_tell(const struct blyi_stream *stream, const struct blyi_task *task,
                         bly_status status);

#endif
