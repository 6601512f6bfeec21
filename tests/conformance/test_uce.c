/* SPDX-License-Identifier: Apache-2.0 */
/* Memory errors that cannot be corrected: who hears of them, and repair. */
#include "acl_test.h"

#include <belay/card.h>
#include <belay/kernel.h>

enum { SIZE = 1 << 20 };

static char *card, host[SIZE];
static aclrtStream stream;
static aclrtMemUceInfo infos[128];

static void start(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&card, SIZE, HUGE_FIRST));
    OK(aclrtMemset(card, SIZE, 1, SIZE));
}

static size_t n_errors(int32_t device)
{
    size_t n = 99;
    OK(aclrtGetMemUceInfo(device, infos, 128, &n));
    return n;
}

static void poison(size_t offset, size_t size)
{
    CHECK_EQ(bly_card_poison(card + offset, size), BLY_OK);
}

TEST(whoever_touches_it_is_told)
{
    start();
    poison(1000, 64);
    CHECK_EQ(n_errors(0), 0); /* nobody has found it */
    OK(aclrtMemcpy(host, SIZE, card, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
    OK(aclrtMemcpy(host, SIZE, card + 1064, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_ACL(aclrtMemcpy(host, SIZE, card, 1001, ACL_MEMCPY_DEVICE_TO_HOST), 507053);
    CHECK_MESSAGE("uncorrectable memory error, 64 bytes at");
    CHECK_EQ(n_errors(0), 1);
    CHECK(infos[0].addr == card + 1000 && infos[0].len == 64);
    CHECK_ACL(aclrtMemset(card, SIZE, 0, SIZE), 507053);
    OK(aclrtMemsetAsync(card, SIZE, 0, SIZE, stream));
    CHECK_ACL(aclrtSynchronizeStream(stream), 507053);
    OK(aclrtMemcpy(host, SIZE, card, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(host[0], 1); /* a copy or set that fails has changed nothing */
}

static void touch(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)block, (void)n_blocks;
    **(char *const *)args = 9;
}

TEST(kernels_are_told_by_what_they_declare)
{
    bly_range range = {NULL, 64, BLY_WRITE};
    bly_kernel_opts opts = bly_kernel_opts_default();
    start();
    poison(0, 8);
    range.address = card;
    opts.ranges = &range;
    opts.n_ranges = 1;
    CHECK_EQ(bly_kernel_launch(touch, &card, sizeof(card), &opts, stream), BLY_OK);
    CHECK_ACL(aclrtSynchronizeStream(stream), 507053);
    CHECK_MESSAGE("touch did not run");
    CHECK_EQ(n_errors(0), 1);
}

/* The way that frameworks take: the error, what the card knows, abort, repair, data again. */
TEST(repair_makes_it_good_again)
{
    aclrtErrorInfo info;
    start();
    poison(4096, 4096);
    poison(100, 4);
    CHECK_ACL(aclrtMemcpy(host, SIZE, card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST), 507053);
    CHECK_EQ(n_errors(0), 2);
    OK(aclrtGetErrorVerbose(0, &info));
    CHECK_EQ(info.errorType, ACL_RT_ERROR_MEMORY);
    CHECK(info.tryRepair == 1 && info.hasDetail == 1);
    CHECK_EQ(info.detail.uceInfo.arraySize, 2);
    CHECK(info.detail.uceInfo.memUceInfoArray[1].addr == card + 100);
    OK(aclrtDeviceTaskAbort(0, 1000));

    infos[1].len++; /* one that is none: nothing is repaired */
    CHECK_ACL(aclrtMemUceRepair(0, infos, 2), 107000);
    CHECK_MESSAGE("no memory error that card 0 found");
    infos[1].len--;
    infos[1].reserved[13] = 1;
    CHECK_ACL(aclrtMemUceRepair(0, infos, 2), 100000);
    infos[1].reserved[13] = 0;
    CHECK_EQ(n_errors(0), 2);
    OK(aclrtMemUceRepair(0, infos, 1));
    OK(aclrtGetErrorVerbose(0, &info));
    CHECK_EQ(info.detail.uceInfo.arraySize, 1);
    OK(aclrtRepairError(0, &info));
    CHECK_ACL(aclrtRepairError(0, &info), 107000);
    OK(aclrtGetErrorVerbose(0, &info));
    CHECK_EQ(info.errorType, ACL_RT_NO_ERROR);
    OK(aclrtMemcpy(host, SIZE, card, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t i = 0; i < 10000; i++)
        CHECK_EQ(host[i], (i >= 4096 && i < 8192) || (i >= 100 && i < 104) ? 0 : 1);
}

TEST(errors_belong_to_their_device)
{
    char *far = NULL;
    size_t n = 7;
    setenv("BELAY_CARDS", "2", 1);
    start();
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc((void **)&far, SIZE, HUGE_FIRST));
    CHECK_EQ(bly_card_poison(far, 8), BLY_OK);
    CHECK_ACL(aclrtMemset(far, 8, 0, 8), 507053);
    CHECK_EQ(n_errors(0), 0);
    CHECK_EQ(n_errors(1), 1);
    CHECK_ACL(aclrtMemUceRepair(0, infos, 1), 107000);
    CHECK_ACL(aclrtGetMemUceInfo(1, infos, 0, &n), 100000);
    CHECK_EQ(n, 7);
    CHECK_ACL(aclrtGetMemUceInfo(2, infos, 1, &n), 107001);
}

TEST(places_that_cannot_be)
{
    start();
    CHECK_EQ(bly_card_poison(card, 0), BLY_E_INVALID);
    CHECK_EQ(bly_card_poison(host, 8), BLY_E_INVALID);
    CHECK_EQ(bly_card_poison(card, SIZE_MAX / 4), BLY_E_FAULT);
    for (int i = 0; i < 128; i++)
        poison((size_t)i * 16, 8);
    CHECK_EQ(bly_card_poison(card + 4, 8), BLY_E_MEMORY_ERROR);
    CHECK_EQ(bly_card_poison(card + 4096, 8), BLY_E_STATE);
    CHECK(strstr(bly_last_error(), "128 places") != NULL);
    for (int i = 0; i < 128; i++)
        CHECK_ACL(aclrtMemset(card + i * 16, 8, 0, 8), 507053);
    CHECK_EQ(n_errors(0), 128);
    aclrtErrorInfo info;
    for (int left = 128; left > 0; left -= 20) { /* as many as the structure takes */
        OK(aclrtGetErrorVerbose(0, &info));
        CHECK_EQ(info.detail.uceInfo.arraySize, left < 20 ? left : 20);
        OK(aclrtRepairError(0, &info));
    }
    CHECK_EQ(n_errors(0), 0);
    char *gone = card;
    poison(0, 8);
    CHECK_ACL(aclrtMemset(card, 8, 0, 8), 507053);
    OK(aclrtFree(card)); /* repair of what is no longer there */
    CHECK_EQ(n_errors(0), 1);
    CHECK(infos[0].addr == gone);
    OK(aclrtMemUceRepair(0, infos, 1));
    CHECK_EQ(n_errors(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_touches_it_is_told),
        cmocka_unit_test(kernels_are_told_by_what_they_declare),
        cmocka_unit_test(repair_makes_it_good_again),
        cmocka_unit_test(errors_belong_to_their_device),
        cmocka_unit_test(places_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
