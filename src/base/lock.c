/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.c - ranked mutexes. At BLY_DEBUG >= 1 each thread remembers the locks it holds.
 */
#include "base/lock.h"

#include <sched.h>
#include "base/assert.h"
#include "base/compiler.h"
#include "base/sys.h"

#define HELD_MAX 16
#define SPINS    100u

static _Thread_local struct {
    const struct blyi_lock *locks[HELD_MAX];
    int count;
} held;

void (*blyi_lock_taken)(const struct blyi_lock *lock);

/* Written while the child of a fork has one thread. */
uint32_t blyi_lock_forks;
static uint32_t renewing;

static void count_fork(void)
{
    blyi_lock_forks++;
    renewing = 0;
}

/* At load, before any of our locks can be held. Where libc has no memory for it, a child may wait
 * for a lock of its parent as it would without. */
__attribute__((constructor)) static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, count_fork);
}

/* A lock of the parent's: whether it was held or not, nobody here holds it. */
static void renew(struct blyi_lock *lock)
{
    while (__atomic_exchange_n(&renewing, 1, __ATOMIC_ACQUIRE) != 0)
        sched_yield();
    if (lock->forks != blyi_lock_forks) {
        pthread_mutex_init(&lock->mutex, NULL);
        lock->word = 0;
        __atomic_store_n(&lock->forks, blyi_lock_forks, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&renewing, 0, __ATOMIC_RELEASE);
}

static void need_own(struct blyi_lock *lock)
{
    /* Acquire: who reads the number finds the new mutex. */
    if (unlikely(__atomic_load_n(&lock->forks, __ATOMIC_ACQUIRE) != blyi_lock_forks))
        renew(lock);
}

const char *blyi_lock_rank_name(enum blyi_lock_rank rank)
{
    static const char *const names[] = {
#define RANK_NAME(name, guards) #name,
        BLYI_LOCK_RANKS(RANK_NAME)
#undef RANK_NAME
    };
    return rank < BLYI_RANK_COUNT ? names[rank] : "?";
}

static void check_order(const struct blyi_lock *lock)
{
    for (int i = 0; i < held.count; i++)
        bly_assert_msg(held.locks[i]->rank < lock->rank,
                       "taking lock %p of rank %s while holding lock %p of rank %s",
                       (const void *)lock, blyi_lock_rank_name(lock->rank),
                       (const void *)held.locks[i], blyi_lock_rank_name(held.locks[i]->rank));
}

static void remember(const struct blyi_lock *lock)
{
    bly_assert_msg(held.count < HELD_MAX, "a thread holds %d locks", held.count);
    held.locks[held.count++] = lock;
}

static void forget(const struct blyi_lock *lock)
{
    int i = held.count - 1;
    while (i >= 0 && held.locks[i] != lock)
        i--;
    bly_assert_msg(i >= 0, "dropping lock %p of rank %s, which this thread does not hold",
                   (const void *)lock, blyi_lock_rank_name(lock->rank));
    held.count--;
    for (; i < held.count; i++)
        held.locks[i] = held.locks[i + 1];
}

void blyi_lock_init(struct blyi_lock *lock, enum blyi_lock_rank rank)
{
    bly_assert(rank < BLYI_RANK_COUNT);
    int error = pthread_mutex_init(&lock->mutex, NULL);
    bly_check_msg(error == 0, "error %d", error);
    lock->rank = rank;
    lock->forks = blyi_lock_forks;
    lock->quick = lock->word = 0;
}

void blyi_lock_init_quick(struct blyi_lock *lock, enum blyi_lock_rank rank)
{
    blyi_lock_init(lock, rank);
    lock->quick = 1;
}

static void word_take(struct blyi_lock *lock)
{
    for (unsigned i = 0; i < SPINS; i++) {
        uint32_t is_free = 0;
        if (__atomic_compare_exchange_n(&lock->word, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return;
        blyi_spin_pause();
    }
    while (__atomic_exchange_n(&lock->word, 2, __ATOMIC_ACQUIRE) != 0)
        blyi_sys_futex_wait(&lock->word, 2, 0);
}

static void mutex_take(struct blyi_lock *lock)
{
    if (lock->quick != 0) {
        word_take(lock);
        blyi_order_acquire(lock);
        return;
    }
    int error = pthread_mutex_lock(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
}

static bool mutex_try(struct blyi_lock *lock)
{
    uint32_t is_free = 0;
    if (lock->quick == 0)
        return pthread_mutex_trylock(&lock->mutex) == 0;
    if (!__atomic_compare_exchange_n(&lock->word, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    blyi_order_acquire(lock);
    return true;
}

static void mutex_drop(struct blyi_lock *lock)
{
    if (lock->quick != 0) {
        blyi_order_release(lock);
        if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) == 2)
            blyi_sys_futex_wake(&lock->word, 1);
        return;
    }
    int error = pthread_mutex_unlock(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
}

void blyi_lock_fini(struct blyi_lock *lock)
{
    need_own(lock);
    int error = pthread_mutex_destroy(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
}

void blyi_lock_take(struct blyi_lock *lock)
{
    if (BLY_DEBUG >= 1)
        check_order(lock);
    need_own(lock);
    mutex_take(lock);
    if (BLY_DEBUG >= 1)
        remember(lock);
    void (*taken)(const struct blyi_lock *) =
        BLY_DEBUG >= 1 ? __atomic_load_n(&blyi_lock_taken, __ATOMIC_ACQUIRE) : NULL;
    if (taken != NULL)
        taken(lock);
}

bool blyi_lock_try(struct blyi_lock *lock)
{
    need_own(lock);
    if (!mutex_try(lock))
        return false;
    if (BLY_DEBUG >= 1)
        remember(lock); /* counts for later takes: those can wait */
    return true;
}

void blyi_lock_drop(struct blyi_lock *lock)
{
    if (BLY_DEBUG >= 1)
        forget(lock);
    mutex_drop(lock);
}

void blyi_lock_drop_late(struct blyi_lock *lock)
{
    /* Release: the one before is behind another's store, if that came in between. */
    __atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&lock->word, 1);
}

bool blyi_lock_held(const struct blyi_lock *lock)
{
    if (BLY_DEBUG < 1)
        return true;
    for (int i = 0; i < held.count; i++)
        if (held.locks[i] == lock)
            return true;
    return false;
}
