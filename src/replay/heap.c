/* SPDX-License-Identifier: Apache-2.0
 *
 * heap.c - see heap.h. Blocks are cut from slabs, so that dropping a heap needs no walk.
 */
#include "replay/heap.h"

#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"

#define SLAB_BLOCKS 510

struct slab {
    struct slab *next;
    struct blyi_heap_block blocks[SLAB_BLOCKS];
};

bool blyi_heap_init(struct blyi_heap *heap, struct blyi_placer_card *card, uint32_t n_blocks)
{
    *heap = (struct blyi_heap){.card = card};
    heap->end = &heap->pools;
    blyi_map_init(&heap->by_stream);
    heap->blocks = blyi_host_calloc((size_t)n_blocks + 1, sizeof(struct blyi_heap_block *));
    return heap->blocks != NULL;
}

void blyi_heap_fini(struct blyi_heap *heap)
{
    for (struct blyi_heap_pool *pool = heap->pools, *next; pool != NULL; pool = next) {
        next = pool->next;
        blyi_host_free(pool);
    }
    for (struct slab *slab = heap->slabs, *next; slab != NULL; slab = next) {
        next = slab->next;
        blyi_host_free(slab);
    }
    blyi_map_fini(&heap->by_stream);
    blyi_host_free(heap->blocks);
}

bly_status blyi_heap_no_memory(void)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the blocks of a replay");
}

struct blyi_heap_pool *blyi_heap_pool(struct blyi_heap *heap, int32_t stream, uint64_t size)
{
    bool small = size <= BLYI_HEAP_SMALL_MAX;
    uint64_t key = (uint64_t)(uint32_t)stream * 2 + small;
    struct blyi_heap_pool *pool = blyi_map_get(&heap->by_stream, key);
    if (pool != NULL)
        return pool;
    pool = blyi_host_calloc(1, sizeof(*pool));
    if (pool == NULL)
        return NULL;
    pool->small = small;
    if (blyi_map_put(&heap->by_stream, key, pool) != BLY_OK) {
        blyi_host_free(pool);
        return NULL;
    }
    *heap->end = pool;
    heap->end = &pool->next;
    return pool;
}

static bool add_slab(struct blyi_heap *heap)
{
    struct slab *slab = blyi_host_alloc(sizeof(*slab));
    if (slab == NULL)
        return false;
    slab->next = heap->slabs;
    heap->slabs = slab;
    for (size_t i = 0; i < SLAB_BLOCKS; i++)
        blyi_heap_forget(heap, &slab->blocks[i]);
    return true;
}

struct blyi_heap_block *blyi_heap_new(struct blyi_heap *heap, struct blyi_heap_pool *pool,
                                      uint64_t address, uint64_t size)
{
    if (heap->spare == NULL && !add_slab(heap))
        return NULL;
    struct blyi_heap_block *block = heap->spare;
    heap->spare = block->next;
    *block = (struct blyi_heap_block){
        .pool = pool, .address = address, .size = size, .state = BLYI_HEAP_BUSY};
    return block;
}

void blyi_heap_forget(struct blyi_heap *heap, struct blyi_heap_block *block)
{
    block->next = heap->spare;
    heap->spare = block;
}

/* ---- trees ------------------------------------------------------------------------------- */

struct blyi_heap_block *blyi_heap_best(const struct blyi_heap_pool *pool, uint64_t size)
{
    return BLYI_TREE_ENTRY(blyi_tree_ceil(&pool->idle, size), struct blyi_heap_block, node);
}

static void link_in(struct blyi_heap_block *block, enum blyi_heap_state state)
{
    bool idle = state == BLYI_HEAP_IDLE;
    bool is_new = blyi_tree_insert(idle ? &block->pool->idle : &block->pool->holes, &block->node,
                                   idle ? block->size : block->address, block->address);
    bly_assert(is_new);
    (void)is_new;
    block->state = state;
}

void blyi_heap_remove(struct blyi_heap_block *block)
{
    bly_assert(block->state != BLYI_HEAP_BUSY);
    blyi_tree_remove(block->state == BLYI_HEAP_IDLE ? &block->pool->idle : &block->pool->holes,
                     &block->node);
    block->state = BLYI_HEAP_BUSY;
}

/* `right` becomes part of `left`, its neighbour; both are in no tree. */
static void join(struct blyi_heap *heap, struct blyi_heap_block *left,
                 struct blyi_heap_block *right)
{
    bly_assert(left->address + left->size == right->address);
    left->size += right->size;
    left->next = right->next;
    if (right->next != NULL)
        right->next->previous = left;
    blyi_heap_forget(heap, right);
}

struct blyi_heap_block *blyi_heap_insert(struct blyi_heap *heap, struct blyi_heap_block *block,
                                         enum blyi_heap_state state)
{
    struct blyi_heap_block *left = block->previous, *right = block->next;
    if (right != NULL && right->state == state) {
        blyi_heap_remove(right);
        join(heap, block, right);
    }
    if (left != NULL && left->state == state) {
        blyi_heap_remove(left);
        join(heap, left, block);
        block = left;
    }
    link_in(block, state);
    return block;
}

bly_status blyi_heap_cut(struct blyi_heap *heap, struct blyi_heap_block *block, uint64_t size,
                         enum blyi_heap_state state)
{
    bly_assert(size > 0 && size < block->size);
    struct blyi_heap_block *rest =
        blyi_heap_new(heap, block->pool, block->address + size, block->size - size);
    if (rest == NULL)
        return blyi_heap_no_memory();
    rest->previous = block;
    rest->next = block->next;
    if (block->next != NULL)
        block->next->previous = rest;
    block->next = rest;
    block->size = size;
    blyi_heap_insert(heap, rest, state);
    return BLY_OK;
}

static bool audit_block(const struct blyi_heap_block *block, enum blyi_heap_state state)
{
    const struct blyi_heap_block *left = block->previous, *right = block->next;
    if (block->state != state || block->size == 0)
        return false;
    if (left != NULL && (left->next != block || left->address + left->size != block->address ||
                         left->state == state))
        return false;
    return right == NULL || (right->previous == block && right->state != state &&
                             block->address + block->size == right->address);
}

static bool audit_tree(const struct blyi_tree *tree, enum blyi_heap_state state)
{
    if (!blyi_tree_audit(tree))
        return false;
    for (struct blyi_tree_node *node = blyi_tree_first(tree); node != NULL;
         node = blyi_tree_next(node)) {
        struct blyi_heap_block *block = BLYI_TREE_ENTRY(node, struct blyi_heap_block, node);
        uint64_t key = state == BLYI_HEAP_IDLE ? block->size : block->address;
        if (!audit_block(block, state) || node->key != key || node->sub != block->address)
            return false;
    }
    return true;
}

bool blyi_heap_audit(const struct blyi_heap *heap)
{
    for (const struct blyi_heap_pool *pool = heap->pools; pool != NULL; pool = pool->next)
        if (!audit_tree(&pool->idle, BLYI_HEAP_IDLE) || !audit_tree(&pool->holes, BLYI_HEAP_HOLE))
            return false;
    return true;
}
