/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.c - counters in stripes by thread, so that copies on different engines share no line.
 */
#include "npu/gate.h"
#include "npu/wait.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/order.h"
#include "base/sys.h"
#include <inttypes.h>
#include <stdalign.h>

#define STRIPES 16u

struct stripe {
    alignas(BLYI_CACHE_LINE) uint32_t inside;
};

static struct stripe stripes[STRIPES];
static uint32_t closed; /* futex: 1 while it is closed */
static uint32_t turn;   /* futex: moves when somebody left a closed gate */
static uint32_t n_threads;
static _Thread_local uint32_t own; /* stripe + 1 */

static uint32_t own_stripe(void)
{
    if (unlikely(own == 0))
        own = __atomic_fetch_add(&n_threads, 1, __ATOMIC_RELAXED) % STRIPES + 1;
    return own - 1;
}

uint32_t blyi_gate_enter(void)
{
    uint32_t stripe = own_stripe();
    for (;;) {
        /* Sequentially consistent against blyi_gate_close(): it sees us inside, or we see that it
         * is closed. */
        __atomic_fetch_add(&stripes[stripe].inside, 1, __ATOMIC_SEQ_CST);
        if (likely(__atomic_load_n(&closed, __ATOMIC_SEQ_CST) == 0)) {
            blyi_order_acquire(&closed);
            return stripe;
        }
        blyi_gate_leave(stripe);
        blyi_sys_futex_wait(&closed, 1, 0);
    }
}

void blyi_gate_leave(uint32_t stripe)
{
    blyi_order_release(&stripes[stripe]);
    /* The release half gives what was done inside to whoever closes. */
    __atomic_fetch_sub(&stripes[stripe].inside, 1, __ATOMIC_SEQ_CST);
    if (unlikely(__atomic_load_n(&closed, __ATOMIC_SEQ_CST) != 0)) {
        __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST);
        blyi_sys_futex_wake(&turn, 1);
    }
}

static uint32_t count_inside(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < STRIPES; i++)
        n += __atomic_load_n(&stripes[i].inside, __ATOMIC_SEQ_CST);
    return n;
}

bly_status blyi_gate_close(uint64_t timeout_ns)
{
    uint64_t began = blyi_wait_real_ns();
    while (__atomic_exchange_n(&closed, 1, __ATOMIC_SEQ_CST) != 0) {
        uint64_t waited = blyi_wait_real_ns() - began;
        if (timeout_ns != 0 && waited >= timeout_ns)
            return blyi_fail(BLY_E_TIMEOUT,
                             "the gate of card memory was not free within %" PRIu64
                             " ms: another move of frames, or a snapshot, has it",
                             timeout_ns / 1000000);
        blyi_sys_futex_wait(&closed, 1, timeout_ns != 0 ? timeout_ns - waited : 0);
    }
    for (;;) {
        uint32_t seen = __atomic_load_n(&turn, __ATOMIC_SEQ_CST), n = count_inside();
        if (n == 0) {
            for (uint32_t i = 0; i < STRIPES; i++)
                blyi_order_acquire(&stripes[i]);
            return BLY_OK;
        }
        uint64_t waited = blyi_wait_real_ns() - began;
        if (timeout_ns != 0 && waited >= timeout_ns) {
            blyi_gate_open();
            return blyi_fail(BLY_E_TIMEOUT,
                             "tasks that touch card memory did not pause within %" PRIu64
                             " ms: %" PRIu32 " are running",
                             timeout_ns / 1000000, n);
        }
        blyi_sys_futex_wait(&turn, seen, timeout_ns != 0 ? timeout_ns - waited : 0);
    }
}

void blyi_gate_open(void)
{
    blyi_order_release(&closed);
    __atomic_store_n(&closed, 0, __ATOMIC_SEQ_CST);
    blyi_sys_futex_wake(&closed, INT32_MAX);
}
