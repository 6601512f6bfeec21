/* SPDX-License-Identifier: Apache-2.0
 *
 * replay_pool.h - the pool itself as a policy, on a simulated device that counts what is mapped and
 * stops the process when something is unmapped that a stream may still use.
 */
#ifndef BELAY_REPLAY_POOL_H
#define BELAY_REPLAY_POOL_H

#include "replay/replay.h"

/* Calls come from setup->threads threads in turn. Work ends setup->lag events after it was queued,
 * or where the host waited for its stream; DONE tells it nothing. */
extern const struct blyi_replay_policy replay_pool;

#endif
