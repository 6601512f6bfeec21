/* SPDX-License-Identifier: Apache-2.0
 *
 * trimmer.c - one thread for all pools that are trimmed now and then. Lock TRIMMER guards their
 * list and is held during a trim. The thread ends by itself when the list is empty.
 */
#include "pool/trimmer.h"

#include <pthread.h>
#include <time.h>
#include "base/fail.h"
#include "base/sys.h"
#include "pool/trim.h"

static struct blyi_lock trimmer_lock = BLYI_LOCK_INIT(BLYI_RANK_TRIMMER);
static struct blyi_list trimmed = BLYI_LIST_INIT(trimmed);
static uint32_t turn;   /* futex: moves when the list changes */
static uint32_t forks;  /* of the process when the thread began */
static bool is_running; /* of that process */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t half_ns(const bly_pool *pool)
{
    return (uint64_t)pool->opts.trim_ms * 500000u;
}

/* Trims who is due. Until when to sleep; 0: nobody is left. */
static uint64_t look_locked(void)
{
    uint64_t next = 0;
    BLYI_LIST_FOR(node, &trimmed)
    {
        bly_pool *pool = BLYI_CONTAINER(node, bly_pool, of_trimmer);
        if (now_ns() >= pool->due_ns) {
            blyi_trim_tick(pool);
            pool->due_ns = now_ns() + half_ns(pool);
        }
        if (next == 0 || pool->due_ns < next)
            next = pool->due_ns;
    }
    return next;
}

static void *trim(void *arg)
{
    (void)arg;
    for (;;) {
        blyi_lock_take(&trimmer_lock);
        uint32_t seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
        uint64_t next = look_locked();
        if (next == 0)
            is_running = false;
        blyi_lock_drop(&trimmer_lock);
        if (next == 0)
            return NULL;
        uint64_t now = now_ns();
        if (next > now)
            blyi_sys_futex_wait(&turn, seen, next - now);
    }
}

static bly_status start_locked(void)
{
    pthread_t thread;
    int error = blyi_sys_thread_create(&thread, "belay-trim", trim, NULL);
    if (error != 0)
        return blyi_fail(BLY_E_SYSTEM, "the thread that trims pools cannot be made: error %d",
                         error);
    pthread_detach(thread);
    is_running = true;
    forks = blyi_lock_forks;
    return BLY_OK;
}

bly_status blyi_trimmer_add(bly_pool *pool)
{
    bly_status status = BLY_OK;
    if (pool->opts.trim_ms == 0)
        return BLY_OK;
    blyi_lock_take(&trimmer_lock);
    if (forks != blyi_lock_forks) { /* what is listed is the parent's */
        blyi_list_init(&trimmed);
        is_running = false;
    }
    if (!is_running)
        status = start_locked();
    if (status == BLY_OK) {
        pool->due_ns = now_ns() + half_ns(pool);
        blyi_list_push_back(&trimmed, &pool->of_trimmer);
        __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
        blyi_sys_futex_wake(&turn, 1);
    }
    blyi_lock_drop(&trimmer_lock);
    return status;
}

void blyi_trimmer_remove(bly_pool *pool)
{
    if (pool->opts.trim_ms == 0)
        return;
    blyi_lock_take(&trimmer_lock);
    blyi_list_remove(&pool->of_trimmer);
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&turn, 1);
    blyi_lock_drop(&trimmer_lock);
}
