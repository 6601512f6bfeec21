/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc_pool.h - BELAY_ALLOC=pool: aclrtMalloc and its kin served by one pool for each card. Also
 * aclrtFree of any pool's block.
 *
 * What a free finds queued on the card's streams may still use the block; the pool hands it out
 * again behind that. So a free never does harm that a free of a block with its own pages would not.
 */
#ifndef BLYI_ACL_ALLOC_POOL_H
#define BLYI_ACL_ALLOC_POOL_H

#include <belay/pool.h>
#include <stdbool.h>
#include "npu/memory.h"
#include "pool/pages.h"

/* Whether the pool serves the request: not what needs pages of a kind, or more than the card. */
bool blyi_alloc_pool_takes(const struct blyi_card *card, const struct blyi_mem_request *request);
/* Errors as blyi_mem_alloc(). */
bly_status blyi_alloc_pool_alloc(struct blyi_card *card, const struct blyi_mem_request *request,
                                 void **address);

/* The address lies where a pool has been: blyi_alloc_pool_free() is for it. */
static inline bool blyi_alloc_pool_has(const void *address)
{
    return blyi_pages_known((uintptr_t)address);
}
/* Before the memory at an address is shared: where it is a pool's, the pool learns of it.
 * E_INVALID: in no block that is export-ready. */
bly_status blyi_alloc_pool_check_export(const void *address);
/* E_INVALID as blyi_mem_free(); E_HOST_MEMORY. */
bly_status blyi_alloc_pool_free(void *address, uint32_t site);
/* In the order of a stream: a block of these pools. */
bly_status blyi_alloc_pool_free_on(void *address, void *stream, uint32_t site);

/* All memory of the card is about to be taken back. */
void blyi_alloc_pool_reset(int card);

#endif
