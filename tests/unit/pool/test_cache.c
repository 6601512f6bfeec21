/* SPDX-License-Identifier: Apache-2.0
 *
 * test_cache.c - how often calls leave the fast path: locks that are taken are counted.
 */
#include "pool_test.h"

static unsigned n_taken[BLYI_RANK_COUNT];

static void note(const struct blyi_lock *lock)
{
    n_taken[lock->rank]++;
}

static void count_locks(bool on)
{
    memset(n_taken, 0, sizeof(n_taken));
    __atomic_store_n(&blyi_lock_taken, on ? note : NULL, __ATOMIC_RELEASE);
}

static void *take_named(bly_pool *pool, uint64_t size)
{
    void *block = NULL;
    bly_pool_request request = {
        .struct_size = sizeof(request), .size = size, .region = BLY_POOL_WEIGHTS};
    assert_ok(bly_pool_alloc_with(pool, &request, NULL, &block));
    return block;
}

/* Each block makes more live than ever, but nobody goes through all thread caches for each. */
static void looks_for_the_peak_are_few(void **state)
{
    (void)state;
    enum { BLOCKS = 200 };
    void *blocks[BLOCKS], *large, *first;
    bly_pool *pool = new_pool();
    large = take(pool, GiB, NULL);
    first = take_named(pool, 4096); /* the depot and the first slab */
    count_locks(true);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = take_named(pool, 4096);
    unsigned looks = n_taken[BLYI_RANK_CACHES];
    count_locks(false);
    assert_true(looks <= 1);
    /* Nor is more than a thousandth of the peak missed where it has gone before somebody asks. */
    uint64_t peak = GiB + (BLOCKS + 1) * UINT64_C(4096);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_ok(bly_pool_free(blocks[i]));
    assert_ok(bly_pool_free(large));
    assert_ok(bly_pool_free(first));
    bly_pool_info info = info_of(pool);
    assert_true(info.live_peak <= peak && info.live_peak >= peak - peak / 1024);
    assert_true(info.asked_peak <= peak && info.asked_peak >= peak - peak / 1024);
    end_pool(pool);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void replace(bly_pool *pool, void **place, uint64_t size)
{
    assert_ok(bly_pool_free(*place));
    *place = take(pool, size, NULL);
}

/* Blocks of all sizes come and go, and what a thread may keep is short: small slots, of which a
 * hundred take as much as a large one, stay at hand. Later there are large ones alone, which then
 * get the room. */
static void room_goes_where_it_serves_most(void **state)
{
    (void)state;
    enum { BLOCKS = 600, ROUNDS = 20000 };
    void *blocks[BLOCKS];
    uint64_t random = 88172645463325252u, small = 0, missed = 0;
    bly_pool *pool = new_pool();
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = take(pool, 1 + next_random(&random) % (512 * KiB), NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        void **place = &blocks[next_random(&random) % BLOCKS];
        uint64_t size = UINT64_C(512) << next_random(&random) % 11; /* to 512 KiB */
        size -= next_random(&random) % (size / 2);
        assert_ok(bly_pool_free(*place));
        count_locks(i >= ROUNDS / 2 && size <= 8 * KiB);
        *place = take(pool, size, NULL);
        small += i >= ROUNDS / 2 && size <= 8 * KiB;
        missed += n_taken[BLYI_RANK_FRONT] > 0;
        count_locks(false);
    }
    print_message("%lu of %lu small ones were not at hand\n", (unsigned long)missed,
                  (unsigned long)small);
    assert_true(small > ROUNDS / 8);
    assert_true(missed < small / 4);
    for (unsigned i = 0; i < 2000; i++)
        replace(pool, &blocks[i % 2], 512 * KiB);
    count_locks(true);
    for (unsigned i = 0; i < 100; i++)
        replace(pool, &blocks[0], 512 * KiB);
    missed = n_taken[BLYI_RANK_FRONT];
    count_locks(false);
    assert_int_equal(missed, 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_ok(bly_pool_free(blocks[i]));
    end_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        order_test(looks_for_the_peak_are_few),
        order_test(room_goes_where_it_serves_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
