/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.c - the clocks of the system, and one that tests turn by hand.
 */
#include "base/clock.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <time.h>

#define NS_PER_S 1000000000ull

/* Acquire and release: who sees the time move also sees what was done before. */
static atomic_bool is_virtual;
static _Atomic uint64_t virtual_ns;

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for the two clocks below */
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t blyi_clock_ns(void)
{
    if (unlikely(blyi_clock_is_virtual()))
        return atomic_load_explicit(&virtual_ns, memory_order_acquire);
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t blyi_clock_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

void blyi_clock_set_virtual(bool on)
{
    if (on)
        atomic_store_explicit(&virtual_ns, NS_PER_S, memory_order_release);
    atomic_store_explicit(&is_virtual, on, memory_order_release);
}

bool blyi_clock_is_virtual(void)
{
    return atomic_load_explicit(&is_virtual, memory_order_acquire);
}

void blyi_clock_advance(uint64_t ns)
{
    atomic_fetch_add_explicit(&virtual_ns, ns, memory_order_acq_rel);
}
