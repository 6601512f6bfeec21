/* SPDX-License-Identifier: Apache-2.0 */
/* Host registration, and what an address is: O-04, O-05, reference 9.7 and 11.3. */
#include "acl_test.h"

#include <belay/pointer.h>
#include <sys/mman.h>

static char *map_host(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void check_kind(const void *address, int32_t type, uint32_t id)
{
    aclrtPtrAttributes a;
    memset(&a, 0xff, sizeof a);
    OK(aclrtPointerGetAttributes(address, &a));
    CHECK_EQ(a.location.type, type);
    CHECK_EQ(a.location.id, id);
}

#define HOST         ACL_MEM_LOCATION_TYPE_HOST
#define DEVICE       ACL_MEM_LOCATION_TYPE_DEVICE
#define UNREGISTERED ACL_MEM_LOCATION_TYPE_UNREGISTERED

static bly_pointer info_of(const void *address)
{
    bly_pointer info = {.struct_size = sizeof info};
    CHECK_EQ(bly_pointer_info(address, &info), BLY_OK);
    return info;
}

/* O-04. */
TEST(ranges_that_are_not_page_aligned)
{
    void *d = NULL;
    char want[64];
    OK(aclrtSetDevice(0));
    char *m = map_host(4 * MIB), *q = m + 16;
    CHECK_ACL(aclrtHostRegister(q, MIB, ACL_HOST_REGISTER_MAPPED, &d), 107000);
    const char *text = aclGetRecentErrMsg();
    snprintf(want, sizeof want, "at %p:", (void *)q);
    CHECK(text != NULL && strstr(text, want) != NULL &&
          strstr(text, "multiple of 4096 B") != NULL &&
          strstr(text, "it is 16 bytes beyond one") != NULL);
    snprintf(want, sizeof want, "nearest aligned addresses are %p", (void *)m);
    CHECK(strstr(text, want) != NULL);
    CHECK(d == NULL);
    OK(aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    CHECK(d != NULL);
    CHECK_ACL(aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d), 507910);
    CHECK_MESSAGE("is registered already, at ");
    CHECK_ACL(aclrtHostRegister(m + 512 * KIB, MIB, ACL_HOST_REGISTER_MAPPED, &d), 507910);
    snprintf(want, sizeof want, "the range %p of 1048576 B (1 MiB) is registered", (void *)m);
    CHECK_MESSAGE(want);
    CHECK_ACL(aclrtHostUnregister(m + 4096), 507911);
    CHECK_MESSAGE("it is 4096 bytes inside the range");
    OK(aclrtHostUnregister(m));
    CHECK_ACL(aclrtHostUnregister(m), 507911);
    CHECK_MESSAGE("no range is registered there");
}

TEST(a_larger_alignment)
{
    void *d = NULL;
    setenv("BELAY_PIN_ALIGN", "64KiB", 1);
    OK(aclrtSetDevice(0));
    char *m = map_host(4 * MIB);
    m = (char *)(((uintptr_t)m + 65535) & ~(uintptr_t)65535);
    CHECK_ACL(aclrtHostRegister(m + 4096, MIB, ACL_HOST_REGISTER_MAPPED, &d), 107000);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL && strstr(text, "multiple of 65536 B (64 KiB)") != NULL &&
          strstr(text, "it is 4096 bytes beyond one") != NULL);
    OK(aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d));
}

TEST(registering)
{
    void *d = NULL, *card = NULL, *pinned = NULL;
    setenv("BELAY_PIN_LIMIT", "7MiB", 1);
    setenv("BELAY_PIN_CEILING", "4MiB", 1);
    char *m = map_host(8 * MIB);
    CHECK_ACL(aclrtHostRegister(m, MIB, ACL_HOST_REGISTER_MAPPED, &d), 107002);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtHostRegister(NULL, MIB, 0, &d), 100000);
    CHECK_ACL(aclrtHostRegister(m, 0, 0, &d), 100000);
    CHECK_ACL(aclrtHostRegister(m, MIB, 0, NULL), 100000);
    CHECK_ACL(aclrtHostRegister(m, MIB, (aclrtHostRegisterType)2, &d), 207000);
    CHECK_ACL(aclrtHostRegisterV2(m, MIB, 0), 107000);
    CHECK_ACL(aclrtHostRegisterV2(m, MIB, 1), 107000);
    CHECK_ACL(aclrtHostRegister(m, 5 * MIB, 0, &d), 207001);
    CHECK_MESSAGE("BELAY_PIN_CEILING");
    OK(aclrtHostRegister(m, 4 * MIB, (aclrtHostRegisterType)(4 | 8), &d));
    OK(aclrtHostRegisterV2(m + 4 * MIB, 3 * MIB, 0x10000000));
    CHECK_ACL(aclrtHostRegisterV2(m + 7 * MIB, MIB, 2), 207001);
    CHECK_MESSAGE("BELAY_PIN_LIMIT");
    OK(aclrtHostUnregister(m + 4 * MIB));
    OK(aclrtHostRegisterV2(m + 4 * MIB, 4096, 2));

    void *device = NULL;
    OK(aclrtHostGetDevicePointer(m + 4 * MIB, &device, 0));
    CHECK(device != NULL);
    void *inside = NULL;
    OK(aclrtHostGetDevicePointer(m + 4 * MIB + 100, &inside, 0));
    CHECK_EQ((char *)inside - (char *)device, 100);
    CHECK_ACL(aclrtHostGetDevicePointer(m + 4 * MIB, &device, 1), 100000);
    CHECK_ACL(aclrtHostGetDevicePointer(m + 6 * MIB, &device, 0), 107000);
    CHECK_ACL(aclrtHostGetDevicePointer(NULL, &device, 0), 100000);

    /* Neither memory of a card nor absent memory can be registered; a pinned block can, whole or
     * in part, as public programs do to learn its address on the device. */
    OK(aclrtMalloc(&card, 2 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost(&pinned, 4096));
    CHECK_ACL(aclrtHostRegister(card, 4096, 0, &d), 107000);
    OK(aclrtHostRegisterV2(pinned, 4096, ACL_HOST_REG_MAPPED));
    CHECK_ACL(aclrtHostRegister(pinned, 4096, 0, &d), 507910);
    OK(aclrtHostGetDevicePointer(pinned, &d, 0));
    OK(aclrtMemset(d, 4096, 7, 4096));
    CHECK(((char *)pinned)[4095] == 7);
    OK(aclrtHostUnregister(pinned));
    CHECK_ACL(aclrtHostRegister(pinned, 4097, 0, &d), 107000);
    CHECK_MESSAGE("the pinned block 0x");
    OK(aclrtFreeHost(pinned));
    CHECK_ACL(aclrtHostRegister(pinned, 4096, 0, &d), 107000);
    CHECK_MESSAGE("no live pinned block is there");
    CHECK_ACL(aclrtHostRegister((void *)(uintptr_t)4096, 4096, 0, &d), 107000);
    CHECK_MESSAGE("not all of it is mapped");

    /* Copies from registered memory do not block. */
    static struct hold hold;
    hold_stream(&hold, NULL);
    memset(m, 3, 2 * MIB);
    OK(aclrtMemcpyAsync(card, 2 * MIB, m, 2 * MIB, ACL_MEMCPY_HOST_TO_DEVICE, NULL));
    let_go(&hold);
    OK(aclrtSynchronizeStream(NULL));
    char *seen = map_host(2 * MIB);
    OK(aclrtMemcpy(seen, 2 * MIB, card, 2 * MIB, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(memcmp(seen, m, 2 * MIB) == 0);

    aclrtHostMemMapCapability can;
    OK(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_AIC, &can));
    CHECK_EQ(can, ACL_RT_HOST_MEM_MAP_SUPPORTED);
    OK(aclrtHostMemMapCapabilities(0, ACL_RT_HAC_TYPE_CCU, &can));
    CHECK_EQ(can, ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED);
    CHECK_ACL(aclrtHostMemMapCapabilities(3, ACL_RT_HAC_TYPE_CCU, &can), 107000);
    CHECK_ACL(aclrtHostMemMapCapabilities(0, (aclrtHacType)10, &can), 107000);
}

TEST(one_address_for_host_and_device)
{
    void *p = NULL, *d = NULL;
    aclrtMallocAttribute attribute = {.attr = ACL_RT_MEM_ATTR_VA_FLAG, .value.vaFlag = 1};
    aclrtMallocConfig config = {&attribute, 1};
    OK(aclrtSetDevice(0));
    OK(aclrtMallocHostWithCfg(&p, 4096, &config));
    OK(aclrtHostGetDevicePointer(p, &d, 0));
    CHECK(d == p);
    OK(aclrtFreeHost(p));
}

/* O-05. */
TEST(addresses_of_all_kinds)
{
    char *a = NULL, *c = NULL, *g = NULL;
    void *i = NULL, *d = NULL;
    int on_stack = 0;
    setenv("BELAY_CARDS", "2", 1);
    OK(aclrtSetDevice(1));
    OK(aclrtMallocAlign32((void **)&a, 4 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost((void **)&c, MIB));
    char *plain = map_host(MIB), *f = map_host(MIB);
    OK(aclrtHostRegister(f, MIB, ACL_HOST_REGISTER_MAPPED, &d));
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32((void **)&g, 4 * MIB, HUGE_FIRST));
    OK(aclrtFree(g));
    OK(aclrtReserveMemAddress(&i, 4 * MIB, 0, NULL, 0));

    check_kind(a, DEVICE, 1);
    check_kind(a + 5, DEVICE, 1);
    check_kind(c, HOST, 0);
    check_kind(plain, UNREGISTERED, 0);
    check_kind(&on_stack, UNREGISTERED, 0);
    check_kind(f, HOST, 0);
    check_kind(f + MIB - 1, HOST, 0);
    check_kind(f + MIB, UNREGISTERED, 0);
    check_kind(g, UNREGISTERED, 0);
    check_kind(a + 4 * MIB, UNREGISTERED, 0);
    check_kind(i, UNREGISTERED, 0);
    aclrtPtrAttributes attributes;
    CHECK_ACL(aclrtPointerGetAttributes(NULL, &attributes), 100000);
    CHECK_ACL(aclrtPointerGetAttributes(a, NULL), 100000);

    bly_pointer info = info_of(a + 5);
    CHECK_EQ(info.kind, BLY_POINTER_CARD);
    CHECK_EQ(info.card, 1);
    CHECK(info.base == a && info.offset == 5 && info.size == 4 * MIB && info.made_by != NULL);
    CHECK_EQ(info_of(c).kind, BLY_POINTER_PINNED);
    CHECK_EQ(info_of(plain).kind, BLY_POINTER_HOST);
    CHECK_EQ(info_of(f + 7).kind, BLY_POINTER_REGISTERED);
    info = info_of(g + 1);
    CHECK_EQ(info.kind, BLY_POINTER_FREED);
    CHECK(info.card == 0 && info.base == g && info.ended_by != NULL && info.offset == 1);
    info = info_of(a + 4 * MIB);
    CHECK_EQ(info.kind, BLY_POINTER_OUTSIDE);
    CHECK(info.card == 1 && info.base == NULL);
    info = info_of((char *)i + 9);
    CHECK_EQ(info.kind, BLY_POINTER_RESERVED);
    CHECK(info.base == i && info.offset == 9 && info.size == 4 * MIB);
    CHECK_EQ(info_of(NULL).kind, BLY_POINTER_NULL);

    char text[BLY_POINTER_TEXT];
    CHECK(strstr(bly_pointer_text(g, text, sizeof text), "freed memory of card 0") != NULL);
    CHECK(strstr(text, " us ago at ") != NULL);
    CHECK_EQ(bly_pointer_info(a, NULL), BLY_E_INVALID);
    bly_pointer small = {.struct_size = 16, .base = &on_stack};
    CHECK_EQ(bly_pointer_info(a, &small), BLY_OK);
    CHECK(small.kind == BLY_POINTER_CARD && small.base == &on_stack);

    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE, .location = {0, DEVICE}};
    aclrtDrvMemHandle h;
    OK(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0));
    OK(aclrtMapMem(i, 2 * MIB, 0, h, 0));
    check_kind((char *)i + 1, DEVICE, 0);
    CHECK_EQ(info_of(i).kind, BLY_POINTER_MAPPED);
    CHECK_EQ(info_of((char *)i + 2 * MIB).kind, BLY_POINTER_RESERVED);
    OK(aclrtUnmapMem(i));
    check_kind(i, UNREGISTERED, 0);
    info = info_of(i);
    CHECK(info.kind == BLY_POINTER_UNMAPPED && info.ended_by != NULL);
    OK(aclrtHostUnregister(f));
    check_kind(f, UNREGISTERED, 0);
    OK(aclrtFreeHost(c));
    CHECK_EQ(info_of(c).kind, BLY_POINTER_FREED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_that_are_not_page_aligned),
        cmocka_unit_test(a_larger_alignment),
        cmocka_unit_test(registering),
        cmocka_unit_test(one_address_for_host_and_device),
        cmocka_unit_test(addresses_of_all_kinds),
    };
    return cmocka_run_group_tests_name("register", tests, NULL, NULL);
}
