/* SPDX-License-Identifier: Apache-2.0 */
/* aclInit, aclFinalize, configuration files, module callbacks. */
#include "acl_test.h"

static const char *write_config(const char *text)
{
    static char path[64];
    snprintf(path, sizeof(path), "/tmp/belay-init-%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    fclose(file);
    return path;
}

static void check_config(const char *text, aclError want)
{
    const char *path = write_config(text);
    CHECK_ACL(aclInit(path), want);
    unlink(path);
}

TEST(second_init_is_told_and_counted)
{
    uint64_t left = 99;
    OK(aclInit(NULL));
    CHECK_ACL(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    CHECK_ACL(aclInit(NULL), 100002);
    OK(aclFinalizeReference(&left));
    CHECK_EQ(left, 2);
    OK(aclFinalizeReference(NULL));
    OK(aclFinalizeReference(&left));
    CHECK_EQ(left, 0);
    CHECK_ACL(aclFinalizeReference(&left), 100037);
    CHECK_ACL(aclFinalize(), 100037);
}

TEST(finalise_zeroes_the_count)
{
    OK(aclInit(NULL));
    CHECK_ACL(aclInit(NULL), 100002);
    OK(aclFinalize());
    CHECK_ACL(aclFinalize(), 100037);
    OK(aclInit(NULL));
    OK(aclFinalize());
}

TEST(finalise_before_init_succeeds)
{
    OK(aclFinalize());
    CHECK_ACL(aclFinalize(), 100037);
}

TEST(finalise_invalidates_everything)
{
    void *p = NULL, *h = NULL;
    aclrtStream stream = NULL;
    aclrtContext context = NULL;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtMallocHost(&h, 4096));
    OK(aclrtCreateStream(&stream));
    OK(aclrtGetCurrentContext(&context));
    OK(aclFinalize());
    CHECK_ACL(aclrtSynchronizeStream(stream), 107017);
    CHECK_ACL(aclrtSetCurrentContext(context), 107002);
    CHECK_ACL(aclrtFree(p), 107000);
    CHECK_ACL(aclrtMalloc(&p, 4096, HUGE_FIRST), 107002);
    memset(h, 1, 4096);
    OK(aclrtFreeHost(h));
}

TEST(files)
{
    CHECK_ACL(aclInit("/nonexistent/acl.json"), 100003);
    CHECK_MESSAGE("/nonexistent/acl.json");
    CHECK_ACL(aclInit("/tmp"), 100003);
    check_config("", 100006);
    check_config("{", 100006);
    check_config("not json", 100006);
    check_config("{\"a\":[[[[[[[[[[1]]]]]]]]]]}", 100006);
    check_config("{\"a\":[[[[[[[1]]]]]]]}", 0);
}

TEST(values_have_ranges)
{
    check_config("{\"max_opqueue_num\": \"0\"}", 148048);
    check_config("{\"max_opqueue_num\": -1}", 148048);
    check_config("{\"err_msg_mode\": \"2\"}", 100000);
    check_config("{\"defaultDevice\": {\"default_device\": \"1\"}}", 100000);
    check_config("{\"StackSize\": {\"aicore_stack_size\": 32767}}", 100000);
    check_config("{\"StackSize\": {\"aicore_stack_size\": 49153}}", 100000);
    check_config("{\"StackSize\": {\"aicore_stack_size\": 212992}}", 100000);
    check_config("{\"simt_printf_fifo_size\": 1048577}", 100000);
    check_config("{\"StackSize\": {\"aicore_stack_size\": 196608}}", 0);
}

TEST(a_different_configuration_is_refused)
{
    check_config("{\"max_opqueue_num\": \"20\"}", 0);
    check_config("{ \"max_opqueue_num\" :\t\"20\" }\n", 100002);
    CHECK_ACL(aclInit(NULL), 100002);
    check_config("{\"max_opqueue_num\": \"21\"}", 100000);
    OK(aclFinalize());
    check_config("{\"max_opqueue_num\": \"21\"}", 100000);
    check_config("{\"max_opqueue_num\": \"20\"}", 0);
}

TEST(default_device_serves_threads_without_one)
{
    int32_t device = -1;
    void *p = NULL;
    check_config("{\"defaultDevice\": {\"default_device\": \"0\"}}", 0);
    OK(aclrtGetDevice(&device));
    CHECK_EQ(device, 0);
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtFree(p));
}

static int calls, finals;
static size_t seen_length;

static aclError on_init(const char *text, size_t length, void *arg)
{
    CHECK(arg == &calls);
    CHECK(text != NULL && strlen(text) == length);
    seen_length = length;
    calls++;
    return ACL_SUCCESS;
}

static aclError on_final(void *arg)
{
    CHECK(arg == &finals);
    finals++;
    return ACL_SUCCESS;
}

static aclError refuse(const char *text, size_t length, void *arg)
{
    (void)text, (void)length, (void)arg;
    return 507000;
}

TEST(callbacks)
{
    CHECK_ACL(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, NULL, NULL), 100000);
    CHECK_ACL(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, NULL, NULL), 100000);
    CHECK_ACL(aclInitCallbackRegister((aclRegisterCallbackType)99, on_init, NULL), 100000);
    CHECK_ACL(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, on_init), 100000);
    OK(aclInitCallbackRegister(ACL_REG_TYPE_ACL_MODEL, on_init, &calls));
    CHECK_EQ(calls, 0);
    OK(aclInit(NULL));
    CHECK_EQ(calls, 1);
    CHECK_EQ(seen_length, 2);
    CHECK_ACL(aclInit(NULL), 100002);
    CHECK_EQ(calls, 1);
    OK(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, on_init, &calls)); /* late: at once */
    CHECK_EQ(calls, 2);
    OK(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, on_final, &finals));
    OK(aclFinalize());
    CHECK_EQ(finals, 1);
    OK(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, on_init));
    OK(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, on_final));
    OK(aclInit(NULL));
    CHECK_EQ(calls, 3);
    OK(aclFinalize());
    CHECK_EQ(finals, 1);
    OK(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, refuse, NULL));
    CHECK_ACL(aclInit(NULL), 507000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_init_is_told_and_counted),
        cmocka_unit_test(finalise_zeroes_the_count),
        cmocka_unit_test(finalise_before_init_succeeds),
        cmocka_unit_test(finalise_invalidates_everything),
        cmocka_unit_test(files),
        cmocka_unit_test(values_have_ranges),
        cmocka_unit_test(a_different_configuration_is_refused),
        cmocka_unit_test(default_device_serves_threads_without_one),
        cmocka_unit_test(callbacks),
    };
    return cmocka_run_group_tests_name("init", tests, NULL, NULL);
}
