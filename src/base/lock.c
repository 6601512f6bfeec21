/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.c - ranked mutexes. At BLY_DEBUG >= 1 each thread remembers the locks it holds.
 */
#include "base/lock.h"
#include "base/assert.h"

#define HELD_MAX 16

static _Thread_local struct {
    const struct blyi_lock *locks[HELD_MAX];
    int count;
} held;

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
}

void blyi_lock_fini(struct blyi_lock *lock)
{
    int error = pthread_mutex_destroy(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
}

void blyi_lock_take(struct blyi_lock *lock)
{
    if (BLY_DEBUG >= 1)
        check_order(lock);
    int error = pthread_mutex_lock(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
    if (BLY_DEBUG >= 1)
        remember(lock);
}

bool blyi_lock_try(struct blyi_lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    if (BLY_DEBUG >= 1)
        remember(lock); /* counts for later takes: those can wait */
    return true;
}

void blyi_lock_drop(struct blyi_lock *lock)
{
    if (BLY_DEBUG >= 1)
        forget(lock);
    int error = pthread_mutex_unlock(&lock->mutex);
    bly_check_msg(error == 0, "error %d, rank %s", error, blyi_lock_rank_name(lock->rank));
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
