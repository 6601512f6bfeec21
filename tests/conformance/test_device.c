/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, contexts, and threads that set none (O-09). */
#include "acl_test.h"

#include <pthread.h>

TEST(ids_out_of_range)
{
    aclrtContext context = ANY_ADDRESS;
    CHECK_ACL(aclrtSetDevice(1), 107001);
    CHECK_MESSAGE("107001 aclrtSetDevice: device 1 does not exist");
    CHECK_ACL(aclrtSetDevice(-1), 107001);
    CHECK_ACL(aclrtResetDevice(1), 107001);
    CHECK_ACL(aclrtResetDeviceForce(-1), 107001);
    CHECK_ACL(aclrtCreateContext(&context, 64), 107001);
    CHECK(context == ANY_ADDRESS);
}

TEST(every_set_needs_a_reset)
{
    int32_t active = -1;
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 0);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 1);
    OK(aclrtResetDevice(0));
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 1);
    OK(aclrtResetDevice(0));
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 0);
    CHECK_ACL(aclrtResetDevice(0), 507007);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 507007);
    OK(aclrtSetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtResetDeviceForce(0));
    CHECK_ACL(aclrtResetDeviceForce(0), 507007);
    CHECK_ACL(aclrtResetDevice(0), 507007);
}

TEST(reset_takes_streams_and_memory)
{
    void *p = NULL;
    aclrtStream stream = NULL;
    OK(aclrtSetDevice(0));
    size_t before = free_bytes(ACL_HBM_MEM);
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    OK(aclrtCreateStream(&stream));
    OK(aclrtResetDevice(0));
    CHECK_ACL(aclrtSynchronizeStream(stream), 107017);
    CHECK_ACL(aclrtFree(p), 107000);
    CHECK_ACL(aclrtSynchronizeDevice(), 107002);
    OK(aclrtSetDevice(0));
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
}

TEST(contexts)
{
    aclrtContext primary = NULL, first = NULL, second = NULL, current = NULL;
    int32_t device = -1;
    CHECK_ACL(aclrtGetCurrentContext(&current), 107002);
    CHECK_ACL(aclrtGetDevice(&device), 107002);
    CHECK_ACL(aclrtSynchronizeDevice(), 107002);
    CHECK_ACL(aclrtSetCurrentContext(NULL), 100000);
    CHECK_ACL(aclrtDestroyContext(NULL), 100000);
    CHECK_ACL(aclrtCreateContext(NULL, 0), 100000);
    CHECK_ACL(aclrtGetCurrentContext(NULL), 100000);
    CHECK_ACL(aclrtSetCurrentContext(ANY_ADDRESS), 107002);

    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    CHECK_ACL(aclrtDestroyContext(primary), 107002);
    OK(aclrtCreateContext(&first, 0));
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == first);
    OK(aclrtCreateContext(&second, 0));
    OK(aclrtSetCurrentContext(first));
    OK(aclrtSetDevice(0)); /* drops the explicit context */
    OK(aclrtGetCurrentContext(&current));
    CHECK(current == primary);
    OK(aclrtSetCurrentContext(second));
    OK(aclrtDestroyContext(second));
    CHECK_ACL(aclrtSetCurrentContext(second), 107002);
    CHECK_ACL(aclrtDestroyContext(second), 107002);
    OK(aclrtDestroyContext(first));
}

TEST(memory_survives_its_context)
{
    aclrtContext context = NULL;
    void *p = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtDestroyContext(context));
    OK(aclrtSetDevice(0));
    OK(aclrtMemset(p, 4096, 1, 4096));
    OK(aclrtFree(p));
}

TEST(parameters_of_context_and_process)
{
    int64_t value = 77;
    OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK_EQ(value, 0);
    OK(aclrtSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 1));
    OK(aclrtGetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, &value));
    CHECK_EQ(value, 1);
    CHECK_ACL(aclrtSetSysParamOpt((aclSysParamOpt)4, 1), 100000);
    CHECK_ACL(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107002);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107021);
    CHECK_EQ(value, 1);
    OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, -5));
    OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK_EQ(value, -5);
    CHECK_ACL(aclrtCtxSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 1), 100000);
}

TEST(waiting_for_the_device)
{
    struct hold hold;
    aclrtStream stream = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtSynchronizeDevice());
    CHECK_ACL(aclrtSynchronizeDeviceWithTimeout(0), 107000);
    CHECK_ACL(aclrtSynchronizeDeviceWithTimeout(-2), 107000);
    OK(aclrtSynchronizeDeviceWithTimeout(-1));
    OK(aclrtCreateStream(&stream));
    hold_stream(&hold, stream);
    CHECK_ACL(aclrtSynchronizeDeviceWithTimeout(20), 507046);
    let_go(&hold);
    OK(aclrtSynchronizeDeviceWithTimeout(1000 * TEST_SECONDS));
}

static void *without_device(void *arg)
{
    bool set_first = *(const bool *)arg;
    size_t free_now = 1, total = 2;
    void *p = NULL;
    if (set_first)
        OK(aclrtSetDevice(1));
    aclError want = set_first ? 0 : 107002;
    CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_now, &total), want);
    if (!set_first)
        CHECK_MESSAGE("no device");
    CHECK_ACL(aclrtMalloc(&p, 4096, HUGE_FIRST), want);
    if (set_first)
        OK(aclrtFree(p));
    return NULL;
}

TEST(threads_without_a_device_land_nowhere)
{
    setenv("BELAY_CARDS", "2", 1);
    void *p = NULL;
    pthread_t threads[16];
    OK(aclrtSetDevice(1));
    OK(aclrtMallocAlign32(&p, 64 * MIB, HUGE_FIRST));
    size_t before = free_bytes(ACL_HBM_MEM);
    for (int round = 0; round < 2; round++) {
        bool set_first = round == 1;
        for (int i = 0; i < 16; i++)
            CHECK(pthread_create(&threads[i], NULL, without_device, &set_first) == 0);
        for (int i = 0; i < 16; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK_EQ(free_bytes(ACL_HBM_MEM), before);
    int32_t active = -1;
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 0);
}

TEST(a_lenient_runtime_lands_on_card_0)
{
    setenv("BELAY_STRICT_DEVICE", "off", 1);
    setenv("BELAY_CARDS", "2", 1);
    void *p = NULL;
    int32_t device = -1, active = -1;
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(aclrtGetPrimaryCtxState(0, NULL, &active));
    CHECK_EQ(active, 1);
    OK(aclrtFree(p));
}

static void *use_default_stream(void *arg)
{
    (void)arg;
    CHECK_ACL(aclrtSynchronizeStream(NULL), 107002);
    return NULL;
}

TEST(a_reset_takes_the_context_of_other_threads)
{
    pthread_t thread;
    OK(aclrtSetDevice(0));
    OK(aclrtResetDevice(0));
    CHECK(pthread_create(&thread, NULL, use_default_stream, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(visible_devices)
{
    setenv("BELAY_CARDS", "4", 1);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "1,3,x,2", 1);
    uint32_t count = 0;
    int32_t id = -1;
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 2);
    OK(aclrtSetDevice(1));
    OK(aclrtGetDevice(&id));
    CHECK_EQ(id, 1);
    CHECK_ACL(aclrtSetDevice(2), 107001);
    OK(aclrtGetLogicDevIdByUserDevId(1, &id));
    CHECK_EQ(id, 3);
    OK(aclrtGetPhyDevIdByUserDevId(0, &id));
    CHECK_EQ(id, 1);
    OK(aclrtGetUserDevIdByLogicDevId(3, &id));
    CHECK_EQ(id, 1);
    OK(aclrtGetUserDevIdByPhyDevId(1, &id));
    CHECK_EQ(id, 0);
    CHECK_ACL(aclrtGetUserDevIdByPhyDevId(0, &id), 107000);
    OK(aclrtGetLogicDevIdByPhyDevId(3, &id)); /* the user's id despite the name */
    CHECK_EQ(id, 1);
    OK(aclrtGetPhyDevIdByLogicDevId(1, &id)); /* takes the user's id despite the name */
    CHECK_EQ(id, 3);
}

static void check_no_device(const char *list)
{
    uint32_t count = 77;
    setenv("ASCEND_RT_VISIBLE_DEVICES", list, 1);
    CHECK_ACL(aclrtGetDeviceCount(&count), 207004);
    CHECK_EQ(count, 77);
    CHECK_ACL(aclrtSetDevice(0), 107001);
}

TEST(visible_twice)
{
    check_no_device("0,0");
}

TEST(visible_falling)
{
    setenv("BELAY_CARDS", "2", 1);
    check_no_device("1,0");
}

TEST(visible_none)
{
    check_no_device("");
}

TEST(visible_wrong)
{
    check_no_device("7");
}

TEST(count_of_devices)
{
    uint32_t count = 0;
    aclrtRunMode mode = ACL_DEVICE;
    CHECK_ACL(aclrtGetDeviceCount(NULL), 100000);
    OK(aclrtGetDeviceCount(&count));
    CHECK_EQ(count, 1);
    CHECK_ACL(aclrtGetRunMode(NULL), 100000);
    OK(aclrtGetRunMode(&mode));
    CHECK_EQ(mode, ACL_HOST);
    CHECK_EQ(ACL_HOST, 1);
}

TEST(a_forked_child_is_told)
{
    OK(aclrtSetDevice(0));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        void *p = NULL;
        CHECK_ACL(aclrtMalloc(&p, 4096, HUGE_FIRST), 507899);
        CHECK_MESSAGE("forked");
        CHECK_ACL(aclrtSetDevice(0), 507033);
        CHECK_ACL(aclInit(NULL), 507899);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    OK(aclrtSynchronizeDevice());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_out_of_range),
        cmocka_unit_test(every_set_needs_a_reset),
        cmocka_unit_test(reset_takes_streams_and_memory),
        cmocka_unit_test(contexts),
        cmocka_unit_test(memory_survives_its_context),
        cmocka_unit_test(parameters_of_context_and_process),
        cmocka_unit_test(waiting_for_the_device),
        cmocka_unit_test(threads_without_a_device_land_nowhere),
        cmocka_unit_test(a_lenient_runtime_lands_on_card_0),
        cmocka_unit_test(a_reset_takes_the_context_of_other_threads),
        cmocka_unit_test(visible_devices),
        cmocka_unit_test(visible_twice),
        cmocka_unit_test(visible_falling),
        cmocka_unit_test(visible_none),
        cmocka_unit_test(visible_wrong),
        cmocka_unit_test(count_of_devices),
        cmocka_unit_test(a_forked_child_is_told),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
