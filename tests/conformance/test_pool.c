/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of a program: arguments, codes, attributes, figures, and how they end. */
#include "pool_test.h"

#include <pthread.h>

TEST(arguments_of_create)
{
    aclrtMemPool pool = NULL;
    aclrtMemPoolProps props = pool_props(0);
    setenv("BELAY_HBM", "1GiB", 1);
    CHECK_ACL(aclrtMemPoolCreate(NULL, &props), 100000);
    CHECK_MESSAGE("100000 aclrtMemPoolCreate: memPool is NULL");
    CHECK_ACL(aclrtMemPoolCreate(&pool, NULL), 100000);
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 107002);
    start("1GiB");
    props.allocType = (aclrtMemAllocationType)1;
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 100000);
    props = pool_props(0);
    props.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 100000);
    props = pool_props(0);
    props.reserved[31] = 1;
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 100000);
    CHECK_MESSAGE("reserved[31] is 1, not 0");
    props = pool_props(0);
    props.handleType = (aclrtMemHandleType)1;
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 107000);
    props = pool_props(0);
    props.location.id = 7;
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 107001);
    props = pool_props(GIB + 1);
    CHECK_ACL(aclrtMemPoolCreate(&pool, &props), 107000);
    CHECK_MESSAGE("maxSize 1073741825 is more than card 0 has, 1073741824");
    CHECK(pool == NULL);
    props = pool_props(GIB);
    props.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
    OK(aclrtMemPoolCreate(&pool, &props));
    OK(aclrtMemPoolDestroy(pool));
    CHECK_ACL(aclrtMemPoolDestroy(pool), 507000);
    CHECK_MESSAGE("507000 aclrtMemPoolDestroy: ");
    CHECK_ACL(aclrtMemPoolDestroy(NULL), 100000);
    CHECK_ACL(aclrtMemPoolDestroy(ANY_ADDRESS), 507000);
}

TEST(attributes)
{
    uint32_t word = 77;
    uint64_t bytes;
    start("1GiB");
    aclrtMemPool pool = make_pool(100 * MIB, 0);
    for (int attr = 1; attr <= 3; attr++) {
        OK(aclrtMemPoolGetAttr(pool, (aclrtMemPoolAttr)attr, &word));
        CHECK_EQ(word, 0);
        word = 5;
        OK(aclrtMemPoolSetAttr(pool, (aclrtMemPoolAttr)attr, &word));
        OK(aclrtMemPoolGetAttr(pool, (aclrtMemPoolAttr)attr, &word));
        CHECK_EQ(word, 1);
    }
    word = 0;
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, &word));
    OK(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &word));
    CHECK_EQ(word, 1);
    CHECK_EQ(pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 0);
    bytes = 100 * MIB;
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &bytes));
    CHECK_EQ(pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD), 100 * MIB);
    bytes = UINT64_MAX;
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &bytes));
    CHECK(pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    bytes = 100 * MIB + 1;
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &bytes), 507000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, &bytes), 107000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &bytes), 107000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, &bytes), 507000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 507000);
    CHECK_MESSAGE("a peak can be set to 0 only, not to 104857601");
    CHECK_ACL(aclrtMemPoolSetAttr(NULL, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 100000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, NULL), 107000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, (aclrtMemPoolAttr)0, &bytes), 507000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, (aclrtMemPoolAttr)9, &bytes), 507000);
    CHECK_ACL(aclrtMemPoolGetAttr(pool, (aclrtMemPoolAttr)-1, &bytes), 507000);
    CHECK_ACL(aclrtMemPoolGetAttr(NULL, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 100000);
    CHECK_ACL(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, NULL), 107000);
    OK(aclrtMemPoolDestroy(pool));
    CHECK_ACL(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 107000);
    CHECK_ACL(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 107000);
}

TEST(arguments_in_the_order_of_streams)
{
    void *p = ANY_ADDRESS;
    aclrtContext context, other;
    start("1GiB");
    aclrtMemPool pool = make_pool(64 * MIB, 0);
    aclrtStream s = make_stream();
    CHECK_ACL(aclrtMemPoolMallocAsync(NULL, 1, pool, s), 100000);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, NULL, s), 100000);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, pool, NULL), 100000);
    OK(aclrtMemPoolMallocAsync(&p, 0, pool, s));
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, s, s), 507000);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, SIZE_MAX, pool, s), 507000);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 64 * MIB + 1, pool, s), 507000);
    CHECK(p == ANY_ADDRESS);
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateContext(&other, 0));
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, pool, s), 107003);
    OK(aclrtSetCurrentContext(context));
    char *block = take(1, pool, s);
    CHECK_EQ((uintptr_t)block % (2 * MIB), 0);
    CHECK_EQ(used(pool), 2 * MIB);
    CHECK_EQ(held(pool), 2 * MIB);
    OK(aclrtSetCurrentContext(other));
    CHECK_ACL(aclrtMemPoolFreeAsync(block, s), 107003);
    OK(aclrtSetCurrentContext(context));
    CHECK_ACL(aclrtMemPoolFreeAsync(NULL, s), 100000);
    CHECK_ACL(aclrtMemPoolFreeAsync(block, NULL), 507000);
    CHECK_ACL(aclrtMemPoolFreeAsync(block + 512, s), 107000);
    give(block, s);
    CHECK_ACL(aclrtMemPoolFreeAsync(block, s), 107000);
    CHECK_ACL(aclrtMemPoolFreeAsync(&p, s), 107000);
    CHECK_EQ(used(pool), 0);
}

TEST(cards_are_kept_apart)
{
    void *p = NULL;
    setenv("BELAY_CARDS", "2", 1);
    start("1GiB");
    aclrtMemPool pool = make_pool(64 * MIB, 0);
    OK(aclrtSetDevice(1));
    aclrtStream s = make_stream();
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, pool, s), 107000);
    CHECK_MESSAGE("the pool is of card 0, the stream of card 1");
    aclrtMemPoolProps props = pool_props(64 * MIB);
    props.location.id = 1;
    aclrtMemPool second;
    OK(aclrtMemPoolCreate(&second, &props));
    p = take(2 * MIB, second, s);
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(p, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
    CHECK_EQ(attributes.location.id, 1);
    OK(aclrtResetDevice(1)); /* ends what is on it, and nothing else */
    CHECK_ACL(aclrtMemPoolDestroy(second), 507000);
    OK(aclrtSetDevice(0));
    CHECK_EQ(held(pool), 0);
    OK(aclrtMemPoolDestroy(pool));
}

TEST(exhaustion_names_the_limit)
{
    void *p = NULL;
    start("1GiB");
    aclrtMemPool pool = make_pool(63 * MIB, 0); /* rounded up to 64 MiB */
    aclrtStream s = make_stream();
    char *a = take(40 * MIB, pool, s);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 40 * MIB, pool, s), 507000);
    char text[2048];
    snprintf(text, sizeof(text), "%s", aclGetRecentErrMsg());
    CHECK(strstr(text, "67108864") != NULL && strstr(text, "41943040") != NULL);
    CHECK_EQ(aclrtGetLastError(0), 507000);
    give(a, s);
    a = take(64 * MIB, pool, s);
    CHECK_EQ(held(pool), 64 * MIB);
    give(a, s);
    OK(aclrtMemPoolDestroy(pool));
}

TEST(trim)
{
    start("1GiB");
    aclrtMemPool pool = make_pool(200 * MIB, KEEP_ALL);
    aclrtStream s = make_stream();
    char *a = take(64 * MIB, pool, s), *b = take(64 * MIB, pool, s);
    give(b, s);
    sync_stream(s);
    CHECK_EQ(held(pool), 128 * MIB);
    CHECK_ACL(aclrtMemPoolTrimTo(pool, 200 * MIB + 1), 507000);
    CHECK_ACL(aclrtMemPoolTrimTo(pool, 64 * MIB - 1), 507000);
    CHECK_MESSAGE("minBytesToKeep 67108863 is less than is in use, 67108864 in 1 blocks");
    OK(aclrtMemPoolTrimTo(pool, 128 * MIB));
    CHECK_EQ(held(pool), 128 * MIB);
    OK(aclrtMemPoolTrimTo(pool, 96 * MIB));
    CHECK_EQ(held(pool), 96 * MIB);
    OK(aclrtMemPoolTrimTo(pool, 64 * MIB));
    CHECK_EQ(held(pool), 64 * MIB);
    CHECK_ACL(aclrtMemPoolTrimTo(NULL, 0), 100000);
    CHECK_ACL(aclrtMemPoolTrimTo(s, 0), 507000);
    give(a, s);
    sync_stream(s);
    OK(aclrtMemPoolTrimTo(pool, 0));
    CHECK_EQ(held(pool), 0);
}

TEST(peaks_go_back_to_zero)
{
    uint64_t zero = 0;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s = make_stream();
    char *a = take(64 * MIB, pool, s);
    give(a, s);
    a = take(32 * MIB, pool, s);
    CHECK_EQ(held_high(pool), 64 * MIB);
    CHECK_EQ(used_high(pool), 64 * MIB);
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &zero));
    CHECK_EQ(used_high(pool), 0);
    CHECK_EQ(held_high(pool), 64 * MIB);
    OK(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, &zero));
    CHECK_EQ(held_high(pool), 0);
    char *b = take(2 * MIB, pool, s);
    CHECK_EQ(used_high(pool), 34 * MIB);
    CHECK_EQ(held_high(pool), 64 * MIB);
    give(a, s);
    give(b, s);
}

TEST(what_a_block_can_do)
{
    enum { N = 3 * 1024 * 1024 };
    start("1GiB");
    aclrtMemPool pool = make_pool(0, 0);
    aclrtStream s = make_stream();
    char *a = take(N, pool, s), *back = NULL;
    OK(aclrtMallocHost((void **)&back, N));
    fill(a, 0x5a, N, s);
    OK(aclrtMemcpyAsync(back, N, a, N, ACL_MEMCPY_DEVICE_TO_HOST, s));
    sync_stream(s);
    CHECK(back[0] == 0x5a && back[N - 1] == 0x5a);
    OK(aclrtMemcpy(a, N, back, N, ACL_MEMCPY_HOST_TO_DEVICE));
    give(a, s);
    sync_stream(s);
}

/* Live blocks end with their pool; nothing waits, and what is queued still runs. */
TEST(destroying_a_pool_in_use)
{
    static struct hold hold;
    start("1GiB");
    size_t f0 = card_free();
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, 0);
    char *a = take(64 * MIB, pool, s);
    hold_stream(&hold, s);
    fill(a, 1, 64 * MIB, s);
    OK(aclrtMemPoolDestroy(pool)); /* returns although the stream is held */
    CHECK_ACL(aclrtMemPoolFreeAsync(a, s), 107000);
    let_go(&hold);
    sync_stream(s);
    CHECK_EQ(card_free(), f0);
    pool = make_pool(0, KEEP_ALL);
    a = take(64 * MIB, pool, s);
    OK(aclrtMemPoolDestroy(pool));
    CHECK_EQ(card_free(), f0);
}

TEST(pools_end_with_their_card)
{
    start("1GiB");
    size_t f0 = card_free();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s = make_stream();
    char *a = take(64 * MIB, pool, s);
    fill(a, 1, 64 * MIB, s);
    OK(aclrtResetDevice(0));
    CHECK_ACL(aclrtMemPoolDestroy(pool), 507000);
    OK(aclrtSetDevice(0));
    CHECK_EQ(card_free(), f0);
    pool = make_pool(0, KEEP_ALL);
    s = make_stream();
    a = take(64 * MIB, pool, s);
    OK(aclFinalize());
    CHECK_ACL(aclrtMemPoolDestroy(pool), 507000);
}

/* Pools of a context's streams stay usable from others. */
TEST(streams_end_before_the_pool)
{
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *blocks[64];
    for (int i = 0; i < 64; i++) {
        aclrtStream s = make_stream();
        blocks[i] = take(2 * MIB, pool, s);
        fill(blocks[i], i, 2 * MIB, s);
        OK(aclrtDestroyStream(s));
    }
    CHECK_EQ(used(pool), 128 * MIB);
    aclrtStream s = make_stream();
    for (int i = 0; i < 64; i++)
        give(blocks[i], s);
    sync_stream(s);
    CHECK_EQ(used(pool), 0);
    OK(aclrtMemPoolTrimTo(pool, 0));
    CHECK_EQ(held(pool), 0);
}

static aclrtMemPool shared_pool;

static void *churn(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    OK(aclrtSetDevice(0));
    aclrtStream s = make_stream();
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525u + 1013904223u;
        size_t size = (1 + (seed >> 24) % 4) * 2 * MIB;
        char *a = take(size, shared_pool, s);
        OK(aclrtMemsetAsync(a, size, (int)(seed & 0x7f), 64, s));
        char mark = 0;
        OK(aclrtMemcpyAsync(&mark, 1, a + 63, 1, ACL_MEMCPY_DEVICE_TO_HOST, s));
        sync_stream(s);
        CHECK_EQ(mark, seed & 0x7f);
        give(a, s);
    }
    sync_stream(s);
    OK(aclrtDestroyStream(s));
    return NULL;
}

TEST(many_threads)
{
    pthread_t threads[4];
    start("1GiB");
    size_t f0 = card_free();
    shared_pool = make_pool(0, 0);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_EQ(used(shared_pool), 0);
    OK(aclrtSynchronizeDevice());
    OK(aclrtMemPoolTrimTo(shared_pool, 0));
    CHECK_EQ(held(shared_pool), 0);
    CHECK_EQ(card_free(), f0);
}

TEST(a_forked_child_is_refused)
{
    uint64_t bytes = 0;
    void *p = NULL;
    start("1GiB");
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    aclrtStream s = make_stream();
    char *a = take(2 * MIB, pool, s);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK_ACL(aclrtMemPoolMallocAsync(&p, 1, pool, s), 507899);
        CHECK_ACL(aclrtMemPoolFreeAsync(a, s), 507899);
        CHECK_ACL(aclrtMemPoolTrimTo(pool, 0), 507899);
        CHECK_ACL(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, &bytes), 507899);
        CHECK_ACL(aclrtMemPoolDestroy(pool), 507899);
        CHECK_MESSAGE("was forked");
        exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(used(pool), 2 * MIB);
    give(a, s);
    sync_stream(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_of_create),
        cmocka_unit_test(attributes),
        cmocka_unit_test(arguments_in_the_order_of_streams),
        cmocka_unit_test(cards_are_kept_apart),
        cmocka_unit_test(exhaustion_names_the_limit),
        cmocka_unit_test(trim),
        cmocka_unit_test(peaks_go_back_to_zero),
        cmocka_unit_test(what_a_block_can_do),
        cmocka_unit_test(destroying_a_pool_in_use),
        cmocka_unit_test(pools_end_with_their_card),
        cmocka_unit_test(streams_end_before_the_pool),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(a_forked_child_is_refused),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
