/* SPDX-License-Identifier: Apache-2.0 */
/* Pools under the faults that real programs met (O-01, O-06, O-13, O-15, O-16, O-18, O-19, O-22,
 * O-24, O-25), through aclrtMemPool. */
#include "pool_test.h"

#include <inttypes.h>

/* All of these numbers are in the message that was left last. */
#define CHECK_NUMBERS(...)                                                                         \
    do {                                                                                           \
        const uint64_t numbers_[] = {__VA_ARGS__};                                                 \
        const char *said_ = aclGetRecentErrMsg();                                                  \
        CHECK(said_ != NULL);                                                                      \
        for (size_t i_ = 0; i_ < sizeof(numbers_) / sizeof(numbers_[0]); i_++) {                   \
            char number_[32];                                                                      \
            snprintf(number_, sizeof(number_), "%" PRIu64, numbers_[i_]);                          \
            if (strstr(said_, number_) == NULL)                                                    \
                fprintf(stderr, "no %s in: %s\n", number_, said_);                                 \
            CHECK(strstr(said_, number_) != NULL);                                                 \
        }                                                                                          \
    } while (0)

static void *device_block(size_t size)
{
    void *block = NULL;
    OK(aclrtMallocAlign32(&block, size, HUGE_FIRST));
    return block;
}

/* O-01: scratch of growing sizes beside a big block that goes away and comes back. */
TEST(cached_scratch_does_not_creep)
{
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    size_t f0 = card_free();
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtMemAccessDesc access = {ACL_RT_MEM_ACCESS_FLAGS_READWRITE, prop.location, {0}};
    aclrtDrvMemHandle handle = NULL;
    void *range = NULL;
    OK(aclrtMallocPhysical(&handle, 512 * MIB, &prop, 0));
    OK(aclrtReserveMemAddress(&range, 512 * MIB, 0, NULL, 1));
    OK(aclrtMapMem(range, 512 * MIB, 0, handle, 0));
    OK(aclrtMemSetAccess(range, 512 * MIB, &access, 1));
    for (size_t k = 1; k <= 5; k++) {
        size_t size = 64 * MIB + k * 2 * MIB;
        char *p = take(size, pool, s);
        fill(p, 1, size, s);
        give(p, s);
        sync_stream(s);
        OK(aclrtUnmapMem(range));
        OK(aclrtFreePhysical(handle));
        CHECK_EQ(held(pool), size);
        CHECK_EQ(used(pool), 0);
        CHECK_EQ(card_free(), f0 - size);
        OK(aclrtMallocPhysical(&handle, 512 * MIB, &prop, 0));
        OK(aclrtMapMem(range, 512 * MIB, 0, handle, 0));
    }
    OK(aclrtUnmapMem(range));
    OK(aclrtFreePhysical(handle));
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtMemPoolTrimTo(pool, 0));
    CHECK_EQ(held(pool), 0);
    CHECK_EQ(card_free(), f0);
}

/* O-06, of a pool and of one whose blocks are export-ready: exports are refused when they are made,
 * not when they are opened. ipc/test_pools opens them. */
static void export_blocks(bool ready)
{
    char key[65];
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = NULL;
    aclrtMemPoolProps props = pool_props(0);
    props.handleType = ready ? ACL_MEM_HANDLE_TYPE_POSIX : ACL_MEM_HANDLE_TYPE_NONE;
    OK(aclrtMemPoolCreate(&pool, &props));
    char *a1 = take(MIB, pool, s), *a2 = take(2 * MIB + 512, pool, s);
    char *a3 = take(64 * MIB, pool, s);
    CHECK_EQ((uintptr_t)a1 % (2 * MIB), 0);
    CHECK_EQ((uintptr_t)a2 % (2 * MIB), 0);
    CHECK_EQ((uintptr_t)a3 % (2 * MIB), 0);
    CHECK_EQ(used(pool), 70 * MIB);
    if (!ready) {
        CHECK_ACL(aclrtIpcMemGetExportKey(a3, 64 * MIB, key, sizeof(key), 1), 107000);
        CHECK_MESSAGE("ACL_MEM_HANDLE_TYPE_POSIX of aclrtMemPoolCreate");
        CHECK_ACL(aclrtIpcMemGetExportKey(a3 + 1049088, MIB, key, sizeof(key), 1), 107000);
        CHECK_MESSAGE("1049088 B behind the begin of one and 1048064 B before the next");
        return;
    }
    OK(aclrtIpcMemGetExportKey(a3, 64 * MIB, key, sizeof(key), 1));
    CHECK_ACL(aclrtIpcMemGetExportKey(a3 + 1049088, MIB, key, sizeof(key), 1), 107000);
    CHECK_MESSAGE("1049088 B behind one; 1048064 B more would reach the next");
    give(a3, s);
    give(a2, s);
    give(a1, s);
    sync_stream(s); /* what was exported is not idle, but gone */
    CHECK_EQ(held(pool), 0);
}

TEST(blocks_are_not_exported)
{
    export_blocks(false);
}

TEST(export_ready_blocks_are_exported)
{
    export_blocks(true);
}

/* O-13, grown on demand; the rest of it is of bly_pool and of two processes. */
TEST(held_is_what_was_needed)
{
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *a = take(100 * MIB, pool, s);
    CHECK_EQ(used(pool), 100 * MIB);
    CHECK_EQ(held(pool), 100 * MIB);
    give(a, s);
}

/* O-15: no limit of splitting, so the largest step is all that is held. */
TEST(steps_of_many_sizes)
{
    static const size_t sizes[] = {200, 100, 120, 140, 160};
    start("512MiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *kept = take(2 * MIB, pool, s);
    for (size_t i = 0; i < 5; i++) {
        char *a = take(sizes[i] * MIB, pool, s);
        fill(a, 1, sizes[i] * MIB, s);
        give(a, s);
    }
    CHECK_EQ(held(pool), 202 * MIB);
    CHECK_EQ(used_high(pool), 202 * MIB);
    CHECK_EQ(used(pool), 2 * MIB);
    give(kept, s);
}

/* The same where blocks above 64 MiB are not to be divided: each is memory of its own, and where
 * the card is full the idle ones go first. */
static void steps_that_are_not_divided(const char *hbm, size_t holds)
{
    static const size_t sizes[] = {200, 100, 120, 140, 160};
    setenv("BELAY_POOL_SPLIT", "64MiB", 1);
    start(hbm);
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *kept = take(2 * MIB, pool, s);
    for (size_t i = 0; i < 5; i++) {
        char *a = take(sizes[i] * MIB, pool, s);
        fill(a, 1, sizes[i] * MIB, s);
        give(a, s);
    }
    CHECK_EQ(held(pool), holds);
    CHECK_EQ(used_high(pool), 202 * MIB);
    CHECK_EQ(used(pool), 2 * MIB);
    give(kept, s);
    unsetenv("BELAY_POOL_SPLIT");
}

TEST(a_limit_of_splitting)
{
    steps_that_are_not_divided("1GiB", 722 * MIB);
}

TEST(a_limit_of_splitting_on_a_full_card)
{
    steps_that_are_not_divided("512MiB", 422 * MIB);
}

/* O-16, what can be seen without a checker: the same bytes, in the order of their stream. */
static void free_while_read(bool ordered, unsigned char want)
{
    static struct hold hold;
    start("1GiB");
    aclrtStream s1 = make_stream(), s2 = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    unsigned char *h = NULL;
    OK(aclrtMallocHost((void **)&h, 8 * MIB));
    char *a = take(8 * MIB, pool, s1);
    fill(a, 0x11, 8 * MIB, s1);
    order_behind(s2, s1);
    hold_stream(&hold, s2);
    OK(aclrtMemcpyAsync(h, 8 * MIB, a, 8 * MIB, ACL_MEMCPY_DEVICE_TO_HOST, s2));
    if (ordered)
        order_behind(s1, s2);
    give(a, s1);
    char *b = take(8 * MIB, pool, s1);
    CHECK(b == a); /* at once: nothing waits */
    fill(b, 0x22, 8 * MIB, s1);
    if (!ordered)
        sync_stream(s1);
    let_go(&hold);
    sync_stream(s2);
    sync_stream(s1);
    CHECK_EQ(h[0], want);
    CHECK_EQ(h[8 * MIB - 1], want);
    CHECK_EQ(held(pool), 8 * MIB);
}

TEST(reuse_in_the_order_of_the_stream)
{
    free_while_read(false, 0x22);
}

TEST(reuse_behind_the_reader)
{
    free_while_read(true, 0x11);
}

/* O-18: what waits for another stream is no leak, and not idle. */
TEST(memory_that_waits_for_a_stream)
{
    static struct hold hold;
    void *p = NULL;
    start("1GiB");
    size_t b = GIB - card_free();
    aclrtStream s1 = make_stream(), s2 = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *a = take(300 * MIB, pool, s1);
    order_behind(s2, s1);
    hold_stream(&hold, s2);
    fill(a, 1, 300 * MIB, s2);
    give(a, s2);
    char *second = take(300 * MIB, pool, s1), *third = take(300 * MIB, pool, s1);
    CHECK_EQ(used(pool), 600 * MIB);
    CHECK_EQ(held(pool), 900 * MIB);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, 300 * MIB, pool, s1), 507000);
    int32_t id = 0;
    OK(aclrtStreamGetId(s2, &id));
    char waits[96];
    const char *said = aclGetRecentErrMsg();
    CHECK(said != NULL);
    char text[4096];
    snprintf(text, sizeof(text), "%s", said);
    snprintf(waits, sizeof(waits), "314572800 B (300 MiB) waiting for stream %d", id);
    if (strstr(text, waits) == NULL)
        fprintf(stderr, "no '%s' in: %s\n", waits, text);
    CHECK(strstr(text, waits) != NULL);
    const size_t numbers[] = {600 * MIB, 124 * MIB - b};
    for (size_t i = 0; i < 2; i++) {
        char number[32];
        snprintf(number, sizeof(number), "%zu", numbers[i]);
        if (strstr(text, number) == NULL)
            fprintf(stderr, "no %s in: %s\n", number, text);
        CHECK(strstr(text, number) != NULL);
    }
    CHECK(strstr(text, "leak") == NULL);
    let_go(&hold);
    sync_stream(s2);
    char *again = take(300 * MIB, pool, s1);
    CHECK_EQ(held(pool), 900 * MIB);
    give(again, s1);
    give(second, s1);
    give(third, s1);
}

/* O-19: sizes that grow by 64 KiB, and the same in another order. */
TEST(sizes_that_grow)
{
    enum { N = 64 };
    start("512MiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(512 * MIB, KEEP_ALL);
    for (size_t i = 0; i < N; i++) {
        size_t n = 8 * MIB + i * 64 * KIB;
        char *p = take(n, pool, s);
        fill(p, (int)i, n, s);
        give(p, s);
    }
    sync_stream(s);
    CHECK_EQ(used_high(pool), 12 * MIB); /* 12517376 B in whole granules */
    CHECK_EQ(held_high(pool), 12 * MIB);
    CHECK_EQ(held(pool), 12 * MIB);
    for (size_t i = 0; i < N; i++) {
        size_t n = 8 * MIB + (i * 37 + 11) % N * 64 * KIB;
        char *p = take(n, pool, s);
        fill(p, (int)i, n, s);
        give(p, s);
    }
    sync_stream(s);
    CHECK_EQ(held_high(pool), 12 * MIB);
}

/* O-22: three blocks of 64 MiB, freed in the order 2, 1, 3. */
static void three_blocks(aclrtMemPool pool, aclrtStream s)
{
    char *a[3];
    for (int i = 0; i < 3; i++)
        a[i] = take(64 * MIB, pool, s);
    give(a[1], s);
    give(a[0], s);
    give(a[2], s);
}

TEST(the_release_threshold)
{
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, 0);
    size_t f0 = card_free();
    three_blocks(pool, s);
    CHECK_EQ(held(pool), 192 * MIB);
    CHECK_EQ(used(pool), 0);
    sync_stream(s);
    CHECK_EQ(held(pool), 0);
    CHECK_EQ(card_free(), f0);
    pool = make_pool(0, KEEP_ALL);
    three_blocks(pool, s);
    sync_stream(s);
    CHECK_EQ(held(pool), 192 * MIB);
    CHECK_EQ(used(pool), 0);
    CHECK_EQ(held_high(pool), 192 * MIB);
    CHECK_EQ(used_high(pool), 192 * MIB);
    OK(aclrtMemPoolTrimTo(pool, 64 * MIB));
    CHECK_EQ(held(pool), 64 * MIB);
    CHECK(pool_figure(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD) == KEEP_ALL);
    pool = make_pool(0, 100 * MIB);
    three_blocks(pool, s);
    sync_stream(s);
    CHECK_EQ(held(pool), 100 * MIB); /* whole granules */
}

/* The same by an event and by the device. */
TEST(the_threshold_counts_at_every_wait)
{
    aclrtEvent event = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, 0);
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    three_blocks(pool, s);
    OK(aclrtRecordEvent(event, s));
    CHECK_EQ(held(pool), 192 * MIB);
    OK(aclrtSynchronizeEvent(event));
    CHECK_EQ(held(pool), 0);
    three_blocks(pool, s);
    CHECK_EQ(held(pool), 192 * MIB);
    OK(aclrtSynchronizeDevice());
    CHECK_EQ(held(pool), 0);
    three_blocks(pool, s);
    OK(aclrtSynchronizeStreamWithTimeout(s, 1000 * TEST_SECONDS));
    CHECK_EQ(held(pool), 0);
}

/* O-24: 600 MiB idle in pieces of 100 MiB that are no neighbours, then 700 MiB. */
static aclrtMemPool pieces(aclrtStream s, char *between[6])
{
    char *a[6];
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    for (int i = 0; i < 6; i++) {
        a[i] = take(100 * MIB, pool, s);
        between[i] = take(2 * MIB, pool, s);
    }
    for (int i = 0; i < 6; i++)
        give(a[i], s);
    sync_stream(s);
    CHECK_EQ(held(pool), 612 * MIB);
    CHECK_EQ(used(pool), 12 * MIB);
    return pool;
}

TEST(a_retry_that_worked_leaves_nothing)
{
    char *between[6];
    void *p = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = pieces(s, between);
    char *big = take(700 * MIB, pool, s);
    CHECK_EQ(used(pool), 712 * MIB);
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtPeekAtLastError(0), 0);
    give(take(2 * MIB, pool, s), s);
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtGetLastError(0), 0);
    CHECK_ACL(aclrtMemPoolMallocAsync(&p, GIB, pool, s), 507000);
    p = device_block(4 * MIB);
    CHECK_EQ(aclrtPeekAtLastError(0), 507000); /* kept until it is read */
    CHECK_MESSAGE("1073741824");
    CHECK_EQ(aclrtGetLastError(0), 507000);
    CHECK_EQ(aclrtGetLastError(0), 0);
    give(big, s);
}

/* The same for an allocation that is not the pool's: the pool gives back what is idle. */
TEST(idle_memory_is_there_for_others)
{
    char *between[6];
    void *p = NULL;
    start("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = pieces(s, between);
    void *big = device_block(700 * MIB);
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtGetLastError(0), 0);
    CHECK_EQ(used(pool), 12 * MIB);
    CHECK(held(pool) < 324 * MIB);
    CHECK_ACL(aclrtMallocAlign32(&p, 2 * GIB, HUGE_FIRST), 207001);
    p = device_block(4 * MIB);
    CHECK_EQ(aclrtPeekAtLastError(0), 207001);
    CHECK_EQ(aclrtGetLastError(0), 207001);
    CHECK_EQ(aclrtGetLastError(0), 0);
    OK(aclrtFree(big));
}

/* O-25: idle memory of pools counts toward the cap, and goes first. */
TEST(a_cap_takes_idle_memory_first)
{
    void *p = NULL;
    setenv("BELAY_CAP", "400MiB", 1);
    start("1GiB");
    size_t b = GIB - card_free();
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    void *first = device_block(256 * MIB);
    CHECK_ACL(aclrtMallocAlign32(&p, 200 * MIB, HUGE_FIRST), 207001);
    CHECK_NUMBERS(400 * MIB, 256 * MIB + b, 144 * MIB - b, 200 * MIB, 56 * MIB + b, 768 * MIB - b);
    give(take(100 * MIB, pool, s), s);
    sync_stream(s);
    CHECK_EQ(held(pool), 100 * MIB);
    void *second = device_block(100 * MIB); /* 356 MiB and b, without the pool's 100 */
    CHECK(held(pool) <= 144 * MIB - b - 100 * MIB);
    OK(aclrtFree(first));
    OK(aclrtFree(second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_scratch_does_not_creep),
        cmocka_unit_test(blocks_are_not_exported),
        cmocka_unit_test(export_ready_blocks_are_exported),
        cmocka_unit_test(held_is_what_was_needed),
        cmocka_unit_test(steps_of_many_sizes),
        cmocka_unit_test(a_limit_of_splitting),
        cmocka_unit_test(a_limit_of_splitting_on_a_full_card),
        cmocka_unit_test(reuse_in_the_order_of_the_stream),
        cmocka_unit_test(reuse_behind_the_reader),
        cmocka_unit_test(memory_that_waits_for_a_stream),
        cmocka_unit_test(sizes_that_grow),
        cmocka_unit_test(the_release_threshold),
        cmocka_unit_test(the_threshold_counts_at_every_wait),
        cmocka_unit_test(a_retry_that_worked_leaves_nothing),
        cmocka_unit_test(idle_memory_is_there_for_others),
        cmocka_unit_test(a_cap_takes_idle_memory_first),
    };
    return cmocka_run_group_tests_name("pool cases", tests, NULL, NULL);
}
