/* SPDX-License-Identifier: Apache-2.0
 *
 * watch.c - ending kernels that run too long. Lock: rank STREAM, the list of runs.
 */
#include "npu/watch.h"

#include <pthread.h>
#include <string.h>
#include "base/fail.h"
#include "base/lock.h"
#include "base/sys.h"
#include "npu/fault.h"
#include "npu/wait.h"

#define AGAIN_NS 2000000u /* a stop may miss: see fault.h */

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_STREAM);
static struct blyi_list runs = BLYI_LIST_INIT(runs);
static bool started;
static uint32_t word; /* futex: moves when a run begins */
static uint64_t default_us;

void blyi_watch_set_default(uint64_t timeout_us)
{
    __atomic_store_n(&default_us, timeout_us, __ATOMIC_RELAXED);
}

uint64_t blyi_watch_default_us(void)
{
    return __atomic_load_n(&default_us, __ATOMIC_RELAXED);
}

/* Stops what is over; returns when to look again. */
static uint64_t look_locked(void)
{
    uint64_t now = blyi_wait_real_ns(), nearest = UINT64_MAX;
    BLYI_LIST_FOR(node, &runs)
    {
        struct blyi_watch *watch = BLYI_CONTAINER(node, struct blyi_watch, link);
        if (watch->until_ns <= now) {
            watch->expired = true;
            /* Under the lock: the run cannot end, and its thread not be another's, meanwhile. */
            blyi_fault_stop(watch->tid, watch->token);
            watch->until_ns = now + AGAIN_NS;
        }
        if (watch->until_ns < nearest)
            nearest = watch->until_ns;
    }
    return nearest;
}

static void *watch_main(void *arg)
{
    (void)arg;
    for (;;) {
        uint32_t before = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
        blyi_lock_take(&lock);
        uint64_t nearest = look_locked();
        blyi_lock_drop(&lock);
        uint64_t now = blyi_wait_real_ns();
        if (nearest == UINT64_MAX)
            blyi_sys_futex_wait(&word, before, 0);
        else if (nearest > now)
            blyi_sys_futex_wait(&word, before, nearest - now);
    }
    return NULL;
}

bly_status blyi_watch_need(void)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    if (!started) {
        pthread_t thread;
        int error = blyi_sys_thread_create(&thread, "bly-watch", watch_main, NULL);
        if (error == 0) {
            pthread_detach(thread);
            started = true;
        } else {
            status = blyi_fail(BLY_E_SYSTEM, "the thread that limits kernels cannot be made: %s",
                               strerror(error));
        }
    }
    blyi_lock_drop(&lock);
    return status;
}

void blyi_watch_begin(struct blyi_watch *watch, uint64_t timeout_us, int32_t tid, uintptr_t token)
{
    uint64_t ns;
    if (__builtin_mul_overflow(timeout_us, 1000u, &ns) ||
        __builtin_add_overflow(ns, blyi_wait_real_ns(), &watch->until_ns))
        watch->until_ns = UINT64_MAX - 1;
    watch->tid = tid;
    watch->token = token;
    watch->expired = false;
    blyi_list_init(&watch->link);
    blyi_lock_take(&lock);
    blyi_list_push_back(&runs, &watch->link);
    blyi_lock_drop(&lock);
    __atomic_fetch_add(&word, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&word, 1);
}

void blyi_watch_end(struct blyi_watch *watch)
{
    blyi_lock_take(&lock);
    blyi_list_remove(&watch->link);
    blyi_lock_drop(&lock);
}
