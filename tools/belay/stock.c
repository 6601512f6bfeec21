/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.c - the caching allocator carried out on paper. Addresses are made up: segments lie one
 * behind the other with a hole between, so that blocks of different ones never touch.
 */
#include "stock.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/tree.h"

#define MIB ((uint64_t)1 << 20)

struct block {
    struct blyi_tree_node by_size; /* linked while free: size, then address */
    struct block *before, *after;  /* neighbours in the segment */
    uint64_t address, size;
    bool is_free;
};

struct pool {
    struct blyi_tree free;
    bool is_small;
};

struct allocator {
    struct blyi_map pools; /* stream * 2 + is_small -> struct pool */
    struct block **live;   /* by buffer */
    uint64_t reserved, next_address;
};

struct moment {
    int64_t time;
    size_t buffer;
    bool is_birth;
};

static int compare_moments(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_birth != y->is_birth)
        return x->is_birth ? 1 : -1;
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
    return (size + unit - 1) / unit * unit;
}

static uint64_t request_of(const bly_plan_buffer *b)
{
    return round_up(b->size + 32, 512);
}

static struct pool *pool_of(struct allocator *s, int32_t stream, uint64_t request)
{
    bool is_small = request <= MIB;
    uint64_t key = (uint64_t)stream * 2 + is_small;
    struct pool *pool = blyi_map_get(&s->pools, key);
    if (pool != NULL)
        return pool;
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL || blyi_map_put(&s->pools, key, pool) != BLY_OK) {
        free(pool);
        return NULL;
    }
    pool->is_small = is_small;
    return pool;
}

static void put_free(struct pool *pool, struct block *block)
{
    block->is_free = true;
    blyi_tree_insert(&pool->free, &block->by_size, block->size, block->address);
}

static void take_free(struct pool *pool, struct block *block)
{
    block->is_free = false;
    blyi_tree_remove(&pool->free, &block->by_size);
}

static struct block *new_segment(struct allocator *s, const struct pool *pool, uint64_t request)
{
    struct block *block = calloc(1, sizeof(*block));
    if (block == NULL)
        return NULL;
    block->size = pool->is_small       ? 2 * MIB
                  : request < 10 * MIB ? 20 * MIB
                                       : round_up(request, 2 * MIB);
    block->address = s->next_address;
    s->next_address += block->size + 1;
    s->reserved += block->size;
    return block;
}

/* Cuts what is not needed off the end and keeps it free. */
static bool split(struct pool *pool, struct block *block, uint64_t request)
{
    uint64_t left = block->size - request;
    if (pool->is_small ? left < 512 : left <= MIB)
        return true;
    struct block *rest = calloc(1, sizeof(*rest));
    if (rest == NULL)
        return false;
    *rest = (struct block){
        .before = block, .after = block->after, .address = block->address + request, .size = left};
    if (rest->after != NULL)
        rest->after->before = rest;
    block->after = rest;
    block->size = request;
    put_free(pool, rest);
    return true;
}

static bool take(struct allocator *s, const bly_plan_input *input, size_t i)
{
    uint64_t request = request_of(&input->buffers[i]);
    struct pool *pool = pool_of(s, input->streams[i], request);
    if (pool == NULL)
        return false;
    struct blyi_tree_node *node = blyi_tree_ceil(&pool->free, request);
    struct block *block = BLYI_TREE_ENTRY(node, struct block, by_size);
    if (block != NULL)
        take_free(pool, block);
    else
        block = new_segment(s, pool, request);
    if (block == NULL)
        return false;
    s->live[i] = block;
    return split(pool, block, request);
}

/* `block` is not free; its neighbour `next` is and lies behind it. */
static void join(struct block *block, struct block *next)
{
    block->size += next->size;
    block->after = next->after;
    if (block->after != NULL)
        block->after->before = block;
    free(next);
}

static void give(struct allocator *s, const bly_plan_input *input, size_t i)
{
    struct pool *pool = pool_of(s, input->streams[i], request_of(&input->buffers[i]));
    struct block *block = s->live[i];
    s->live[i] = NULL;
    if (block->after != NULL && block->after->is_free) {
        take_free(pool, block->after);
        join(block, block->after);
    }
    if (block->before != NULL && block->before->is_free) {
        struct block *before = block->before;
        take_free(pool, before);
        join(before, block);
        block = before;
    }
    put_free(pool, block);
}

static struct moment *sorted_moments(const bly_plan_input *input)
{
    struct moment *moments = malloc((2 * input->n + 1) * sizeof(*moments));
    if (moments == NULL)
        return NULL;
    for (size_t i = 0; i < input->n; i++) {
        moments[2 * i] = (struct moment){input->buffers[i].lower, i, true};
        moments[2 * i + 1] = (struct moment){input->buffers[i].upper, i, false};
    }
    qsort(moments, 2 * input->n, sizeof(*moments), compare_moments);
    return moments;
}

static void stock_fini(struct allocator *s, size_t n)
{
    uint64_t key;
    void *value;
    for (size_t cursor = 0; blyi_map_next(&s->pools, &cursor, &key, &value);) {
        struct pool *pool = value;
        struct blyi_tree_node *node;
        while ((node = blyi_tree_first(&pool->free)) != NULL) {
            blyi_tree_remove(&pool->free, node);
            free(BLYI_TREE_ENTRY(node, struct block, by_size));
        }
        free(pool);
    }
    blyi_map_fini(&s->pools);
    for (size_t i = 0; s->live != NULL && i < n; i++)
        free(s->live[i]);
    free(s->live);
}

bool stock_simulate(const bly_plan_input *input, int64_t until, struct stock *stock)
{
    struct allocator s = {.live = calloc(input->n + 1, sizeof(struct block *))};
    struct moment *moments = sorted_moments(input);
    uint64_t live = 0;
    blyi_map_init(&s.pools);
    *stock = (struct stock){0, 0};
    bool ok = s.live != NULL && moments != NULL;
    for (size_t m = 0; ok && m < 2 * input->n && moments[m].time < until; m++) {
        uint64_t size = input->buffers[moments[m].buffer].size;
        live += moments[m].is_birth ? size : 0 - size;
        stock->live = live > stock->live ? live : stock->live;
        if (moments[m].is_birth)
            ok = take(&s, input, moments[m].buffer);
        else
            give(&s, input, moments[m].buffer);
    }
    stock->reserved = s.reserved;
    free(moments);
    stock_fini(&s, input->n);
    return ok;
}
