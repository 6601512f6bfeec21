/* SPDX-License-Identifier: Apache-2.0 */
/* Peer access: reference 3, and the groups of BELAY_PEER. */
#include "acl_test.h"

static int can(int32_t a, int32_t b)
{
    int32_t is = 7;
    OK(aclrtDeviceCanAccessPeer(&is, a, b));
    return is;
}

static int enabled(int32_t a, int32_t b)
{
    int32_t is = 7;
    OK(aclrtDevicePeerAccessStatus(a, b, &is));
    return is;
}

TEST(arguments)
{
    int32_t is = 7;
    setenv("BELAY_CARDS", "2", 1);
    CHECK_ACL(aclrtDeviceCanAccessPeer(&is, 0, 0), 100000);
    CHECK_ACL(aclrtDeviceCanAccessPeer(NULL, 0, 1), 100000);
    CHECK_ACL(aclrtDeviceCanAccessPeer(&is, 0, 2), 107000);
    CHECK_ACL(aclrtDeviceCanAccessPeer(&is, -1, 0), 107000);
    CHECK_ACL(aclrtDeviceEnablePeerAccess(1, 0), 107002);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtDeviceEnablePeerAccess(1, 1), 200006);
    CHECK_ACL(aclrtDeviceEnablePeerAccess(0, 0), 100000);
    CHECK_ACL(aclrtDeviceEnablePeerAccess(2, 0), 107000);
    CHECK_EQ(is, 7);
}

TEST(one_way)
{
    void *near = NULL, *far = NULL;
    setenv("BELAY_CARDS", "2", 1);
    OK(aclrtSetDevice(1));
    OK(aclrtMallocWithCfg(&far, 2 * MIB, ACL_MEM_MALLOC_HUGE_ONLY_P2P, NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&near, 2 * MIB, HUGE_FIRST));
    CHECK_EQ(can(0, 1), 1);
    CHECK_EQ(enabled(0, 1), 0);
    CHECK_ACL(aclrtMemP2PMap(far, 2 * MIB, 0, 0), 107000);
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    CHECK_EQ(enabled(0, 1), 1);
    CHECK_EQ(enabled(1, 0), 0);
    OK(aclrtMemP2PMap(far, 2 * MIB, 0, 0));
    CHECK_ACL(aclrtMemP2PMap(far, 2 * MIB, 1, 0), 107000);
    CHECK_ACL(aclrtMemP2PMap(far, 2 * MIB, 0, 1), 100000);
    OK(aclrtMemset(near, 2 * MIB, 0x11, 2 * MIB));
    OK(aclrtMemcpy(far, 2 * MIB, near, 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtSetDevice(1));
    CHECK_ACL(aclrtMemcpy(far, 2 * MIB, near, 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
    CHECK_MESSAGE("card 1 has no access to the memory of card 0");
    OK(aclrtSetDevice(0));
    OK(aclrtDeviceDisablePeerAccess(1));
    CHECK_EQ(enabled(0, 1), 0);
    CHECK_ACL(aclrtMemcpy(far, 2 * MIB, near, 2 * MIB, ACL_MEMCPY_DEVICE_TO_DEVICE), 107000);
}

TEST(groups)
{
    uint64_t link = 0;
    setenv("BELAY_CARDS", "6", 1);
    setenv("BELAY_PEER", "0-1,3-4", 1);
    CHECK_EQ(can(0, 1), 1);
    CHECK_EQ(can(4, 3), 1);
    CHECK_EQ(can(1, 3), 0);
    CHECK_EQ(can(2, 5), 0);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtDeviceEnablePeerAccess(3, 0), 207000);
    CHECK_MESSAGE("card 0 cannot reach the memory of card 3: BELAY_PEER is '0-1,3-4'");
    OK(aclrtGetDevicesTopo(0, 1, &link));
    CHECK_EQ(link, ACL_RT_DEVS_TOPOLOGY_HCCS);
    OK(aclrtGetDevicesTopo(0, 3, &link));
    CHECK_EQ(link, ACL_RT_DEVS_TOPOLOGY_SYS);
    CHECK_ACL(aclrtGetDevicesTopo(0, 6, &link), 107000);
}

TEST(off)
{
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_PEER", "off", 1);
    CHECK_EQ(can(0, 1), 0);
}

TEST(nonsense)
{
    int32_t is = 7;
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_PEER", "0-1,1-2", 1);
    CHECK_ACL(aclrtDeviceCanAccessPeer(&is, 0, 1), 107000);
    CHECK_MESSAGE("BELAY_PEER '0-1,1-2' is neither on, off, nor groups of cards");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments), cmocka_unit_test(one_way),  cmocka_unit_test(groups),
        cmocka_unit_test(off),       cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
