/* SPDX-License-Identifier: Apache-2.0
 *
 * pools.h - the pools of a program (aclrtMemPool), and what has to be done about pools while others
 * do their work: synchronise, reset, end.
 *
 * A pool here is a bly_pool whose blocks are whole granules of 2 MiB and that holds no more than
 * them and what it keeps idle.
 */
#ifndef BLYI_ACL_POOLS_H
#define BLYI_ACL_POOLS_H

#include <belay/pool.h>
#include <stdbool.h>
#include "base/list.h"
#include "face/acl/acl_error.h"
#include "pool/trim.h"

#define BLYI_POOL_GRANULE (UINT64_C(2) << 20)

struct blyi_card;
struct blyi_moment;

struct blyi_acl_pool {
    struct blyi_list link; /* among the live ones, or those that wait for their end */
    bly_pool *pool;
    void *handle;
    struct blyi_card *card;
    uint64_t size;                       /* held at most */
    bool exportable;                     /* its blocks have a handle each */
    uint64_t reserved_reset, used_reset; /* 1 + allocations when the peak was set to 0; 0: never */
    /* Of a destroyed one. */
    bool has_ended, unpinned;
    struct blyi_moment *behind; /* what its memory waits for */
};

/* A pool of a card, of `size` bytes at most; `exportable`: of export-ready blocks. E_HOST_MEMORY,
 * E_NO_MEMORY (handles), and those of bly_pool_create(). */
bly_status blyi_acl_pool_make(struct blyi_card *card, uint64_t size, bool exportable,
                              void **handle);
/* Pinned until blyi_acl_pool_put(). NULL, with a sentence: E_HANDLE, E_FORKED. */
struct blyi_acl_pool *blyi_acl_pool_get(const void *handle);
void blyi_acl_pool_put(const struct blyi_acl_pool *pool);
/* The same for an entry point; `code` is what a bad one is called. */
aclError blyi_acl_pool_find(enum blyi_acl_call call, const void *handle, aclError code,
                            struct blyi_acl_pool **pool);
/* Whole granules; stream NULL: of none. Errors as bly_pool_alloc(). */
bly_status blyi_acl_pool_alloc(struct blyi_acl_pool *pool, uint64_t size, void *stream,
                               const void *pc, void **block);
/* Its addresses end when the work that is queued on the card by now has ended; waits for nothing.
 * E_HANDLE, E_HOST_MEMORY (nothing has changed). */
bly_status blyi_acl_pool_end(const void *handle);
/* Whether it was destroyed: some of its memory may still be there. */
bool blyi_acl_pool_has_ended(const bly_pool *pool);

/* The program has waited for work of a card: idle memory above thresholds goes back, and that of
 * destroyed pools. No lock is held. */
void blyi_acl_pools_synced_slow(void);
static inline void blyi_acl_pools_synced(void)
{
    if (unlikely(__atomic_load_n(&blyi_pools_live, __ATOMIC_RELAXED) != 0))
        blyi_acl_pools_synced_slow();
}
static inline aclError blyi_acl_synced(enum blyi_acl_call call, bly_status status)
{
    if (likely(status == BLY_OK))
        blyi_acl_pools_synced();
    return blyi_acl_result(call, status);
}
/* All memory of the card is about to be taken back. */
void blyi_acl_pools_reset(int card);

#endif
