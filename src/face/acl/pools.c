/* SPDX-License-Identifier: Apache-2.0
 *
 * pools.c - the pools of a program: their handles, and their end.
 *
 * `lock` guards the two lists alone. A pool's object lives as long as its handle or a pin of it;
 * who ends it takes it from its list first, so that one thread does.
 */
#include "face/acl/pools.h"

#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/option.h"
#include "face/acl/alloc_pool.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/moment.h"
#include "npu/runtime.h"
#include "pool/adjust.h"
#include "pool/arena.h"
#include "pool/front.h"
#include "pool/told.h"

static uint32_t n_pools; /* live, or not ended yet */
static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE_POOLS);
static struct blyi_list live = BLYI_LIST_INIT(live), ended = BLYI_LIST_INIT(ended);

static void count(int by)
{
    __atomic_fetch_add(&n_pools, (uint32_t)by, __ATOMIC_RELAXED);
}

static void give_back(struct blyi_acl_pool *pool)
{
    if (bly_pool_destroy(pool->pool) != BLY_OK)
        blyi_fail_clear(); /* its card was reset: the memory is gone */
    blyi_host_free(pool->behind);
    blyi_host_free(pool);
    count(-1);
}

static bool may_go(const struct blyi_acl_pool *pool)
{
    return pool->unpinned && blyi_moment_passed(pool->behind);
}

/* No pin is left. */
static void handle_gone(void *object)
{
    struct blyi_acl_pool *pool = object;
    blyi_lock_take(&lock);
    pool->unpinned = true;
    bool goes = may_go(pool);
    if (goes)
        blyi_list_remove(&pool->link);
    blyi_lock_drop(&lock);
    if (goes)
        give_back(pool);
}

static bly_status make_pool(struct blyi_acl_pool *pool)
{
    bly_pool_opts opts = bly_pool_opts_default();
    opts.device = pool->card->id;
    opts.backend = "npu";
    opts.name = "aclrtMemPool";
    opts.limit = pool->size;
    opts.align = BLYI_POOL_GRANULE;
    opts.threshold = 0;
    opts.flags = pool->exportable ? BLY_POOL_EXPORTABLE : 0;
    opts.slack = 0;
    opts.split = (uint64_t)blyi_option_int(BLYI_OPT_POOL_SPLIT);
    bly_status status = bly_pool_create(&opts, &pool->pool);
    if (status == BLY_OK)
        blyi_pool_set_exact(pool->pool,
                            (uint64_t)blyi_option_int(BLYI_OPT_POOL_WAIT_MS) * 1000000u);
    return status;
}

bly_status blyi_acl_pool_make(struct blyi_card *card, uint64_t size, bool exportable, void **handle)
{
    struct blyi_acl_pool *pool = blyi_host_calloc(1, sizeof(*pool));
    if (pool == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a pool (%zu bytes)", sizeof(*pool));
    blyi_list_init(&pool->link);
    pool->card = card;
    pool->size = size;
    pool->exportable = exportable;
    bly_status status = make_pool(pool);
    if (status != BLY_OK) {
        blyi_host_free(pool);
        return status;
    }
    status = blyi_handle_create(BLYI_HANDLE_POOL, pool, handle_gone, &pool->handle);
    if (status != BLY_OK) {
        (void)bly_pool_destroy(pool->pool);
        blyi_host_free(pool);
        return status;
    }
    count(1);
    blyi_device_listen(blyi_acl_pools_reset);
    *handle = pool->handle;
    blyi_lock_take(&lock);
    blyi_list_push_back(&live, &pool->link);
    blyi_lock_drop(&lock);
    return BLY_OK;
}

struct blyi_acl_pool *blyi_acl_pool_get(const void *handle)
{
    return blyi_runtime_check() == BLY_OK ? blyi_handle_get(BLYI_HANDLE_POOL, handle) : NULL;
}

void blyi_acl_pool_put(const struct blyi_acl_pool *pool)
{
    blyi_handle_put(pool->handle);
}

aclError blyi_acl_pool_find(enum blyi_acl_call call, const void *handle, aclError code,
                            struct blyi_acl_pool **pool)
{
    *pool = blyi_acl_pool_get(handle);
    if (*pool != NULL)
        return ACL_SUCCESS;
    if (blyi_fail_code() == BLY_E_FORKED)
        return blyi_acl_fail(call, BLY_E_FORKED);
    return blyi_acl_reject(call, code, "%s", blyi_fail_text());
}

bly_status blyi_acl_pool_alloc(struct blyi_acl_pool *pool, uint64_t size, void *stream,
                               const void *pc, void **block)
{
    const bly_pool_request request = {.struct_size = sizeof(request),
                                      .size = size,
                                      .flags =
                                          pool->exportable ? BLY_POOL_EXPORTABLE : BLYI_POOL_WHOLE};
    bly_status status = blyi_front_alloc(pool->pool, &request, stream, pc, block);
    if (status == BLY_OK && unlikely(blyi_pool_told()))
        blyi_told_alloc(*block, size, blyi_align_up(size, BLYI_POOL_GRANULE), pc);
    return status;
}

/* From the live ones to those that end; false: another thread was first. */
static bool end_locked(struct blyi_acl_pool *pool, struct blyi_moment *behind)
{
    if (pool->has_ended)
        return false;
    pool->has_ended = true;
    pool->behind = behind;
    blyi_list_remove(&pool->link);
    blyi_list_push_back(&ended, &pool->link);
    return true;
}

bly_status blyi_acl_pool_end(const void *handle)
{
    struct blyi_moment *behind;
    struct blyi_acl_pool *pool = blyi_acl_pool_get(handle);
    if (pool == NULL)
        return blyi_fail_code();
    bly_status status = blyi_moment_take(pool->card, &behind);
    if (status == BLY_OK) {
        blyi_lock_take(&lock);
        bool first = end_locked(pool, behind);
        blyi_lock_drop(&lock);
        if (first)
            status = blyi_handle_remove(BLYI_HANDLE_POOL, handle);
        else
            status = blyi_fail(BLY_E_HANDLE, "memory pool %p is being destroyed", handle);
        if (!first)
            blyi_host_free(behind);
    }
    blyi_acl_pool_put(pool);
    return status;
}

bool blyi_acl_pool_has_ended(const bly_pool *of)
{
    bool found = false;
    if (likely(__atomic_load_n(&n_pools, __ATOMIC_RELAXED) == 0))
        return false;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &ended)
    {
        found |= BLYI_CONTAINER(node, struct blyi_acl_pool, link)->pool == of;
    }
    blyi_lock_drop(&lock);
    return found;
}

/* ── What others do ───────────────────────────────────────────────────────────────────────── */

/* Some ended pool of which nothing is in use any more; card -1: of any. */
static struct blyi_acl_pool *take_ended(int card)
{
    struct blyi_acl_pool *found = NULL;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &ended)
    {
        struct blyi_acl_pool *pool = BLYI_CONTAINER(node, struct blyi_acl_pool, link);
        if (card >= 0 ? pool->unpinned && pool->card->id == card : may_go(pool)) {
            found = pool;
            blyi_list_remove(&pool->link);
            break;
        }
    }
    blyi_lock_drop(&lock);
    return found;
}

void blyi_acl_pools_synced_slow(void)
{
    struct blyi_acl_pool *pool;
    if (blyi_runtime_is_forked())
        return;
    blyi_pools_synced();
    while ((pool = take_ended(-1)) != NULL)
        give_back(pool);
}

/* The first live pool of the card, as its only ender. */
static struct blyi_acl_pool *take_live(int card)
{
    struct blyi_acl_pool *found = NULL;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &live)
    {
        struct blyi_acl_pool *pool = BLYI_CONTAINER(node, struct blyi_acl_pool, link);
        if (pool->card->id == card && end_locked(pool, NULL)) {
            found = pool;
            break;
        }
    }
    blyi_lock_drop(&lock);
    return found;
}

void blyi_acl_pools_reset(int card)
{
    struct blyi_acl_pool *pool;
    blyi_alloc_pool_reset(card);
    while ((pool = take_live(card)) != NULL) {
        if (unlikely(blyi_pool_told()))
            blyi_told_reset(pool->pool);
        (void)blyi_handle_remove(BLYI_HANDLE_POOL, pool->handle);
    }
    while ((pool = take_ended(card)) != NULL)
        give_back(pool);
}
