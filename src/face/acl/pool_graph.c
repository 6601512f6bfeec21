/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_graph.c - a graph's pool memory.
 *
 * A block is of no stream for its pool: runs of the graph use it on streams of their own, one run
 * at a time, and the graph is destroyed behind its last run. Inside of the graph blocks are reused
 * in the order of the captured stream that freed them. A graph pins the pools that it has blocks
 * of.
 */
#include "face/acl/pool_graph.h"

#include <inttypes.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/size.h"
#include "face/acl/pools.h"
#include "npu/graph.h"
#include "pool/front.h"
#include "pool/told.h"

struct block {
    struct blyi_list link;
    struct blyi_acl_pool *pool; /* pinned */
    void *address;
    uint64_t size;
    void *freed_on; /* NULL: in use */
    bool given;     /* freed by the program after the capture */
};

struct held {
    struct blyi_list link;
    void *graph;
    struct blyi_list blocks;
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE_POOLS); /* all here */
static struct blyi_list graphs = BLYI_LIST_INIT(graphs);

/* The graph ends: it runs no more. */
static void graph_ends(void *arg)
{
    struct held *held = arg;
    blyi_lock_take(&lock);
    blyi_list_remove(&held->link);
    blyi_lock_drop(&lock);
    BLYI_LIST_FOR_SAFE(node, &held->blocks)
    {
        struct block *block = BLYI_CONTAINER(node, struct block, link);
        if (unlikely(blyi_pool_told()))
            blyi_told_free(block->address, BLYI_TOLD_NOW, NULL, NULL);
        if (blyi_front_free(block->address) != BLY_OK)
            blyi_fail_clear();
        blyi_acl_pool_put(block->pool);
        blyi_host_free(block);
    }
    blyi_host_free(held);
}

static struct held *find_locked(const void *graph)
{
    BLYI_LIST_FOR(node, &graphs)
    {
        struct held *held = BLYI_CONTAINER(node, struct held, link);
        if (held->graph == graph)
            return held;
    }
    return NULL;
}

/* The record of a graph that is being captured by the calling thread's stream. */
static bly_status need_held(void *graph, struct held **out)
{
    blyi_lock_take(&lock);
    *out = find_locked(graph);
    blyi_lock_drop(&lock);
    if (*out != NULL)
        return BLY_OK;
    struct held *held = blyi_host_calloc(1, sizeof(*held));
    if (held == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a graph's pool blocks");
    held->graph = graph;
    blyi_list_init(&held->blocks);
    blyi_lock_take(&lock);
    *out = find_locked(graph); /* another stream of the capture was first */
    if (*out == NULL)
        blyi_list_push_back(&graphs, &held->link);
    blyi_lock_drop(&lock);
    if (*out != NULL) {
        blyi_host_free(held);
        return BLY_OK;
    }
    bly_status status = blyi_graph_on_destroy(graph, graph_ends, held);
    if (status != BLY_OK) {
        blyi_lock_take(&lock);
        blyi_list_remove(&held->link);
        blyi_lock_drop(&lock);
        blyi_host_free(held);
        return status;
    }
    *out = held;
    return BLY_OK;
}

/* The smallest that fits, of those freed on the stream. */
static bool reuse(struct held *held, const struct blyi_acl_pool *pool, const void *stream,
                  uint64_t size, void **address)
{
    struct block *best = NULL;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &held->blocks)
    {
        struct block *block = BLYI_CONTAINER(node, struct block, link);
        if (block->pool == pool && block->freed_on == stream && block->size >= size &&
            (best == NULL || block->size < best->size))
            best = block;
    }
    if (best != NULL) {
        best->freed_on = NULL;
        *address = best->address;
    }
    blyi_lock_drop(&lock);
    return best != NULL;
}

bly_status blyi_pool_graph_alloc(void *graph, struct blyi_acl_pool *pool, void *stream,
                                 uint64_t size, const void *pc, void **address)
{
    struct held *held;
    bly_status status = need_held(graph, &held);
    if (status != BLY_OK)
        return status;
    if (reuse(held, pool, stream, size, address))
        return BLY_OK;
    struct block *block = blyi_host_calloc(1, sizeof(*block));
    if (block == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a block of a graph");
    status = blyi_acl_pool_alloc(pool, size, NULL, pc, &block->address);
    if (status != BLY_OK) {
        blyi_host_free(block);
        return status;
    }
    block->pool = blyi_acl_pool_get(pool->handle); /* cannot fail: the caller has a pin */
    block->size = blyi_align_up(size, BLYI_POOL_GRANULE);
    *address = block->address;
    blyi_lock_take(&lock);
    blyi_list_push_back(&held->blocks, &block->link);
    blyi_lock_drop(&lock);
    return BLY_OK;
}

static struct block *find_block_locked(const struct held *held, const void *address)
{
    BLYI_LIST_FOR(node, &held->blocks)
    {
        struct block *block = BLYI_CONTAINER(node, struct block, link);
        if (block->address == address)
            return block;
    }
    return NULL;
}

static bool is_freed(const struct block *block)
{
    return block->given || block->freed_on != NULL;
}

static bly_status freed_twice(const void *address)
{
    return blyi_fail(BLY_E_INVALID, "block %p of a graph was freed before", address);
}

bly_status blyi_pool_graph_free(void *graph, void *address, void *stream)
{
    bly_status status = BLY_OK;
    blyi_lock_take(&lock);
    const struct held *held = find_locked(graph);
    struct block *block = held != NULL ? find_block_locked(held, address) : NULL;
    if (block == NULL)
        status = blyi_fail(BLY_E_CAPTURING,
                           "the stream is captured: what it frees was allocated on a stream of the "
                           "same capture, and %p was not",
                           address);
    else if (is_freed(block))
        status = freed_twice(address);
    else
        block->freed_on = stream;
    blyi_lock_drop(&lock);
    return status;
}

bool blyi_pool_graph_give(void *address, bly_status *status)
{
    bool found = false;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &graphs)
    {
        struct block *block = find_block_locked(BLYI_CONTAINER(node, struct held, link), address);
        if (block == NULL)
            continue;
        found = true;
        *status = is_freed(block) ? freed_twice(address) : BLY_OK;
        block->given |= *status == BLY_OK;
        break;
    }
    blyi_lock_drop(&lock);
    return found;
}
