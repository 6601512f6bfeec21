/* SPDX-License-Identifier: Apache-2.0
 *
 * wait.c - sleeping with a deadline.
 */
#include "npu/wait.h"

#include <sched.h>
#include <time.h>
#include "base/clock.h"
#include "base/option.h"
#include "base/sys.h"

#define VIRTUAL_LOOK_NS 1000000u

/* A yield to a thread of ours that goes on and sleeps takes some microseconds; one that took this
 * long went to other work, and for the next moment so would others. */
#define CROWDED_NS      500000u
#define CROWDED_LOOK_NS 50000000u

uint64_t blyi_wait_real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t blyi_wait_spin_ns(void)
{
    static uint64_t spin_plus_one; /* 0: not read; two readers store the same */
    uint64_t known = __atomic_load_n(&spin_plus_one, __ATOMIC_RELAXED);
    if (known == 0) {
        known = (uint64_t)blyi_option_int(BLYI_OPT_SPIN_US) * 1000 + 1;
        __atomic_store_n(&spin_plus_one, known, __ATOMIC_RELAXED);
    }
    return known - 1;
}

bool blyi_wait_yield(void)
{
    static uint64_t crowded_until; /* relaxed: a guess */
    uint64_t before = blyi_wait_real_ns();
    if (before < __atomic_load_n(&crowded_until, __ATOMIC_RELAXED))
        return false;
    sched_yield();
    uint64_t after = blyi_wait_real_ns();
    if (after - before < CROWDED_NS)
        return true;
    __atomic_store_n(&crowded_until, after + CROWDED_LOOK_NS, __ATOMIC_RELAXED);
    return false;
}

uint64_t blyi_wait_deadline(uint64_t timeout_ns)
{
    uint64_t deadline;
    if (timeout_ns == 0 || __builtin_add_overflow(blyi_clock_ns(), timeout_ns, &deadline))
        return UINT64_MAX;
    return deadline;
}

bool blyi_wait_on(const uint32_t *word, uint32_t expected, uint64_t deadline)
{
    if (deadline == UINT64_MAX) {
        blyi_sys_futex_wait(word, expected, 0);
        return true;
    }
    uint64_t now = blyi_clock_ns();
    if (now >= deadline)
        return false;
    uint64_t rest = deadline - now;
    if (blyi_clock_is_virtual())
        rest = VIRTUAL_LOOK_NS;
    blyi_sys_futex_wait(word, expected, rest);
    return true;
}
