/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder.h - a sink that writes every probe into a file (docs/design/trace.md).
 */
#ifndef BLYI_RECORDER_H
#define BLYI_RECORDER_H

#include <belay/base.h>
#include <stdbool.h>
#include "observe/recorder_path.h"

struct blyi_recorder_opts {
    const char *path; /* absolute or not; %p is the pid; NULL: memory alone */
    uint64_t ring;    /* events kept; 0: all */
    uint32_t stack_depth;
    enum blyi_recspare spare;
};

/* What bly_trace_start(), _stop() and _dump() do; the path of the last one started. */
bly_status blyi_recorder_start(const struct blyi_recorder_opts *opts);
bly_status blyi_recorder_stop(void);
bly_status blyi_recorder_dump(const char *path);
const char *blyi_recorder_path(void);

/* Starts as the options TRACE, TRACE_RING, TRACE_KEEP and STACKS say; a relative path begins in
 * `folder` when that is not NULL. E_IO and so on when it cannot; BLY_OK when none is asked for. */
bly_status blyi_recorder_attach(const char *folder);
/* At the end of the process: closes the file, with names of functions; waits at most some seconds.
 * Tells by the log what ended the recording earlier. */
void blyi_recorder_finish(void);

/* Files and records agree; true while nothing is recorded. */
bool blyi_recorder_audit(void);

#endif
