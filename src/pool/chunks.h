/* SPDX-License-Identifier: Apache-2.0
 *
 * chunks.h - handles of a pool one by one. Under its lock.
 */
#ifndef BLYI_CHUNKS_H
#define BLYI_CHUNKS_H

#include "pool/pool.h"

/* Memory comes from the card, `count` granules. E_NO_MEMORY, E_CAP: none is there. */
bly_status blyi_chunk_add(bly_pool *pool, uint64_t count, struct blyi_chunk **chunk);
/* Memory that is mapped nowhere goes back to the card. */
void blyi_chunk_drop(bly_pool *pool, struct blyi_chunk *chunk);
/* From the granule `first` of a hole's extent on. E_SYSTEM, E_HOST_MEMORY. */
bly_status blyi_chunk_map(bly_pool *pool, struct blyi_chunk *chunk, struct blyi_span *hole,
                          uint64_t first);
void blyi_chunk_unmap(bly_pool *pool, struct blyi_chunk *chunk, struct blyi_span *hole);

/* A span lies in its handles from now on, and no longer: those that no span lies in are loose. */
void blyi_chunks_hold(const struct blyi_span *span);
void blyi_chunks_leave(const struct blyi_span *span);

/* Handles that are held and mapped nowhere, of up to BLYI_HANDLE_MOST granules: longer ones go back
 * to the card. take: the longest of at most `most` granules, or NULL.
 */
void blyi_spare_put(bly_pool *pool, struct blyi_chunk *chunk);
struct blyi_chunk *blyi_spare_take(bly_pool *pool, uint64_t most);
/* One of just so many granules, or NULL. */
struct blyi_chunk *blyi_spare_take_just(bly_pool *pool, uint64_t count);

#endif
