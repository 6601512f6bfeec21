/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_queue.h - queues of messages on a card, and routes between them.
 *
 * A queue holds up to `depth` messages, each a chain of shared buffers (mbuf.h), and hands them
 * out in the order in which they came. Queues belong to this process.
 *
 *     src ──┬──> dst       A message of a source goes to all its destinations at once, when each
 *           └──> dst       has room; until then it stays in the source. The data is shared, not
 *                          copied. A queue is a source or a destination, never both.
 *
 * Queues of channels (`channel` true) are apart: nothing but the channel reaches them.
 */
#ifndef BLYI_MEM_QUEUE_H
#define BLYI_MEM_QUEUE_H

#include <belay/base.h>
#include <stdbool.h>

#define BLYI_QUEUE_NAME_SIZE 128u /* with the terminator */
#define BLYI_QUEUE_DEPTH_MIN 2u
#define BLYI_QUEUE_DEPTH_MAX 8192u
#define BLYI_QUEUE_DEPTH     8u /* where none is asked for */

struct blyi_mbuf;

/* A queue as callers name it. */
struct blyi_queue_ref {
    int card;
    uint32_t id;
    bool channel;
};

/* All: E_INVALID: no such queue on the card (anymore); E_FORKED. [any] */

/* E_INVALID: depth or name out of bounds; E_HOST_MEMORY. `name` NULL or "": none. */
bly_status blyi_mem_queue_create(int card, const char *name, uint32_t depth, bool channel,
                                 uint32_t site, uint32_t *id);
/* Messages are dropped, waiting threads get E_INVALID. E_STATE: it has routes. */
bly_status blyi_mem_queue_destroy(struct blyi_queue_ref ref);
/* How long a call waits for room or for a message: -1 for ever, 0 not at all, else
 * milliseconds. False: another number. */
bool blyi_mem_queue_deadline(int32_t timeout_ms, uint64_t *deadline);

/* Puts a copy of `size` bytes of host or card memory at the end, with `user_size` bytes beside.
 * E_QUEUE_FULL: no room until the deadline; E_FAULT, E_HOST_MEMORY; E_INVALID: user_size. */
bly_status blyi_mem_queue_put_data(struct blyi_queue_ref ref, const void *data, uint64_t size,
                                   const void *user, uint64_t user_size, uint64_t deadline);
/* Takes the first message's bytes and those beside it. E_QUEUE_EMPTY: none until the deadline;
 * E_INVALID: `size` or `user_size` is too small, E_FAULT: the message stays. */
bly_status blyi_mem_queue_take_data(struct blyi_queue_ref ref, void *data, uint64_t size,
                                    uint64_t *taken, void *user, uint64_t user_size,
                                    uint64_t deadline);
/* The same by reference: the handle's chain becomes the message; the message becomes a chain with
 * new handles. E_HANDLE, E_INVALID: not the head of a chain. A failed call leaves the handle. */
bly_status blyi_mem_queue_put_buffer(struct blyi_queue_ref ref, void *handle, uint64_t deadline);
bly_status blyi_mem_queue_take_buffer(struct blyi_queue_ref ref, void **handle, uint64_t deadline);
/* The same for chains without handles. On success the queue, or the caller, owns the chain. */
bly_status blyi_mem_queue_put(struct blyi_queue_ref ref, struct blyi_mbuf *chain,
                              uint64_t deadline);
bly_status blyi_mem_queue_take(struct blyi_queue_ref ref, struct blyi_mbuf **chain,
                               uint64_t deadline);
/* Puts back in front what was just taken, even where there is no room. */
bly_status blyi_mem_queue_untake(struct blyi_queue_ref ref, struct blyi_mbuf *chain);

bly_status blyi_mem_queue_size(struct blyi_queue_ref ref, uint32_t *n);
/* Drops all messages. */
bly_status blyi_mem_queue_clean(struct blyi_queue_ref ref);
/* Threads that wait now end with E_QUEUE_FULL or E_QUEUE_EMPTY. */
bly_status blyi_mem_queue_wake(struct blyi_queue_ref ref);

/* E_INVALID: no such queue, one and the same, or a queue would be source and destination. A route
 * that is there already is no error, nor is one to be taken away that is not. */
bly_status blyi_queue_route_bind(int card, uint32_t src, uint32_t dst);
bly_status blyi_queue_route_unbind(int card, uint32_t src, uint32_t dst);

struct blyi_queue_route {
    uint32_t src, dst;
};
/* The routes of the card, in the order of their making; src or dst NULL: any. At most `max` are
 * written; *n is how many there are. */
bly_status blyi_queue_route_list(int card, const uint32_t *src, const uint32_t *dst,
                                 struct blyi_queue_route *routes, size_t max, size_t *n);

#endif
