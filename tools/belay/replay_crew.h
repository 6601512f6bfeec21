/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_crew.h - threads that take turns: what one gives, the next one may free, and still nothing
 * happens twice at once.
 */
#ifndef BELAY_REPLAY_CREW_H
#define BELAY_REPLAY_CREW_H

#include <belay/base.h>

struct replay_crew;

typedef bly_status replay_task(void *context, const void *argument);

/* E_SYSTEM: no more threads; E_HOST_MEMORY. */
bly_status replay_crew_make(uint32_t n_threads, replay_task *task, void *context,
                            struct replay_crew **crew);
/* Runs the task in the next thread, and waits for it; its status, with its sentence. */
bly_status replay_crew_run(struct replay_crew *crew, const void *argument);
void replay_crew_drop(struct replay_crew *crew); /* NULL is allowed */

#endif
