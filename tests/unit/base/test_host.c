/* SPDX-License-Identifier: Apache-2.0
 * Host memory: counted, limited, failed on purpose. */
#include "base_test.h"
#include "base/host.h"

static struct blyi_host_stats stats(void)
{
    struct blyi_host_stats now;
    blyi_host_stats(&now);
    return now;
}

static void blocks_are_counted(void **state)
{
    (void)state;
    struct blyi_host_stats before = stats();
    void *a = blyi_host_alloc(100), *b = blyi_host_calloc(10, 10), *c = blyi_host_alloc(0);
    char *d = blyi_host_strdup("text");
    assert_non_null(c);
    assert_string_equal(d, "text");
    for (int i = 0; i < 100; i++)
        assert_int_equal(((char *)b)[i], 0);
    struct blyi_host_stats during = stats();
    assert_int_equal(during.live_blocks, before.live_blocks + 4);
    assert_true(during.live_bytes >= before.live_bytes + 206);
    assert_true(during.peak_bytes >= during.live_bytes);
    assert_int_equal(during.calls, before.calls + 4);
    blyi_host_free(a);
    blyi_host_free(b);
    blyi_host_free(c);
    blyi_host_free(d);
    blyi_host_free(NULL);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    assert_int_equal(stats().live_blocks, before.live_blocks);
}

static void dense_blocks_are_counted_too(void **state)
{
    (void)state;
    struct blyi_host_stats before = stats();
    size_t size = ((size_t)5 << 20) + 123; /* no multiple of any page */
    char *a = blyi_host_alloc_dense(size), *b = blyi_host_calloc_dense(size, 1);
    memset(a, 1, size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(b[i], 0);
    assert_int_equal(stats().live_blocks, before.live_blocks + 2);
    assert_true(stats().live_bytes >= before.live_bytes + 2 * size);
    blyi_host_free(a);
    blyi_host_free(b);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    blyi_host_fail_nth(1);
    assert_null(blyi_host_alloc_dense(size));
    blyi_host_set_limit((uint64_t)1 << 40); /* spares the allocator the absurd request */
    assert_null(blyi_host_calloc_dense(SIZE_MAX, 2));
    blyi_host_set_limit(0);
}

static void realloc_keeps_the_count(void **state)
{
    (void)state;
    struct blyi_host_stats before = stats();
    char *a = blyi_host_realloc(NULL, 10);
    memcpy(a, "123456789", 10);
    a = blyi_host_realloc(a, 100000);
    assert_string_equal(a, "123456789");
    assert_int_equal(stats().live_blocks, before.live_blocks + 1);
    a = blyi_host_realloc(a, 10);
    assert_string_equal(a, "123456789");
    blyi_host_free(a);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    assert_int_equal(stats().live_blocks, before.live_blocks);
}

static void overflow_is_a_failure(void **state)
{
    (void)state;
    struct blyi_host_stats before = stats();
    blyi_host_set_limit((uint64_t)1 << 40); /* spares the allocator the absurd request */
    assert_null(blyi_host_calloc(SIZE_MAX / 2, 3));
    blyi_host_set_limit(0);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    assert_int_equal(stats().calls, before.calls + 1);
}

static void the_limit_holds(void **state)
{
    (void)state;
    void *old = blyi_host_alloc(10);
    uint64_t live = stats().live_bytes;
    blyi_host_set_limit(live + 1000);
    assert_null(blyi_host_alloc(1001));
    assert_null(blyi_host_calloc(1001, 1));
    assert_null(blyi_host_realloc(old, 1100));
    void *block = blyi_host_alloc(900);
    assert_non_null(block);
    assert_null(blyi_host_alloc(900));
    block = blyi_host_realloc(block, 100); /* shrinking makes room */
    assert_non_null(block);
    blyi_host_set_limit(1);
    block = blyi_host_realloc(block, 50);
    assert_non_null(block);
    blyi_host_free(block);
    blyi_host_set_limit(0);
    assert_int_equal(stats().live_bytes, live);
    blyi_host_free(old);
}

static void the_nth_fails_once(void **state)
{
    (void)state;
    blyi_host_fail_nth(3);
    void *a = blyi_host_alloc(1), *b = blyi_host_realloc(NULL, 1);
    assert_false(blyi_host_failed());
    assert_null(blyi_host_realloc(a, 50));
    assert_true(blyi_host_failed());
    void *c = blyi_host_realloc(a, 50);
    assert_non_null(c);
    blyi_host_fail_nth(1);
    assert_false(blyi_host_failed());
    assert_null(blyi_host_strdup("x"));
    blyi_host_fail_nth(1);
    blyi_host_fail_nth(0);
    void *d = blyi_host_alloc(1);
    assert_non_null(d);
    blyi_host_free(b);
    blyi_host_free(c);
    blyi_host_free(d);
}

static int n_failed;

static void churn(int index)
{
    struct rng rng = {(uint64_t)index + 1};
    for (int i = 0; i < 2000; i++) {
        void *block = blyi_host_alloc(1 + rng_below(&rng, 3000));
        if (block == NULL)
            __atomic_fetch_add(&n_failed, 1, __ATOMIC_RELAXED);
        blyi_host_free(block);
    }
}

static void threads_agree_on_the_sums(void **state)
{
    (void)state;
    struct blyi_host_stats before = stats();
    n_failed = 0;
    blyi_host_fail_nth(TEST_THREADS * 1000);
    run_threads(churn);
    assert_int_equal(n_failed, 1);
    assert_int_equal(stats().live_bytes, before.live_bytes);
    assert_int_equal(stats().live_blocks, before.live_blocks);
    assert_int_equal(stats().calls, before.calls + TEST_THREADS * 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_counted),        cmocka_unit_test(dense_blocks_are_counted_too),
        cmocka_unit_test(realloc_keeps_the_count),   cmocka_unit_test(overflow_is_a_failure),
        cmocka_unit_test(the_limit_holds),           cmocka_unit_test(the_nth_fails_once),
        cmocka_unit_test(threads_agree_on_the_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
