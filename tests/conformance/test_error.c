/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and last errors. */
#include "acl_test.h"

#include <pthread.h>

TEST(messages_are_newest_first_and_read_once)
{
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_ACL(aclrtFree(NULL), 100000);
    CHECK_ACL(aclrtSetDevice(5), 107001);
    const char *text = aclGetRecentErrMsg();
    CHECK(text != NULL);
    CHECK(strcmp(text, "107001 aclrtSetDevice: device 5 does not exist: the ids are 0 .. 0\n"
                       "100000 aclrtFree: devPtr is NULL") == 0);
    CHECK(aclGetRecentErrMsg() == NULL);
}

TEST(the_last_sixteen_are_kept)
{
    for (int i = 0; i < 40; i++)
        CHECK_ACL(aclrtSetDevice(100 + i), 107001);
    const char *text = aclGetRecentErrMsg();
    CHECK(strstr(text, "device 139 ") != NULL && strstr(text, "device 124 ") != NULL);
    CHECK(strstr(text, "device 123 ") == NULL);
}

TEST(success_leaves_nothing)
{
    void *p = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc(&p, 4096, HUGE_FIRST));
    OK(aclrtFree(p));
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
}

TEST(last_error_keeps_the_runtimes_codes)
{
    CHECK_ACL(aclrtPeekAtLastError((aclrtLastErrLevel)1), 100000);
    CHECK_ACL(aclrtGetLastError((aclrtLastErrLevel)1), 100000);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK_ACL(aclrtSetDevice(5), 107001);
    CHECK_ACL(aclrtFree(NULL), 100000); /* not stored */
    OK(aclrtSetDevice(0));              /* clears nothing */
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107001);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107001);
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
    void *p = NULL;
    CHECK_ACL(aclrtMallocCached(&p, 64, HUGE_FIRST), 207000); /* quiet */
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
}

static void *fail_once(void *arg)
{
    (void)arg;
    CHECK_ACL(aclrtSetDevice(77), 107001);
    return NULL;
}

TEST(messages_belong_to_the_thread)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fail_once, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
}

TEST(or_to_the_process)
{
    char path[64];
    snprintf(path, sizeof(path), "/tmp/belay-mode-%d.json", (int)getpid());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("{\"err_msg_mode\": \"1\"}", file) >= 0);
    fclose(file);
    OK(aclInit(path));
    unlink(path);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fail_once, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_MESSAGE("device 77");
    CHECK(aclGetRecentErrMsg() == NULL);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_newest_first_and_read_once),
        cmocka_unit_test(the_last_sixteen_are_kept),
        cmocka_unit_test(success_leaves_nothing),
        cmocka_unit_test(last_error_keeps_the_runtimes_codes),
        cmocka_unit_test(messages_belong_to_the_thread),
        cmocka_unit_test(or_to_the_process),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
