/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - mutexes with a rank. A thread takes locks in rising rank only; at
 * BLY_DEBUG >= 1 a wrong order stops the process and names both locks. The list
 * below is the whole locking order of Belay.
 */
#ifndef BLYI_LOCK_H
#define BLYI_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* X(name, what it guards), outermost first. */
#define BLYI_LOCK_RANKS(X)                                                                         \
    X(FACE, "initialisation and finalisation of the AscendCL face")                                \
    X(RUNTIME, "cards being opened, contexts being made and destroyed")                            \
    X(CONTEXT, "streams of a context, its host-function thread")                                   \
    X(BINARY, "functions of a kernel binary")                                                      \
    X(SUBSCRIBE, "subscriptions of report threads")                                                \
    X(STREAM, "rare state of a stream: failure, pause, destruction")                               \
    X(EVENT, "waiters and record state of an event")                                               \
    X(ENGINE, "start and stop of engine threads")                                                  \
    X(RECLAIM, "list of those who can give memory back")                                           \
    X(CARDS, "a card being opened")                                                                \
    X(VMM, "reserved addresses, physical handles and their mappings")                              \
    X(CARD, "frames, windows and allocations of a card")                                           \
    X(REGISTERED, "host memory that the program registered")                                       \
    X(PINNED, "pinned host memory")                                                                \
    X(BACKING, "resident frames of a card")                                                        \
    X(HANDLES, "a handle table")                                                                   \
    X(OBSERVE, "a sink of probes")                                                                 \
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
    pthread_mutex_t mutex;
    enum blyi_lock_rank rank;
};

#define BLYI_LOCK_INIT(rank_)                                                                      \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, rank_                                                           \
    }

void blyi_lock_init(struct blyi_lock *lock, enum blyi_lock_rank rank);
void blyi_lock_fini(struct blyi_lock *lock);
void blyi_lock_take(struct blyi_lock *lock);
bool blyi_lock_try(struct blyi_lock *lock); /* exempt from the order: it cannot wait */
void blyi_lock_drop(struct blyi_lock *lock);
/* For assertions in *_locked functions; true at BLY_DEBUG 0. */
bool blyi_lock_held(const struct blyi_lock *lock);
const char *blyi_lock_rank_name(enum blyi_lock_rank rank);

#endif
