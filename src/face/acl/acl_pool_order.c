/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_pool_order.c - memory in the order of streams: allocated and freed as work is queued.
 *
 *   what FreeAsync is given                  what happens in the order of the stream
 *   a block of a pool                        it is idle in its pool, for the stream that it was
 *                                            allocated on
 *   a block of aclrtMalloc                   it is freed
 *   on a captured stream                     pool_graph.h
 */
#include <inttypes.h>

#include <acl/acl_rt_memory_soma.h>
#include "base/host.h"
#include "base/log.h"
#include "face/acl/alloc_pool.h"
#include "face/acl/check.h"
#include "face/acl/pool_graph.h"
#include "face/acl/pools.h"
#include "npu/callback.h"
#include "npu/card.h"
#include "npu/graph.h"
#include "npu/memory.h"
#include "npu/snapshot.h"
#include "npu/stream.h"
#include "pool/told.h"

/* The graph that a stream is captured into; NULL: none. */
static bly_status graph_of(void *stream, void **graph)
{
    enum blyi_capture_status captured;
    bly_status status = blyi_capture_info(stream, &captured, graph);
    if (status == BLY_OK && captured == BLYI_CAPTURE_NONE)
        *graph = NULL;
    return status;
}

/* ── Allocation ───────────────────────────────────────────────────────────────────────────── */

static aclError allocate(struct blyi_acl_pool *pool, uint64_t size, void *stream, int card,
                         const void *pc, void **out)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemPoolMallocAsync;
    if (card != pool->card->id)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "the pool is of card %d, the stream of card %d", pool->card->id,
                               card);
    if (size > pool->size)
        return blyi_acl_reject(call, ACL_ERROR_RT_INTERNAL_ERROR,
                               "size %" PRIu64 " is above the size of the pool, %" PRIu64, size,
                               pool->size);
    void *graph, *block;
    bly_status status = graph_of(stream, &graph);
    if (status == BLY_OK)
        status = graph != NULL ? blyi_pool_graph_alloc(graph, pool, stream, size, pc, &block)
                               : blyi_acl_pool_alloc(pool, size, stream, pc, &block);
    if (status != BLY_OK) {
        if (unlikely(blyi_probe_on(BLYI_PROBE_ALLOC_FAIL)))
            blyi_told_refused(pool->pool, size, pc, status);
        return blyi_acl_fail(call, status);
    }
    *out = block;
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtMemPoolMallocAsync(void **ptr, size_t size, aclrtMemPool memPool,
                                         aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemPoolMallocAsync;
    const void *pc = __builtin_return_address(0);
    int card;
    blyi_acl_enter();
    if (ptr == NULL || memPool == NULL || stream == NULL)
        return acl_reject(aclrtMemPoolMallocAsync, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          ptr == NULL       ? "ptr"
                          : memPool == NULL ? "memPool"
                                            : "stream");
    if (size == 0)
        return ACL_SUCCESS;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_stream_check(stream, &card);
    if (status != BLY_OK)
        return blyi_acl_fail(call, status);
    struct blyi_acl_pool *pool;
    aclError error = blyi_acl_pool_find(call, memPool, ACL_ERROR_RT_INTERNAL_ERROR, &pool);
    if (error != ACL_SUCCESS)
        return error;
    error = allocate(pool, size, stream, card, pc, ptr);
    blyi_acl_pool_put(pool);
    return error;
}

/* ── Free ─────────────────────────────────────────────────────────────────────────────────── */

struct late_free {
    struct blyi_mem_block block; /* by its serial: freed twice, its address may be another's */
    uint32_t site;
};

static void free_now(void *arg)
{
    struct late_free *late = arg;
    if (blyi_mem_free_block(&late->block, late->site) != BLY_OK) {
        blyi_log(BLYI_LOG_WARN, "aclrtMemPoolFreeAsync: %s", blyi_fail_text());
        blyi_fail_clear();
    }
    blyi_host_free(late);
}

/* Memory of aclrtMalloc: a task of the stream frees it. */
static bly_status free_stock(void *address, void *stream, uint32_t site)
{
    struct blyi_mem_block block;
    if (!blyi_mem_find(address, &block) || block.address != (uintptr_t)address)
        return blyi_mem_free(address, site); /* refuses it, in the right words */
    struct late_free *late = blyi_host_alloc(sizeof(*late));
    if (late == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a free in the order of a stream");
    *late = (struct late_free){block, site};
    bly_status status = blyi_callback_host_func(stream, free_now, late, site);
    if (status != BLY_OK)
        blyi_host_free(late);
    return status;
}

static bly_status free_in_order(void *address, void *stream, uint32_t site)
{
    void *graph;
    bly_status status = graph_of(stream, &graph);
    if (status != BLY_OK)
        return status;
    if (graph != NULL)
        return blyi_pool_graph_free(graph, address, stream);
    return blyi_alloc_pool_has(address) ? blyi_alloc_pool_free_on(address, stream, site)
                                        : free_stock(address, stream, site);
}

aclError bly_acl_aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemPoolFreeAsync;
    uint32_t site = ACL_SITE();
    int card;
    if (ptr == NULL)
        return acl_null(aclrtMemPoolFreeAsync, "ptr");
    if (stream == NULL)
        return acl_reject(aclrtMemPoolFreeAsync, ACL_ERROR_RT_INTERNAL_ERROR, "stream is NULL");
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_stream_check(stream, &card);
    if (status == BLY_OK)
        status = free_in_order(ptr, stream, site);
    return blyi_acl_result(call, status);
}
