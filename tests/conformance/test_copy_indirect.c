/* SPDX-License-Identifier: Apache-2.0 */
/* Copies by descriptor, and by addresses that lie on the card. */
#include "acl_test.h"

#define INNER ACL_MEMCPY_INNER_DEVICE_TO_DEVICE

enum { SIZE = 4096 };

static char *from, *other, *to, *desc;
static void **words; /* on the card */
static aclrtStream stream;

static void start(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&from, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&other, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&to, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&desc, 256, HUGE_FIRST));
    OK(aclrtMalloc((void **)&words, 256, HUGE_FIRST));
    OK(aclrtMemset(from, SIZE, 1, SIZE));
    OK(aclrtMemset(other, SIZE, 2, SIZE));
    OK(aclrtMemset(to, SIZE, 0, SIZE));
}

static int byte_at(size_t offset)
{
    unsigned char byte = 0xee;
    OK(aclrtMemcpy(&byte, 1, to + offset, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

static void set_word(size_t index, const void *address)
{
    OK(aclrtMemcpy(words + index, sizeof(address), &address, sizeof(address),
                   ACL_MEMCPY_HOST_TO_DEVICE));
}

TEST(a_descriptor_copies)
{
    size_t size = 0;
    start();
    CHECK_ACL(aclrtGetMemcpyDescSize(ACL_MEMCPY_DEVICE_TO_DEVICE, &size), 207000);
    CHECK_ACL(aclrtGetMemcpyDescSize((aclrtMemcpyKind)8, &size), 100000);
    CHECK_EQ(size, 0);
    OK(aclrtGetMemcpyDescSize(INNER, &size));
    CHECK_EQ(size, 32);
    OK(aclrtSetMemcpyDesc(desc, INNER, from, to + 16, 100, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(byte_at(15) == 0 && byte_at(16) == 1 && byte_at(115) == 1 && byte_at(116) == 0);
}

/* What the descriptor says when the copy runs is what is copied. */
TEST(a_descriptor_is_read_in_stream_order)
{
    char *spare = NULL;
    struct hold hold;
    start();
    OK(aclrtMalloc((void **)&spare, 256, HUGE_FIRST));
    OK(aclrtSetMemcpyDesc(desc, INNER, from, to, 8, NULL));
    OK(aclrtSetMemcpyDesc(spare, INNER, other, to, 8, NULL));
    hold_stream(&hold, stream);
    OK(aclrtMemcpyAsync(desc, 256, spare, 32, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, stream));
    let_go(&hold);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(byte_at(0), 2);
}

TEST(descriptors_that_are_none)
{
    char host[64];
    setenv("BELAY_CARDS", "2", 1);
    start();
    CHECK_ACL(aclrtSetMemcpyDesc(desc, INNER, from, to, 0, NULL), 100000);
    CHECK_ACL(aclrtSetMemcpyDesc(desc, INNER, from, to, 8, host), 100000);
    CHECK_ACL(aclrtSetMemcpyDesc(desc, ACL_MEMCPY_DEFAULT, from, to, 8, NULL), 207000);
    CHECK_ACL(aclrtSetMemcpyDesc(desc, INNER, from, to, (4 * GIB) + 1, NULL), 107000);
    CHECK_ACL(aclrtSetMemcpyDesc(desc + 32, INNER, from, to, 8, NULL), 107000);
    CHECK_MESSAGE("not aligned to 64 bytes");
    CHECK_ACL(aclrtSetMemcpyDesc(desc, INNER, host, to, 8, NULL), 107000);
    CHECK_ACL(aclrtSetMemcpyDesc((void *)(((uintptr_t)host + 63) & ~(uintptr_t)63), INNER, from, to,
                                 8, NULL),
              107000);
    CHECK_ACL(aclrtMemcpyAsyncWithDesc(desc, INNER, NULL), 100000);
    OK(aclrtMemset(desc, 256, 0, 256));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    CHECK_MESSAGE("no copy descriptor");
    OK(aclrtSetMemcpyDesc(desc, INNER, from, to, 8, NULL));
    OK(aclrtFree(from));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    char *far = NULL;
    aclrtStream far_stream = NULL;
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc((void **)&far, 64, HUGE_FIRST));
    OK(aclrtCreateStream(&far_stream));
    CHECK_ACL(aclrtSetMemcpyDesc(desc, INNER, other, far, 8, NULL), 107000);
    CHECK_ACL(aclrtMemcpyAsyncWithDesc(desc, INNER, far_stream), 107000);
    CHECK_MESSAGE("no memory of card 1");
}

TEST(addresses_are_read_when_the_copy_runs)
{
    struct hold hold;
    start();
    set_word(0, to);
    set_word(1, from);
    set_word(2, other);
    OK(aclrtMemcpyAsyncWithOffset(words, 64, 32, (const void **)(words + 1), 32, 16, INNER,
                                  stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK(byte_at(31) == 0 && byte_at(32) == 1 && byte_at(63) == 1 && byte_at(64) == 0);
    hold_stream(&hold, stream);
    OK(aclrtMemcpyAsync(words + 1, 8, words + 2, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtMemcpyAsyncWithOffset(words, SIZE, 0, (const void **)(words + 1), 8, 0, INNER, stream));
    let_go(&hold);
    OK(aclrtSynchronizeStream(stream));
    CHECK(byte_at(0) == 2 && byte_at(8) == 0);
}

TEST(offsets_have_bounds)
{
    const void **src = NULL;
    start();
    src = (const void **)(words + 1);
    set_word(0, to);
    set_word(1, from);
    OK(aclrtMemcpyAsyncWithOffset(NULL, 0, 0, NULL, 0, 0, (aclrtMemcpyKind)99, NULL));
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 8, 0, ACL_MEMCPY_DEFAULT, stream),
              107000);
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(NULL, 8, 0, src, 8, 0, INNER, stream), 107000);
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 9, 0, INNER, stream), 107000);
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(words, 8, 1, src, 8, 0, INNER, stream), 107000);
    CHECK_MESSAGE("count 8 behind offset 1 is above destMax 8");
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(words, 8, 8, src, 1, 0, INNER, stream), 107000);
    CHECK_ACL(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 8, (size_t)1 << 48, INNER, stream),
              107000);
    CHECK_ACL(
        aclrtMemcpyAsyncWithOffset((void **)((char *)words + 4), 8, 0, src, 8, 0, INNER, stream),
        107000);
    CHECK_ACL(aclrtMemcpyAsyncWithOffset((void **)&to, 8, 0, src, 8, 0, INNER, stream), 107000);
    OK(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 8, (size_t)1 << 44, INNER, stream));
    OK(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 8, 0, INNER, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    CHECK_EQ(byte_at(0), 1); /* the next one ran */
    set_word(1, NULL);
    OK(aclrtMemcpyAsyncWithOffset(words, 8, 0, src, 8, 0, INNER, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507013);
    CHECK_MESSAGE("not both memory of card 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_copies),
        cmocka_unit_test(a_descriptor_is_read_in_stream_order),
        cmocka_unit_test(descriptors_that_are_none),
        cmocka_unit_test(addresses_are_read_when_the_copy_runs),
        cmocka_unit_test(offsets_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
