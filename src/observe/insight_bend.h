/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_bend.h - where the times of calls change; private to insight_latency.c and its kin.
 */
#ifndef BLYI_INSIGHT_BEND_H
#define BLYI_INSIGHT_BEND_H

#include "observe/insight_latency.h"

/* n calls in the order of events; `room` for n numbers. */
void blyi_latency_of(const struct blyi_call *const *calls, size_t n, uint64_t *room,
                     struct blyi_latency *out);
/* False: there is none, or too few calls to tell. All but op, size_class and the states. */
bool blyi_bend_find(const struct blyi_call *const *calls, size_t n, uint64_t *room,
                    struct blyi_bend *out);
/* What else was there at bends and windows. False: no host memory. */
bool blyi_bend_states(const struct blyi_history *history, struct blyi_latencies *latencies);

#endif
