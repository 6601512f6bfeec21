/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved addresses, physical handles, mappings and rights, as AscendCL has them. */
#include "acl_test.h"

#define H2D ACL_MEMCPY_HOST_TO_DEVICE
#define D2H ACL_MEMCPY_DEVICE_TO_HOST
#define D2D ACL_MEMCPY_DEVICE_TO_DEVICE
#define G   (2 * MIB)

static aclrtPhysicalMemProp prop_of(aclrtMemAttr attr)
{
    return (aclrtPhysicalMemProp){.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                  .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                  .memAttr = attr,
                                  .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
}

static aclrtDrvMemHandle phys(size_t size)
{
    aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_HUGE);
    aclrtDrvMemHandle handle = NULL;
    OK(aclrtMallocPhysical(&handle, size, &prop, 0));
    return handle;
}

static char *va(size_t size)
{
    void *address = NULL;
    OK(aclrtReserveMemAddress(&address, size, 0, NULL, 1));
    CHECK(address != NULL && (uintptr_t)address % G == 0);
    return address;
}

static aclError set_access(void *address, size_t size, aclrtMemLocationType type, uint32_t id)
{
    aclrtMemAccessDesc desc = {ACL_RT_MEM_ACCESS_FLAGS_READWRITE, {id, type}, {0}};
    return aclrtMemSetAccess(address, size, &desc, 1);
}

static void check_bytes(const void *card, unsigned char want, size_t size)
{
    unsigned char *seen = malloc(size);
    CHECK(seen != NULL);
    OK(aclrtMemcpy(seen, size, card, size, D2H));
    for (size_t i = 0; i < size; i++)
        CHECK_EQ(seen[i], want);
    free(seen);
}

/* Flow F2. */
TEST(flow_of_a_framework)
{
    aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_HUGE);
    size_t granularity = 0;
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
    CHECK_EQ(granularity, G);
    char *v[2];
    aclrtDrvMemHandle h[2];
    char pattern[4096], seen[4096];
    memset(pattern, 0x5c, sizeof pattern);
    for (int i = 0; i < 2; i++) {
        h[i] = phys(4096);
        v[i] = va(granularity);
        OK(aclrtMapMem(v[i], granularity, 0, h[i], 0));
        OK(set_access(v[i], granularity, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
    }
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - 2 * G);
    OK(aclrtMemcpy(v[0], granularity, pattern, sizeof pattern, H2D));
    OK(aclrtMemcpy(seen, sizeof seen, v[0], sizeof seen, D2H));
    CHECK(memcmp(pattern, seen, sizeof seen) == 0);
    OK(aclrtMemcpy(v[1], granularity, v[0], sizeof pattern, D2D));
    check_bytes(v[1], 0x5c, sizeof pattern);
    OK(aclrtMemset(v[0], granularity, 1, granularity));

    /* Sleep and wake: other memory at the same address. */
    OK(aclrtUnmapMem(v[0]));
    OK(aclrtFreePhysical(h[0]));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - G);
    CHECK_ACL(aclrtMemset(v[0], 16, 0, 16), 107000);
    CHECK_MESSAGE("reserved, not mapped");
    h[0] = phys(G);
    OK(aclrtMapMem(v[0], G, 0, h[0], 0));
    OK(aclrtMemset(v[0], G, 9, G));
    check_bytes(v[0], 9, G);
    OK(aclrtUnmapMem(v[0]));
    OK(aclrtMapMem(v[0], G, 0, h[0], 0)); /* the same again: its content stayed */
    check_bytes(v[0], 9, G);
    for (int i = 0; i < 2; i++) {
        OK(aclrtUnmapMem(v[i]));
        OK(aclrtReleaseMemAddress(v[i]));
        OK(aclrtFreePhysical(h[i]));
    }
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
}

TEST(reserving)
{
    setenv("BELAY_HBM", "1GiB", 1);
    void *p = NULL, *q = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtReserveMemAddress(&p, 512, 0, NULL, 1)); /* torch_npu's probe */
    OK(aclrtReserveMemAddress(&q, 512, 0, NULL, 0));
    CHECK((char *)q - (char *)p >= (ptrdiff_t)G || (char *)p - (char *)q >= (ptrdiff_t)G);
    OK(aclrtReleaseMemAddress(p));
    OK(aclrtReleaseMemAddress(q));
    OK(aclrtReserveMemAddress(&p, 100 * GIB, 0, NULL, 1)); /* more than the card has */
    CHECK_EQ((uintptr_t)p % GIB, 0);
    CHECK_ACL(aclrtReleaseMemAddress((char *)p + G), 107000);
    CHECK_MESSAGE("bytes inside the range");
    OK(aclrtReleaseMemAddress(p));
    CHECK_ACL(aclrtReleaseMemAddress(p), 107000);
    CHECK_ACL(aclrtReserveMemAddress(NULL, 1, 0, NULL, 0), 100000);
    CHECK_ACL(aclrtReserveMemAddress(&q, 0, 0, NULL, 0), 100000);
    CHECK_ACL(aclrtReserveMemAddress(&q, 1, 0, NULL, 2), 100000);
    CHECK_ACL(aclrtReserveMemAddress(&q, 1, 4096, NULL, 0), 107000);
    CHECK_ACL(aclrtReserveMemAddressNoUCMemory(&q, G, 0, NULL, 0), 107000);
    OK(aclrtReserveMemAddressNoUCMemory(&q, GIB, 0, NULL, 0));
    OK(aclrtReleaseMemAddress(q));

    /* Wishes. */
    OK(aclrtReserveMemAddress(&q, 4 * MIB, 0, p, 0));
    CHECK(q == p);
    void *other = NULL;
    CHECK_ACL(aclrtReserveMemAddress(&other, 2 * MIB, 0, (char *)p + 2 * MIB, 0), 107000);
    CHECK_MESSAGE("was reserved at");
    CHECK_ACL(aclrtReserveMemAddress(&other, 3 * MIB, 0, (char *)p + 6 * MIB, 0), 107000);
    CHECK_MESSAGE("must begin at a multiple of 4194304 B");
    CHECK_ACL(aclrtReserveMemAddress(&other, 600 * MIB, 0, (char *)p + 64 * MIB, 0), 107000);
    CHECK_ACL(aclrtReserveMemAddress(&other, 2 * MIB, 0, (void *)(uintptr_t)(2 * MIB), 0), 107000);
    CHECK(other == NULL);
    OK(aclrtReleaseMemAddress(q));
}

TEST(mapping_errors)
{
    aclrtDrvMemHandle h, big, none = ANY_ADDRESS;
    OK(aclrtSetDevice(0));
    char *v = va(8 * MIB);
    h = phys(G);
    big = phys(4 * MIB);
    CHECK_ACL(aclrtMapMem(NULL, G, 0, h, 0), 100000);
    CHECK_ACL(aclrtMapMem(v, 0, 0, h, 0), 100000);
    CHECK_ACL(aclrtMapMem(v, G, 0, NULL, 0), 100000);
    CHECK_ACL(aclrtMapMem(v, G, 0, h, 1), 100000);
    CHECK_ACL(aclrtMapMem(v, G, G, h, 0), 107000);
    CHECK_ACL(aclrtMapMem(v, G, 0, big, 0), 107000);
    CHECK_MESSAGE("the physical memory has 4194304 B");
    CHECK_ACL(aclrtMapMem(v + 4096, G, 0, h, 0), 107000);
    CHECK_ACL(aclrtMapMem(v + 6 * MIB, 4 * MIB, 0, big, 0), 107000);
    CHECK_ACL(aclrtMapMem(v + 64 * GIB, G, 0, h, 0), 107000);
    CHECK_ACL(aclrtMapMem(v, G, 0, none, 0), 107000);
    CHECK_ACL(aclrtFreePhysical(none), 107000);
    CHECK_ACL(aclrtFreePhysical(NULL), 100000);
    OK(aclrtMapMem(v + 2 * MIB, G, 0, h, 0));
    CHECK_ACL(aclrtMapMem(v, 4 * MIB, 0, big, 0), 107000);
    CHECK_MESSAGE("was mapped there at");
    OK(aclrtMapMem(v + 4 * MIB, 4 * MIB, 0, big, 0));
    CHECK_ACL(aclrtReleaseMemAddress(v), 107000);
    CHECK_MESSAGE("mappings in it: 2");
    CHECK_ACL(aclrtUnmapMem(v), 507899);
    CHECK_ACL(aclrtUnmapMem(v + 6 * MIB), 507899);
    CHECK_MESSAGE("bytes inside");
    CHECK_ACL(aclrtUnmapMem(NULL), 100000);
    void *base = NULL;
    size_t size = 0;
    OK(aclrtMemGetAddressRange(v + 5 * MIB, &base, &size));
    CHECK(base == v + 4 * MIB && size == 4 * MIB);
    CHECK_ACL(aclrtMemGetAddressRange(v, &base, &size), 107000);
    /* The whole of two mappings, across their border. */
    OK(aclrtMemset(v + 2 * MIB, 6 * MIB, 3, 6 * MIB));
    check_bytes(v + 2 * MIB, 3, 6 * MIB);
    CHECK_ACL(aclrtMemset(v, 8 * MIB, 3, 8 * MIB), 107000);
}

TEST(references)
{
    aclrtDrvMemHandle h, again = NULL;
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    char *v = va(G), *w = va(G);
    h = phys(G);
    OK(aclrtMapMem(v, G, 0, h, 0));
    OK(aclrtMapMem(w, G, 0, h, 0)); /* one memory, two addresses */
    OK(aclrtMemset(v, G, 7, G));
    check_bytes(w, 7, G);
    OK(aclrtFreePhysical(h)); /* legal while mapped */
    CHECK_ACL(aclrtFreePhysical(h), 107000);
    check_bytes(v, 7, G);
    CHECK_ACL(aclrtMemRetainAllocationHandle(v + 4096, &again), 107000);
    OK(aclrtMemRetainAllocationHandle(v, &again)); /* a handle once more */
    OK(aclrtUnmapMem(v));
    OK(aclrtUnmapMem(w));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - G);
    OK(aclrtMapMem(v, G, 0, again, 0));
    check_bytes(v, 7, G);
    OK(aclrtMemRetainAllocationHandle(v, &h));
    CHECK(h == again);
    OK(aclrtFreePhysical(h));
    OK(aclrtFreePhysical(h));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - G);
    OK(aclrtUnmapMem(v));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
}

TEST(rights)
{
    uint64_t flag = 77;
    setenv("BELAY_CARDS", "3", 1);
    setenv("BELAY_PEER", "0-1", 1);
    OK(aclrtSetDevice(0));
    aclrtMemLocation own = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtMemLocation peer = {1, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtMemLocation host = {0, ACL_MEM_LOCATION_TYPE_HOST};
    char *v = va(G);
    aclrtDrvMemHandle h = phys(G);
    OK(aclrtMemMapNoAccess(v, G, 0, h, 0));
    OK(aclrtMemGetAccess(v, &own, &flag));
    CHECK_EQ(flag, 0);
    CHECK_ACL(aclrtMemset(v, 16, 1, 16), 107000);
    CHECK_MESSAGE("without access for anybody");
    CHECK_ACL(set_access(v, 4096, ACL_MEM_LOCATION_TYPE_DEVICE, 0), 107000);
    OK(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
    OK(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
    CHECK_ACL(set_access(v, 4096, ACL_MEM_LOCATION_TYPE_DEVICE, 0), 507899);
    OK(aclrtMemset(v, G, 1, G));
    OK(aclrtMemGetAccess(v + 4096, &own, &flag));
    CHECK_EQ(flag, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    OK(aclrtMemGetAccess(v, &peer, &flag));
    CHECK_EQ(flag, 0);
    OK(aclrtMemGetAccess(v, &host, &flag));
    CHECK_EQ(flag, 0);
    OK(set_access(v, G, ACL_MEM_LOCATION_TYPE_HOST, 5));
    OK(aclrtMemGetAccess(v, &host, &flag));
    CHECK_EQ(flag, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    OK(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
    CHECK_ACL(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 2), 207000);
    CHECK_MESSAGE("BELAY_PEER is '0-1'");
    CHECK_ACL(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 3), 107000);
    CHECK_ACL(set_access(NULL, G, ACL_MEM_LOCATION_TYPE_DEVICE, 0), 107000);
    CHECK_ACL(aclrtMemSetAccess(v, G, NULL, 1), 107000);
    aclrtMemAccessDesc read = {ACL_RT_MEM_ACCESS_FLAGS_READ, own, {0}};
    CHECK_ACL(aclrtMemSetAccess(v, G, &read, 1), 107000);
    CHECK_ACL(aclrtMemSetAccess(v, G, &read, 0), 107000);
    CHECK_ACL(aclrtMemGetAccess(NULL, &own, &flag), 100000);
    CHECK_ACL(aclrtMemGetAccess(v + G, &own, &flag), 107000);
}

/* A copy between two cards needs the right of the card that makes it. */
TEST(copies_between_cards)
{
    setenv("BELAY_CARDS", "2", 1);
    void *far = NULL;
    OK(aclrtSetDevice(1));
    OK(aclrtMalloc(&far, G, HUGE_FIRST));
    OK(aclrtMemset(far, G, 4, G));
    OK(aclrtSetDevice(0));
    char *v = va(G);
    OK(aclrtMapMem(v, G, 0, phys(G), 0));
    CHECK_ACL(aclrtMemcpy(v, G, far, G, D2D), 107000);
    CHECK_MESSAGE("was not enabled");
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtMemcpy(v, G, far, G, D2D));
    check_bytes(v, 4, G);
    OK(aclrtSetDevice(1));
    CHECK_ACL(aclrtMemcpyAsync(far, G, v, G, D2D, NULL), 0);
    CHECK_ACL(aclrtSynchronizeStream(NULL), 507013);
    CHECK_MESSAGE("without access for card 1");
    OK(set_access(v, G, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
    OK(aclrtMemcpyAsync(far, G, v, G, D2D, NULL));
    OK(aclrtSynchronizeStream(NULL));
}

TEST(properties)
{
    static const struct {
        aclrtMemAttr asked, told;
        aclError code;
        size_t granularity;
    } rows[] = {
        {ACL_MEM_NORMAL, ACL_HBM_MEM_HUGE, 0, 2},
        {ACL_MEM_HUGE, ACL_HBM_MEM_HUGE, 0, 2},
        {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G, 0, 1024},
        {ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE, 0, 2},
        {ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE, 0, 2},
        {ACL_MEM_P2P_HUGE1G, ACL_MEM_P2P_HUGE1G, 0, 1024},
        {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE, 0, 2},
        {ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G, 0, 1024},
        {ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_HUGE, 0, 2},
        {ACL_DDR_MEM, 0, 100000, 0},
        {ACL_HBM_MEM, 0, 100000, 0},
        {ACL_HBM_MEM_P2P_HUGE, 0, 100000, 0},
        {ACL_DDR_MEM_HUGE, 0, 100000, 0},
        {(aclrtMemAttr)18, 0, 100000, 0},
    };
    setenv("BELAY_HBM", "5GiB", 1);
    OK(aclrtSetDevice(0));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        aclrtPhysicalMemProp prop = prop_of(rows[i].asked), told;
        aclrtDrvMemHandle h = NULL;
        size_t granularity = 1;
        CHECK_ACL(aclrtMemGetAllocationGranularity(&prop, 1, &granularity), rows[i].code);
        CHECK_ACL(aclrtMallocPhysical(&h, 4096, &prop, 0), rows[i].code);
        if (rows[i].code != 0)
            continue;
        CHECK_EQ(granularity, rows[i].granularity * MIB);
        OK(aclrtMemGetAllocationPropertiesFromHandle(h, &told));
        CHECK_EQ(told.memAttr, rows[i].told);
        CHECK_EQ(told.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
        char *v = va(granularity);
        OK(aclrtMapMem(v, granularity, 0, h, 0));
        aclrtPtrAttributes a;
        OK(aclrtPointerGetAttributes(v + 77, &a));
        CHECK_EQ(a.pageSize, granularity);
        OK(aclrtMemset(v, 1, 1, 1));
        OK(aclrtUnmapMem(v));
        OK(aclrtReleaseMemAddress(v));
        OK(aclrtFreePhysical(h));
    }
    aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_HUGE);
    aclrtDrvMemHandle h = NULL;
    CHECK_ACL(aclrtMallocPhysical(NULL, G, &prop, 0), 100000);
    CHECK_ACL(aclrtMallocPhysical(&h, 0, &prop, 0), 100000);
    CHECK_ACL(aclrtMallocPhysical(&h, G, NULL, 0), 100000);
    CHECK_ACL(aclrtMallocPhysical(&h, G, &prop, 1), 100000);
    CHECK_ACL(aclrtMallocPhysical(&h, 8 * GIB, &prop, 0), 207001);
    prop.location.id = 9;
    CHECK_ACL(aclrtMallocPhysical(&h, G, &prop, 0), 107001);
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_UNREGISTERED};
    CHECK_ACL(aclrtMallocPhysical(&h, G, &prop, 0), 100000);
    prop = prop_of(ACL_HBM_MEM_HUGE);
    prop.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
    CHECK_ACL(aclrtMallocPhysical(&h, G, &prop, 0), 100000);
    prop = prop_of(ACL_HBM_MEM_HUGE);
    prop.reserve = 1;
    CHECK_ACL(aclrtMallocPhysical(&h, G, &prop, 0), 107000);
    CHECK_ACL(aclrtMemGetAllocationGranularity(&prop, 7, &(size_t){0}), 207000);
}

TEST(memory_of_the_host)
{
    aclrtPhysicalMemProp prop = prop_of(ACL_DDR_MEM_HUGE), told;
    aclrtDrvMemHandle h = NULL;
    aclrtPtrAttributes a;
    setenv("BELAY_PIN_LIMIT", "16MiB", 1);
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_HOST};
    OK(aclrtMallocPhysical(&h, 3 * MIB, &prop, 0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    OK(aclrtMemGetAllocationPropertiesFromHandle(h, &told));
    CHECK_EQ(told.memAttr, ACL_MEM_HUGE);
    CHECK_EQ(told.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    char *v = va(4 * MIB);
    OK(aclrtMemMapNoAccess(v, 4 * MIB, 0, h, 0));
    CHECK_ACL(aclrtMemset(v, 16, 1, 16), 107000);
    OK(aclrtUnmapMem(v));
    /* Mapped, it is the host's at once, as a card's memory is that card's: Mooncake asks for no
     * grant. */
    uint64_t flag = 77;
    aclrtMemLocation host = {0, ACL_MEM_LOCATION_TYPE_HOST};
    aclrtMemLocation device = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    OK(aclrtMapMem(v, 4 * MIB, 0, h, 0));
    OK(aclrtMemGetAccess(v, &host, &flag));
    CHECK_EQ(flag, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    OK(aclrtMemGetAccess(v, &device, &flag));
    CHECK_EQ(flag, 0);
    memset(v, 6, 4 * MIB); /* before any task or copy has touched it */
    check_bytes(v, 6, 4 * MIB);
    CHECK_EQ(v[0], 6);
    OK(set_access(v, 4 * MIB, ACL_MEM_LOCATION_TYPE_HOST, 0));
    OK(set_access(v, 4 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
    CHECK_EQ(v[4 * MIB - 1], 6);
    OK(aclrtPointerGetAttributes(v, &a));
    CHECK_EQ(a.location.type, ACL_MEM_LOCATION_TYPE_HOST);
    OK(aclrtMemset(v, 4 * MIB, 5, 4 * MIB));
    CHECK_EQ(v[4 * MIB - 1], 5); /* the host reads what it may */
    void *card = NULL;
    OK(aclrtMalloc(&card, 4 * MIB, HUGE_FIRST));
    OK(aclrtMemcpyAsync(card, 4 * MIB, v, 4 * MIB, H2D, NULL));
    OK(aclrtSynchronizeStream(NULL));
    check_bytes(card, 5, 4 * MIB);
    aclrtDrvMemHandle more = NULL;
    CHECK_ACL(aclrtMallocPhysical(&more, 16 * MIB, &prop, 0), 207001);
    CHECK_MESSAGE("BELAY_PIN_LIMIT");
    prop.location.id = 1;
    CHECK_ACL(aclrtMallocPhysical(&more, G, &prop, 0), 207000);
    prop = prop_of(ACL_MEM_HUGE1G);
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_HOST};
    CHECK_ACL(aclrtMallocPhysical(&more, G, &prop, 0), 207000);
    prop = prop_of(ACL_MEM_HUGE);
    prop.location = (aclrtMemLocation){0, ACL_MEM_LOCATION_TYPE_HOST_NUMA};
    OK(aclrtMallocPhysical(&more, G, &prop, 0));
    OK(aclrtMemGetAllocationPropertiesFromHandle(more, &told));
    CHECK_EQ(told.location.type, ACL_MEM_LOCATION_TYPE_HOST_NUMA);
    CHECK_ACL(aclrtMapMem(va(G), G, 0, more, 0), 0);
    char *mixed = va(4 * MIB);
    OK(aclrtMapMem(mixed, G, 0, more, 0));
    CHECK_ACL(aclrtMapMem(mixed + G, G, 0, phys(G), 0), 107000);
    CHECK_MESSAGE("has memory of the host");
}

/* O-02, without the checker. */
TEST(unmap_while_work_is_queued)
{
    static struct hold hold;
    aclrtStream s;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    for (int run = 0; run < 2; run++) {
        aclrtDrvMemHandle h = phys(64 * MIB);
        char *v = va(64 * MIB), *other;
        OK(aclrtMapMem(v, 64 * MIB, 0, h, 0));
        OK(set_access(v, 64 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
        if (run == 0) {
            hold_stream(&hold, s);
            OK(aclrtMemsetAsync(v, 64 * MIB, 0xA5, 64 * MIB, s));
            OK(aclrtUnmapMem(v));
            OK(aclrtFreePhysical(h));
            OK(aclrtMalloc((void **)&other, 64 * MIB, HUGE_FIRST)); /* those frames, perhaps */
            OK(aclrtMemset(other, 64 * MIB, 0, 64 * MIB));
            let_go(&hold);
            CHECK_ACL(aclrtSynchronizeStream(s), 507013);
            char want[64];
            snprintf(want, sizeof want, "range %p of 67108864 B (64 MiB)", (void *)v);
            const char *text = aclGetRecentErrMsg();
            CHECK(text != NULL && strstr(text, want) != NULL && strstr(text, "unmapped ") != NULL &&
                  strstr(text, " us ago at ") != NULL && strstr(text, "queued at ") != NULL);
            check_bytes(other, 0, 64 * MIB);
            OK(aclrtFree(other));
        } else {
            OK(aclrtMemsetAsync(v, 64 * MIB, 0xA5, 64 * MIB, s));
            OK(aclrtSynchronizeStream(s));
            OK(aclrtUnmapMem(v));
            OK(aclrtFreePhysical(h));
        }
        OK(aclrtReleaseMemAddress(v));
    }
}

/* The same while the task is in the middle, or about to begin or to end. */
TEST(unmap_while_work_runs)
{
    aclrtStream s;
    setenv("BELAY_HBM", "1GiB", 1);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s));
    int failed = 0;
    for (int run = 0; run < 40; run++) {
        aclrtDrvMemHandle h = phys(64 * MIB);
        char *v = va(64 * MIB);
        OK(aclrtMapMem(v, 64 * MIB, 0, h, 0));
        if (run == 0)
            OK(aclrtMemset(v, 64 * MIB, 0, 64 * MIB)); /* frames are resident from here on */
        OK(aclrtMemsetAsync(v, 64 * MIB, 1, 64 * MIB, s));
        aclrtStreamStatus status;
        for (int look = 0; look < run * 200; look++) /* some time; any is right */
            OK(aclrtStreamQuery(s, &status));
        OK(aclrtUnmapMem(v));
        OK(aclrtFreePhysical(h));
        aclError code = aclrtSynchronizeStream(s);
        if (code != 0) {
            CHECK_EQ(code, 507013);
            CHECK_MESSAGE("us ago at ");
            failed++;
        }
        OK(aclrtReleaseMemAddress(v));
    }
    printf("tasks that met an unmapped range: %d of 40\n", failed);
}

static void handles_without_an_address(int run)
{
    char *d = NULL;
    setenv("BELAY_HBM", "1GiB", 1);
    setenv("BELAY_REPORT", "vmm_report.json", 1);
    setenv("BELAY_SYMBOLIZER", "/bin/false", 1);
    setenv("BELAY_LOG", "error", 1);
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    for (int i = 0; i < 64; i++) {
        aclrtDrvMemHandle h = phys(8 * MIB);
        char *v = va(8 * MIB);
        OK(aclrtMapMem(v, 8 * MIB, 0, h, 0));
        OK(set_access(v, 8 * MIB, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
        if (run == 2)
            OK(aclrtFreePhysical(h));
        OK(aclrtUnmapMem(v));
        OK(aclrtReleaseMemAddress(v));
        if (run == 1)
            OK(aclrtFreePhysical(h));
    }
    if (run > 0) {
        CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
        return;
    }
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before - 512 * MIB);
    CHECK_ACL(aclrtMallocAlign32((void **)&d, 640 * MIB, HUGE_FIRST), 207001);
    CHECK_MESSAGE("; held: 536870912 B (512 MiB) in 64 orphan handles (physical memory, reachable "
                  "by no address) at ");
}

/* O-21: the process ends by itself, so that its report is written. */
static void leaked_handles(void **state)
{
    (void)state;
    for (int run = 0; run < 3; run++) {
        static char text[1 << 20];
        fflush(NULL);
        unlink("vmm_report.json");
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            default_signals();
            alarm(TEST_SECONDS);
            handles_without_an_address(run);
            exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        FILE *file = fopen("vmm_report.json", "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        unlink("vmm_report.json");
        const char *found = strstr(text, "\"leaked-handle\"");
        if (run > 0) {
            assert_null(found);
            assert_null(strstr(text, "\"leak\""));
            continue;
        }
        assert_non_null(found);
        assert_null(strstr(found + 1, "\"leaked-handle\"")); /* one line */
        assert_null(strstr(text, "\"leak\""));
        assert_non_null(strstr(found, "536870912 B (512 MiB) in 64 physical handles of card 0"));
        assert_non_null(strstr(found, "reachable by no address: 64"));
    }
}

TEST(reset_and_finalise)
{
    setenv("BELAY_HBM", "256MiB", 1);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    char *v = va(G);
    aclrtDrvMemHandle h = phys(G), orphan = phys(G);
    OK(aclrtMapMem(v, G, 0, h, 0));
    OK(aclrtResetDevice(0));
    CHECK_ACL(aclrtFreePhysical(h), 107000);
    CHECK_ACL(aclrtFreePhysical(orphan), 107000);
    CHECK_ACL(aclrtUnmapMem(v), 507899);
    OK(aclrtSetDevice(0));
    OK(aclrtMapMem(v, G, 0, phys(G), 0)); /* the addresses are still reserved */
    OK(aclFinalize());
    CHECK_ACL(aclrtReleaseMemAddress(v), 107000);
}

TEST(kinds_of_addresses)
{
    uint32_t is = 7;
    OK(aclrtSetDevice(0));
    void *list[2] = {va(G), NULL}, *card = NULL;
    OK(aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_RSVD, &is, 0));
    CHECK_EQ(is, 1);
    OK(aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, &is, 0));
    CHECK_EQ(is, 0);
    OK(aclrtMalloc(&card, G, HUGE_FIRST));
    list[1] = card;
    OK(aclrtCheckMemType(list, 2, ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_RSVD, &is, 0));
    CHECK_EQ(is, 1);
}

TEST(links)
{
    OK(aclrtSetDevice(0));
    aclrtDrvMemHandle h = phys(G);
    char *v = va(G), *w = va(G);
    OK(aclrtMapMem(v, G, 0, h, 0));
    CHECK_ACL(aclrtMemMapSelectedLink(w, G, v, 2), 100000);
    CHECK_ACL(aclrtMemMapSelectedLink(w, 0, v, 1), 100000);
    OK(aclrtMemMapSelectedLink(w, G, v, 1));
    OK(aclrtMemset(v, 16, 6, 16));
    check_bytes(w, 6, 16);
    CHECK_ACL(aclrtMemMapSetLink(h, ACL_RT_MEM_ACCESS_LINK_HCCS), 207021);
    CHECK_ACL(aclrtMemMapSetLink(v, ACL_RT_MEM_ACCESS_LINK_HCCS), 107000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_of_a_framework),
        cmocka_unit_test(reserving),
        cmocka_unit_test(mapping_errors),
        cmocka_unit_test(references),
        cmocka_unit_test(rights),
        cmocka_unit_test(copies_between_cards),
        cmocka_unit_test(properties),
        cmocka_unit_test(memory_of_the_host),
        cmocka_unit_test(unmap_while_work_is_queued),
        cmocka_unit_test(unmap_while_work_runs),
        cmocka_unit_test(leaked_handles),
        cmocka_unit_test(reset_and_finalise),
        cmocka_unit_test(kinds_of_addresses),
        cmocka_unit_test(links),
    };
    return cmocka_run_group_tests_name("vmm", tests, NULL, NULL);
}
