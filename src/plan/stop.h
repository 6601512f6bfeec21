/* SPDX-License-Identifier: Apache-2.0
 *
 * stop.h - when to stop: a deadline, the caller's cancel flag, or another thread's success.
 * One per thread that works; the clock is read once in a while only.
 */
#ifndef BLYI_PLAN_STOP_H
#define BLYI_PLAN_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define BLYI_STOP_EVERY 64

struct blyi_stop {
    uint64_t deadline_ns;       /* of blyi_clock_ns(); UINT64_MAX: none */
    const volatile int *cancel; /* may be NULL */
    uint32_t count;
    bool stopped;
};

static inline bool blyi_stop_now(struct blyi_stop *stop)
{
    if (stop->stopped)
        return true;
    stop->stopped = (stop->cancel != NULL && *stop->cancel != 0) ||
                    (stop->deadline_ns != UINT64_MAX && blyi_clock_ns() >= stop->deadline_ns);
    return stop->stopped;
}

/* For inner loops. */
static inline bool blyi_stop_poll(struct blyi_stop *stop)
{
    if (++stop->count % BLYI_STOP_EVERY != 0)
        return stop->stopped;
    return blyi_stop_now(stop);
}

#endif
