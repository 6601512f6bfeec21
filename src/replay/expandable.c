/* SPDX-License-Identifier: Apache-2.0
 *
 * expandable.c - the caching allocator with expandable segments: each stream and pool has one range
 * of addresses, in which chunks are mapped as it grows and unmapped when the card is full.
 */
#include "base/assert.h"
#include "base/host.h"
#include "replay/heap.h"

#define RANGE (BLYI_HEAP_LARGE_SEGMENT << 25) /* addresses of a range: more than any card has */

static void drop(void *state)
{
    blyi_heap_fini(state);
    blyi_host_free(state);
}

static void *make(struct blyi_placer_card *card, uint32_t n_blocks)
{
    struct blyi_heap *heap = blyi_host_calloc(1, sizeof(*heap));
    if (heap == NULL)
        return NULL;
    if (blyi_heap_init(heap, card, n_blocks))
        return heap;
    drop(heap);
    return NULL;
}

static uint64_t chunk_of(const struct blyi_heap_pool *pool)
{
    return pool->small ? BLYI_HEAP_SMALL_SEGMENT : BLYI_HEAP_LARGE_SEGMENT;
}

/* Maps `size` bytes at the front of an unmapped block, in whole chunks, and joins what is idle
 * beside it. */
static bly_status map_front(struct blyi_heap *heap, struct blyi_heap_block **at, uint64_t size)
{
    struct blyi_heap_block *block = *at;
    uint64_t chunk = chunk_of(block->pool), n = (size + chunk - 1) / chunk;
    if (n > block->size / chunk || !blyi_placer_map(heap->card, n * chunk, n))
        return BLY_E_NO_MEMORY;
    blyi_heap_remove(block);
    if (n * chunk < block->size) {
        bly_status status = blyi_heap_cut(heap, block, n * chunk, BLYI_HEAP_HOLE);
        if (status != BLY_OK)
            return status;
    }
    *at = blyi_heap_insert(heap, block, BLYI_HEAP_IDLE);
    return BLY_OK;
}

/* The lowest run of idle and unmapped blocks of at least `size`, some of it unmapped. */
static struct blyi_heap_block *find_run(const struct blyi_heap_pool *pool, uint64_t size)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&pool->holes); node != NULL;
         node = blyi_tree_next(node)) {
        struct blyi_heap_block *first = BLYI_TREE_ENTRY(node, struct blyi_heap_block, node);
        if (first->previous != NULL && first->previous->state == BLYI_HEAP_IDLE)
            first = first->previous;
        uint64_t bytes = 0;
        for (struct blyi_heap_block *b = first;
             b != NULL && b->state != BLYI_HEAP_BUSY && bytes < size; b = b->next)
            bytes += b->size;
        if (bytes >= size)
            return first;
    }
    return NULL;
}

/* An idle block of at least `size`. */
static bly_status grow(struct blyi_heap *heap, struct blyi_heap_pool *pool, uint64_t size,
                       struct blyi_heap_block **out)
{
    struct blyi_heap_block *block = find_run(pool, size);
    bly_status status = BLY_OK;
    if (block == NULL) {
        block = blyi_heap_new(heap, pool, pool->next_address, RANGE);
        if (block == NULL)
            return blyi_heap_no_memory();
        pool->next_address += RANGE;
        blyi_heap_insert(heap, block, BLYI_HEAP_HOLE);
    }
    if (block->state == BLYI_HEAP_HOLE)
        status = map_front(heap, &block, size < block->size ? size : block->size);
    while (status == BLY_OK && block->size < size) {
        uint64_t more = size - block->size;
        block = block->next;
        bly_assert(block != NULL); /* the run is long enough */
        status = map_front(heap, &block, more < block->size ? more : block->size);
    }
    *out = block;
    return status;
}

/* What an idle block can grow to. */
static uint64_t could_be(const struct blyi_heap_block *block)
{
    const struct blyi_heap_block *next = block->next;
    return block->size + (next != NULL && next->state == BLYI_HEAP_HOLE ? next->size : 0);
}

/* The best fit, except that a block at the edge of what is mapped counts as large as it can grow.
 */
static struct blyi_heap_block *best_fit(const struct blyi_heap_pool *pool, uint64_t size)
{
    struct blyi_heap_block *block = blyi_heap_best(pool, size);
    while (block != NULL) {
        struct blyi_heap_block *next =
            BLYI_TREE_ENTRY(blyi_tree_next(&block->node), struct blyi_heap_block, node);
        if (next == NULL || could_be(next) >= could_be(block))
            break;
        block = next;
    }
    return block;
}

static bly_status place(void *state, uint32_t number, uint64_t bytes, int32_t stream)
{
    struct blyi_heap *heap = state;
    uint64_t size = blyi_heap_round(bytes);
    if (size > RANGE)
        return BLY_E_NO_MEMORY;
    struct blyi_heap_pool *pool = blyi_heap_pool(heap, stream, size);
    if (pool == NULL)
        return blyi_heap_no_memory();
    struct blyi_heap_block *block = best_fit(pool, size);
    if (block == NULL) {
        bly_status status = grow(heap, pool, size, &block);
        if (status != BLY_OK)
            return status;
    }
    bly_assert(block != NULL);
    blyi_heap_remove(block);
    heap->blocks[number] = block;
    return block->size > size ? blyi_heap_cut(heap, block, size, BLYI_HEAP_IDLE) : BLY_OK;
}

static bly_status give(void *state, uint32_t number)
{
    struct blyi_heap *heap = state;
    blyi_heap_insert(heap, heap->blocks[number], BLYI_HEAP_IDLE);
    heap->blocks[number] = NULL;
    return BLY_OK;
}

/* Unmaps the whole chunks of an idle block. */
static bly_status unmap_inside(struct blyi_heap *heap, struct blyi_heap_block *block)
{
    uint64_t chunk = chunk_of(block->pool), end = block->address + block->size;
    uint64_t from = (block->address + chunk - 1) / chunk * chunk, to = end / chunk * chunk;
    bly_status status = BLY_OK;
    if (from >= to)
        return BLY_OK;
    blyi_heap_remove(block);
    blyi_placer_unmap(heap->card, to - from, (to - from) / chunk);
    if (to < end)
        status = blyi_heap_cut(heap, block, to - block->address, BLYI_HEAP_IDLE);
    if (status == BLY_OK && block->address < from) {
        struct blyi_heap_block *front = block;
        status = blyi_heap_cut(heap, front, from - block->address, BLYI_HEAP_HOLE);
        if (status == BLY_OK)
            blyi_heap_insert(heap, front, BLYI_HEAP_IDLE);
        return status;
    }
    if (status == BLY_OK)
        blyi_heap_insert(heap, block, BLYI_HEAP_HOLE);
    return status;
}

static bly_status flush(void *state)
{
    struct blyi_heap *heap = state;
    bly_status status = BLY_OK;
    for (struct blyi_heap_pool *pool = heap->pools; pool != NULL; pool = pool->next) {
        /* From the largest: what is left of a block is smaller than a chunk. */
        struct blyi_tree_node *node = blyi_tree_last(&pool->idle);
        while (status == BLY_OK && node != NULL && node->key >= chunk_of(pool)) {
            struct blyi_heap_block *block = BLYI_TREE_ENTRY(node, struct blyi_heap_block, node);
            node = blyi_tree_prev(node);
            status = unmap_inside(heap, block);
        }
    }
    return status;
}

static const struct blyi_placement placement = {"expandable", make, place, give, flush, drop};

static bly_status make_policy(const struct blyi_replay_setup *setup, void **state)
{
    return blyi_placer_make(&placement, setup, state);
}

const struct blyi_replay_policy blyi_replay_expandable = {
    .name = "expandable",
    .about = "the same with expandable segments: a range a stream, mapped in chunks of 20 MiB",
    .make = make_policy,
    .step = blyi_placer_step,
    .figures = blyi_placer_figures,
    .drop = blyi_placer_drop,
};
