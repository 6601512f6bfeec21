/* SPDX-License-Identifier: Apache-2.0 */
/* Events: flow F5, flags, time, event ids (O-08). */
#include "acl_test.h"

static aclrtStream s1, s2;

static void start(void)
{
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&s1));
    OK(aclrtCreateStream(&s2));
}

static int recorded(aclrtEvent event)
{
    aclrtEventRecordedStatus status = (aclrtEventRecordedStatus)77;
    OK(aclrtQueryEventStatus(event, &status));
    return (int)status;
}

/* F5, its one-process part. */
TEST(order_between_streams)
{
    enum { SIZE = 1 << 20 };
    struct hold hold;
    aclrtEvent event = NULL, begin = NULL, end = NULL;
    unsigned char *p = NULL, *q = NULL, seen = 0;
    float ms = -1.0F;
    uint64_t t0 = 0, t1 = 0;
    start();
    OK(aclrtMalloc((void **)&p, SIZE, HUGE_FIRST));
    OK(aclrtMalloc((void **)&q, SIZE, HUGE_FIRST));
    OK(aclrtCreateEvent(&event));
    OK(aclrtCreateEvent(&begin));
    OK(aclrtCreateEvent(&end));
    CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    OK(aclrtRecordEvent(begin, s1));
    OK(aclrtSynchronizeEvent(begin)); /* before the 20 ms below */
    hold_stream(&hold, s1);
    OK(aclrtMemsetAsync(p, SIZE, 0x77, SIZE, s1));
    OK(aclrtRecordEvent(event, s1));
    OK(aclrtRecordEvent(end, s1));
    OK(aclrtStreamWaitEvent(s2, event));
    OK(aclrtMemcpyAsync(q, SIZE, p, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, s2));
    CHECK_EQ(recorded(event), 0);
    CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, 20), 507047);
    CHECK_ACL(aclrtEventElapsedTime(&ms, begin, end), 107006);
    let_go(&hold);
    OK(aclrtSynchronizeEvent(event));
    CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtMemcpy(&seen, 1, p + SIZE - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(seen, 0x77);
    OK(aclrtSynchronizeStream(s2));
    OK(aclrtMemcpy(&seen, 1, q + SIZE - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_EQ(seen, 0x77);
    OK(aclrtSynchronizeStream(s1));
    OK(aclrtEventGetTimestamp(begin, &t0));
    OK(aclrtEventGetTimestamp(end, &t1));
    CHECK(t1 >= t0);
    OK(aclrtEventElapsedTime(&ms, begin, end));
    CHECK(ms >= 20.0F);
    OK(aclrtEventElapsedTime(&ms, end, begin));
    CHECK(ms <= -20.0F);
    OK(aclrtDestroyEvent(event));
    CHECK_ACL(aclrtDestroyEvent(event), 107017);
}

TEST(arguments)
{
    aclrtEvent event = ANY_ADDRESS;
    aclrtEventRecordedStatus status;
    float ms = 0;
    uint64_t time = 0;
    CHECK_ACL(aclrtCreateEvent(NULL), 100000);
    CHECK_ACL(aclrtCreateEventWithFlag(NULL, 1), 100000);
    CHECK_ACL(aclrtCreateEventExWithFlag(NULL, 1), 100000);
    CHECK_ACL(aclrtDestroyEvent(NULL), 100000);
    CHECK_ACL(aclrtDestroyEvent(ANY_ADDRESS), 107017);
    start();
    CHECK_ACL(aclrtCreateEventWithFlag(&event, 0), 107000);
    CHECK_ACL(aclrtCreateEventWithFlag(&event, 0x100), 107000);
    CHECK_ACL(aclrtCreateEventWithFlag(&event, 0x11), 107000);
    CHECK_ACL(aclrtCreateEventWithFlag(&event, ACL_EVENT_IPC), 107000);
    CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC | ACL_EVENT_SYNC), 107000);
    CHECK(event == ANY_ADDRESS);
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtRecordEvent(NULL, s1), 100000);
    CHECK_ACL(aclrtRecordEvent(ANY_ADDRESS, s1), 107017);
    CHECK_ACL(aclrtRecordEvent(s1, s1), 107017);
    CHECK_ACL(aclrtRecordEvent(event, event), 107017);
    CHECK_ACL(aclrtRecordEventWithFlag(event, s1, 1), 207000);
    CHECK_ACL(aclrtRecordEventWithFlag(event, s1, 2), 107000);
    OK(aclrtRecordEventWithFlag(event, s1, 0));
    CHECK_ACL(aclrtStreamWaitEvent(s1, NULL), 100000);
    CHECK_ACL(aclrtStreamWaitEventWithTimeout(s1, event, -1), 107000);
    OK(aclrtStreamWaitEventWithTimeout(s1, event, 0));
    CHECK_ACL(aclrtStreamWaitEventWithFlag(s1, event, 0, 1), 207000);
    OK(aclrtStreamWaitEventWithFlag(s1, event, 5, 0));
    CHECK_ACL(aclrtQueryEventStatus(NULL, &status), 100000);
    CHECK_ACL(aclrtQueryEventStatus(event, NULL), 100000);
    CHECK_ACL(aclrtSynchronizeEvent(NULL), 100000);
    CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, 0), 107000);
    CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, -2), 107000);
    CHECK_ACL(aclrtEventElapsedTime(NULL, event, event), 100000);
    CHECK_ACL(aclrtEventElapsedTime(&ms, NULL, event), 100000);
    CHECK_ACL(aclrtEventGetTimestamp(NULL, &time), 100000);
    OK(aclrtSynchronizeStream(s1));
}

TEST(never_recorded)
{
    aclrtEvent legacy = NULL, modern = NULL;
    float ms = 7;
    start();
    OK(aclrtCreateEvent(&legacy));
    OK(aclrtCreateEventExWithFlag(&modern, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    CHECK_EQ(recorded(legacy), 0);
    CHECK_EQ(recorded(modern), 1);
    CHECK_ACL(aclrtEventElapsedTime(&ms, legacy, modern), 507000);
    CHECK(ms == 7);
    OK(aclrtSynchronizeEvent(legacy));
    OK(aclrtStreamWaitEvent(s1, modern)); /* passes */
    OK(aclrtSynchronizeStream(s1));
    OK(aclrtStreamWaitEvent(s1, legacy)); /* waits until it is recorded */
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(s1, 20), 507046);
    OK(aclrtRecordEvent(legacy, s2));
    OK(aclrtSynchronizeStream(s1));
}

TEST(families)
{
    aclrtEvent legacy = NULL, modern = NULL, silent = NULL;
    aclrtEventWaitStatus wait_status = ACL_EVENT_WAIT_STATUS_RESERVED;
    aclrtEventStatus old_status = ACL_EVENT_STATUS_RESERVED;
    start();
    OK(aclrtCreateEventWithFlag(&legacy, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&modern, ACL_EVENT_SYNC));
    OK(aclrtCreateEventWithFlag(&silent, ACL_EVENT_TIME_LINE));
    OK(aclrtRecordEvent(legacy, s1));
    OK(aclrtStreamWaitEvent(s2, legacy));
    OK(aclrtSynchronizeStream(s2));
    OK(aclrtQueryEventWaitStatus(legacy, &wait_status));
    CHECK_EQ(wait_status, ACL_EVENT_WAIT_STATUS_COMPLETE);
    OK(aclrtQueryEvent(legacy, &old_status));
    CHECK_EQ(old_status, ACL_EVENT_STATUS_COMPLETE);
    CHECK_ACL(aclrtQueryEventWaitStatus(modern, &wait_status), 207000);
    CHECK_ACL(aclrtResetEvent(modern, s1), 207000);
    OK(aclrtResetEvent(legacy, s2));
    OK(aclrtSynchronizeStream(s2));
    CHECK_EQ(recorded(legacy), 0);
    CHECK_ACL(aclrtStreamWaitEvent(s2, silent), 207000);
    CHECK_ACL(aclrtResetEvent(silent, s2), 207000);
    OK(aclrtRecordEvent(modern, s1));
    OK(aclrtRecordEvent(modern, s2)); /* overrides */
    OK(aclrtSynchronizeEvent(modern));
}

/* O-08: ids run out at the record, not the creation. */
TEST(event_ids_run_out)
{
    setenv("BELAY_EVENTS", "1024", 1);
    start();
    uint32_t left = 0;
    OK(aclrtGetEventAvailNum(&left));
    CHECK_EQ(left, 1024);
    aclrtEvent event = NULL;
    for (int i = 1; i <= 1024; i++) {
        OK(aclrtCreateEvent(&event));
        OK(aclrtRecordEvent(event, s1));
        OK(aclrtStreamWaitEvent(s2, event));
    }
    OK(aclrtSynchronizeDevice());
    OK(aclrtCreateEvent(&event));
    CHECK_ACL(aclrtRecordEvent(event, s1), 207007);
    CHECK_MESSAGE("1024");
    CHECK_EQ(aclrtGetLastError(0), 207007);
    OK(aclrtGetEventAvailNum(&left));
    CHECK_EQ(left, 0);
}

TEST(event_ids_come_back)
{
    setenv("BELAY_EVENTS", "4", 1);
    start();
    for (int i = 0; i < 10000; i++) {
        aclrtEvent event = NULL;
        OK(aclrtCreateEvent(&event));
        OK(aclrtRecordEvent(event, s1));
        OK(aclrtStreamWaitEvent(s2, event));
        OK(aclrtSynchronizeStream(s2));
        OK(aclrtDestroyEvent(event));
    }
    uint32_t id = 0;
    aclrtEvent event = NULL;
    OK(aclrtCreateEvent(&event));
    OK(aclrtRecordEvent(event, NULL));
    OK(aclrtGetEventId(event, &id));
    CHECK_ACL(aclrtGetEventId(event, NULL), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_between_streams), cmocka_unit_test(arguments),
        cmocka_unit_test(never_recorded),        cmocka_unit_test(families),
        cmocka_unit_test(event_ids_run_out),     cmocka_unit_test(event_ids_come_back),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
