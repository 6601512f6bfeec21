/* SPDX-License-Identifier: Apache-2.0
 *
 * nth.h - a failure that is armed to happen once, at the nth event from now. For host.c and
 * sys.c; disarmed it costs one relaxed load.
 */
#ifndef BLYI_NTH_H
#define BLYI_NTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct blyi_nth {
    _Atomic uint64_t left; /* events until it happens; 0: disarmed */
    atomic_bool fired;
};

static inline void blyi_nth_arm(struct blyi_nth *nth, uint64_t n)
{
    atomic_store(&nth->left, 0);
    atomic_store(&nth->fired, false);
    atomic_store(&nth->left, n);
}

/* Counts one event; true when this is the one that must fail. */
static inline bool blyi_nth_hit(struct blyi_nth *nth)
{
    uint64_t left = atomic_load_explicit(&nth->left, memory_order_relaxed);
    while (left > 0) {
        if (!atomic_compare_exchange_weak(&nth->left, &left, left - 1))
            continue;
        if (left > 1)
            return false;
        atomic_store(&nth->fired, true);
        return true;
    }
    return false;
}

static inline bool blyi_nth_fired(struct blyi_nth *nth)
{
    return atomic_load(&nth->fired);
}

#endif
