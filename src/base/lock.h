/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - mutexes with a rank. A thread takes locks in rising rank only; at
 * BLY_DEBUG >= 1 a wrong order stops the process and names both locks. The list
 * below is the whole locking order of Belay.
 *
 * In the child of a fork every lock is free: who held one there is not. What it guards may be in
 * the middle of a change, and whoever still uses it in a child keeps it usable at every store.
 */
#ifndef BLYI_LOCK_H
#define BLYI_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/assert.h"
#include "base/compiler.h"
#include "base/order.h"

/* X(name, what it guards), outermost first. */
#define BLYI_LOCK_RANKS(X)                                                                         \
    X(RECORD, "a recording being started or stopped")                                              \
    X(FACE, "initialisation and finalisation of the AscendCL face")                                \
    X(FACE_POOLS, "pools of the AscendCL face, and what graphs hold of them")                      \
    X(RUNTIME, "cards being opened, contexts being made and destroyed")                            \
    X(GRAPH, "captures and what is in graphs")                                                     \
    X(CONTEXT, "streams of a context, its host-function thread")                                   \
    X(BINARY, "functions of a kernel binary")                                                      \
    X(SUBSCRIBE, "subscriptions of report threads")                                                \
    X(QUEUES, "queues of messages, their routes, shared buffers")                                  \
    X(GRAPH_RUN, "runs of graphs: who runs one, who waits for his turn")                           \
    X(STREAM, "rare state of a stream: failure, pause, destruction")                               \
    X(EVENT, "waiters and record state of an event")                                               \
    X(ENGINE, "start and stop of engine threads")                                                  \
    X(RECLAIM, "list of those who can give memory back")                                           \
    X(PARTS, "blocks of one size from a memory pool")                                              \
    X(TRIMMER, "memory pools that are trimmed now and then")                                       \
    X(POOLS, "the list of memory pools")                                                           \
    X(CACHES, "thread caches of memory pools: whose, and what they may park")                      \
    X(FRONT, "slabs and thread caches of a memory pool")                                           \
    X(POOL, "arenas and granules of a memory pool")                                                \
    X(PAGES, "the table of addresses being made")                                                  \
    X(LANES, "events by which a pool waits for a vendor's streams")                                \
    X(CARDS, "a card being opened")                                                                \
    X(VMM, "reserved addresses, physical handles and their mappings")                              \
    X(CARD, "frames, windows and allocations of a card")                                           \
    X(REGISTERED, "host memory that the program registered")                                       \
    X(PINNED, "pinned host memory")                                                                \
    X(ATTACH, "this process joining the others")                                                   \
    X(LEDGER, "what processes share; one thread of this one at a time")                            \
    X(POISON, "places of card memory with an error")                                               \
    X(BACKING, "resident frames of a card")                                                        \
    X(TALLY, "rows of this process in the ledger")                                                 \
    X(HANDLES, "a handle table")                                                                   \
    X(KNOWN, "what streams have waited for")                                                       \
    X(OBSERVE, "a sink of probes")                                                                 \
    X(SINKS, "the lists of sinks and tellers")                                                     \
    X(OPTION, "values of options")                                                                 \
    X(SITE, "the table of sites, while it grows")                                                  \
    X(LOG, "the log's sink")

enum blyi_lock_rank {
#define BLYI_LOCK_ENUM(name, guards) BLYI_RANK_##name,
    BLYI_LOCK_RANKS(BLYI_LOCK_ENUM)
#undef BLYI_LOCK_ENUM
        BLYI_RANK_COUNT
};

struct blyi_lock {
    pthread_mutex_t mutex; /* unless it is quick */
    enum blyi_lock_rank rank;
    uint32_t forks;       /* how many forks the process was behind when the mutex was made */
    uint32_t quick, word; /* word: 0 free, 1 taken, 2 taken and somebody may sleep on it */
};

#define BLYI_LOCK_INIT(rank_)                                                                      \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, rank_, 0, 0, 0                                                  \
    }

void blyi_lock_init(struct blyi_lock *lock, enum blyi_lock_rank rank);
/* One that costs a few instructions where nobody else has it. */
void blyi_lock_init_quick(struct blyi_lock *lock, enum blyi_lock_rank rank);
void blyi_lock_fini(struct blyi_lock *lock);
void blyi_lock_take(struct blyi_lock *lock);
bool blyi_lock_try(struct blyi_lock *lock); /* exempt from the order: it cannot wait */
void blyi_lock_drop(struct blyi_lock *lock);

/* Take and drop of a quick lock, in place. */
BLYI_HOT_EXTERN uint32_t blyi_lock_forks;
void blyi_lock_drop_late(
    struct blyi_lock *lock); /* that others may sleep on; its word is one less */

static inline void blyi_lock_take_quick(struct blyi_lock *lock)
{
    uint32_t is_free = 0;
    if (BLY_DEBUG >= 1 || unlikely(lock->forks != blyi_lock_forks) ||
        unlikely(!__atomic_compare_exchange_n(&lock->word, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED)))
        blyi_lock_take(lock);
    else
        blyi_order_acquire(lock);
}

static inline void blyi_lock_drop_quick(struct blyi_lock *lock)
{
    if (BLY_DEBUG >= 1) {
        blyi_lock_drop(lock);
        return;
    }
    blyi_order_release(lock);
    if (unlikely(__atomic_sub_fetch(&lock->word, 1, __ATOMIC_RELEASE) != 0))
        blyi_lock_drop_late(lock);
}

/* Takes a quick lock if nobody has it, and this process has taken it before. */
static inline bool blyi_lock_try_quick(struct blyi_lock *lock)
{
    uint32_t is_free = 0;
    if (BLY_DEBUG >= 1)
        return blyi_lock_try(lock);
    if (unlikely(lock->forks != blyi_lock_forks) ||
        unlikely(!__atomic_compare_exchange_n(&lock->word, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED)))
        return false;
    blyi_order_acquire(lock);
    return true;
}

/* For assertions in *_locked functions; true at BLY_DEBUG 0. */
bool blyi_lock_held(const struct blyi_lock *lock);
/* For tests, from BLY_DEBUG 1 on: called with each lock that was taken. NULL: nobody. */
extern void (*blyi_lock_taken)(const struct blyi_lock *lock);
const char *blyi_lock_rank_name(enum blyi_lock_rank rank);

#endif
