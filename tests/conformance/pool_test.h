/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_test.h - short names for tests of pools: A and X of the scenarios, and the four figures.
 */
#ifndef POOL_TEST_H
#define POOL_TEST_H

#include "acl_test.h"

#include <acl/acl_rt_memory_soma.h>

#define KEEP_ALL UINT64_MAX

static inline void start(const char *hbm)
{
    setenv("BELAY_HBM", hbm, 1);
    setenv("BELAY_STATE", "private", 1);
    OK(aclrtSetDevice(0));
}

static inline aclrtMemPoolProps pool_props(size_t max)
{
    return (aclrtMemPoolProps){.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}, .maxSize = max};
}

static inline aclrtMemPool make_pool(size_t max, uint64_t threshold)
{
    aclrtMemPool pool = NULL;
    aclrtMemPoolProps props = pool_props(max);
    OK(aclrtMemPoolCreate(&pool, &props));
    if (threshold != 0)
        OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &threshold));
    return pool;
}

static inline aclrtStream make_stream(void)
{
    aclrtStream stream = NULL;
    OK(aclrtCreateStream(&stream));
    return stream;
}

static inline char *take(size_t size, aclrtMemPool pool, aclrtStream stream)
{
    void *block = NULL;
    OK(aclrtMemPoolMallocAsync(&block, size, pool, stream));
    CHECK(block != NULL);
    return block;
}

static inline void give(void *block, aclrtStream stream)
{
    OK(aclrtMemPoolFreeAsync(block, stream));
}

static inline void sync_stream(aclrtStream stream)
{
    OK(aclrtSynchronizeStream(stream));
}

static inline void fill(void *block, int value, size_t size, aclrtStream stream)
{
    OK(aclrtMemsetAsync(block, size, value, size, stream));
}

static inline uint64_t pool_figure(aclrtMemPool pool, aclrtMemPoolAttr attr)
{
    uint64_t value = 0;
    OK(aclrtMemPoolGetAttr(pool, attr, &value));
    return value;
}

static inline uint64_t held(aclrtMemPool pool)
{
    return pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT);
}

static inline uint64_t used(aclrtMemPool pool)
{
    return pool_figure(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT);
}

static inline uint64_t held_high(aclrtMemPool pool)
{
    return pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH);
}

static inline uint64_t used_high(aclrtMemPool pool)
{
    return pool_figure(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH);
}

static inline size_t card_free(void)
{
    return free_bytes(ACL_HBM_MEM);
}

static inline void order_behind(aclrtStream later, aclrtStream earlier)
{
    aclrtEvent event = NULL;
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(event, earlier));
    OK(aclrtStreamWaitEvent(later, event));
    OK(aclrtDestroyEvent(event));
}

#endif
