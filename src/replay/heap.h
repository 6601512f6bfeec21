/* SPDX-License-Identifier: Apache-2.0
 *
 * heap.h - blocks of the simulated caching allocators: each stream has a pool for small blocks and
 * one for others, idle blocks are found by best fit, neighbours that are idle join.
 */
#ifndef BLYI_REPLAY_HEAP_H
#define BLYI_REPLAY_HEAP_H

#include "base/map.h"
#include "base/tree.h"
#include "replay/placer.h"

#define BLYI_HEAP_SMALL_MAX     (1 * MiB) /* largest block of a small pool */
#define BLYI_HEAP_SMALL_SEGMENT (2 * MiB)
#define BLYI_HEAP_LARGE_SEGMENT (20 * MiB)

/* Idle blocks are found by size, holes by address; which of them have memory is the user's. */
enum blyi_heap_state { BLYI_HEAP_BUSY, BLYI_HEAP_IDLE, BLYI_HEAP_HOLE };

struct blyi_heap_block {
    struct blyi_tree_node node;              /* idle: by size, then address; hole: by address */
    struct blyi_heap_block *previous, *next; /* neighbours by address */
    struct blyi_heap_pool *pool;
    uint64_t address, size;
    enum blyi_heap_state state;
};

struct blyi_heap_pool {
    struct blyi_heap_pool *next;
    struct blyi_tree idle, holes;
    uint64_t next_address; /* each pool has addresses of its own */
    bool small;
};

struct blyi_heap {
    struct blyi_placer_card *card;
    struct blyi_map by_stream;    /* stream * 2 + small -> pool */
    struct blyi_heap_pool *pools; /* all, in the order of their making */
    struct blyi_heap_pool **end;
    struct blyi_heap_block **blocks; /* of the program, by number */
    struct blyi_heap_block *spare;   /* through next */
    void *slabs;                     /* what blocks were made from */
};

/* False: no host memory. */
bool blyi_heap_init(struct blyi_heap *heap, struct blyi_placer_card *card, uint32_t n_blocks);
void blyi_heap_fini(struct blyi_heap *heap);

/* The size that a request of `bytes` has. */
static inline uint64_t blyi_heap_round(uint64_t bytes)
{
    return blyi_align_up(bytes, BLYI_PLACER_QUANTUM);
}

/* The pool of rounded requests on a stream, made when new; NULL: no host memory. */
struct blyi_heap_pool *blyi_heap_pool(struct blyi_heap *heap, int32_t stream, uint64_t size);

/* A block of the state that has no neighbours yet and is in no tree; NULL: no host memory. */
struct blyi_heap_block *blyi_heap_new(struct blyi_heap *heap, struct blyi_heap_pool *pool,
                                      uint64_t address, uint64_t size);
/* A block that is in no tree and has been unlinked from its neighbours. */
void blyi_heap_forget(struct blyi_heap *heap, struct blyi_heap_block *block);

/* The smallest idle block of at least `size`, lowest address first. */
struct blyi_heap_block *blyi_heap_best(const struct blyi_heap_pool *pool, uint64_t size);
/* Into the tree of `state`, joined with neighbours of the same state; out of it, as busy. */
struct blyi_heap_block *blyi_heap_insert(struct blyi_heap *heap, struct blyi_heap_block *block,
                                         enum blyi_heap_state state);
void blyi_heap_remove(struct blyi_heap_block *block);
/* Cuts a block in no tree to `size`; the rest goes into the tree of `state`. E_HOST_MEMORY. */
bly_status blyi_heap_cut(struct blyi_heap *heap, struct blyi_heap_block *block, uint64_t size,
                         enum blyi_heap_state state);
bly_status blyi_heap_no_memory(void);
/* Trees and neighbours agree, and no two neighbours could be one. */
bool blyi_heap_audit(const struct blyi_heap *heap);

#endif
