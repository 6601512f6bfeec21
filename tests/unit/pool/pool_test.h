/* SPDX-License-Identifier: Apache-2.0
 *
 * pool_test.h - what the tests of pools share: one on the software card, its figures.
 */
#ifndef POOL_TEST_H
#define POOL_TEST_H

#include "../npu/order_test.h"

#include "base/compiler.h"
#include "pool/front_inside.h"
#include "pool/pool.h"

static inline bly_pool *new_pool(void)
{
    bly_pool *pool = NULL;
    assert_ok(bly_pool_create(NULL, &pool));
    return pool;
}

/* With the sums that hold for every pool at rest. */
static inline bly_pool_info info_of(bly_pool *pool)
{
    bly_pool_info info = {.struct_size = sizeof(info)};
    assert_ok(bly_pool_get_info(pool, &info));
    assert_int_equal(info.live + info.parked + info.idle + info.waiting, info.reserved);
    assert_int_equal(info.blocks, info.allocs - info.frees);
    assert_ok(bly_pool_audit(pool));
    return info;
}

static inline void end_pool(bly_pool *pool)
{
    bly_pool_info info = info_of(pool);
    assert_int_equal(info.blocks, 0);
    assert_int_equal(info.live, 0);
    assert_int_equal(info.asked, 0);
    assert_ok(bly_pool_destroy(pool));
}

static inline void *take(bly_pool *pool, uint64_t size, bly_stream stream)
{
    void *block = NULL;
    assert_ok(bly_pool_alloc(pool, size, stream, &block));
    return block;
}

#endif
