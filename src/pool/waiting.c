/* SPDX-License-Identifier: Apache-2.0
 *
 * waiting.c - the list of blocks that wait for marks, under the pool's lock.
 */
#include "pool/waiting.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "pool/front.h"
#include "pool/pool.h"

struct waiter {
    struct blyi_list link;
    void *block;
    uint64_t size;
    uint64_t since_ns; /* of the free */
    size_t n_uses;     /* that have not been seen to pass */
    struct blyi_use uses[];
};

bly_status blyi_waiting_add(bly_pool *pool, void *block, uint64_t size, const struct blyi_use *uses,
                            size_t n_uses)
{
    struct waiter *w = blyi_host_alloc(sizeof *w + n_uses * sizeof *uses);
    if (w == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to let a block wait",
                         pool->name);
    w->block = block;
    w->size = size;
    w->since_ns = blyi_clock_ns();
    w->n_uses = n_uses;
    if (n_uses > 0)
        memcpy(w->uses, uses, n_uses * sizeof *uses);
    blyi_lock_take(&pool->lock);
    blyi_list_push_back(&pool->waiting, &w->link);
    blyi_lock_drop(&pool->lock);
    return BLY_OK;
}

static bool has_passed_locked(struct waiter *w)
{
    while (w->n_uses > 0) {
        const struct blyi_use *use = &w->uses[w->n_uses - 1];
        if (!blyi_arena_passed_locked(use->arena, use->mark))
            return false;
        w->n_uses--;
    }
    return true;
}

static void add_to(struct blyi_awaited *row, const struct waiter *w)
{
    const struct blyi_use *use = &w->uses[w->n_uses - 1];
    if (use->mark > row->mark)
        row->mark = use->mark;
    if (row->blocks == 0 || w->since_ns < row->since_ns)
        row->since_ns = w->since_ns;
    row->arena = use->arena;
    row->bytes += w->size;
    row->blocks++;
}

size_t blyi_waiting_by_stream(bly_pool *pool, struct blyi_awaited *rows, size_t max)
{
    size_t n = 0;
    blyi_lock_take(&pool->lock);
    BLYI_LIST_FOR(node, &pool->waiting)
    {
        struct waiter *w = BLYI_CONTAINER(node, struct waiter, link);
        size_t i = 0;
        if (has_passed_locked(w))
            continue;
        while (i < n && rows[i].arena != w->uses[w->n_uses - 1].arena)
            i++;
        if (i == max)
            continue;
        if (i == n)
            rows[n++] = (struct blyi_awaited){.arena = NULL};
        add_to(&rows[i], w);
    }
    blyi_lock_drop(&pool->lock);
    return n;
}

/* Blocks that a thread has taken off the list and not given back yet. */
struct returning {
    struct blyi_list link; /* in pool->returning, in the order of `serial` */
    struct blyi_list blocks;
    uint64_t serial;
    pthread_t thread;
};

/* With no lock held. */
static uint64_t give_back(bly_pool *pool, struct returning *mine)
{
    uint64_t bytes = 0;
    if (blyi_list_empty(&mine->blocks))
        return 0;
    BLYI_LIST_FOR_SAFE(node, &mine->blocks)
    {
        struct waiter *w = BLYI_CONTAINER(node, struct waiter, link);
        bytes += w->size;
        blyi_front_back(w->block);
        blyi_host_free(w);
    }
    blyi_lock_take(&pool->lock);
    blyi_list_remove(&mine->link);
    blyi_lock_drop(&pool->lock);
    return bytes;
}

uint64_t blyi_waiting_poll(bly_pool *pool, size_t max)
{
    struct returning mine = {.blocks = BLYI_LIST_INIT(mine.blocks)};
    blyi_lock_take(&pool->lock);
    BLYI_LIST_FOR_SAFE(node, &pool->waiting)
    {
        struct waiter *w = BLYI_CONTAINER(node, struct waiter, link);
        if (has_passed_locked(w)) {
            blyi_list_remove(&w->link);
            blyi_list_push_back(&mine.blocks, &w->link);
        } else if (max-- <= 1) {
            break;
        }
    }
    if (!blyi_list_empty(&mine.blocks)) {
        mine.serial = ++pool->returns;
        mine.thread = pthread_self();
        blyi_list_push_back(&pool->returning, &mine.link);
    }
    blyi_lock_drop(&pool->lock);
    return give_back(pool, &mine);
}

/* Whether another thread is still at one of the first `serial` returns. One of this thread's own is
 * not waited for: a sink of probes may ask in the middle of it. */
static bool is_returning(bly_pool *pool, uint64_t serial)
{
    bool is = false;
    blyi_lock_take(&pool->lock);
    BLYI_LIST_FOR(node, &pool->returning)
    {
        const struct returning *other = BLYI_CONTAINER(node, struct returning, link);
        is |= other->serial <= serial && !pthread_equal(other->thread, pthread_self());
    }
    blyi_lock_drop(&pool->lock);
    return is;
}

void blyi_waiting_settle(bly_pool *pool)
{
    (void)blyi_waiting_poll(pool, SIZE_MAX);
    blyi_lock_take(&pool->lock);
    uint64_t serial = pool->returns;
    blyi_lock_drop(&pool->lock);
    while (is_returning(pool, serial))
        sched_yield();
}

uint64_t blyi_waiting_drain(bly_pool *pool, uint64_t bytes)
{
    uint64_t got = blyi_waiting_poll(pool, SIZE_MAX);
    while (got < bytes) {
        struct blyi_use use = {NULL, 0};
        blyi_lock_take(&pool->lock);
        if (!blyi_list_empty(&pool->waiting)) {
            struct waiter *w = BLYI_CONTAINER(pool->waiting.next, struct waiter, link);
            if (w->n_uses > 0)
                use = w->uses[w->n_uses - 1];
            pool->is.waits++;
        } else {
            bytes = 0;
        }
        blyi_lock_drop(&pool->lock);
        if (use.arena != NULL &&
            blyi_arena_wait(use.arena, use.mark, pool->policy.wait_ns) != BLY_OK) {
            blyi_fail_clear();
            break;
        }
        if (bytes > 0)
            got += blyi_waiting_poll(pool, SIZE_MAX);
    }
    return got;
}

void blyi_waiting_drop(bly_pool *pool)
{
    BLYI_LIST_FOR_SAFE(node, &pool->waiting)
    {
        struct waiter *w = BLYI_CONTAINER(node, struct waiter, link);
        blyi_list_remove(node);
        blyi_host_free(w);
    }
}
