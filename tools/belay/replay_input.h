/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_input.h - the events of a trace, in any form that trace_input.h reads, for a replay.
 */
#ifndef BELAY_REPLAY_INPUT_H
#define BELAY_REPLAY_INPUT_H

#include <stdbool.h>
#include "observe/trace_reader.h"
#include "replay/replay.h"

/* The memory of one card, handles included; EXPORT_ANY_CARD: the only one that has blocks. What was
 * live before the first event is allocated first. False: said why. */
bool replay_input_read(const char *path, int card, struct blyi_replay_trace *trace);
/* The same of a trace that is open. E_INVALID, E_HOST_MEMORY, E_IO; `out` is to be released then,
 * too. */
bly_status replay_input_load(struct blyi_trace *trace, int card, struct blyi_replay_trace *out);
void replay_input_release(struct blyi_replay_trace *trace);

#endif
