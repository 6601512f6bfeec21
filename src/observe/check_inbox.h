/* SPDX-License-Identifier: Apache-2.0
 *
 * check_inbox.h - probes on their way to the checker: threads put them in without a lock, in one
 * order, and one thread at a time takes a row of them out. So the checker's own memory seldom
 * changes from one CPU to another, which cost more than what it does.
 *
 *     tail                          head
 *      v                             v
 *     [ taken | filled | filled | ... | being written | free ]
 *
 * A place belongs to the number that `head` gave; it is filled when it says number + 1, and free
 * for number + size once `tail` is behind it.
 */
#ifndef BLYI_CHECK_INBOX_H
#define BLYI_CHECK_INBOX_H

#include <belay/base.h>
#include <stdalign.h>
#include <stdatomic.h>
#include "base/compiler.h"
#include "base/probe.h"

#define BLYI_INBOX_SIZE 1024u
#define BLYI_INBOX_ROW  128u /* as many wait before somebody takes them out unasked */

struct blyi_inbox_place {
    alignas(BLYI_CACHE_LINE) struct blyi_probe probe;
    _Atomic uint64_t filled;
};

struct blyi_inbox {
    struct blyi_inbox_place *places;
    alignas(BLYI_CACHE_LINE) _Atomic uint64_t head;
    alignas(BLYI_CACHE_LINE) _Atomic uint64_t tail; /* written by whoever takes out */
};

/* E_HOST_MEMORY. */
bly_status blyi_inbox_init(struct blyi_inbox *inbox);

/* The next number. */
static inline uint64_t blyi_inbox_number(struct blyi_inbox *inbox)
{
    return atomic_fetch_add(&inbox->head, 1);
}

static inline bool blyi_inbox_has_room(const struct blyi_inbox *inbox, uint64_t number)
{
    return number - atomic_load_explicit(&inbox->tail, memory_order_acquire) < BLYI_INBOX_SIZE;
}

/* Once there is room. */
static inline void blyi_inbox_put(struct blyi_inbox *inbox, uint64_t number,
                                  const struct blyi_probe *probe)
{
    struct blyi_inbox_place *place = &inbox->places[number % BLYI_INBOX_SIZE];
    place->probe = *probe;
    atomic_store_explicit(&place->filled, number + 1, memory_order_release);
}

/* The oldest one, when it is filled, else NULL; next() then goes on. One thread at a time. */
static inline const struct blyi_probe *blyi_inbox_first(struct blyi_inbox *inbox)
{
    uint64_t tail = atomic_load_explicit(&inbox->tail, memory_order_relaxed);
    struct blyi_inbox_place *place = &inbox->places[tail % BLYI_INBOX_SIZE];
    return atomic_load_explicit(&place->filled, memory_order_acquire) == tail + 1 ? &place->probe
                                                                                  : NULL;
}

static inline void blyi_inbox_next(struct blyi_inbox *inbox)
{
    atomic_store_explicit(&inbox->tail,
                          atomic_load_explicit(&inbox->tail, memory_order_relaxed) + 1,
                          memory_order_release);
}

#endif
