/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_pool.c - stream-ordered pools: making, attributes, trimming. What is served in the order of
 * streams is in acl_pool_order.c.
 *
 *   attribute           value      set                                   get
 *   reuse switches      uint32_t   0 or not                              0 or 1
 *   release threshold   uint64_t   up to the pool's size, or UINT64_MAX  as set
 *   current figures     uint64_t   107000                                bytes
 *   peaks               uint64_t   0 only; they catch up at the next     bytes
 *                                  allocation
 */
#include <inttypes.h>
#include <string.h>

#include <acl/acl_rt_memory_soma.h>
#include "face/acl/check.h"
#include "face/acl/pools.h"
#include "npu/card.h"
#include "npu/known.h"
#include "npu/snapshot.h"
#include "pool/adjust.h"

#define N_REUSE 3

static aclError check_props(enum blyi_acl_call call, const aclrtMemPoolProps *props)
{
    if (props->allocType != ACL_MEM_ALLOCATION_TYPE_PINNED)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "allocType %d is not pinned (0)",
                               (int)props->allocType);
    if (props->location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "location type %d is not device (%d): pools are of a device",
                               (int)props->location.type, (int)ACL_MEM_LOCATION_TYPE_DEVICE);
    for (size_t i = 0; i < sizeof(props->reserved); i++)
        if (props->reserved[i] != 0)
            return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "reserved[%zu] is %u, not 0", i,
                                   props->reserved[i]);
    if (props->handleType != ACL_MEM_HANDLE_TYPE_NONE &&
        props->handleType != ACL_MEM_HANDLE_TYPE_POSIX)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID,
                               "handleType %d is neither none (0) nor POSIX (2)",
                               (int)props->handleType);
    return ACL_SUCCESS;
}

aclError bly_acl_aclrtMemPoolCreate(aclrtMemPool *memPool, const aclrtMemPoolProps *poolProps)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemPoolCreate;
    struct blyi_context *context;
    struct blyi_card *card;
    if (memPool == NULL || poolProps == NULL)
        return acl_reject(aclrtMemPoolCreate, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          memPool == NULL ? "memPool" : "poolProps");
    aclError error = check_props(call, poolProps);
    if (error == ACL_SUCCESS)
        error = blyi_acl_check_context(call, &context);
    if (error == ACL_SUCCESS)
        error = blyi_acl_open_device(call, poolProps->location.id, ACL_ERROR_RT_INVALID_DEVICEID,
                                     &card);
    if (error != ACL_SUCCESS)
        return error;
    uint64_t total = blyi_align_down(card->total, BLYI_POOL_GRANULE), size = poolProps->maxSize;
    if (size > total)
        return acl_reject(aclrtMemPoolCreate, ACL_ERROR_RT_PARAM_INVALID,
                          "maxSize %" PRIu64 " is more than card %d has, %" PRIu64, size, card->id,
                          total);
    size = size == 0 ? total : blyi_align_up(size, BLYI_POOL_GRANULE);
    bool exportable = poolProps->handleType == ACL_MEM_HANDLE_TYPE_POSIX;
    return acl_result(aclrtMemPoolCreate, blyi_acl_pool_make(card, size, exportable, memPool));
}

aclError bly_acl_aclrtMemPoolDestroy(const aclrtMemPool memPool)
{
    enum blyi_acl_call call = BLYI_ACL_CALL_aclrtMemPoolDestroy;
    if (memPool == NULL)
        return acl_null(aclrtMemPoolDestroy, "memPool");
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_acl_pool_end(memPool);
    return blyi_acl_result(call, status);
}

/* ── Attributes ───────────────────────────────────────────────────────────────────────────── */

static uint32_t reuse_bit(aclrtMemPoolAttr attr)
{
    static const uint32_t bits[N_REUSE + 1] = {
        0, BLY_POOL_REUSE_EVENTS, BLY_POOL_REUSE_OPPORTUNISTIC, BLY_POOL_REUSE_DEPENDENCIES};
    return (unsigned)attr <= N_REUSE ? bits[attr] : 0;
}

/* *pool is written on success only; blyi_acl_pool_put() ends its use. */
static aclError check_attr(enum blyi_acl_call call, const void *handle, aclrtMemPoolAttr attr,
                           const void *value, struct blyi_acl_pool **pool)
{
    struct blyi_acl_pool *found;
    if (handle == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM, "memPool is NULL");
    if (value == NULL)
        return blyi_acl_reject(call, ACL_ERROR_RT_PARAM_INVALID, "value is NULL");
    aclError error = blyi_acl_pool_find(call, handle, ACL_ERROR_RT_PARAM_INVALID, &found);
    if (error != ACL_SUCCESS)
        return error;
    if (attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
        attr <= ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH) {
        *pool = found;
        return ACL_SUCCESS;
    }
    blyi_acl_pool_put(found);
    return blyi_acl_reject(call, ACL_ERROR_RT_INTERNAL_ERROR, "attr %d is not in %d .. %d",
                           (int)attr, (int)ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES,
                           (int)ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH);
}

static aclError set_switch(const struct blyi_acl_pool *pool, uint32_t bit, bool on)
{
    if (on && bit == BLY_POOL_REUSE_EVENTS)
        blyi_known_want(); /* waits from now on */
    blyi_pool_set_reuse(pool->pool, bit, on);
    return ACL_SUCCESS;
}

static aclError reset_peak(struct blyi_acl_pool *pool, bool reserved)
{
    bly_pool_info info = {.struct_size = sizeof(info)};
    bly_status status = bly_pool_get_info(pool->pool, &info);
    if (status != BLY_OK)
        return blyi_acl_fail(BLYI_ACL_CALL_aclrtMemPoolSetAttr, status);
    blyi_pool_reset_peaks(pool->pool, reserved, !reserved);
    __atomic_store_n(reserved ? &pool->reserved_reset : &pool->used_reset, info.allocs + 1,
                     __ATOMIC_RELAXED);
    return ACL_SUCCESS;
}

/* 0 until the next allocation. */
static uint64_t peak_of(uint64_t peak, const uint64_t *reset, uint64_t allocs)
{
    return __atomic_load_n(reset, __ATOMIC_RELAXED) == allocs + 1 ? 0 : peak;
}

static aclError set_bytes(struct blyi_acl_pool *pool, aclrtMemPoolAttr attr, uint64_t value)
{
    switch (attr) {
    case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD:
        if (value > pool->size && value != UINT64_MAX)
            return acl_reject(aclrtMemPoolSetAttr, ACL_ERROR_RT_INTERNAL_ERROR,
                              "threshold %" PRIu64 " is above the size of the pool, %" PRIu64
                              ", and not UINT64_MAX (keep everything)",
                              value, pool->size);
        blyi_pool_set_threshold(pool->pool, value);
        return ACL_SUCCESS;
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
        if (value != 0)
            return acl_reject(aclrtMemPoolSetAttr, ACL_ERROR_RT_INTERNAL_ERROR,
                              "a peak can be set to 0 only, not to %" PRIu64, value);
        return reset_peak(pool, attr == ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH);
    default:
        return acl_reject(aclrtMemPoolSetAttr, ACL_ERROR_RT_PARAM_INVALID,
                          "attr %d is a figure of the pool, which can only be read", (int)attr);
    }
}

aclError bly_acl_aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
    struct blyi_acl_pool *pool = NULL;
    aclError error = check_attr(BLYI_ACL_CALL_aclrtMemPoolSetAttr, memPool, attr, value, &pool);
    if (pool == NULL)
        return error;
    uint32_t bit = reuse_bit(attr), word = 0;
    uint64_t bytes = 0;
    if (bit != 0) {
        memcpy(&word, value, sizeof(word));
        error = set_switch(pool, bit, word != 0);
    } else {
        memcpy(&bytes, value, sizeof(bytes));
        error = set_bytes(pool, attr, bytes);
    }
    blyi_acl_pool_put(pool);
    return error;
}

aclError bly_acl_aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void *value)
{
    struct blyi_acl_pool *pool = NULL;
    aclError error = check_attr(BLYI_ACL_CALL_aclrtMemPoolGetAttr, memPool, attr, value, &pool);
    if (pool == NULL)
        return error;
    bly_pool_info info = {.struct_size = sizeof(info)};
    uint32_t bit = reuse_bit(attr), word = (blyi_pool_reuse(pool->pool) & bit) != 0;
    bly_status status = bly_pool_get_info(pool->pool, &info);
    const uint64_t figures[] = {
        [ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD] = info.threshold,
        [ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT] = info.reserved,
        [ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH] =
            peak_of(info.reserved_peak, &pool->reserved_reset, info.allocs),
        [ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT] = info.live,
        [ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH] =
            peak_of(info.live_peak, &pool->used_reset, info.allocs),
    };
    blyi_acl_pool_put(pool);
    if (status != BLY_OK)
        return blyi_acl_fail(BLYI_ACL_CALL_aclrtMemPoolGetAttr, status);
    if (bit != 0)
        memcpy(value, &word, sizeof(word));
    else
        memcpy(value, &figures[attr], sizeof(figures[attr]));
    return ACL_SUCCESS;
}

/* ── Trimming ─────────────────────────────────────────────────────────────────────────────── */

static aclError trim(const struct blyi_acl_pool *pool, uint64_t keep)
{
    bly_pool_info info = {.struct_size = sizeof(info)};
    if (keep > pool->size)
        return acl_reject(aclrtMemPoolTrimTo, ACL_ERROR_RT_INTERNAL_ERROR,
                          "minBytesToKeep %" PRIu64 " is above the size of the pool, %" PRIu64,
                          keep, pool->size);
    bly_status status = bly_pool_poll(pool->pool);
    if (status == BLY_OK)
        status = bly_pool_get_info(pool->pool, &info);
    if (status == BLY_OK && keep < info.reserved && keep < info.live)
        return acl_reject(aclrtMemPoolTrimTo, ACL_ERROR_RT_INTERNAL_ERROR,
                          "minBytesToKeep %" PRIu64 " is less than is in use, %" PRIu64
                          " in %" PRIu64 " blocks",
                          keep, info.live, info.blocks);
    if (status == BLY_OK && keep < info.reserved)
        status = bly_pool_trim(pool->pool, keep, NULL);
    return acl_result(aclrtMemPoolTrimTo, status);
}

aclError bly_acl_aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep)
{
    struct blyi_acl_pool *pool;
    if (memPool == NULL)
        return acl_null(aclrtMemPoolTrimTo, "memPool");
    bly_status status = blyi_snapshot_pass();
    if (status != BLY_OK)
        return blyi_acl_fail(BLYI_ACL_CALL_aclrtMemPoolTrimTo, status);
    aclError error = blyi_acl_pool_find(BLYI_ACL_CALL_aclrtMemPoolTrimTo, memPool,
                                        ACL_ERROR_RT_INTERNAL_ERROR, &pool);
    if (error != ACL_SUCCESS)
        return error;
    error = trim(pool, minBytesToKeep);
    blyi_acl_pool_put(pool);
    return error;
}
