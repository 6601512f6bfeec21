/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/host_pool.h - pinned host memory that is used again: no size is rounded to a power of two,
 * and what is freed stays pinned until it is trimmed.
 *
 *     bly_host_pool_create(pool, NULL, &host);
 *     bly_host_pool_alloc(host, n, &buffer);
 *     ... aclrtMemcpyAsync(..., buffer, ..., stream) ...
 *     bly_host_pool_free_on(host, buffer, stream);
 *
 * Large blocks are pinned one by one, in whole pages of 4 KiB; small ones come out of segments of
 * 1 MiB. A freed block is divided and joined as needed. Where the machine has several NUMA nodes
 * each has segments of its own: memory is taken where the calling thread runs.
 *
 * Units    Sizes are bytes.
 * Owner    The pool whose streams are meant must outlive the host pool.
 * Threads  [any] for all functions here, but bly_host_pool_destroy().
 * Errors   E_INVALID for NULL, where it is not allowed; out-parameters are written on success only.
 */
#ifndef BLY_HOST_POOL_H
#define BLY_HOST_POOL_H

#include <belay/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bly_host_pool bly_host_pool;

/* Start from bly_host_pool_opts_default(). Fields are only appended. */
typedef struct bly_host_pool_opts {
    uint32_t struct_size;
    uint32_t unused;
    uint64_t limit; /* pinned at most; 0: what PIN_LIMIT allows */
    uint64_t keep;  /* idle bytes that stay pinned; UINT64_MAX: all */
} bly_host_pool_opts;
BLY_API bly_host_pool_opts bly_host_pool_opts_default(void);

/* opts NULL: the default. E_INVALID, E_HANDLE (no pool), E_HOST_MEMORY. */
BLY_API bly_status bly_host_pool_create(bly_pool *pool, const bly_host_pool_opts *opts,
                                        bly_host_pool **host);
/* Waits for the streams on which blocks were freed. Blocks that are live end; how many is logged.
 */
BLY_API bly_status bly_host_pool_destroy(bly_host_pool *host);

/* At least `size` bytes at a multiple of 64; 4096 from a page on. Size 0 counts as 1.
 * E_INVALID (above 2^48), E_PIN_LIMIT (asked, pinned, of that idle, the limit), E_HOST_MEMORY. */
BLY_API bly_status bly_host_pool_alloc(bly_host_pool *host, uint64_t size, void **block);
/* free: no work uses the block any more; free_on: it is used again when `stream` has passed this
 * point. NULL is fine. E_INVALID: not the start of a live block (what it is instead), E_HANDLE. */
BLY_API bly_status bly_host_pool_free(bly_host_pool *host, void *block);
BLY_API bly_status bly_host_pool_free_on(bly_host_pool *host, void *block, bly_stream stream);
/* Unpins what is idle as a whole until at most `keep` bytes are pinned. *released may be NULL. */
BLY_API bly_status bly_host_pool_trim(bly_host_pool *host, uint64_t keep, uint64_t *released);

/* struct_size comes from the caller. live + idle + waiting == pinned. */
typedef struct bly_host_pool_info {
    uint32_t struct_size;
    uint32_t nodes;
    uint64_t pinned, pinned_peak;
    uint64_t live;    /* in blocks */
    uint64_t asked;   /* the same, as asked for */
    uint64_t idle;    /* free */
    uint64_t waiting; /* freed on streams that have not been seen to pass */
    uint64_t blocks, allocs, frees;
    uint64_t pins, unpins; /* calls */
} bly_host_pool_info;
BLY_API bly_status bly_host_pool_get_info(bly_host_pool *host, bly_host_pool_info *info);

#ifdef __cplusplus
}
#endif
#endif
