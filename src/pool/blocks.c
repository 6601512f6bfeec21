/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks.c - blocks of one size from one allocation.
 *
 * A block is taken, free for everybody, or behind a moment of a stream: then it is in that stream's
 * row, oldest first. A stream takes the newest of its own row, whose memory is warm; others look at
 * the oldest of each row alone, as marks grow along it.
 */
#include <belay/pool_parts.h>

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "pool/arena.h"
#include "pool/class.h"
#include "pool/pool.h"

#define SIZE_MOST (UINT64_C(1) << 48)
#define SLICE_NS  UINT64_C(1000000) /* of waiting for a stream, then gifts are looked at */

/* In exactly one list, or taken. */
struct node {
    struct blyi_list link;
    blyi_mark mark;
    bool taken;
};

struct row {
    struct blyi_list link;
    struct blyi_arena *arena;
    struct blyi_list nodes; /* oldest first */
};

struct bly_blocks {
    struct blyi_lock lock; /* rank PARTS */
    pthread_cond_t given;
    bly_pool *pool;
    uintptr_t base;
    bly_blocks_info is;
    struct blyi_list free;
    struct blyi_list rows;
    struct node nodes[];
};

static void *address_of(const bly_blocks *blocks, const struct node *node)
{
    return (void *)(blocks->base + (uint64_t)(node - blocks->nodes) * blocks->is.size);
}

static bly_status init_wait(bly_blocks *blocks)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int error = pthread_cond_init(&blocks->given, &attr);
    pthread_condattr_destroy(&attr);
    return error == 0 ? BLY_OK : blyi_fail(BLY_E_SYSTEM, "blocks: no condition variable");
}

static struct row *row_of(bly_blocks *blocks, const struct blyi_arena *arena)
{
    BLYI_LIST_FOR(node, &blocks->rows)
    {
        struct row *row = BLYI_CONTAINER(node, struct row, link);
        if (row->arena == arena)
            return row;
    }
    return NULL;
}

/* The row of an arena, made at the first gift; NULL: no host memory. */
static struct row *need_row(bly_blocks *blocks, struct blyi_arena *arena)
{
    struct row *row = row_of(blocks, arena);
    if (row == NULL && (row = blyi_host_calloc(1, sizeof(*row))) != NULL) {
        row->arena = arena;
        blyi_list_init(&row->nodes);
        blyi_list_push_back(&blocks->rows, &row->link);
    }
    return row;
}

/* All blocks lie where work of the stream that was queued before may still run. */
static bly_status begin_nodes(bly_blocks *blocks, bly_stream stream)
{
    struct blyi_arena *arena;
    struct row *row = NULL;
    bly_status status = blyi_arena_of(blocks->pool, stream, &arena);
    if (status != BLY_OK)
        return status;
    blyi_mark mark = blyi_arena_mark(arena);
    bool passed = blyi_arena_passed(arena, mark);
    if (!passed && (row = need_row(blocks, arena)) == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe blocks");
    *(passed ? &blocks->is.free : &blocks->is.behind) = blocks->is.n;
    for (uint32_t i = 0; i < blocks->is.n; i++) {
        blocks->nodes[i].mark = mark;
        blyi_list_push_back(row == NULL ? &blocks->free : &row->nodes, &blocks->nodes[i].link);
    }
    return BLY_OK;
}

static bly_status begin(bly_blocks *blocks, bly_stream stream)
{
    void *base;
    bly_status status = bly_pool_alloc(blocks->pool, blocks->is.n * blocks->is.size, stream, &base);
    if (status != BLY_OK)
        return status;
    blocks->base = (uintptr_t)base;
    status = begin_nodes(blocks, stream);
    if (status == BLY_OK)
        status = init_wait(blocks);
    if (status != BLY_OK)
        (void)bly_pool_free(base); /* the sentence stays */
    return status;
}

static void drop(bly_blocks *blocks)
{
    BLYI_LIST_FOR_SAFE(node, &blocks->rows)
    blyi_host_free(BLYI_CONTAINER(node, struct row, link));
    blyi_lock_fini(&blocks->lock);
    blyi_host_free(blocks);
}

bly_status bly_blocks_create(bly_pool *pool, uint64_t size, uint32_t n, bly_stream stream,
                             bly_blocks **out)
{
    if (out == NULL)
        return blyi_fail(BLY_E_INVALID, "blocks is NULL");
    if (size == 0 || n == 0 || size > SIZE_MOST / n - BLYI_SLOT_MIN)
        return blyi_fail(BLY_E_INVALID,
                         "%" PRIu32 " blocks of %" PRIu64 " bytes: at least one of one byte, all "
                         "together at most 2^48 bytes",
                         n, size);
    bly_blocks *blocks = blyi_host_calloc(1, sizeof(*blocks) + n * sizeof(struct node));
    if (blocks == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe %" PRIu32 " blocks", n);
    blyi_lock_init(&blocks->lock, BLYI_RANK_PARTS);
    blocks->pool = pool;
    blocks->is = (bly_blocks_info){.n = n, .size = blyi_align_up(size, BLYI_SLOT_MIN)};
    blyi_list_init(&blocks->free);
    blyi_list_init(&blocks->rows);
    bly_status status = begin(blocks, stream);
    if (status == BLY_OK)
        *out = blocks;
    else
        drop(blocks);
    return status;
}

bly_status bly_blocks_destroy(bly_blocks *blocks)
{
    if (blocks == NULL)
        return BLY_OK;
    if (blocks->is.taken > 0)
        return blyi_fail(BLY_E_STATE,
                         "%" PRIu32 " of %" PRIu32 " blocks of %" PRIu64 " bytes are taken",
                         blocks->is.taken, blocks->is.n, blocks->is.size);
    bly_status status = BLY_OK;
    BLYI_LIST_FOR(node, &blocks->rows)
    {
        const struct row *row = BLYI_CONTAINER(node, struct row, link);
        bly_status used = blyi_list_empty(&row->nodes)
                              ? BLY_OK
                              : bly_pool_use((void *)blocks->base, blyi_arena_stream(row->arena));
        /* A stream that has ended has passed all its work. */
        if (used != BLY_OK && used != BLY_E_HANDLE)
            status = used;
    }
    if (status == BLY_OK)
        status = bly_pool_free((void *)blocks->base);
    if (status != BLY_OK)
        return status;
    pthread_cond_destroy(&blocks->given);
    drop(blocks);
    return BLY_OK;
}

/* Blocks whose moment has passed are everybody's. The oldest that waits, or NULL. */
static struct row *settle(bly_blocks *blocks)
{
    struct row *waits = NULL;
    BLYI_LIST_FOR(link, &blocks->rows)
    {
        struct row *row = BLYI_CONTAINER(link, struct row, link);
        while (!blyi_list_empty(&row->nodes)) {
            struct node *node = BLYI_CONTAINER(row->nodes.next, struct node, link);
            if (!blyi_arena_passed(row->arena, node->mark)) {
                waits = waits != NULL ? waits : row;
                break;
            }
            blyi_list_remove(&node->link);
            blyi_list_push_front(&blocks->free, &node->link);
            blocks->is.behind--;
            blocks->is.free++;
        }
    }
    return waits;
}

static struct node *try_take(bly_blocks *blocks, const struct blyi_arena *arena, struct row **waits)
{
    struct row *own = row_of(blocks, arena);
    struct node *node = NULL;
    *waits = NULL;
    if (own != NULL && !blyi_list_empty(&own->nodes)) {
        node = BLYI_CONTAINER(own->nodes.prev, struct node, link);
        blocks->is.behind--;
    } else {
        if (blyi_list_empty(&blocks->free))
            *waits = settle(blocks);
        if (!blyi_list_empty(&blocks->free)) {
            node = BLYI_CONTAINER(blocks->free.next, struct node, link);
            blocks->is.free--;
        }
    }
    if (node != NULL) {
        blyi_list_remove(&node->link);
        node->taken = true;
        blocks->is.takes++;
        if (++blocks->is.taken > blocks->is.taken_peak)
            blocks->is.taken_peak = blocks->is.taken;
    }
    return node;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* For a gift, or for the oldest work of a row; at most until `deadline`. */
static bly_status wait_once(bly_blocks *blocks, const struct row *row, uint64_t deadline)
{
    uint64_t now = now_ns(), left = deadline > now ? deadline - now : 0;
    if (row != NULL) {
        struct blyi_arena *arena = row->arena;
        blyi_mark mark = BLYI_CONTAINER(row->nodes.next, struct node, link)->mark;
        blyi_lock_drop(&blocks->lock);
        bly_status status = blyi_arena_wait(arena, mark, left < SLICE_NS ? left + 1 : SLICE_NS);
        blyi_lock_take(&blocks->lock);
        return status == BLY_E_TIMEOUT ? BLY_OK : status;
    }
    if (deadline == UINT64_MAX) {
        pthread_cond_wait(&blocks->given, &blocks->lock.mutex);
        return BLY_OK;
    }
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};
    pthread_cond_timedwait(&blocks->given, &blocks->lock.mutex, &until);
    return BLY_OK;
}

static bly_status nothing_came(const bly_blocks *blocks, uint64_t timeout_ns)
{
    const bly_blocks_info *is = &blocks->is;
    return blyi_fail(BLY_E_TIMEOUT,
                     "no block of %" PRIu64 " bytes came free within %" PRIu64 " ns: %" PRIu32
                     " of %" PRIu32 " are taken, %" PRIu32 " wait for work of streams",
                     is->size, timeout_ns, is->taken, is->n, is->behind);
}

bly_status bly_blocks_take(bly_blocks *blocks, bly_stream stream, uint64_t timeout_ns, void **block)
{
    struct blyi_arena *arena;
    struct row *waits;
    if (blocks == NULL || block == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", blocks == NULL ? "blocks" : "block");
    bly_status status = blyi_arena_of(blocks->pool, stream, &arena);
    if (status != BLY_OK)
        return status;
    uint64_t start = timeout_ns > 0 ? now_ns() : 0;
    uint64_t deadline = timeout_ns < UINT64_MAX - start ? start + timeout_ns : UINT64_MAX;
    blyi_lock_take(&blocks->lock);
    struct node *node = try_take(blocks, arena, &waits);
    blocks->is.waits += node == NULL && timeout_ns > 0;
    while (node == NULL && status == BLY_OK) {
        if (timeout_ns == 0 || (deadline != UINT64_MAX && now_ns() >= deadline))
            status = nothing_came(blocks, timeout_ns);
        else if ((status = wait_once(blocks, waits, deadline)) == BLY_OK)
            node = try_take(blocks, arena, &waits);
    }
    blyi_lock_drop(&blocks->lock);
    if (node != NULL)
        *block = address_of(blocks, node);
    return status;
}

/* The node of a block that is taken. */
static bly_status find(bly_blocks *blocks, const void *block, struct node **node)
{
    uint64_t offset = (uintptr_t)block - blocks->base, size = blocks->is.size;
    if (offset >= size * blocks->is.n)
        return blyi_fail(BLY_E_INVALID,
                         "cannot give %p back: not one of %" PRIu32 " blocks from %p on", block,
                         blocks->is.n, (void *)blocks->base);
    *node = &blocks->nodes[offset / size];
    if (offset % size != 0)
        return blyi_fail(BLY_E_INVALID, "cannot give %p back: %" PRIu64 " bytes into block %p",
                         block, offset % size, address_of(blocks, *node));
    return (*node)->taken ? BLY_OK
                          : blyi_fail(BLY_E_INVALID, "cannot give %p back: it is not taken", block);
}

static bly_status give(bly_blocks *blocks, void *block, struct blyi_arena *arena)
{
    struct row *row = NULL;
    struct node *node;
    blyi_lock_take(&blocks->lock);
    bly_status status = find(blocks, block, &node);
    if (status == BLY_OK && arena != NULL && (row = need_row(blocks, arena)) == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to note where %p was given", block);
    if (status == BLY_OK) {
        node->taken = false;
        node->mark = arena != NULL ? blyi_arena_mark(arena) : 0;
        if (row != NULL)
            blyi_list_push_back(&row->nodes, &node->link);
        else
            blyi_list_push_front(&blocks->free, &node->link);
        *(row != NULL ? &blocks->is.behind : &blocks->is.free) += 1;
        blocks->is.taken--;
        /* All: who waits for a stream's work looks by itself. */
        pthread_cond_broadcast(&blocks->given);
    }
    blyi_lock_drop(&blocks->lock);
    return status;
}

bly_status bly_blocks_give(bly_blocks *blocks, void *block)
{
    if (blocks == NULL)
        return blyi_fail(BLY_E_INVALID, "blocks is NULL");
    return block == NULL ? BLY_OK : give(blocks, block, NULL);
}

bly_status bly_blocks_give_on(bly_blocks *blocks, void *block, bly_stream stream)
{
    struct blyi_arena *arena = NULL;
    if (blocks == NULL)
        return blyi_fail(BLY_E_INVALID, "blocks is NULL");
    if (block == NULL)
        return BLY_OK;
    bly_status status = stream == NULL ? BLY_OK : blyi_arena_of(blocks->pool, stream, &arena);
    return status == BLY_OK ? give(blocks, block, arena) : status;
}

bly_status bly_blocks_get_info(bly_blocks *blocks, bly_blocks_info *info)
{
    if (blocks == NULL || info == NULL)
        return blyi_fail(BLY_E_INVALID, "%s is NULL", blocks == NULL ? "blocks" : "info");
    uint32_t size = info->struct_size;
    blyi_lock_take(&blocks->lock);
    (void)settle(blocks);
    bly_blocks_info is = blocks->is;
    blyi_lock_drop(&blocks->lock);
    is.struct_size = size;
    memcpy(info, &is, size < sizeof(is) ? size : sizeof(is));
    return BLY_OK;
}
