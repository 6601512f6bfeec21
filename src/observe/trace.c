/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - the native calls of belay/trace.h that concern recordings.
 */
#include <belay/trace.h>

#include <string.h>

#include "base/fail.h"
#include "observe/recorder.h"

/* Fields behind the caller's struct_size have their defaults. */
static bly_status read_opts(const bly_trace_opts *opts, bly_trace_opts *out)
{
    *out = bly_trace_opts_default();
    if (opts == NULL)
        return BLY_OK;
    if (opts->struct_size < sizeof(opts->struct_size) || opts->struct_size > sizeof(*opts))
        return blyi_fail(BLY_E_INVALID, "bly_trace_opts of %u bytes; this library knows %zu",
                         opts->struct_size, sizeof(*opts));
    memcpy(out, opts, opts->struct_size);
    return BLY_OK;
}

bly_status bly_trace_start(const char *path, const bly_trace_opts *opts)
{
    bly_trace_opts read;
    bly_status status = read_opts(opts, &read);
    if (status != BLY_OK)
        return status;
    return blyi_recorder_start(&(struct blyi_recorder_opts){
        .path = path, .ring = read.ring, .stack_depth = read.stack_depth});
}

bly_status bly_trace_stop(void)
{
    return blyi_recorder_stop();
}

bly_status bly_trace_dump(const char *path)
{
    return blyi_recorder_dump(path);
}
