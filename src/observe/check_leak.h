/* SPDX-License-Identifier: Apache-2.0
 *
 * check_leak.h - what was never given back, and accesses by host code, of a recording. In a process
 * the account finds the same; so this fills what the account would hold and asks the same code.
 */
#ifndef BLYI_CHECK_LEAK_H
#define BLYI_CHECK_LEAK_H

#include "observe/check_inside.h"

/* All do nothing unless the checker was made for that (opts.keeps_leaks). */
void blyi_leak_block(struct blyi_check *check, const struct blyi_area *area, bool by_reset);
void blyi_leak_handle(struct blyi_check *check, const struct blyi_handle_memory *handle,
                      bool by_reset);
void blyi_leak_stream(struct blyi_check *check, const struct blyi_check_stream *stream,
                      bool by_reset);
void blyi_leak_event(struct blyi_check *check, const struct blyi_check_event *event, uint32_t id,
                     bool by_reset);
/* Made or destroyed: what has an id and no other place in the checker. */
void blyi_leak_thing(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_leak_access(struct blyi_check *check, const struct blyi_probe *probe);
void blyi_leaks_fini(struct blyi_check *check);

#endif
