/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and sets: flow F1, kinds, the table of asynchronous directions, rows, words. */
#include "acl_test.h"

#include <pthread.h>

#define H2H      ACL_MEMCPY_HOST_TO_HOST
#define H2D      ACL_MEMCPY_HOST_TO_DEVICE
#define D2H      ACL_MEMCPY_DEVICE_TO_HOST
#define D2D      ACL_MEMCPY_DEVICE_TO_DEVICE
#define ANY      ACL_MEMCPY_DEFAULT
#define BUFFERED ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE

enum { SIZE = 4096 };

static char *pinned, *pinned2, *card, *card2;
static char plain[SIZE], plain2[SIZE];

static void start(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHost((void **)&pinned, SIZE));
    OK(aclrtMallocHost((void **)&pinned2, SIZE));
    OK(aclrtMalloc((void **)&card, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&card2, SIZE, HUGE_FIRST));
}

static void check_bytes(const void *memory, int byte, size_t size)
{
    static char seen[SIZE];
    OK(aclrtMemcpy(seen, SIZE, memory, size, ACL_MEMCPY_DEFAULT));
    for (size_t i = 0; i < size; i++)
        CHECK_EQ((unsigned char)seen[i], byte);
}

/* F1: stream-ordered round trip. */
TEST(round_trip)
{
    enum { N = 3 * 1024 * 1024 + 77 };
    unsigned char *a = NULL, *b = NULL;
    void *device = NULL;
    aclrtStream stream = NULL;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMallocHost((void **)&a, N));
    OK(aclrtMallocHost((void **)&b, N));
    OK(aclrtMalloc(&device, N, HUGE_FIRST));
    for (size_t i = 0; i < N; i++)
        a[i] = (unsigned char)(i * 131 >> 3);
    memset(b, 0xee, N);
    CHECK_ACL(aclrtMemcpyAsync(b, N - 1, device, N, D2H, stream), 107000);
    CHECK_EQ(b[0], 0xee);
    OK(aclrtMemcpyAsync(device, N, a, N, H2D, stream));
    OK(aclrtMemcpyAsync(b, N, device, N, D2H, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(memcmp(a, b, N) == 0);
    OK(aclrtFree(device));
    OK(aclrtFreeHost(a));
    OK(aclrtFreeHost(b));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

TEST(order_of_checks)
{
    char a[16] = "a", b[16] = "b";
    OK(aclrtMemcpy(NULL, 0, NULL, 0, (aclrtMemcpyKind)99));
    OK(aclrtMemcpyAsync(NULL, 0, NULL, 0, (aclrtMemcpyKind)99, ANY_ADDRESS));
    OK(aclrtMemset(NULL, 0, 0, 0));
    OK(aclrtMemsetAsync(NULL, 0, 0, 0, ANY_ADDRESS));
    OK(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 9, (aclrtMemcpyKind)99));
    OK(aclrtMemcpy2dAsync(NULL, 0, NULL, 0, 9, 0, (aclrtMemcpyKind)99, NULL));
    OK(aclrtMemsetD32(NULL, 0, 0, 0));
    CHECK_ACL(aclrtMemcpy(NULL, 16, b, 16, H2H), 100000);
    CHECK_ACL(aclrtMemcpy(a, 16, NULL, 16, H2H), 100000);
    CHECK_ACL(aclrtMemcpy(a, 16, b, 16, (aclrtMemcpyKind)6), 100000);
    CHECK_ACL(aclrtMemcpy(a, 16, b, 16, (aclrtMemcpyKind)-1), 100000);
    CHECK_ACL(aclrtMemcpy(a, 16, b, 16, H2H), 107002);
    start();
    CHECK_ACL(aclrtMemcpy(card, 10, plain, 11, H2D), 107000);
    CHECK_MESSAGE("107000 aclrtMemcpy: count 11 is above destMax 10");
    OK(aclrtMemcpy(card, 10, card, 10, D2D));
    CHECK_ACL(aclrtMemsetAsync(card, 10, 1, 11, NULL), 107000);
    CHECK_ACL(aclrtMemset(card, 10, 1, 11), 107000);
    CHECK_ACL(aclrtMemsetAsync(plain, 10, 1, 10, NULL), 107000);
    CHECK_ACL(aclrtMemset(NULL, 10, 1, 10), 100000);
}

/* The synchronous copy takes its direction from the addresses. */
TEST(synchronous_copies_in_every_direction)
{
    start();
    char *places[] = {pinned, pinned2, card, card2, plain, plain2};
    int byte = 1;
    for (size_t to = 0; to < 6; to++) {
        for (size_t from = 0; from < 6; from++) {
            if (to == from)
                continue;
            for (int kind = H2H; kind <= BUFFERED; kind++) {
                memset(plain2, byte, SIZE);
                OK(aclrtMemcpy(places[from], SIZE, plain2, SIZE, H2D));
                OK(aclrtMemcpy(places[to], SIZE, places[from], SIZE, (aclrtMemcpyKind)kind));
                check_bytes(places[to], byte, SIZE);
                byte = byte % 250 + 1;
            }
        }
    }
}

/* Rows: src, dst; columns: kinds 0 .. 4. 0: copies. */
TEST(asynchronous_directions)
{
    start();
    const struct {
        char *dst, *src;
        int codes[5];
    } rows[] = {
        {card, pinned, {0, 0, 0, 0, 0}},
        {pinned, card, {0, 0, 0, 0, 0}},
        {pinned2, pinned, {207000, 207000, 207000, 207000, 207000}},
        {card2, card, {0, 0, 0, 0, 0}},
        {card, plain, {107000, 0, 107000, 0, 0}},
        {plain, card, {107000, 107000, 0, 0, 0}},
        {plain, pinned, {207000, 0, 107000, 107000, 207000}},
        {pinned, plain, {207000, 107000, 0, 107000, 207000}},
        {plain2, plain, {207000, 0, 0, 0, 207000}},
    };
    int byte = 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int kind = 0; kind < 5; kind++, byte++) {
            static char fill[SIZE];
            memset(fill, byte, SIZE);
            OK(aclrtMemcpy(rows[i].src, SIZE, fill, SIZE, ANY));
            CHECK_ACL(
                aclrtMemcpyAsync(rows[i].dst, SIZE, rows[i].src, SIZE, (aclrtMemcpyKind)kind, NULL),
                rows[i].codes[kind]);
            OK(aclrtSynchronizeStream(NULL));
            if (rows[i].codes[kind] == 0)
                check_bytes(rows[i].dst, byte, SIZE);
        }
    }
    CHECK_EQ(aclrtGetLastError(0), 107000); /* the last one that is stored */
    CHECK_ACL(aclrtMemcpyAsync(card, SIZE, plain, SIZE, (aclrtMemcpyKind)6, NULL), 100000);
    CHECK_ACL(aclrtMemcpyAsync(card, SIZE, plain, SIZE, H2D, ANY_ADDRESS), 107017);
    CHECK_ACL(aclrtMemcpyAsyncWithCondition(card, SIZE, plain, SIZE, H2D, NULL), 107000);
    OK(aclrtMemcpyAsyncWithCondition(card, SIZE, pinned, SIZE, H2D, NULL));
}

TEST(buffered_copy_frees_its_source_at_once)
{
    struct hold hold;
    start();
    hold_stream(&hold, NULL);
    memset(pinned, 7, SIZE);
    OK(aclrtMemcpyAsync(card, SIZE, pinned, SIZE, BUFFERED, NULL));
    memset(pinned, 8, SIZE);
    CHECK_ACL(aclrtMemcpyAsync(pinned, SIZE, card, SIZE, BUFFERED, NULL), 107000);
    let_go(&hold);
    OK(aclrtSynchronizeStream(NULL));
    check_bytes(card, 7, SIZE);
    OK(aclrtMemcpyAsync(card, SIZE, plain, SIZE, BUFFERED, NULL));
    OK(aclrtSynchronizeStream(NULL));
}

/* Pinned memory: the call returns while the stream is held. */
TEST(pinned_copies_do_not_block)
{
    struct hold hold;
    aclrtStreamStatus status;
    start();
    hold_stream(&hold, NULL);
    memset(pinned, 5, SIZE);
    OK(aclrtMemcpyAsync(card, SIZE, pinned, SIZE, H2D, NULL));
    OK(aclrtMemsetAsync(card2, SIZE, 6, SIZE, NULL));
    OK(aclrtStreamQuery(NULL, &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    memset(pinned, 9, SIZE); /* read when the copy runs */
    let_go(&hold);
    OK(aclrtSynchronizeStream(NULL));
    check_bytes(card, 9, SIZE);
    check_bytes(card2, 6, SIZE);
}

static struct sleeper caller;

static void *release_when_it_waits(void *arg)
{
    until_it_sleeps(&caller);
    let_go(arg);
    return NULL;
}

/* Pageable memory: the call waits for the stream and copies before it returns. */
TEST(pageable_copies_block_in_order)
{
    struct hold hold;
    pthread_t thread;
    start();
    hold_stream(&hold, NULL);
    OK(aclrtMemsetAsync(card, SIZE, 3, SIZE, NULL));
    CHECK(pthread_create(&thread, NULL, release_when_it_waits, &hold) == 0);
    sleeper_begins(&caller);
    OK(aclrtMemcpyAsync(plain, SIZE, card, SIZE, D2H, NULL));
    CHECK_EQ(plain[0], 3);
    CHECK_EQ(plain[SIZE - 1], 3);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(rows)
{
    start();
    char a[4 * 8], b[4 * 8] = {0};
    for (int i = 0; i < 32; i++)
        a[i] = (char)i;
    CHECK_ACL(aclrtMemcpy2d(card, 7, a, 8, 8, 4, H2D), 100000);
    CHECK_ACL(aclrtMemcpy2d(card, 8, a, 7, 8, 4, H2D), 100000);
    CHECK_ACL(aclrtMemcpy2d(card, 8, a, 8, 8, 4, H2H), 100000);
    CHECK_ACL(aclrtMemcpy2d(card, 8, a, 8, 8, 4, (aclrtMemcpyKind)5), 100000);
    CHECK_ACL(aclrtMemcpy2d(NULL, 8, a, 8, 8, 4, H2D), 100000);
    CHECK_ACL(aclrtMemcpy2d(card2, 16, card, 16, 8, 4, D2D), 207000);
    CHECK_ACL(aclrtMemcpy2d(card2, 16, card, 16, 8, 4, ANY), 207000);
    CHECK_ACL(aclrtMemcpy2d(card, 8, a, 8, 8, 5242881, H2D), 107000);
    CHECK_ACL(aclrtMemcpy2d(card, 5000001, a, 5000001, 5000001, 1, H2D), 107000);
    OK(aclrtMemcpy2d(card, 16, a, 8, 5, 4, H2D));
    OK(aclrtMemcpy2dAsync(card2, 32, card, 16, 5, 4, D2D, NULL));
    OK(aclrtMemcpy2dAsync(b, 8, card2, 32, 5, 4, ANY, NULL));
    for (int row = 0; row < 4; row++) {
        CHECK(memcmp(b + row * 8, a + row * 8, 5) == 0);
        CHECK_EQ(b[row * 8 + 5], 0);
    }
    CHECK_ACL(aclrtMemcpy2dAsync(card, 8, a, 8, 8, 4, D2H, NULL), 107000);
    CHECK_ACL(aclrtMemcpy2dAsync(pinned2, 8, pinned, 8, 8, 4, ANY, NULL), 207000);
}

TEST(words)
{
    start();
    uint32_t seen[SIZE / 4];
    CHECK_ACL(aclrtMemsetD32(card + 1, SIZE, 1, 1), 100000);
    CHECK_ACL(aclrtMemsetD32(NULL, SIZE, 1, 1), 100000);
    CHECK_ACL(aclrtMemsetD32(plain, SIZE, 1, 1), 100000);
    CHECK_ACL(aclrtMemsetD32(card, 7, 1, 2), 107000);
    CHECK_ACL(aclrtMemsetD32(card, SIZE, 1, SIZE_MAX / 2), 107000);
    OK(aclrtMemsetD32(card, SIZE, 0x01020304, SIZE / 4));
    OK(aclrtMemcpy(seen, SIZE, card, SIZE, D2H));
    CHECK_EQ(seen[0], 0x01020304);
    CHECK_EQ(seen[SIZE / 4 - 1], 0x01020304);
    OK(aclrtMemsetD32Async(card, SIZE, 0xa1b2c3d4, SIZE / 4 - 1, NULL));
    OK(aclrtMemsetD32Async(pinned, SIZE, 0x55667788, 3, NULL));
    CHECK_EQ(((const uint32_t *)(void *)pinned)[2], 0x55667788);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtMemcpy(seen, SIZE, card, SIZE, D2H));
    CHECK_EQ(seen[SIZE / 4 - 2], (uint32_t)0xa1b2c3d4);
    CHECK_EQ(seen[SIZE / 4 - 1], 0x01020304);
}

/* Not documented, but what the driver does, and samples of the vendor rely on it. */
TEST(set_at_once_takes_any_host_memory)
{
    struct {
        char before, bytes[100], after;
    } own = {1, "something", 2};
    start();
    OK(aclrtMemset(own.bytes, sizeof(own.bytes), 0x17, sizeof(own.bytes)));
    check_bytes(own.bytes, 0x17, sizeof(own.bytes));
    CHECK_EQ(own.before, 1);
    CHECK_EQ(own.after, 2);
    CHECK_ACL(aclrtMemset(ANY_ADDRESS, 16, 0, 16), 107000);
    CHECK_ACL(aclrtMemset((void *)(uintptr_t) "constant", 4, 0, 4), 107000);
    CHECK_MESSAGE("cannot be written");
}

TEST(addresses_that_are_not_there)
{
    void *freed = NULL, *page = NULL;
    start();
    OK(aclrtMalloc(&freed, 4 * MIB, HUGE_FIRST));
    OK(aclrtMalloc(&page, 4096 - 32, NORMAL_ONLY));
    OK(aclrtFree(freed));
    CHECK_ACL(aclrtMemcpy(freed, 16, plain, 16, H2D), 107000);
    CHECK_ACL(aclrtMemset(freed, 16, 0, 16), 107000);
    CHECK_ACL(aclrtMemset(page, 1 << 30, 0, 1 << 30), 107000);
    CHECK_ACL(aclrtMemcpy(plain, 16, ANY_ADDRESS, 16, D2H), 107000);
    OK(aclrtMemsetAsync(freed, 16, 0, 16, NULL));
    CHECK_ACL(aclrtSynchronizeStream(NULL), 507013);
    CHECK_MESSAGE("507013 aclrtSynchronizeStream: ");
    CHECK_EQ(aclrtGetLastError(0), 507013);
    OK(aclrtSynchronizeStream(NULL)); /* told once */
}

TEST(between_cards)
{
    setenv("BELAY_CARDS", "2", 1);
    char *other = NULL;
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc((void **)&other, SIZE, HUGE_FIRST));
    start();
    OK(aclrtMemset(card, SIZE, 0x5a, SIZE));
    CHECK_ACL(aclrtMemcpy(other, SIZE, card, SIZE, D2D), 107000);
    CHECK_MESSAGE("card 0 has no access to the memory of card 1");
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtMemcpy(other, SIZE, card, SIZE, D2D));
    check_bytes(other, 0x5a, SIZE);
    OK(aclrtMemset(other, SIZE, 0x3c, SIZE));
    OK(aclrtMemcpyAsync(card, SIZE, other, SIZE, D2D, NULL));
    OK(aclrtSynchronizeStream(NULL));
    check_bytes(card, 0x3c, SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(order_of_checks),
        cmocka_unit_test(synchronous_copies_in_every_direction),
        cmocka_unit_test(asynchronous_directions),
        cmocka_unit_test(buffered_copy_frees_its_source_at_once),
        cmocka_unit_test(pinned_copies_do_not_block),
        cmocka_unit_test(pageable_copies_block_in_order),
        cmocka_unit_test(rows),
        cmocka_unit_test(words),
        cmocka_unit_test(set_at_once_takes_any_host_memory),
        cmocka_unit_test(addresses_that_are_not_there),
        cmocka_unit_test(between_cards),
    };
    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
