/* SPDX-License-Identifier: Apache-2.0
 *
 * lanes.c - which arena serves a stream, and moments of it.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "base/host.h"
#include "pool/pool.h"

#define TAKE_OVER_LOOKS 8u

bool blyi_arena_passed_locked(const struct blyi_arena *arena, blyi_mark mark)
{
    struct blyi_backend *backend = arena->pool->backend;
    return mark <= arena->base || backend->ops->passed(backend, arena->lane, mark - arena->base);
}

blyi_mark blyi_arena_mark(struct blyi_arena *arena)
{
    blyi_lock_take(&arena->pool->lock);
    blyi_mark mark = blyi_arena_mark_locked(arena);
    blyi_lock_drop(&arena->pool->lock);
    return mark;
}

bool blyi_arena_passed(struct blyi_arena *arena, blyi_mark mark)
{
    blyi_lock_take(&arena->pool->lock);
    bool passed = blyi_arena_passed_locked(arena, mark);
    blyi_lock_drop(&arena->pool->lock);
    return passed;
}

bly_status blyi_arena_wait(struct blyi_arena *arena, blyi_mark mark, uint64_t limit_ns)
{
    bly_pool *pool = arena->pool;
    bly_status status = BLY_OK;
    blyi_lock_take(&pool->lock);
    if (!blyi_arena_passed_locked(arena, mark)) {
        struct blyi_lane *lane = arena->lane;
        mark -= arena->base;
        arena->n_waiters++;
        blyi_lock_drop(&pool->lock);
        status = pool->backend->ops->wait(pool->backend, lane, mark, limit_ns);
        blyi_lock_take(&pool->lock);
        arena->n_waiters--;
    }
    blyi_lock_drop(&pool->lock);
    return status;
}

static bool has_ended_locked(const struct blyi_arena *arena)
{
    struct blyi_backend *backend = arena->pool->backend;
    return arena->lane != NULL && backend->ops->ended(backend, arena->lane);
}

static void set_lane(struct blyi_arena *arena, struct blyi_lane *lane)
{
    static const blyi_mark none = 0;
    struct blyi_backend *backend = arena->pool->backend;
    arena->lane = lane;
    arena->marks = lane != NULL ? backend->ops->marks(backend, lane) : &none;
}

/* An arena whose stream has ended, for the next one: its memory is there already. */
static struct blyi_arena *take_over_locked(bly_pool *pool, struct blyi_lane **old)
{
    unsigned left = TAKE_OVER_LOOKS;
    BLYI_LIST_FOR(node, &pool->arenas)
    {
        struct blyi_arena *arena = BLYI_CONTAINER(node, struct blyi_arena, link);
        if (left-- == 0) { /* others next time */
            struct blyi_list *first = pool->arenas.next;
            blyi_list_remove(first);
            blyi_list_push_back(&pool->arenas, first);
            return NULL;
        }
        if (arena->n_waiters > 0 || !has_ended_locked(arena))
            continue;
        arena->base = blyi_arena_mark_locked(arena) + 1;
        blyi_map_remove(&pool->by_stream, (uintptr_t)arena->stream);
        *old = arena->lane;
        set_lane(arena, NULL);
        return arena;
    }
    return NULL;
}

static struct blyi_arena *make_arena_locked(bly_pool *pool)
{
    struct blyi_arena *arena = blyi_host_calloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->pool = pool;
    set_lane(arena, NULL);
    blyi_list_push_back(&pool->arenas, &arena->link);
    pool->is.metadata += sizeof *arena;
    return arena;
}

static uint64_t key_of(bly_stream stream)
{
    return stream != NULL ? (uintptr_t)stream : UINT64_MAX;
}

/* Takes `lane` over on success, and leaves one that is no longer needed in it. */
static struct blyi_arena *add_locked(bly_pool *pool, bly_stream stream, struct blyi_lane **lane)
{
    struct blyi_lane *old = NULL;
    struct blyi_arena *arena = blyi_map_get(&pool->by_stream, key_of(stream));
    if (arena != NULL && !has_ended_locked(arena)) /* another thread was first */
        return arena;
    if (arena != NULL) { /* a new stream by the same name */
        arena->base = blyi_arena_mark_locked(arena) + 1;
        old = arena->lane;
    } else if (stream != NULL)
        arena = take_over_locked(pool, &old);
    if (arena == NULL)
        arena = make_arena_locked(pool);
    if (arena == NULL)
        return NULL;
    set_lane(arena, *lane);
    uint32_t number = *lane != NULL ? pool->backend->ops->number(pool->backend, *lane) : 0;
    __atomic_store_n(&arena->number, number, __ATOMIC_RELAXED);
    arena->stream = stream;
    *lane = old;
    if (blyi_map_put(&pool->by_stream, key_of(stream), arena) != BLY_OK)
        return NULL; /* an arena that nobody finds; the pool's end frees it */
    return arena;
}

bly_status blyi_arena_of(bly_pool *pool, bly_stream stream, struct blyi_arena **out)
{
    const struct blyi_backend_ops *ops = pool->backend->ops;
    struct blyi_lane *lane = NULL;
    bly_status status = ops->alive(pool->backend);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&pool->lock);
    struct blyi_arena *arena = blyi_map_get(&pool->by_stream, key_of(stream));
    if (arena != NULL && has_ended_locked(arena))
        arena = NULL;
    blyi_lock_drop(&pool->lock);
    if (arena == NULL) {
        if (stream != NULL)
            status = ops->hold(pool->backend, stream, &lane);
        if (status != BLY_OK)
            return status;
        blyi_lock_take(&pool->lock);
        arena = add_locked(pool, stream, &lane);
        blyi_lock_drop(&pool->lock);
        if (lane != NULL)
            ops->let_go(pool->backend, lane);
        if (arena == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "pool %s: no host memory to describe an arena",
                             pool->name);
    }
    *out = arena;
    return BLY_OK;
}
