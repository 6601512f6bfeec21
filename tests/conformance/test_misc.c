/* SPDX-License-Identifier: Apache-2.0 */
/* Device information, data buffers, types, versions, log. */
#include "acl_test.h"

#include "base/sanitizer.h"
#include <base/acl_log.h>
#include <sys/resource.h>
#include <sys/stat.h>

TEST(device_information)
{
    setenv("BELAY_HBM", "1GiB", 1);
    int64_t value = 7;
    int32_t feature = 7, device = -1;
    char bus[16] = "";
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    aclrtUtilizationInfo use = {.utilizationExtend = ANY_ADDRESS};
    CHECK_ACL(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, NULL), 100000);
    CHECK_ACL(aclrtGetDeviceInfo(9, ACL_DEV_ATTR_L2_CACHE_SIZE, &value), 107000);
    CHECK_ACL(aclrtGetDeviceInfo(0, (aclrtDevAttr)9999, &value), 107000);
    CHECK_EQ(value, 7);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
    CHECK_EQ(value, GIB);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
    CHECK(value > 0);
    int64_t cores = 0;
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores));
    CHECK_EQ(cores, value);
    CHECK_ACL(aclGetDeviceCapability(0, (aclDeviceInfo)3, &cores), 100000);
    OK(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &feature));
    CHECK_EQ(feature, ACL_DEV_FEATURE_NOT_SUPPORT);
    OK(aclrtQueryDeviceStatus(0, &status));
    CHECK_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
    CHECK_ACL(aclrtGetDeviceUtilizationRate(0, &use), 100000);
    use.utilizationExtend = NULL;
    OK(aclrtGetDeviceUtilizationRate(0, &use));
    CHECK_EQ(use.memoryUtilization, -1);
    CHECK_ACL(aclrtDeviceGetPCIBusId(0, bus, 12), 100000);
    OK(aclrtDeviceGetPCIBusId(0, bus, 13));
    CHECK_EQ(strlen(bus), 12);
    OK(aclrtDeviceGetByPCIBusId(bus, &device));
    CHECK_EQ(device, 0);
    CHECK_ACL(aclrtDeviceGetByPCIBusId("0000:00:00.0", &device), 107000);
    int32_t pid = 0;
    OK(aclrtDeviceGetBareTgid(&pid));
    CHECK(pid > 0);
    CHECK(strcmp(aclrtGetSocName(), "Ascend910B3") == 0);
}

TEST(data_buffers)
{
    int data = 0;
    aclDataBuffer *buffer = aclCreateDataBuffer(&data, ((size_t)1 << 32) + 5);
    CHECK(buffer != NULL);
    CHECK(aclGetDataBufferAddr(buffer) == &data);
    CHECK_EQ(aclGetDataBufferSizeV2(buffer), ((size_t)1 << 32) + 5);
    CHECK_EQ(aclGetDataBufferSize(buffer), 5);
    OK(aclUpdateDataBuffer(buffer, NULL, 0));
    CHECK(aclGetDataBufferAddr(buffer) == NULL);
    OK(aclDestroyDataBuffer(buffer));
    CHECK_ACL(aclDestroyDataBuffer(buffer), 100000);
    CHECK_ACL(aclDestroyDataBuffer(NULL), 100000);
    CHECK_ACL(aclUpdateDataBuffer(NULL, &data, 4), 100000);
    CHECK(aclGetDataBufferAddr(NULL) == NULL);
    CHECK_EQ(aclGetDataBufferSizeV2(buffer), 0);
    buffer = aclCreateDataBuffer(NULL, 0);
    CHECK(buffer != NULL);
    OK(aclDestroyDataBuffer(buffer));
}

TEST(data_types)
{
    const struct {
        aclDataType type;
        size_t size;
    } rows[] = {
        {ACL_DT_UNDEFINED, 0}, {ACL_STRING, 0},    {ACL_INT8, 1},        {ACL_BOOL, 1},
        {ACL_INT4, 1},         {ACL_UINT1, 1},     {ACL_FLOAT16, 2},     {ACL_BF16, 2},
        {ACL_FLOAT, 4},        {ACL_COMPLEX32, 4}, {ACL_INT64, 8},       {ACL_COMPLEX64, 8},
        {ACL_DOUBLE, 8},       {ACL_UINT16, 2},    {ACL_COMPLEX128, 16}, {(aclDataType)99, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_EQ(aclDataTypeSize(rows[i].type), rows[i].size);
}

TEST(half_precision)
{
    CHECK(aclFloat16ToFloat(0x3c00) == 1.0F);
    CHECK(aclFloat16ToFloat(0xc000) == -2.0F);
    CHECK(aclFloat16ToFloat(0x7bff) == 65504.0F);
    CHECK(aclFloat16ToFloat(0x7c00) == 65536.0F);
    CHECK(aclFloat16ToFloat(0x7e00) == 98304.0F);
    CHECK(aclFloat16ToFloat(0x0001) == 0x1p-24F);
    CHECK(aclFloat16ToFloat(0x8000) == 0.0F);
    CHECK_EQ(aclFloatToFloat16(1e9F), 0x7bff);
    CHECK_EQ(aclFloatToFloat16(-1e9F), 0xfbff);
    CHECK_EQ(aclFloatToFloat16(0x1p-25F), 0); /* a tie, to even */
    CHECK_EQ(aclFloatToFloat16(0x1.8p-25F), 1);
    CHECK_EQ(aclFloatToFloat16(2049.0F), aclFloatToFloat16(2048.0F));
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        if ((bits & 0x7c00) == 0x7c00)
            continue;
        CHECK_EQ(aclFloatToFloat16(aclFloat16ToFloat((aclFloat16)bits)), bits);
    }
}

static void write_version(const char *folder, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/version.info", folder);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
}

TEST(versions)
{
    int32_t major = 0, minor = 0, patch = -1, number = 7;
    char text[128] = "";
    OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == 1 && minor == 17 && patch == 0);
    CHECK_ACL(aclrtGetVersion(NULL, &minor, &patch), 100000);

    char home[128], folder[256];
    snprintf(home, sizeof(home), "/tmp/belay-home-%d", (int)getpid());
    unsetenv("ASCEND_HOME_PATH");
    CHECK_ACL(aclsysGetVersionStr((char *)"runtime", text), 100003);
    setenv("ASCEND_HOME_PATH", home, 1);
    CHECK_ACL(aclsysGetVersionStr((char *)"runtime", text), 100003);
    CHECK_ACL(aclsysGetVersionStr(NULL, text), 100000);
    CHECK_ACL(aclsysGetVersionStr((char *)"../x", text), 100000);
    const char *const parts[] = {"", "/share", "/share/info", "/share/info/opp_kernel"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(folder, sizeof(folder), "%s%s", home, parts[i]);
        CHECK(mkdir(folder, 0700) == 0);
    }
    write_version(folder, "# text\nVersion=8.5.1.rc2\nother=1\n");
    OK(aclsysGetVersionStr((char *)"opp-kernel", text));
    CHECK(strcmp(text, "8.5.1.rc2") == 0);
    OK(aclsysGetVersionNum((char *)"opp_kernel", &number));
    CHECK_EQ(number, 80501000 - 100 + 2);
    write_version(folder, "Version=8.0.0-alpha003\n");
    OK(aclsysGetVersionNum((char *)"opp_kernel", &number));
    CHECK_EQ(number, 80000000 - 300 + 3);
    write_version(folder, "Version=eight\n");
    CHECK_ACL(aclsysGetVersionNum((char *)"opp_kernel", &number), 500000);
    aclCANNPackageVersion package;
    write_version(folder, "Version=8.5.1.2\n");
    OK(aclsysGetCANNVersion(ACL_PKG_NAME_OPP_KERNEL, &package));
    CHECK(strcmp(package.majorVersion, "8") == 0 && strcmp(package.patchVersion, "2") == 0);
    CHECK_ACL(aclsysGetCANNVersion((aclCANNPackageName)8, &package), 100000);
    snprintf(folder, sizeof(folder), "%s/share/info/opp_kernel/version.info", home);
    unlink(folder);
    for (size_t i = 4; i-- > 0;) {
        snprintf(folder, sizeof(folder), "%s%s", home, parts[i]);
        rmdir(folder);
    }
}

TEST(what_cann_can)
{
    const aclCannAttr *list = NULL;
    size_t n = 0;
    int32_t value = 7;
    CHECK_ACL(aclGetCannAttributeList(NULL, &n), 100000);
    OK(aclGetCannAttributeList(&list, &n));
    CHECK_EQ(n, 3);
    for (size_t i = 0; i < n; i++) {
        OK(aclGetCannAttribute(list[i], &value));
        CHECK(value == 0 || value == 1);
    }
    CHECK_ACL(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), 100000);
}

static char seen[2048];

static int32_t receive(void *user_data, uint32_t level, const char *text, size_t length)
{
    CHECK(user_data == seen);
    CHECK_EQ(strlen(text), length);
    CHECK(length < sizeof(seen) && level <= 3);
    memcpy(seen, text, length + 1);
    return 0;
}

TEST(log_lines)
{
    setenv("ASCEND_GLOBAL_LOG_LEVEL", "1", 1);
    acllogCallbackHandle handle = 0;
    CHECK_ACL(acllogRegisterCallback(NULL, seen, OUTPUT_TYPE_BOTH, &handle), 100000);
    CHECK_ACL(acllogRegisterCallback(receive, seen, 3, &handle), 100000);
    OK(acllogRegisterCallback(receive, seen, OUTPUT_TYPE_DEBUG, &handle));
    CHECK_EQ(acllogCheckDebugLevel(0, DLOG_INFO), 1);
    CHECK_EQ(acllogCheckDebugLevel(0, DLOG_DEBUG), 0);
    aclAppLog(ACL_DEBUG, "f", "x.c", 1, "no");
    CHECK_EQ(seen[0], 0);
    aclAppLog(ACL_INFO, "f", "dir/x.c", 17, "value %d", 42);
    CHECK(strcmp(seen, "x.c:17: f: value 42") == 0);
    aclAppLog(ACL_INFO, NULL, "x.c", 1, "no");
    aclAppLog(ACL_INFO, "f", "x.c", 1, NULL);
    CHECK(strcmp(seen, "x.c:17: f: value 42") == 0);
    char large[3000];
    memset(large, 'y', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    aclAppLog(ACL_ERROR, "f", "x.c", 1, "%s", large);
    CHECK_EQ(strlen(seen), 1023);
    CHECK(strstr(seen, "[truncated]") != NULL);
    acllogRecord(3, DLOG_WARN, "module %s", "speaks");
    CHECK(strcmp(seen, "module speaks") == 0);
    OK(acllogUnregisterCallback(handle));
    CHECK_ACL(acllogUnregisterCallback(handle), 100000);
    acllogRecord(3, DLOG_WARN, "later");
    CHECK(strcmp(seen, "module speaks") == 0);
}

TEST(parts_of_one_architecture)
{
    int32_t can = 7;
    OK(aclrtCheckArchCompatibility(aclrtGetSocName(), &can));
    CHECK_EQ(can, 1);
    OK(aclrtCheckArchCompatibility("Ascend910B1", &can));
    CHECK_EQ(can, 1);
    OK(aclrtCheckArchCompatibility("Ascend910_9392", &can));
    CHECK_EQ(can, 1);
    OK(aclrtCheckArchCompatibility("Ascend910B", &can)); /* the old part of that name */
    CHECK_EQ(can, 0);
    OK(aclrtCheckArchCompatibility("Ascend310P3", &can));
    CHECK_EQ(can, 0);
    can = 7;
    CHECK_ACL(aclrtCheckArchCompatibility("Ascend77", &can), 107000);
    CHECK_ACL(aclrtCheckArchCompatibility("", &can), 107000);
    CHECK_ACL(aclrtCheckArchCompatibility(NULL, &can), 107000);
    CHECK_EQ(can, 7);
}

TEST(parts_of_another_model)
{
    int32_t can = 7;
    setenv("BELAY_MODEL", "310P", 1);
    OK(aclrtCheckArchCompatibility("Ascend310P1", &can));
    CHECK_EQ(can, 1);
    OK(aclrtCheckArchCompatibility("Ascend910B3", &can));
    CHECK_EQ(can, 0);
}

TEST(no_groups_of_cores)
{
    uint32_t n = 7;
    size_t size;
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtGetGroupCount(&n), 207000);
    CHECK_ACL(aclrtSetGroup(0), 207000);
    CHECK_EQ(n, 7);
    CHECK(aclrtCreateGroupInfo() == NULL);
    CHECK_MESSAGE("no groups of cores");
    CHECK_ACL(aclrtGetGroupCount(NULL), 100000);
    CHECK_ACL(aclrtGetAllGroupInfo(NULL), 100000);
    CHECK_ACL(aclrtGetGroupInfoDetail(NULL, 0, ACL_GROUP_AICORE_INT, &n, 4, &size), 100000);
    CHECK_ACL(aclrtDestroyGroupInfo(NULL), 100000);
}

/* Each window takes a part of a limited address space, none takes it from the others. */
TEST(what_a_limit_of_addresses_leaves)
{
    if (BLYI_WITH_ASAN || BLYI_WITH_TSAN)
        return; /* its shadow is larger */
    void *block = NULL, *pinned = NULL, *range = NULL, *own;
    struct rlimit limit = {10 * GIB, 10 * GIB};
    setenv("BELAY_GUARD", "off", 1);
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    OK(aclrtSetDevice(0));
    OK(aclrtMallocAlign32(&block, 64 * MIB, HUGE_FIRST));
    OK(aclrtMallocHost(&pinned, MIB));
    OK(aclrtReserveMemAddress(&range, 64 * MIB, 0, NULL, 1));
    own = malloc(GIB);
    CHECK(own != NULL);
    free(own);
    OK(aclrtReleaseMemAddress(range));
    OK(aclrtFreeHost(pinned));
    OK(aclrtFree(block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_one_architecture),
        cmocka_unit_test(parts_of_another_model),
        cmocka_unit_test(no_groups_of_cores),
        cmocka_unit_test(device_information),
        cmocka_unit_test(data_buffers),
        cmocka_unit_test(data_types),
        cmocka_unit_test(half_precision),
        cmocka_unit_test(versions),
        cmocka_unit_test(what_cann_can),
        cmocka_unit_test(log_lines),
        cmocka_unit_test(what_a_limit_of_addresses_leaves),
    };
    return cmocka_run_group_tests_name("misc", tests, NULL, NULL);
}
