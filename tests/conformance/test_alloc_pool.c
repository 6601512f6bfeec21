/* SPDX-License-Identifier: Apache-2.0 */
/* BELAY_ALLOC=pool: aclrtMalloc from a pool of the card, with the rules and codes of aclrtMalloc.
 */
#include "pool_test.h"

#include <pthread.h>

static void start_pool(const char *hbm)
{
    setenv("BELAY_ALLOC", "pool", 1);
    start(hbm);
}

static char *block_of(size_t size)
{
    void *block = NULL;
    OK(aclrtMallocAlign32(&block, size, HUGE_FIRST));
    return block;
}

TEST(codes_are_the_same)
{
    void *p = ANY_ADDRESS;
    setenv("BELAY_ALLOC", "pool", 1);
    setenv("BELAY_HBM", "1GiB", 1);
    CHECK_ACL(aclrtMalloc(&p, 0, HUGE_FIRST), 100000);
    CHECK_ACL(aclrtMalloc(NULL, 1, HUGE_FIRST), 100000);
    CHECK_ACL(aclrtMalloc(&p, SIZE_MAX, HUGE_FIRST), 100000);
    CHECK_ACL(aclrtMalloc(&p, 1, HUGE_FIRST), 107002);
    start_pool("1GiB");
    CHECK_ACL(aclrtMalloc(&p, ((size_t)1 << 50) + 1, HUGE_FIRST), 107000);
    CHECK_ACL(aclrtMallocAlign32(&p, (size_t)1 << 50, HUGE_FIRST), 207001);
    CHECK_ACL(aclrtMallocAlign32(&p, 2 * GIB, HUGE_FIRST), 207001);
    CHECK_ACL(aclrtMallocAlign32(&p, GIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("1073741824");
    CHECK_ACL(aclrtMallocCached(&p, 1, HUGE_FIRST), 207000);
    CHECK(p == ANY_ADDRESS);
    char *a = block_of(1000);
    CHECK_EQ((uintptr_t)a % 512, 0);
    CHECK_ACL(aclrtFree(NULL), 100000);
    CHECK_ACL(aclrtFree(a + 512), 107000);
    OK(aclrtFree(a));
    CHECK_ACL(aclrtFree(a), 107000);
    CHECK_MESSAGE("freed");
    CHECK_EQ(aclrtGetLastError(0), 107000);
}

TEST(one_pool_serves_many_sizes)
{
    enum { N = 1000 };
    static void *blocks[N];
    start_pool("1GiB");
    size_t f0 = card_free();
    for (int i = 0; i < N; i++) {
        OK(aclrtMalloc(&blocks[i], 512, HUGE_FIRST)); /* 544 by rule */
        OK(aclrtMemset(blocks[i], 512, i & 0x7f, 512));
    }
    CHECK(f0 - card_free() <= 34 * MIB); /* 4000 KiB with a page for each */
    for (int i = 0; i < N; i++) {
        unsigned char mark = 0;
        OK(aclrtMemcpy(&mark, 1, (char *)blocks[i] + 511, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        CHECK_EQ(mark, i & 0x7f);
        OK(aclrtFree(blocks[i]));
    }
    char *large = block_of(900 * MIB); /* what was cached is no obstacle */
    OK(aclrtFree(large));
}

/* What needs pages of a kind has pages of its own. */
TEST(special_pages)
{
    void *p = NULL;
    aclrtPtrAttributes attributes;
    start_pool("4GiB");
    OK(aclrtMalloc(&p, 4096, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtPointerGetAttributes(p, &attributes));
    CHECK_EQ(attributes.pageSize, 2 * MIB);
    size_t before = card_free();
    OK(aclrtFree(p));
    CHECK_EQ(card_free(), before + 2 * MIB);
    OK(aclrtMalloc(&p, 4096, ACL_MEM_MALLOC_NORMAL_ONLY_P2P));
    OK(aclrtFree(p));
    OK(aclrtMalloc(&p, GIB, ACL_MEM_MALLOC_HUGE1G_ONLY));
    OK(aclrtFree(p));
    OK(aclrtMallocForTaskScheduler(&p, 4096, HUGE_FIRST, NULL));
    OK(aclrtFree(p));
}

/* A free with work behind it: the bytes are nobody else's until that has ended. */
TEST(a_free_behind_queued_work)
{
    static struct hold hold;
    unsigned char *h = NULL;
    start_pool("1GiB");
    aclrtStream s1 = make_stream(), s2 = make_stream();
    OK(aclrtMallocHost((void **)&h, 8 * MIB));
    char *a = block_of(8 * MIB);
    OK(aclrtMemset(a, 8 * MIB, 0x11, 8 * MIB));
    hold_stream(&hold, s1);
    OK(aclrtMemcpyAsync(h, 8 * MIB, a, 8 * MIB, ACL_MEMCPY_DEVICE_TO_HOST, s1));
    OK(aclrtFree(a));
    char *b = block_of(8 * MIB);
    CHECK(b != a);
    OK(aclrtMemsetAsync(b, 8 * MIB, 0x22, 8 * MIB, s2));
    sync_stream(s2);
    let_go(&hold);
    sync_stream(s1);
    CHECK_EQ(h[0], 0x11);
    CHECK_EQ(h[8 * MIB - 1], 0x11);
    OK(aclrtFree(b));
    OK(aclrtFreeHost(h));
}

/* O-25: what is idle goes before the cap is told. */
TEST(a_cap)
{
    void *p = NULL;
    setenv("BELAY_CAP", "400MiB", 1);
    start_pool("1GiB");
    char *a = block_of(256 * MIB);
    CHECK_ACL(aclrtMallocAlign32(&p, 200 * MIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("419430400");
    OK(aclrtFree(block_of(100 * MIB)));
    char *b = block_of(100 * MIB);
    OK(aclrtFree(a));
    a = block_of(250 * MIB);
    OK(aclrtFree(a));
    OK(aclrtFree(b));
}

TEST(free_in_stream_order)
{
    static struct hold hold;
    start_pool("1GiB");
    aclrtStream s = make_stream();
    char *a = block_of(8 * MIB);
    hold_stream(&hold, s);
    OK(aclrtMemsetAsync(a, 8 * MIB, 1, 8 * MIB, s));
    give(a, s);
    CHECK_ACL(aclrtFree(a), 107000);
    char *b = block_of(8 * MIB);
    CHECK(b != a);
    let_go(&hold);
    sync_stream(s);
    OK(aclrtFree(b));
}

TEST(reset_and_again)
{
    start_pool("1GiB");
    size_t f0 = card_free();
    for (int round = 0; round < 3; round++) {
        char *a = block_of(64 * MIB);
        OK(aclrtMemset(a, 64 * MIB, 1, 64 * MIB));
        OK(aclrtResetDevice(0));
        CHECK_ACL(aclrtFree(a), 107000);
        OK(aclrtSetDevice(0));
        CHECK_EQ(card_free(), f0);
    }
    OK(aclFinalize());
}

/* The pool's addresses and handles are not the program's to map, unmap or keep. */
static void check_closed(char *block)
{
    void *handle = NULL;
    aclrtMemAccessDesc desc = {.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
                               .location = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    aclrtPhysicalMemProp prop = {.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    CHECK_ACL(aclrtUnmapMem(block), 507899);
    CHECK_MESSAGE("is an address of a memory pool");
    CHECK_ACL(aclrtReleaseMemAddress(block), 107000);
    CHECK_ACL(aclrtMemSetAccess(block, 2 * MIB, &desc, 1), 107000);
    CHECK_ACL(aclrtMemRetainAllocationHandle(block, &handle), 107000);
    CHECK(handle == NULL);
    OK(aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    CHECK_ACL(aclrtMapMem(block + 64 * MIB, 2 * MIB, 0, handle, 0), 107000);
    CHECK_ACL(aclrtMemMapNoAccess(block + 64 * MIB, 2 * MIB, 0, handle, 0), 107000);
    CHECK_ACL(aclrtMemMapSelectedLink(block + 64 * MIB, 2 * MIB, block, 0), 107000);
    CHECK_MESSAGE("is an address of a memory pool");
    OK(aclrtFreePhysical(handle));
}

TEST(mappings_of_a_pool_are_its_own)
{
    start_pool("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, 0);
    char *a = block_of(4 * MIB), *b = take(4 * MIB, pool, s);
    check_closed(a);
    check_closed(b);
    OK(aclrtFree(a));
    give(b, s);
    OK(aclrtMemPoolDestroy(pool));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

static void check_range(char *block, size_t size)
{
    void *base = NULL, *list = block + 7;
    size_t length = 0;
    uint32_t is = 7;
    OK(aclrtMemGetAddressRange(block + 7, &base, &length));
    CHECK(base == block);
    CHECK_EQ(length, size);
    OK(aclrtCheckMemType(&list, 1, ACL_RT_MEM_TYPE_DEV, &is, 0));
    CHECK_EQ(is, 1);
    OK(aclrtCheckMemType(&list, 1, ACL_RT_MEM_TYPE_RSVD, &is, 0));
    CHECK_EQ(is, 0);
}

static void check_nothing(char *freed)
{
    void *base = NULL, *list = freed;
    uint32_t is = 7;
    aclrtPtrAttributes attributes;
    CHECK_ACL(aclrtMemGetAddressRange(freed, &base, NULL), 107000);
    OK(aclrtCheckMemType(&list, 1, ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_RSVD, &is, 0));
    CHECK_EQ(is, 0);
    OK(aclrtPointerGetAttributes(freed, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

TEST(what_an_address_is)
{
    void *a = NULL, *b = NULL;
    start_pool("1GiB");
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    OK(aclrtMalloc(&a, 3 * MIB, HUGE_FIRST));
    OK(aclrtMallocAlign32(&b, 1000, HUGE_FIRST));
    char *c = take(5 * MIB, pool, s);
    check_range(a, 3 * MIB + 32);
    check_range(b, 1024);
    check_range(c, 5 * MIB);
    OK(aclrtFree(a));
    OK(aclrtFree(b));
    give(c, s);
    check_nothing(a);
    check_nothing(b);
    check_nothing(c);
}

TEST(cards_reach_each_other)
{
    unsigned char mark = 0;
    setenv("BELAY_CARDS", "2", 1);
    start_pool("1GiB");
    aclrtMemPool pool = make_pool(0, 0);
    char *near = block_of(4 * MIB), *pooled = take(4 * MIB, pool, make_stream());
    OK(aclrtMemset(near, 4 * MIB, 1, 4 * MIB));
    OK(aclrtMemset(pooled, 4 * MIB, 2, 4 * MIB));
    OK(aclrtSetDevice(1));
    char *far = block_of(4 * MIB);
    CHECK_ACL(aclrtMemcpy(far, MIB, near, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
    CHECK_MESSAGE("card 1 has no access to the memory of card 0: it was not enabled");
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtMemcpy(far, 4 * MIB, near, 4 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(far, MIB, pooled, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(&mark, 1, far, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(mark, 2);
    OK(aclrtMemcpy(&mark, 1, far + 2 * MIB, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(mark, 1);
    OK(aclrtSetDevice(0)); /* one way */
    CHECK_ACL(aclrtMemcpy(near, MIB, far, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
}

/* The program's other pools give their idle memory before the cap is told; what was taken for a
 * request in vain is not kept. */
TEST(a_cap_and_another_pool)
{
    void *p = NULL;
    setenv("BELAY_CAP", "400MiB", 1);
    start_pool("1GiB");
    size_t free = card_free();
    aclrtStream s = make_stream();
    aclrtMemPool pool = make_pool(0, KEEP_ALL);
    char *a = block_of(256 * MIB);
    give(take(100 * MIB, pool, s), s);
    sync_stream(s);
    CHECK(free - card_free() >= 356 * MIB);
    char *b = block_of(100 * MIB);
    size_t used = free - card_free();
    CHECK(used <= 384 * MIB);
    CHECK_ACL(aclrtMallocAlign32(&p, 200 * MIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("short by 180355072 B"); /* 200 - (384 - 356) MiB: idle memory is room */
    CHECK_EQ(free - card_free(), used);
    OK(aclrtFree(a));
    OK(aclrtFree(b));
}

/* Idle memory goes until there is room in one piece, not only enough in all. */
TEST(a_page_of_a_gib_behind_idle_pieces)
{
    enum { N = 90 };
    static char *blocks[N];
    void *giant = NULL;
    start_pool("3GiB");
    for (int i = 0; i < N; i++)
        blocks[i] = block_of(32 * MIB);
    for (int i = 0; i < N; i += 2)
        OK(aclrtFree(blocks[i]));
    for (int i = 1; i < N; i += 2)
        OK(aclrtFree(blocks[i]));
    OK(aclrtMallocAlign32(&giant, GIB, ACL_MEM_MALLOC_HUGE1G_ONLY));
    OK(aclrtFree(giant));
}

TEST(others_on_a_full_card_are_named)
{
    void *p = NULL, *handle = NULL;
    aclrtPhysicalMemProp prop = {.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    start_pool("1GiB");
    OK(aclrtMallocPhysical(&handle, 512 * MIB, &prop, 0));
    OK(aclrtFree(block_of(2 * MIB)));
    CHECK_ACL(aclrtMallocAlign32(&p, 640 * MIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("; held: 536870912 B (512 MiB) in 1 orphan handle (physical memory, reachable "
                  "by no address) at ");
    OK(aclrtFreePhysical(handle));
}

static void *churn(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    char *held_blocks[16] = {NULL};
    unsigned char marks[16] = {0};
    OK(aclrtSetDevice(0));
    for (int i = 0; i < 2000; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t at = seed >> 28;
        if (held_blocks[at] != NULL) {
            unsigned char mark = 0;
            OK(aclrtMemcpy(&mark, 1, held_blocks[at], 1, ACL_MEMCPY_DEVICE_TO_HOST));
            CHECK_EQ(mark, marks[at]);
            OK(aclrtFree(held_blocks[at]));
        }
        marks[at] = (unsigned char)(seed & 0x7f);
        held_blocks[at] = block_of(64 + (seed >> 8) % (300 * KIB));
        OK(aclrtMemset(held_blocks[at], 64, marks[at], 64));
    }
    for (int i = 0; i < 16; i++)
        if (held_blocks[i] != NULL)
            OK(aclrtFree(held_blocks[i]));
    return NULL;
}

TEST(threads_with_their_own_blocks)
{
    pthread_t threads[4];
    start_pool("1GiB");
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    OK(aclrtFree(block_of(900 * MIB)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_the_same),
        cmocka_unit_test(one_pool_serves_many_sizes),
        cmocka_unit_test(special_pages),
        cmocka_unit_test(a_free_behind_queued_work),
        cmocka_unit_test(a_cap),
        cmocka_unit_test(free_in_stream_order),
        cmocka_unit_test(reset_and_again),
        cmocka_unit_test(threads_with_their_own_blocks),
        cmocka_unit_test(mappings_of_a_pool_are_its_own),
        cmocka_unit_test(what_an_address_is),
        cmocka_unit_test(cards_reach_each_other),
        cmocka_unit_test(a_cap_and_another_pool),
        cmocka_unit_test(a_page_of_a_gib_behind_idle_pieces),
        cmocka_unit_test(others_on_a_full_card_are_named),
    };
    return cmocka_run_group_tests_name("aclrtMalloc from a pool", tests, NULL, NULL);
}
