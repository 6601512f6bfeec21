/* SPDX-License-Identifier: Apache-2.0
 *
 * cap.c - one sum for the whole process, booked before memory is taken.
 */
#include "npu/cap.h"
#include "npu/memory.h"
#include "base/option.h"
#include <stdatomic.h>

static _Atomic uint64_t used; /* relaxed: a sum that orders nothing */

bool blyi_cap_take(uint64_t bytes)
{
    uint64_t cap = (uint64_t)blyi_option_int(BLYI_OPT_CAP);
    uint64_t now = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (cap > 0 && (now > cap || bytes > cap - now))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&used, &now, now + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void blyi_cap_give(uint64_t bytes)
{
    atomic_fetch_sub_explicit(&used, bytes, memory_order_relaxed);
}

uint64_t blyi_mem_cap_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}
