/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions and callbacks of report threads. */
#include "acl_test.h"

#include <pthread.h>

static atomic_int ran;
static atomic_bool stop;

static void count(void *arg)
{
    CHECK(arg == &ran);
    atomic_fetch_add(&ran, 1);
}

static void *report_thread(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        aclError error = aclrtProcessReport(100);
        CHECK(error == 0 || error == 507012 || error == 107012);
    }
    return NULL;
}

TEST(arguments)
{
    aclrtStream stream = NULL;
    CHECK_ACL(aclrtLaunchHostFunc(NULL, NULL, NULL), 100000);
    CHECK_ACL(aclrtLaunchHostFunc(NULL, count, NULL), 107002);
    CHECK_ACL(aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, NULL), 100000);
    CHECK_ACL(aclrtLaunchCallback(count, NULL, (aclrtCallbackBlockType)2, NULL), 100000);
    CHECK_ACL(aclrtSubscribeReport(1, NULL), 107002);
    CHECK_ACL(aclrtProcessReport(0), 100000);
    CHECK_ACL(aclrtProcessReport(-2), 100000);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    CHECK_ACL(aclrtProcessReport(20), 107012);
    CHECK_ACL(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream), 107015);
    CHECK_ACL(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream), 107012);
    CHECK_ACL(aclrtSubscribeReport(1, ANY_ADDRESS), 107017);
    CHECK_ACL(aclrtLaunchHostFunc(ANY_ADDRESS, count, &ran), 107017);
}

TEST(report_threads)
{
    aclrtStream stream = NULL;
    pthread_t thread;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    CHECK(pthread_create(&thread, NULL, report_thread, NULL) == 0);
    OK(aclrtSubscribeReport((uint64_t)thread, stream));
    CHECK_ACL(aclrtSubscribeReport((uint64_t)pthread_self(), stream), 107011);
    CHECK_ACL(aclrtLaunchHostFunc(stream, count, &ran), 107011);
    for (int i = 0; i < 50; i++)
        OK(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ran), 50);
    OK(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_NO_BLOCK, stream));
    OK(aclrtSynchronizeStream(stream));
    while (atomic_load(&ran) < 51)
        usleep(100);
    OK(aclrtUnSubscribeReport((uint64_t)thread, stream));
    atomic_store(&stop, true);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(nothing_to_report)
{
    aclrtStream stream = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
    CHECK_ACL(aclrtProcessReport(20), 507012);
    OK(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtProcessReport(-1));
    CHECK_EQ(atomic_load(&ran), 1);
    OK(aclrtSynchronizeStream(stream));
}

TEST(host_functions_keep_the_order_of_their_stream)
{
    aclrtStream stream = NULL;
    struct hold hold;
    unsigned char *p = NULL, *h = NULL;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&p, 4096, HUGE_FIRST));
    OK(aclrtMallocHost((void **)&h, 4096));
    h[0] = 0;
    OK(aclrtMemsetAsync(p, 4096, 9, 4096, stream));
    hold_stream(&hold, stream);
    OK(aclrtMemcpyAsync(h, 4096, p, 4096, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    while (!atomic_load(&hold.running))
        usleep(100);
    CHECK_EQ(h[0], 0);
    let_go(&hold);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(h[0], 9);
    CHECK_ACL(aclrtSubscribeReport((uint64_t)pthread_self(), stream), 107011);
    CHECK_ACL(aclrtLaunchCallback(count, &ran, ACL_CALLBACK_BLOCK, stream), 107011);
}

/* ── A thread of the program's for host functions ─────────────────────────────────────────── */

static pthread_t server;
static atomic_int in_server, elsewhere;

static void note_thread(void *arg)
{
    (void)arg;
    atomic_fetch_add(pthread_equal(pthread_self(), server) ? &in_server : &elsewhere, 1);
}

static void *serve_host_functions(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        aclError error = aclrtProcessHostFunc(100);
        CHECK(error == 0 || error == 507012 || error == 107012);
    }
    return NULL;
}

TEST(a_subscribed_thread_runs_host_functions)
{
    aclrtStream stream = NULL, plain = NULL;
    pthread_t reporter;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&plain));
    CHECK(pthread_create(&server, NULL, serve_host_functions, NULL) == 0);
    CHECK(pthread_create(&reporter, NULL, report_thread, NULL) == 0);
    OK(aclrtSubscribeReport((uint64_t)reporter, stream)); /* both on one stream */
    OK(aclrtSubscribeHostFunc((uint64_t)server, stream));
    CHECK_ACL(aclrtSubscribeHostFunc((uint64_t)reporter, stream), 107011);
    CHECK_ACL(aclrtSubscribeHostFunc((uint64_t)server, NULL), 107000);
    CHECK_ACL(aclrtUnSubscribeHostFunc((uint64_t)server, NULL), 107000);
    CHECK_ACL(aclrtUnSubscribeHostFunc((uint64_t)reporter, stream), 107012);
    CHECK_ACL(aclrtProcessHostFunc(0), 107000);
    CHECK_ACL(aclrtProcessHostFunc(10), 107012);
    for (int i = 0; i < 20; i++) {
        OK(aclrtLaunchHostFunc(stream, note_thread, NULL));
        OK(aclrtLaunchCallback(note_thread, NULL, ACL_CALLBACK_BLOCK, stream));
    }
    OK(aclrtLaunchHostFunc(plain, note_thread, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStream(plain));
    CHECK_EQ(atomic_load(&in_server), 20);
    CHECK_EQ(atomic_load(&elsewhere), 21);
    OK(aclrtUnSubscribeHostFunc((uint64_t)server, stream));
    CHECK_ACL(aclrtLaunchHostFunc(stream, note_thread, NULL), 107011); /* callbacks are left */
    atomic_store(&stop, true);
    CHECK(pthread_join(server, NULL) == 0);
    CHECK(pthread_join(reporter, NULL) == 0);
    OK(aclrtDestroyStream(stream));
}

TEST(the_stream_waits_for_its_thread)
{
    aclrtStream stream = NULL;
    aclrtStreamStatus status;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtSubscribeHostFunc((uint64_t)pthread_self(), stream));
    CHECK_ACL(aclrtProcessHostFunc(5), 507012);
    CHECK_MESSAGE("no host function became ready");
    OK(aclrtLaunchHostFunc(stream, count, &ran));
    OK(aclrtLaunchHostFunc(stream, count, &ran));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 5), 507046);
    CHECK_EQ(atomic_load(&ran), 0);
    OK(aclrtProcessHostFunc(-1));
    CHECK_EQ(atomic_load(&ran), 1);
    OK(aclrtStreamQuery(stream, &status));
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    OK(aclrtUnSubscribeHostFunc((uint64_t)pthread_self(), stream)); /* drops the second */
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ran), 1);
    OK(aclrtLaunchHostFunc(stream, count, &ran)); /* the context's thread */
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ran), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(report_threads),
        cmocka_unit_test(nothing_to_report),
        cmocka_unit_test(host_functions_keep_the_order_of_their_stream),
        cmocka_unit_test(a_subscribed_thread_runs_host_functions),
        cmocka_unit_test(the_stream_waits_for_its_thread),
    };
    return cmocka_run_group_tests_name("callback", tests, NULL, NULL);
}
