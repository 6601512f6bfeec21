/* SPDX-License-Identifier: Apache-2.0
 *
 * front.h - the pool as programs see it, seen from the inside: bly_pool_alloc() and its kin with
 * the place in the program, and what a pool's life asks of its thread caches.
 */
#ifndef BLYI_FRONT_H
#define BLYI_FRONT_H

#include <belay/pool.h>

struct blyi_front;

/* `small`: largest size that slots serve, at most BLYI_SLOT_MAX (class.h); 0: BELAY_POOL_SMALL.
 * E_HOST_MEMORY. */
bly_status blyi_front_open(bly_pool *pool, uint64_t small, struct blyi_front **front);
/* With its pool: nobody uses it any more, but threads that once did may be ending. Spans of slabs
 * stay where they are. Returns how many slots live, which end here. */
uint64_t blyi_front_close(struct blyi_front *front);
/* Behind close(), once the spans have left the table of addresses, where slabs are entered. */
void blyi_front_drop(struct blyi_front *front);

/* Free slots of all threads go home, and slabs that are empty then back into their arenas. The
 * caller holds no lock but those outside of POOLS. Bytes that thread caches had. */
uint64_t blyi_front_flush(struct blyi_front *front);
/* Adds the figures of slots: asked, parked, waiting, blocks, allocs, frees, metadata; and to live
 * what of `slab_bytes`, all spans of slabs, is neither parked nor waiting. Sets the peaks, which
 * may be too low by what thread caches park. */
void blyi_front_add_info(struct blyi_front *front, uint64_t slab_bytes, bly_pool_info *info);
void blyi_front_reset_peak(struct blyi_front *front); /* to what lives at the next look */
/* A block whose uses have passed (waiting.h). No lock held. */
void blyi_front_back(void *block);
/* The sentence says what does not hold. */
bly_status blyi_front_audit(struct blyi_front *front);

/* bly_pool_alloc_with() and bly_pool_free() for callers inside, that no probe hears of; `pc` is the
 * place in the program. */
bly_status blyi_front_alloc(bly_pool *pool, const bly_pool_request *request, bly_stream stream,
                            const void *pc, void **block);
bly_status blyi_front_free(void *block);
/* bly_pool_use() that no probe hears of. */
bly_status blyi_front_note(void *block, bly_stream stream);
/* Why `verb` ("free") cannot be done to an address that is no start of a live block. E_INVALID. */
bly_status blyi_front_refuse(const void *address, const char *verb);

#endif
