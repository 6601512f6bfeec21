/* SPDX-License-Identifier: Apache-2.0
 *
 * caching.c - the caching allocator of PyTorch and torch_npu: blocks from segments that the driver
 * gave, which go back only when all of a segment is idle and the card is full.
 */
#include "base/host.h"
#include "replay/heap.h"

#define LARGE_OWN (10 * MiB) /* from here a segment is made for the one request */

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

static uint64_t segment_size(uint64_t size)
{
    if (size <= BLYI_HEAP_SMALL_MAX)
        return BLYI_HEAP_SMALL_SEGMENT;
    return size < LARGE_OWN ? BLYI_HEAP_LARGE_SEGMENT : blyi_align_up(size, BLYI_REPLAY_PAGE);
}

/* A block from the driver, in no tree. */
static bly_status new_segment(struct blyi_heap *heap, struct blyi_heap_pool *pool, uint64_t size,
                              struct blyi_heap_block **block)
{
    uint64_t bytes = segment_size(size);
    if (!blyi_placer_map(heap->card, bytes, 1))
        return BLY_E_NO_MEMORY;
    *block = blyi_heap_new(heap, pool, pool->next_address, bytes);
    pool->next_address += bytes;
    return *block != NULL ? BLY_OK : blyi_heap_no_memory();
}

static bly_status place(void *state, uint32_t number, uint64_t bytes, int32_t stream)
{
    struct blyi_heap *heap = state;
    uint64_t size = blyi_heap_round(bytes);
    struct blyi_heap_pool *pool = blyi_heap_pool(heap, stream, size);
    if (pool == NULL)
        return blyi_heap_no_memory();
    struct blyi_heap_block *block = blyi_heap_best(pool, size);
    if (block != NULL) {
        blyi_heap_remove(block);
    } else {
        bly_status status = new_segment(heap, pool, size, &block);
        if (status != BLY_OK)
            return status;
    }
    heap->blocks[number] = block;
    uint64_t rest = block->size - size;
    if (pool->small ? rest < BLYI_PLACER_QUANTUM : rest <= BLYI_HEAP_SMALL_MAX)
        return BLY_OK;
    return blyi_heap_cut(heap, block, size, BLYI_HEAP_IDLE);
}

static bly_status give(void *state, uint32_t number)
{
    struct blyi_heap *heap = state;
    blyi_heap_insert(heap, heap->blocks[number], BLYI_HEAP_IDLE);
    heap->blocks[number] = NULL;
    return BLY_OK;
}

static bly_status flush(void *state)
{
    struct blyi_heap *heap = state;
    for (struct blyi_heap_pool *pool = heap->pools; pool != NULL; pool = pool->next) {
        for (struct blyi_tree_node *node = blyi_tree_first(&pool->idle), *next; node != NULL;
             node = next) {
            struct blyi_heap_block *block = BLYI_TREE_ENTRY(node, struct blyi_heap_block, node);
            next = blyi_tree_next(node);
            if (block->previous != NULL || block->next != NULL)
                continue;
            blyi_heap_remove(block);
            blyi_placer_unmap(heap->card, block->size, 1);
            blyi_heap_forget(heap, block);
        }
    }
    return BLY_OK;
}

static const struct blyi_placement placement = {"caching", make, place, give, flush, drop};

static bly_status make_policy(const struct blyi_replay_setup *setup, void **state)
{
    return blyi_placer_make(&placement, setup, state);
}

const struct blyi_replay_policy blyi_replay_caching = {
    .name = "caching",
    .about = "PyTorch's caching allocator: segments of 2 MiB, 20 MiB and more, best fit",
    .make = make_policy,
    .step = blyi_placer_step,
    .figures = blyi_placer_figures,
    .drop = blyi_placer_drop,
};
