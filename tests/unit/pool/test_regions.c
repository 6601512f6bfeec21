/* SPDX-License-Identifier: Apache-2.0
 *
 * test_regions.c - figures of regions: exact one by one, and in sum those of the pool.
 */
#include "pool_test.h"

#include <string.h>

static void *stream;
static bly_pool *pool;

/* Exactly what is needed. */
static void start(void)
{
    bly_pool_opts opts = bly_pool_opts_default();
    opts.profile = BLY_POOL_TIGHT;
    stream = new_stream();
    assert_ok(bly_pool_create(&opts, &pool));
}

static bly_pool_region_info of(bly_pool_region region)
{
    bly_pool_region_info info = {.struct_size = sizeof(info)};
    assert_ok(bly_pool_get_region(pool, region, &info));
    assert_int_equal(info.region, region);
    assert_int_equal(info.live + info.parked + info.idle + info.waiting, info.reserved);
    assert_true(info.live <= info.live_peak);
    return info;
}

static void check_sums(void)
{
    bly_pool_info all = info_of(pool), sum = {0};
    for (int i = 0; i < BLY_POOL_REGIONS; i++) {
        bly_pool_region_info info = of((bly_pool_region)i);
        sum.reserved += info.reserved;
        sum.live += info.live;
        sum.parked += info.parked;
        sum.idle += info.idle;
        sum.waiting += info.waiting;
        sum.asked += info.asked;
        sum.blocks += info.blocks;
    }
    assert_int_equal(sum.reserved, all.reserved);
    assert_int_equal(sum.live, all.live);
    assert_int_equal(sum.parked, all.parked);
    assert_int_equal(sum.idle, all.idle);
    assert_int_equal(sum.waiting, all.waiting);
    assert_int_equal(sum.asked, all.asked);
    assert_int_equal(sum.blocks, all.blocks);
}

static void *take_in(bly_pool_region region, uint64_t size, uint32_t flags)
{
    void *block = NULL;
    bly_pool_request request = {
        .struct_size = sizeof(request), .region = region, .size = size, .flags = flags};
    assert_ok(bly_pool_alloc_with(pool, &request, stream, &block));
    check_sums();
    return block;
}

static void give(void *block)
{
    assert_ok(bly_pool_free(block));
    check_sums();
}

static void end(void)
{
    end_pool(pool);
}

static void blocks_of_a_step(void **state)
{
    (void)state;
    start();
    void *weights = take_in(BLY_POOL_WEIGHTS, 100 * MiB, 0);
    void *a = take_in(BLY_POOL_ACTIVATIONS, 40 * MiB, 0);
    void *b = take_in(BLY_POOL_ACTIVATIONS, 20 * MiB - 1, 0);
    void *scratch = take_in(BLY_POOL_WORKSPACE, 1000, 0);
    void *any = take_in(BLY_POOL_ANY, 8 * MiB, 0);
    assert_int_equal(of(BLY_POOL_WEIGHTS).live, 100 * MiB);
    assert_int_equal(of(BLY_POOL_WEIGHTS).reserved, 100 * MiB);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).live, 60 * MiB);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).asked, 60 * MiB - 1);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).blocks, 2);
    assert_int_equal(of(BLY_POOL_WORKSPACE).live, 1024); /* one slot of a slab of 64 KiB */
    assert_int_equal(of(BLY_POOL_WORKSPACE).asked, 1000);
    assert_int_equal(of(BLY_POOL_WORKSPACE).parked, 63 * KiB);
    assert_int_equal(of(BLY_POOL_WORKSPACE).idle, 2 * MiB - 64 * KiB);
    assert_int_equal(of(BLY_POOL_ANY).live, 8 * MiB);
    assert_int_equal(of(BLY_POOL_ANY).live_peak, 8 * MiB);
    give(a);
    give(b);
    give(scratch);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).live, 0);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).live_peak, 60 * MiB);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).idle, 60 * MiB);
    assert_int_equal(of(BLY_POOL_WORKSPACE).live_peak, 1024);
    assert_int_equal(of(BLY_POOL_WORKSPACE).idle, 2 * MiB);
    give(weights);
    give(any);
    assert_int_equal(of(BLY_POOL_WEIGHTS).idle, 100 * MiB);
    end();
}

/* The peak of what named no region, also where the pool's own is not reached. */
static void the_peak_of_any(void **state)
{
    (void)state;
    start();
    give(take_in(BLY_POOL_WEIGHTS, 200 * MiB, 0));
    assert_int_equal(of(BLY_POOL_ANY).live_peak, 0);
    void *any = take_in(BLY_POOL_ANY, 50 * MiB, 0);
    assert_int_equal(of(BLY_POOL_ANY).live_peak, 50 * MiB);
    void *more = take(pool, 60 * MiB, stream);
    give(more);
    give(any);
    assert_int_equal(of(BLY_POOL_ANY).live_peak, 110 * MiB);
    assert_int_equal(of(BLY_POOL_WEIGHTS).live_peak, 200 * MiB);
    assert_int_equal(info_of(pool).live_peak, 200 * MiB);
    end();
}

/* What waits for another stream, large and small. */
static void what_waits(void **state)
{
    (void)state;
    void *other = new_stream();
    start();
    void *large = take_in(BLY_POOL_ACTIVATIONS, 6 * MiB, 0);
    void *small = take_in(BLY_POOL_ACTIVATIONS, 4096, 0);
    void *own = take_in(BLY_POOL_WEIGHTS, 6 * MiB, BLY_POOL_EXPORTABLE);
    assert_ok(blyi_stream_pause(other));
    assert_ok(blyi_set_async(large, 1, 64, other, 0));
    assert_ok(bly_pool_free_on(large, other));
    assert_ok(bly_pool_free_on(small, other));
    assert_ok(bly_pool_free_on(own, other));
    check_sums();
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).waiting, 6 * MiB + 4096);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).live, 0);
    assert_int_equal(of(BLY_POOL_WEIGHTS).waiting, 6 * MiB);
    assert_ok(blyi_stream_resume(other));
    assert_ok(blyi_stream_sync(other, 0));
    assert_ok(bly_pool_poll(pool));
    check_sums();
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).waiting, 0);
    assert_int_equal(of(BLY_POOL_ACTIVATIONS).idle, 8 * MiB);
    assert_int_equal(of(BLY_POOL_WEIGHTS).idle, 6 * MiB);
    end();
}

static void texts(void **state)
{
    (void)state;
    char text[8192];
    size_t length;
    start();
    void *weights = take_in(BLY_POOL_WEIGHTS, 100 * MiB, 0);
    assert_ok(bly_pool_text(pool, BLY_POOL_STATS, text, sizeof(text), &length));
    assert_non_null(strstr(text, "\"region.weights.allocated_bytes.all.current\": 104857600"));
    assert_non_null(strstr(text, "\"region.any.reserved_bytes.all.current\": 0"));
    assert_ok(bly_pool_text(pool, BLY_POOL_SUMMARY, text, sizeof(text), &length));
    assert_non_null(strstr(text, "| weights: live         |"));
    assert_non_null(strstr(text, "| activations: reserved |"));
    give(weights);
    bly_pool_region_info info = {.struct_size = sizeof(info)};
    assert_int_equal(bly_pool_get_region(pool, BLY_POOL_REGIONS, &info), BLY_E_INVALID);
    assert_int_equal(bly_pool_get_region(pool, BLY_POOL_ANY, NULL), BLY_E_INVALID);
    end();
}

/* All regions and sizes, in no order: the sums hold at each step (and the audit). */
static void churn(void **state)
{
    enum { N = 64, STEPS = 1500 };
    (void)state;
    void *blocks[N] = {NULL};
    uint64_t seed = 4711;
    start();
    for (int i = 0; i < STEPS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t roll = seed >> 33, at = roll % N, size = (uint64_t)1 << roll / N % 24;
        if (blocks[at] != NULL) {
            give(blocks[at]);
            blocks[at] = NULL;
        } else {
            blocks[at] = take_in((bly_pool_region)(roll / 4096 % BLY_POOL_REGIONS), size + at,
                                 roll % 7 == 0);
        }
        if (roll % 97 == 0)
            assert_ok(bly_pool_trim(pool, 0, NULL));
    }
    for (unsigned i = 0; i < N; i++)
        give(blocks[i]);
    end();
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(blocks_of_a_step),
        order_test(the_peak_of_any),
        order_test(what_waits),
        order_test(texts),
        order_test(churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
