/* SPDX-License-Identifier: Apache-2.0
 *
 * mbuf_inside.h - shared buffers as queues see them.
 *
 * References: one of the handle, one of the queue or of whoever is about to put the chain into
 * one or took it out. A chain is counted at each of its buffers.
 */
#ifndef BLYI_MBUF_INSIDE_H
#define BLYI_MBUF_INSIDE_H

#include <stdbool.h>
#include "base/lock.h"
#include "npu/mbuf.h"

struct blyi_mbuf_data; /* the area, counted */

struct blyi_mbuf {
    uint32_t refs;
    uint32_t n;                    /* of a head: buffers of the chain */
    struct blyi_mbuf *head, *next; /* of the chain; a head's head is itself */
    struct blyi_mbuf *queued;      /* the next message of a queue */
    struct blyi_mbuf_data *data;
    uint64_t length;
    void *handle; /* NULL: none */
    unsigned char user[BLYI_MBUF_USER_SIZE];
};

/* Rank QUEUES: buffers, chains, queues and routes. */
extern struct blyi_lock blyi_queues_lock;

/* A buffer without a handle; unless zeroed, its bytes are not set. E_HOST_MEMORY. */
bly_status blyi_mbuf_make(uint64_t size, bool zeroed, struct blyi_mbuf **out);
void *blyi_mbuf_bytes(const struct blyi_mbuf *mbuf);
uint64_t blyi_mbuf_size(const struct blyi_mbuf *mbuf);
uint64_t blyi_mbuf_chain_length(const struct blyi_mbuf *chain);
/* Refers to the same data, without handles. NULL: the host has no memory. */
struct blyi_mbuf *blyi_mbuf_clone(const struct blyi_mbuf *chain);
/* The same of one buffer, without its chain. */
struct blyi_mbuf *blyi_mbuf_clone_one(const struct blyi_mbuf *mbuf);
/* Two heads become one chain. Under the lock, or before others know them. */
void blyi_mbuf_link(struct blyi_mbuf *head, struct blyi_mbuf *chain);
void blyi_mbuf_unref(struct blyi_mbuf *mbuf);
/* Gives one reference of each buffer back. */
void blyi_mbuf_drop(struct blyi_mbuf *chain);

/* Under the lock. The chain behind a handle, without its handles and with their references;
 * E_HANDLE, E_INVALID: not a head. */
bly_status blyi_mbuf_take_locked(void *handle, struct blyi_mbuf **chain);
/* Whether that would work. */
bly_status blyi_mbuf_check_locked(void *handle);
/* Gives each buffer a handle, which takes over the reference. E_HOST_MEMORY: nothing changed. */
bly_status blyi_mbuf_hand_out_locked(struct blyi_mbuf *chain);

#endif
