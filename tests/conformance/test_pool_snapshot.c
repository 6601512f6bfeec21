/* SPDX-License-Identifier: Apache-2.0 */
/* Pools while the process stands still for a snapshot: what is at hand is served, what would change
 * the card waits or is refused, questions are answered. */
#include "pool_test.h"

#include <belay/pool.h>
#include <belay/snapshot.h>
#include <pthread.h>

#define ME ((int)getpid())

static void yes(bly_status status)
{
    if (status != BLY_OK)
        fprintf(stderr, "%s\n", bly_last_error());
    CHECK_EQ(status, BLY_OK);
}

static void refused(bly_status status)
{
    CHECK_EQ(status, BLY_E_STATE);
    CHECK(strstr(bly_last_error(), "the card memory of this process is in host memory") != NULL);
}

static bly_pool *native(uint64_t threshold)
{
    bly_pool *pool = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.threshold = threshold;
    yes(bly_pool_create(&opts, &pool));
    return pool;
}

static void *alloc(bly_pool *pool, uint64_t size, aclrtStream s)
{
    void *block = NULL;
    yes(bly_pool_alloc(pool, size, s, &block));
    return block;
}

static uint64_t reserved(bly_pool *pool)
{
    bly_pool_info info = {.struct_size = sizeof info};
    yes(bly_pool_get_info(pool, &info));
    yes(bly_pool_audit(pool));
    return info.reserved;
}

/* Who keeps the process still, with its memory away. */
TEST(calls_of_the_keeper)
{
    char *a, *idle, got = 0;
    void *block = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(0);
    a = alloc(pool, 8 * MIB, s);
    idle = alloc(pool, 64 * MIB, s);
    OK(aclrtMemset(a, 8 * MIB, 0x37, 8 * MIB));
    OK(aclrtMemsetAsync(idle, MIB, 1, MIB, s));
    yes(bly_pool_free(idle)); /* behind its work, so it is held */
    uint64_t held = reserved(pool);
    OK(aclrtSnapShotProcessLock(ME, NULL));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    sync_stream(s); /* nothing goes back for the threshold */
    CHECK_EQ(reserved(pool), held);
    refused(bly_pool_alloc(pool, 500 * MIB, s, &block));
    refused(bly_pool_trim(pool, 0, NULL));
    refused(bly_pool_destroy(pool));
    bly_pool_opts opts = bly_pool_opts_default();
    bly_pool *other = NULL;
    opts.prefill = 2 * MIB;
    refused(bly_pool_create(&opts, &other));
    yes(bly_pool_poll(pool));
    CHECK_EQ(reserved(pool), held);
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    OK(aclrtMemcpy(&got, 1, a + 8 * MIB - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(got, 0x37);
    yes(bly_pool_alloc(pool, 500 * MIB, s, &block));
    yes(bly_pool_free(block));
    yes(bly_pool_free(a));
    sync_stream(s);
    CHECK_EQ(reserved(pool), 0);
    yes(bly_pool_destroy(pool));
}

/* What is at hand needs nothing of the card; while LOCKED alone the keeper passes. */
TEST(what_is_at_hand)
{
    start("1GiB");
    aclrtStream s = make_stream();
    bly_pool *pool = native(KEEP_ALL);
    yes(bly_pool_free(alloc(pool, 1000, s)));
    OK(aclrtSnapShotProcessLock(ME, NULL));
    void *large = alloc(pool, 32 * MIB, s);
    yes(bly_pool_free(large));
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    void *small = alloc(pool, 1000, s);
    yes(bly_pool_free(small));
    CHECK(alloc(pool, 32 * MIB, s) == large);
    yes(bly_pool_free(large));
    OK(aclrtSnapShotProcessRestore(ME, NULL));
    yes(bly_pool_trim(pool, 0, NULL));
    CHECK_EQ(reserved(pool), 0);
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    yes(bly_pool_destroy(pool));
}

struct other {
    bly_pool *pool;
    aclrtStream stream;
    void *block;
    uint32_t state; /* of the process, when it had its block */
    uint32_t begun;
};

static void *allocate(void *arg)
{
    struct other *other = arg;
    bly_snapshot info = {.struct_size = sizeof info};
    __atomic_store_n(&other->begun, 1, __ATOMIC_RELEASE);
    other->block = alloc(other->pool, 200 * MIB, other->stream);
    CHECK_EQ(bly_snapshot_info(&info), BLY_OK);
    other->state = info.state;
    return NULL;
}

/* It waits, without a lock that who asks or brings the memory back could want. */
TEST(calls_of_others)
{
    pthread_t thread;
    start("1GiB");
    struct other other = {.pool = native(KEEP_ALL), .stream = make_stream()};
    yes(bly_pool_free(alloc(other.pool, 1000, other.stream)));
    uint64_t held = reserved(other.pool);
    OK(aclrtSnapShotProcessLock(ME, NULL));
    CHECK_EQ(pthread_create(&thread, NULL, allocate, &other), 0);
    while (__atomic_load_n(&other.begun, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    OK(aclrtSnapShotProcessBackup(ME, NULL));
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(reserved(other.pool), held);
    yes(bly_pool_free(alloc(other.pool, 1000, other.stream)));
    OK(aclrtSnapShotProcessUnlock(ME, NULL));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(other.state, BLY_SNAPSHOT_RUNNING);
    yes(bly_pool_free(other.block));
    yes(bly_pool_destroy(other.pool));
}

/* Threads allocate and free all the time, and the process stands still again and again. */
#define ROUNDS 40
static uint32_t over;

static void *churn(void *arg)
{
    const struct other *other = arg;
    OK(aclrtSetDevice(0));
    aclrtStream s = make_stream();
    for (uint64_t i = 0; __atomic_load_n(&over, __ATOMIC_RELAXED) == 0; i++) {
        void *a = alloc(other->pool, (1 + i % 7) * MIB, s);
        yes(bly_pool_free(a));
        if (i % 5 == 0)
            yes(bly_pool_trim(other->pool, 0, NULL));
    }
    return NULL;
}

TEST(again_and_again)
{
    pthread_t threads[2];
    start("1GiB");
    struct other other = {.pool = native(0)};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, churn, &other), 0);
    for (int i = 0; i < ROUNDS; i++) {
        OK(aclrtSnapShotProcessLock(ME, NULL));
        (void)reserved(other.pool);
        OK(aclrtSnapShotProcessBackup(ME, NULL));
        (void)reserved(other.pool);
        OK(aclrtSnapShotProcessUnlock(ME, NULL));
        (void)reserved(other.pool);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    yes(bly_pool_destroy(other.pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_the_keeper),
        cmocka_unit_test(what_is_at_hand),
        cmocka_unit_test(calls_of_others),
        cmocka_unit_test(again_and_again),
    };
    return cmocka_run_group_tests_name("pools and snapshots", tests, NULL, NULL);
}
