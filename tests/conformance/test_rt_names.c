/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the layer below, found through the handle of libascendcl.so; sharing is in tests/ipc. */
#include "acl_test.h"

#include <acl/acl_rt_names.h>
#include <dlfcn.h>

/* memfabric and memcache give up when one of these is missing. */
TEST(found_through_the_handle)
{
    static const char *const names[] = {
        "rtDeviceGetBareTgid",
        "rtGetDeviceInfo",
        "rtSetIpcMemorySuperPodPid",
        "rtIpcSetMemoryName",
        "rtIpcDestroyMemoryName",
        "rtIpcOpenMemory",
        "rtIpcCloseMemory",
        "rtEnableP2P",
        "rtDisableP2P",
        "rtGetLogicDevIdByUserDevId",
        "rtMemcpyAsyncWithoutCheckKind",
    };
    void *handle = dlopen("libascendcl.so", RTLD_NOW | RTLD_NODELETE);
    CHECK(handle != NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(dlsym(handle, names[i]) != NULL);
    CHECK(dlsym(handle, "rtMalloc") == NULL); /* not built, not there */
}

static int64_t info(uint32_t device, int32_t module, int32_t type)
{
    int64_t value = -77;
    OK(rtGetDeviceInfo(device, module, type, &value));
    return value;
}

TEST(what_a_device_is)
{
    setenv("BELAY_CARDS", "3", 1);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "1,2", 1);
    int32_t logic = -1, tgid = 0;
    uint32_t pid = 0;
    int64_t value = -77, cores = 0;
    OK(rtGetLogicDevIdByUserDevId(0, &logic));
    CHECK_EQ(logic, 1);
    CHECK_ACL(rtGetLogicDevIdByUserDevId(2, &logic), 107000);
    CHECK_ACL(rtGetLogicDevIdByUserDevId(0, NULL), 107000);
    OK(rtDeviceGetBareTgid(&pid));
    OK(aclrtDeviceGetBareTgid(&tgid));
    CHECK_EQ(pid, (uint32_t)tgid);
    CHECK_ACL(rtDeviceGetBareTgid(NULL), 107000);
    CHECK_EQ(info(1, 0, 18), 2);          /* chip */
    CHECK_EQ(info(1, 0, 19), 0);          /* die */
    CHECK_EQ(info(1, 0, 26), 0xffc80002); /* no server, chip 2, die 0, device 2 */
    CHECK_EQ(info(1, 0, 27), 0x3ff);
    CHECK_EQ(info(1, 0, 29), 0xffffffff);
    CHECK_EQ(info(1, 0, 30), 0);
    OK(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores));
    CHECK_EQ(info(1, 4, 3), cores);
    OK(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores));
    CHECK_EQ(info(1, 7, 3), cores);
    CHECK_ACL(rtGetDeviceInfo(1, 0, 1, &value), 207000);
    CHECK_MESSAGE("moduleType 0, infoType 1");
    CHECK_ACL(rtGetDeviceInfo(2, 0, 26, &value), 107000);
    CHECK_ACL(rtGetDeviceInfo(1, 0, 26, NULL), 107000);
    CHECK_EQ(value, -77);
}

static int enabled(int32_t device, int32_t peer)
{
    int32_t is = 7;
    OK(aclrtDevicePeerAccessStatus(device, peer, &is));
    return is;
}

/* The first id is the program's, the second the card's; no device needs to be current. */
TEST(peer_access)
{
    setenv("BELAY_CARDS", "4", 1);
    setenv("BELAY_PEER", "1-2", 1);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "1,2,3", 1);
    OK(rtEnableP2P(0, 2, 0));
    OK(rtEnableP2P(0, 2, 9)); /* the flag is not looked at */
    CHECK_EQ(enabled(0, 1), 1);
    CHECK_EQ(enabled(1, 0), 0);
    CHECK_ACL(rtEnableP2P(0, 1, 0), 107000);
    CHECK_MESSAGE("device 0 is card 1 itself");
    CHECK_ACL(rtEnableP2P(0, 4, 0), 107000);
    CHECK_ACL(rtEnableP2P(3, 1, 0), 107000);
    CHECK_ACL(rtEnableP2P(0, 3, 0), 207000);
    OK(rtDisableP2P(0, 2));
    CHECK_EQ(enabled(0, 1), 0);
    CHECK_ACL(rtDisableP2P(0, 4), 107000);
}

TEST(copies_by_address_whatever_the_kind)
{
    enum { SIZE = 64 * 1024 };
    char *card = NULL, *pinned = NULL, *back = NULL;
    OK(rtMemcpyAsyncWithoutCheckKind(NULL, 0, NULL, 0, 9, NULL));
    CHECK_ACL(rtMemcpyAsyncWithoutCheckKind(&card, 8, &pinned, 8, 1, NULL), 107002);
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc((void **)&card, SIZE, HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, SIZE));
    OK(aclrtMallocHost((void **)&back, SIZE));
    for (uint32_t kind = 0; kind < 10; kind++) {
        memset(pinned, (int)kind + 1, SIZE);
        OK(rtMemcpyAsyncWithoutCheckKind(card, SIZE, pinned, SIZE, kind, NULL));
        OK(rtMemcpyAsyncWithoutCheckKind(back, SIZE, card, SIZE, kind, NULL));
        OK(aclrtSynchronizeStream(NULL));
        CHECK_EQ(back[0], (int)kind + 1);
        CHECK_EQ(memcmp(back, pinned, SIZE), 0);
    }
    CHECK_ACL(rtMemcpyAsyncWithoutCheckKind(NULL, SIZE, pinned, SIZE, 1, NULL), 107000);
    CHECK_ACL(rtMemcpyAsyncWithoutCheckKind(card, SIZE - 1, pinned, SIZE, 1, NULL), 107000);
    CHECK_ACL(rtMemcpyAsyncWithoutCheckKind(back, SIZE, pinned, SIZE, 0, NULL), 207000);
}

TEST(names_of_memory)
{
    char *card = NULL, name[65] = "";
    void *opened = NULL;
    int32_t self = 0;
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc((void **)&card, 2 * MIB, HUGE_FIRST));
    OK(aclrtDeviceGetBareTgid(&self));
    CHECK_ACL(rtIpcSetMemoryName(NULL, 2 * MIB, name, 65), 107000);
    CHECK_ACL(rtIpcSetMemoryName(card, 0, name, 65), 107000);
    CHECK_ACL(rtIpcSetMemoryName(card, 2 * MIB, name, 64), 107000);
    CHECK_ACL(rtIpcSetMemoryName(card, 8 * MIB, name, 65), 107000);
    OK(rtIpcSetMemoryName(card, 2 * MIB, name, 65));
    CHECK_EQ(strlen(name), 64);
    CHECK_ACL(rtIpcOpenMemory(&opened, name), 107000); /* a name of this very process */
    CHECK_ACL(rtIpcOpenMemory(&opened, NULL), 107000);
    CHECK(opened == NULL);
    CHECK_ACL(rtSetIpcMemorySuperPodPid(name, 0xffffffff, &self, 0), 107000);
    CHECK_ACL(rtSetIpcMemorySuperPodPid(name, 0xffffffff, NULL, 1), 107000);
    OK(rtSetIpcMemorySuperPodPid(name, 0xffffffff, &self, 1));
    CHECK_ACL(rtIpcCloseMemory(card), 107000);
    CHECK_ACL(rtIpcCloseMemory(name), 107000);
    OK(rtIpcDestroyMemoryName(name));
    CHECK_ACL(rtIpcDestroyMemoryName(name), 107000);
    OK(aclrtFree(card));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_through_the_handle),
        cmocka_unit_test(what_a_device_is),
        cmocka_unit_test(peer_access),
        cmocka_unit_test(copies_by_address_whatever_the_kind),
        cmocka_unit_test(names_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
