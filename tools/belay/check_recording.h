/* SPDX-License-Identifier: Apache-2.0
 *
 * check_recording.h - the checker over the events of a recording.
 */
#ifndef BELAY_CHECK_RECORDING_H
#define BELAY_CHECK_RECORDING_H

#include <belay/base.h>
#include <stdbool.h>
#include "observe/check.h"
#include "observe/trace_reader.h"

/* Nothing is missing between the first event of the process and the last of the file. */
bool check_is_complete(const struct blyi_trace_info *info);
/* Reads the recording from its beginning; `groups` as in blyi_check_opts. *out is destroyed by the
 * caller. E_HOST_MEMORY, and what the reader says of a file that cannot be read on. */
bly_status check_recording(struct blyi_trace *trace, uint32_t groups, struct blyi_check **out);

#endif
