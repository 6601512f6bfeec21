/* SPDX-License-Identifier: Apache-2.0 */
/* Card memory: allocation, free, figures; O-12, O-14 and O-25 as far as one process shows them. */
#include "acl_test.h"

static void start(const char *hbm)
{
    setenv("BELAY_HBM", hbm, 1);
    OK(aclrtSetDevice(0));
}

static uint32_t page_size(const void *p)
{
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(p, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
    CHECK_EQ(attributes.location.id, 0);
    return attributes.pageSize;
}

TEST(arguments_come_before_the_context)
{
    void *p = ANY_ADDRESS;
    CHECK_ACL(aclrtMalloc(&p, 0, HUGE_FIRST), 100000);
    CHECK_MESSAGE("100000 aclrtMalloc: size is 0");
    CHECK_ACL(aclrtMalloc(NULL, 1, HUGE_FIRST), 100000);
    CHECK_MESSAGE("100000 aclrtMalloc: devPtr is NULL");
    CHECK_ACL(aclrtMalloc(&p, SIZE_MAX, HUGE_FIRST), 100000);
    CHECK_ACL(aclrtMalloc(&p, SIZE_MAX - 62, HUGE_FIRST), 100000);
    CHECK_ACL(aclrtMalloc(&p, 1, HUGE_FIRST), 107002);
    CHECK_ACL(aclrtMallocAlign32(&p, 1, HUGE_FIRST), 107002);
    CHECK_ACL(aclrtMallocCached(&p, 1, HUGE_FIRST), 107002);
    CHECK_ACL(aclrtMallocWithCfg(&p, 1, HUGE_FIRST, NULL), 107002);
    CHECK_ACL(aclrtMallocForTaskScheduler(&p, 1, HUGE_FIRST, NULL), 107002);
    CHECK_ACL(aclrtMallocHost(&p, 0), 100000);
    CHECK_ACL(aclrtMallocHost(NULL, 1), 100000);
    CHECK_ACL(aclrtMallocHost(&p, 1), 107002);
    CHECK_ACL(aclrtFreeWithDevSync(ANY_ADDRESS), 107002);
    CHECK_ACL(aclrtMemFlush(NULL, 1), 100000);
    CHECK_ACL(aclrtMemFlush(ANY_ADDRESS, 0), 100000);
    CHECK_ACL(aclrtMemInvalidate(ANY_ADDRESS, 1), 107002);
    CHECK(p == ANY_ADDRESS);
    start("1GiB");
    CHECK_ACL(aclrtMalloc(&p, ((size_t)1 << 50) + 1, HUGE_FIRST), 107000);
    CHECK_ACL(aclrtMallocAlign32(&p, (size_t)1 << 50, HUGE_FIRST), 207001);
    CHECK(p == ANY_ADDRESS);
    OK(aclrtMemFlush(ANY_ADDRESS, 1));
    OK(aclrtMemInvalidate(ANY_ADDRESS, 1));
}

TEST(free_tells_what_is_wrong)
{
    void *p = NULL, *h = NULL, *plain = malloc(64);
    start("1GiB");
    CHECK_ACL(aclrtFree(NULL), 100000);
    CHECK_MESSAGE("100000 aclrtFree: devPtr is NULL");
    OK(aclrtMalloc(&p, 10000, HUGE_FIRST));
    OK(aclrtMallocHost(&h, 10000));
    CHECK_ACL(aclrtFree((char *)p + 512), 107000);
    CHECK_MESSAGE("512");
    CHECK_ACL(aclrtFree(h), 107000);
    CHECK_ACL(aclrtFree(plain), 107000);
    CHECK_ACL(aclrtFree(ANY_ADDRESS), 107000);
    CHECK_ACL(aclrtFreeHost(NULL), 100000);
    CHECK_ACL(aclrtFreeHost(p), 107000);
    CHECK_ACL(aclrtFreeHost(plain), 107000);
    CHECK_ACL(aclrtFreeHost((char *)h + 32), 107000);
    OK(aclrtFree(p));
    CHECK_ACL(aclrtFree(p), 107000);
    CHECK_MESSAGE("107000 aclrtFree: ");
    OK(aclrtFreeHost(h));
    CHECK_ACL(aclrtFreeHost(h), 107000);
    OK(aclrtMalloc(&p, 10000, HUGE_FIRST));
    OK(aclrtFreeWithDevSync(p));
    OK(aclrtMallocHost(&h, 1));
    OK(aclrtFreeHostWithDevSync(h));
    free(plain);
}

TEST(free_needs_no_context)
{
    void *p = NULL, *h = NULL;
    aclrtContext context = NULL;
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtMallocHost(&h, 4096));
    OK(aclrtFreeHost(h));
    OK(aclrtFree(p));
    OK(aclrtDestroyContext(context));
    CHECK_ACL(aclrtFree(p), 107000);
}

/* O-14: what is asked, what the rule makes of it, what stands behind it. */
TEST(rounding_of_small_blocks)
{
    void *p = NULL;
    start("1GiB");
    size_t before = free_bytes(ACL_HBM_MEM);
    for (int i = 0; i < 1000; i++)
        OK(aclrtMalloc(&p, 512, HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 4096000);
    size_t size = 0;
    OK(aclrtMemGetAddressRange(p, NULL, &size));
    CHECK_EQ(size, 544);
    before = free_bytes(ACL_HBM_MEM);
    for (int i = 0; i < 1000; i++)
        OK(aclrtMallocAlign32(&p, 512, HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 4096000);
    OK(aclrtMemGetAddressRange(p, NULL, &size));
    CHECK_EQ(size, 512);
}

TEST(rounding_of_large_blocks)
{
    void *p = NULL;
    size_t size = 0;
    start("1GiB");
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMalloc(&p, 2 * MIB, HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 4 * MIB);
    OK(aclrtMemGetAddressRange(p, NULL, &size));
    CHECK_EQ(size, 2097184);
    CHECK_EQ(page_size(p), 2 * MIB);
    before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMallocAlign32(&p, 2 * MIB, HUGE_FIRST));
    CHECK_EQ(before - free_bytes(ACL_HBM_MEM), 2 * MIB);
    OK(aclrtMallocAlign32(&p, MIB, HUGE_FIRST));
    CHECK_EQ(page_size(p), 4096);
    OK(aclrtMalloc(&p, MIB - 32, HUGE_FIRST));
    CHECK_EQ(page_size(p), 4096);
    OK(aclrtMalloc(&p, MIB, HUGE_FIRST));
    CHECK_EQ(page_size(p), 2 * MIB);
    OK(aclrtMallocWithCfg(&p, MIB, HUGE_FIRST, NULL));
    CHECK_EQ(page_size(p), 4096);
}

/* O-12: the free figure moves by exactly the pages of somebody else's blocks. */
TEST(free_figure_counts_pages)
{
    void *big = NULL, *small[63], *section = NULL;
    start("1GiB");
    OK(aclrtMallocAlign32(&big, 64 * MIB, HUGE_FIRST));
    for (int i = 0; i < 63; i++)
        OK(aclrtMalloc(&small[i], 4000, NORMAL_ONLY));
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMallocAlign32(&section, 32 * MIB, HUGE_FIRST));
    OK(aclrtFree(section));
    for (int i = 0; i < 63; i++)
        OK(aclrtFree(small[i]));
    CHECK_EQ(free_bytes(ACL_HBM_MEM) - before, 258048);
}

TEST(policies)
{
    void *p = NULL;
    start("4GiB");
    const struct {
        int policy;
        size_t size;
        uint32_t plain, with_config;
    } rows[] = {
        {0, MIB - 64, 4096, 4096},
        {0, 3 * MIB, 2 * MIB, 2 * MIB},
        {1, 100, 2 * MIB, 2 * MIB},
        {2, 3 * MIB, 4096, 4096},
        {3, 3 * MIB, 4096, 2 * MIB},
        {4, 100, 4096, 2 * MIB},
        {5, 3 * MIB, 4096, 4096},
        {6, 100, GIB, GIB},
        {7, 100, GIB, GIB},
        {8, 3 * MIB, 2 * MIB, 2 * MIB},
        {-1, 3 * MIB, 2 * MIB, 2 * MIB},
        {0x1002, 3 * MIB, 2 * MIB, 4096},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        aclrtMemMallocPolicy policy = (aclrtMemMallocPolicy)rows[i].policy;
        OK(aclrtMalloc(&p, rows[i].size, policy));
        CHECK_EQ(page_size(p), rows[i].plain);
        CHECK_EQ((uintptr_t)p % 512, 0);
        OK(aclrtFree(p));
        OK(aclrtMallocWithCfg(&p, rows[i].size, policy, NULL));
        CHECK_EQ(page_size(p), rows[i].with_config);
        OK(aclrtFree(p));
    }
    CHECK_ACL(aclrtMallocCached(&p, 100, HUGE_FIRST), 207000);
    CHECK_EQ(aclrtPeekAtLastError(0), 0);
    OK(aclrtMallocCached(&p, 4096 - 31, NORMAL_ONLY));
    CHECK_EQ(page_size(p), 4096);
    size_t size = 0;
    OK(aclrtMemGetAddressRange(p, NULL, &size));
    CHECK_EQ(size, 4096 + 32);
}

TEST(giant_pages_need_a_model_that_has_them)
{
    void *p = NULL;
    size_t free_now = 7, total = 7;
    setenv("BELAY_MODEL", "310P", 1);
    start("4GiB");
    CHECK_ACL(aclrtMalloc(&p, GIB, ACL_MEM_MALLOC_HUGE1G_ONLY), 207000);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM_HUGE1G, &free_now, &total), 207000);
    CHECK_EQ(free_now, 7);
    OK(aclrtGetMemInfo(ACL_DDR_MEM, &free_now, &total));
    CHECK_EQ(total, 4 * GIB);
    CHECK_EQ(free_now, free_bytes(ACL_HBM_MEM));
}

TEST(attributes_of_an_allocation)
{
    void *p = ANY_ADDRESS;
    aclrtMallocAttribute attrs[4] = {
        {.attr = ACL_RT_MEM_ATTR_RSV},
        {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 3},
        {.attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 65535},
        {.attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 0},
    };
    aclrtMallocConfig config = {attrs, 4};
    setenv("BELAY_CARDS", "2", 1);
    start("1GiB");
    OK(aclrtMallocWithCfg(&p, 100, HUGE_FIRST, &config));
    OK(aclrtFree(p));
    OK(aclrtMallocForTaskScheduler(&p, 100, HUGE_FIRST, &config));
    OK(aclrtFree(p));
    p = ANY_ADDRESS;
    attrs[3].value.deviceId = 1;
    CHECK_ACL(aclrtMallocWithCfg(&p, 100, HUGE_FIRST, &config), 107000);
    attrs[3] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 0};
    CHECK_ACL(aclrtMallocWithCfg(&p, 100, HUGE_FIRST, &config), 107000);
    attrs[3].attr = (aclrtMallocAttrType)9;
    CHECK_ACL(aclrtMallocWithCfg(&p, 100, HUGE_FIRST, &config), 107000);
    config.attrs = NULL;
    CHECK_ACL(aclrtMallocWithCfg(&p, 100, HUGE_FIRST, &config), 100000);
    CHECK_ACL(aclrtMallocHostWithCfg(&p, 100, &config), 100000);
    config = (aclrtMallocConfig){attrs, 1};
    attrs[0] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_DEVICE_ID};
    CHECK_ACL(aclrtMallocHostWithCfg(&p, 100, &config), 107000);
    attrs[0] = (aclrtMallocAttribute){.attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1};
    CHECK(p == ANY_ADDRESS);
    OK(aclrtMallocHostWithCfg(&p, 100, &config));
    OK(aclrtFreeHost(p));
    attrs[0].value.vaFlag = 0;
    OK(aclrtMallocHostWithCfg(&p, 100, &config));
    OK(aclrtFreeHost(p));
    OK(aclrtMallocHostWithCfg(&p, 100, NULL));
    OK(aclrtFreeHost(p));
}

TEST(memory_info)
{
    size_t free_now = 5, total = 5;
    setenv("BELAY_HBM", "4GiB", 1);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total), 100000);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, NULL), 100000);
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total), 107002);
    start("4GiB");
    CHECK_ACL(aclrtGetMemInfo((aclrtMemAttr)18, &free_now, &total), 107016);
    CHECK_ACL(aclrtGetMemInfo((aclrtMemAttr)-1, &free_now, &total), 107016);
    CHECK_EQ(free_now, 5);
    for (int attr = 0; attr <= 17; attr++) {
        OK(aclrtGetMemInfo((aclrtMemAttr)attr, &free_now, &total));
        CHECK(free_now <= total);
        bool is_ddr = attr == 0 || attr == 2 || attr == 3 || attr == 6 || attr == 7;
        CHECK_EQ(total, is_ddr ? 0 : 4 * GIB);
    }
    void *p = NULL;
    OK(aclrtMalloc(&p, 4000, NORMAL_ONLY));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_NORMAL), 2 * MIB - 4096);
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE) + free_bytes(ACL_HBM_MEM_NORMAL),
             free_bytes(ACL_HBM_MEM));
    CHECK_EQ(free_bytes(ACL_HBM_MEM_HUGE1G), 3 * GIB);
}

TEST(what_an_address_is)
{
    aclrtPtrAttributes attributes;
    void *p = NULL, *h = NULL, *base = NULL;
    int local = 0;
    size_t size = 0;
    CHECK_ACL(aclrtPointerGetAttributes(NULL, &attributes), 100000);
    CHECK_ACL(aclrtPointerGetAttributes(&local, NULL), 100000);
    OK(aclrtPointerGetAttributes(&local, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
    start("1GiB");
    OK(aclrtMalloc(&p, 3 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost(&h, 100));
    OK(aclrtPointerGetAttributes((char *)p + MIB, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
    OK(aclrtPointerGetAttributes(h, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    CHECK_EQ(attributes.pageSize, 4096);
    OK(aclrtPointerGetAttributes(ANY_ADDRESS, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);

    CHECK_ACL(aclrtMemGetAddressRange(NULL, &base, &size), 100000);
    CHECK_ACL(aclrtMemGetAddressRange(p, NULL, NULL), 107000);
    CHECK_ACL(aclrtMemGetAddressRange(&local, &base, &size), 107000);
    OK(aclrtMemGetAddressRange((char *)p + 17, &base, &size));
    CHECK(base == p);
    CHECK_EQ(size, 3 * MIB + 32);

    void *list[3] = {p, (char *)p + 1, h};
    uint32_t result = 9;
    CHECK_ACL(aclrtCheckMemType(NULL, 1, 2, &result, 0), 100000);
    CHECK_ACL(aclrtCheckMemType(list, 1, 2, &result, 1), 100000);
    CHECK_EQ(result, 9);
    OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV, &result, 0));
    CHECK_EQ(result, 1);
    OK(aclrtCheckMemType(list, 3, ACL_RT_MEM_TYPE_DEV, &result, 0));
    CHECK_EQ(result, 0);
    OK(aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DVPP, &result, 0));
    CHECK_EQ(result, 0);
    OK(aclrtFree(p));
    OK(aclrtPointerGetAttributes(p, &attributes));
    CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

TEST(usage_by_module)
{
    aclrtMemUsageInfo rows[8];
    size_t n = 0;
    void *p = NULL;
    start("1GiB");
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    CHECK_ACL(aclrtGetMemUsageInfo(0, NULL, 8, &n), 100000);
    CHECK_ACL(aclrtGetMemUsageInfo(0, rows, 8, NULL), 100000);
    CHECK_ACL(aclrtGetMemUsageInfo(0, rows, 0, &n), 100000);
    CHECK_ACL(aclrtGetMemUsageInfo(1, rows, 8, &n), 107000);
    OK(aclrtGetMemUsageInfo(0, rows, 8, &n));
    CHECK(n >= 1);
    CHECK_EQ(rows[0].curMemSize, 64 * MIB);
    OK(aclrtFree(p));
    OK(aclrtGetMemUsageInfo(0, rows, 1, &n));
    CHECK_EQ(n, 1);
}

/* O-25: the cap, not the card, with the numbers. */
TEST(a_cap_is_told_as_one)
{
    void *p = NULL, *q = NULL;
    size_t free_now = 0, total = 0;
    setenv("BELAY_CAP", "400MiB", 1);
    start("1GiB");
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total));
    CHECK_EQ(total, GIB);
    size_t b = total - free_now;
    CHECK(b > 0 && b < 64 * MIB);
    OK(aclrtMallocAlign32(&p, 256 * MIB, HUGE_FIRST));
    CHECK_ACL(aclrtMallocAlign32(&q, 200 * MIB, HUGE_FIRST), 207001);
    char text[2048];
    snprintf(text, sizeof(text), "%s", aclGetRecentErrMsg());
    const size_t numbers[] = {
        400 * MIB,     /* cap */
        256 * MIB + b, /* used */
        144 * MIB - b, /* left */
        200 * MIB,     /* asked */
        56 * MIB + b,  /* short by */
        768 * MIB - b, /* free on the card */
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char number[32];
        snprintf(number, sizeof(number), "%zu", numbers[i]);
        if (strstr(text, number) == NULL)
            fprintf(stderr, "no %s in: %s\n", number, text);
        CHECK(strstr(text, number) != NULL);
    }
    CHECK_EQ(aclrtGetLastError(0), 207001);
    OK(aclrtMallocAlign32(&q, 100 * MIB, HUGE_FIRST));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), free_now - 356 * MIB);
}

TEST(a_full_card_names_numbers_and_stays_whole)
{
    void *p = NULL, *q = ANY_ADDRESS;
    start("1GiB");
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMallocAlign32(&p, 512 * MIB, HUGE_FIRST));
    CHECK_ACL(aclrtMallocAlign32(&q, 768 * MIB, HUGE_FIRST), 207001);
    CHECK(q == ANY_ADDRESS);
    char number[32];
    snprintf(number, sizeof(number), "%zu", before - 512 * MIB);
    CHECK_MESSAGE(number);
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtGetLastError(0), 207001);
    OK(aclrtFree(p));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
}

/* Counted page by page: the figures of statm lag behind by some pages for each processor. */
static size_t resident_bytes(void)
{
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    CHECK(file != NULL && fscanf(file, "%*[^\n] Rss: %lu kB", &kib) == 1);
    fclose(file);
    return kib * KIB;
}

/* O-20: exact sizes, and everything comes back. */
TEST(pinned_memory_is_not_rounded_up)
{
    void *blocks[17], *p = NULL;
    const size_t slack = 32 * MIB; /* sanitizers keep freed bookkeeping for a while */
    start("1GiB");
    size_t before = resident_bytes();
    for (int i = 0; i < 17; i++)
        OK(aclrtMallocHost(&blocks[i], 17 * MIB));
    size_t taken = resident_bytes() - before;
    CHECK(taken >= 289 * MIB && taken < 295 * MIB);
    for (int i = 0; i < 17; i++)
        OK(aclrtFreeHost(blocks[i]));
    CHECK(resident_bytes() < before + slack);
    for (int i = 0; i < 2000; i++) {
        OK(aclrtMallocHost(&p, MIB));
        OK(aclrtFreeHost(p));
    }
    CHECK(resident_bytes() < before + slack);
}

TEST(pinned_memory_has_limits)
{
    setenv("BELAY_PIN_LIMIT", "64MiB", 1);
    setenv("BELAY_PIN_CEILING", "48MiB", 1);
    void *p = NULL, *q = NULL;
    start("1GiB");
    CHECK_ACL(aclrtMallocHost(&p, 49 * MIB), 207001);
    CHECK_MESSAGE("50331648"); /* the ceiling */
    OK(aclrtMallocHost(&p, 40 * MIB));
    CHECK_ACL(aclrtMallocHost(&q, 32 * MIB), 207001);
    CHECK_MESSAGE("67108864"); /* the limit */
    OK(aclrtFreeHost(p));
    OK(aclrtMallocHost(&q, 32 * MIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_come_before_the_context),
        cmocka_unit_test(free_tells_what_is_wrong),
        cmocka_unit_test(free_needs_no_context),
        cmocka_unit_test(rounding_of_small_blocks),
        cmocka_unit_test(rounding_of_large_blocks),
        cmocka_unit_test(free_figure_counts_pages),
        cmocka_unit_test(policies),
        cmocka_unit_test(giant_pages_need_a_model_that_has_them),
        cmocka_unit_test(attributes_of_an_allocation),
        cmocka_unit_test(memory_info),
        cmocka_unit_test(what_an_address_is),
        cmocka_unit_test(usage_by_module),
        cmocka_unit_test(a_cap_is_told_as_one),
        cmocka_unit_test(pinned_memory_is_not_rounded_up),
        cmocka_unit_test(pinned_memory_has_limits),
        cmocka_unit_test(a_full_card_names_numbers_and_stays_whole),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
