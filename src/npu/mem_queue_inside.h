/* SPDX-License-Identifier: Apache-2.0
 *
 * mem_queue_inside.h - a queue, and what routes need of it. All under blyi_queues_lock.
 */
#ifndef BLYI_MEM_QUEUE_INSIDE_H
#define BLYI_MEM_QUEUE_INSIDE_H

#include "base/list.h"
#include "npu/mbuf_inside.h"
#include "npu/mem_queue.h"

struct blyi_mem_queue {
    struct blyi_list link;
    struct blyi_queue_ref ref;
    char name[BLYI_QUEUE_NAME_SIZE];
    uint32_t depth, n;
    struct blyi_mbuf *first, *last; /* linked by `queued` */
    uint32_t word;                  /* futex: moves with everything below and with n */
    uint32_t stops;                 /* how often waiting threads were sent away */
    bool dead;
    uint32_t users;       /* threads that wait: the last one frees a dead queue */
    uint32_t n_out, n_in; /* routes that begin and end here */
};

/* NULL, with a sentence (E_INVALID). */
struct blyi_mem_queue *blyi_mem_queue_find_locked(struct blyi_queue_ref ref);
void blyi_mem_queue_push_locked(struct blyi_mem_queue *queue, struct blyi_mbuf *chain);
struct blyi_mbuf *blyi_mem_queue_pop_locked(struct blyi_mem_queue *queue);

/* Moves what can move out of a source, or into a destination. E_HOST_MEMORY: something could not
 * move for want of it; it is where it was. */
bly_status blyi_routes_drain_locked(struct blyi_mem_queue *src);
bly_status blyi_routes_feed_locked(struct blyi_mem_queue *dst);

#endif
