/* SPDX-License-Identifier: Apache-2.0
 *
 * caching.c - what training frameworks put on top of aclrtMalloc: segments of 2 MiB for requests up
 * to 1 MiB, of 20 MiB up to 10 MiB, else of whole 2 MiB; best fit among the free blocks of the same
 * stream, split and joined again; segments go back to the card when it is full.
 */
#include "../acl_check.h"
#include "allocator.h"

#include <pthread.h>
#include <stdint.h>

#define MiB ((size_t)1 << 20)

enum { LISTS = 2048, BUCKETS = 1 << 14 };

struct block {
    char *address;
    size_t bytes;
    aclrtStream stream;
    bool small, used;
    struct block *before, *after;  /* neighbours in the segment */
    struct block *previous, *next; /* in the free list of its stream */
    struct block *in_bucket;       /* while used */
};

static struct {
    pthread_mutex_t lock;
    struct list {
        aclrtStream stream;
        struct block *head;
    } lists[LISTS]; /* two for each stream: small, large */
    int n_lists;
    struct block *buckets[BUCKETS];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t bucket_of(const void *address)
{
    return ((uintptr_t)address >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 50;
}

static struct list *list_of(aclrtStream stream, bool small)
{
    for (int i = 0; i < cache.n_lists; i += 2)
        if (cache.lists[i].stream == stream)
            return &cache.lists[i + small];
    if (cache.n_lists == LISTS) {
        fprintf(stderr, "more than %d streams\n", LISTS / 2);
        exit(1);
    }
    cache.lists[cache.n_lists].stream = cache.lists[cache.n_lists + 1].stream = stream;
    cache.n_lists += 2;
    return &cache.lists[cache.n_lists - 2 + small];
}

static void list_add(struct block *block)
{
    struct list *list = list_of(block->stream, block->small);
    block->previous = NULL;
    block->next = list->head;
    if (list->head)
        list->head->previous = block;
    list->head = block;
    block->used = false;
}

static void list_remove(struct block *block)
{
    if (block->previous)
        block->previous->next = block->next;
    else
        list_of(block->stream, block->small)->head = block->next;
    if (block->next)
        block->next->previous = block->previous;
}

static struct block *block_make(struct block model)
{
    struct block *block = malloc(sizeof(*block));
    if (block == NULL)
        exit(1);
    *block = model;
    return block;
}

/* Whole segments that nobody uses. */
static void release_idle(void)
{
    for (int i = 0; i < cache.n_lists; i++) {
        struct block *next;
        for (struct block *block = cache.lists[i].head; block; block = next) {
            next = block->next;
            if (block->before || block->after)
                continue;
            CHECK_ACL(aclrtFree(block->address));
            list_remove(block);
            free(block);
        }
    }
}

static struct block *segment_make(size_t bytes, aclrtStream stream, bool small)
{
    size_t size = small              ? 2 * MiB
                  : bytes < 10 * MiB ? 20 * MiB
                                     : (bytes + 2 * MiB - 1) / (2 * MiB) * (2 * MiB);
    void *address;
    if (aclrtMallocAlign32(&address, size, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
        CHECK_ACL(aclrtSynchronizeDevice());
        release_idle();
        CHECK_ACL(aclrtMallocAlign32(&address, size, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    return block_make(
        (struct block){.address = address, .bytes = size, .stream = stream, .small = small});
}

static struct block *best_fit(size_t bytes, aclrtStream stream, bool small)
{
    struct block *best = NULL;
    for (struct block *block = list_of(stream, small)->head; block; block = block->next)
        if (block->bytes >= bytes && (best == NULL || block->bytes < best->bytes))
            best = block;
    if (best != NULL)
        list_remove(best);
    return best;
}

static void split(struct block *block, size_t bytes)
{
    size_t rest = block->bytes - bytes;
    if (rest < (block->small ? (size_t)512 : MiB + 1))
        return;
    struct block *tail = block_make((struct block){.address = block->address + bytes,
                                                   .bytes = rest,
                                                   .stream = block->stream,
                                                   .small = block->small,
                                                   .before = block,
                                                   .after = block->after});
    if (tail->after)
        tail->after->before = tail;
    block->after = tail;
    block->bytes = bytes;
    list_add(tail);
}

static void *take(size_t bytes, aclrtStream stream)
{
    size_t rounded = (bytes + 511) / 512 * 512;
    bool small = rounded <= MiB;
    pthread_mutex_lock(&cache.lock);
    struct block *block = best_fit(rounded, stream, small);
    if (block == NULL)
        block = segment_make(rounded, stream, small);
    split(block, rounded);
    block->used = true;
    size_t bucket = bucket_of(block->address);
    block->in_bucket = cache.buckets[bucket];
    cache.buckets[bucket] = block;
    pthread_mutex_unlock(&cache.lock);
    return block->address;
}

/* `left` takes over its free neighbour. */
static void join(struct block *left, struct block *right)
{
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after)
        left->after->before = left;
    free(right);
}

static void give(void *memory, aclrtStream stream)
{
    (void)stream; /* the one it was taken for */
    pthread_mutex_lock(&cache.lock);
    struct block **link = &cache.buckets[bucket_of(memory)];
    while (*link && (*link)->address != memory)
        link = &(*link)->in_bucket;
    struct block *block = *link;
    if (block == NULL) {
        fprintf(stderr, "%p was not taken here\n", memory);
        exit(1);
    }
    *link = block->in_bucket;
    if (block->after && !block->after->used) {
        list_remove(block->after);
        join(block, block->after);
    }
    if (block->before && !block->before->used) {
        list_remove(block->before);
        block = block->before;
        join(block, block->after);
    }
    list_add(block);
    pthread_mutex_unlock(&cache.lock);
}

static void start(void)
{
}

static void stop(void)
{
    pthread_mutex_lock(&cache.lock);
    release_idle();
    pthread_mutex_unlock(&cache.lock);
}

const struct allocator allocator_caching = {"caching", true, start, take, give, stop};
