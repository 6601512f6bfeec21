/* SPDX-License-Identifier: Apache-2.0 */
/* What captures refuse, with which code, and what is left afterwards. */
#include "graph_test.h"

#include <pthread.h>

static aclmdlRICaptureMode exchange(aclmdlRICaptureMode mode)
{
    OK(aclmdlRICaptureThreadExchangeMode(&mode));
    return mode;
}

/* ── Modes ────────────────────────────────────────────────────────────────────────────────── */

static aclError sync_copy(void)
{
    uint64_t value = 1;
    return aclrtMemcpy(words, 8, &value, 8, H2D);
}

static aclError unsafe_calls(aclError want)
{
    CHECK_ACL(aclrtMemset(words, 64, 0, 64), want);
    CHECK_ACL(aclrtMemcpy2d(words, 8, pinned, 8, 8, 2, H2D), want);
    CHECK_ACL(sync_copy(), want);
    return want;
}

struct other {
    aclmdlRICaptureMode mode;
    aclError want;
};

static void *other_thread(void *arg)
{
    const struct other *other = arg;
    uint64_t pageable = 0;
    OK(aclrtSetDevice(0));
    exchange(other->mode);
    unsafe_calls(other->want);
    CHECK_ACL(aclrtMemcpyAsync(words, 8, &pageable, 8, H2D, second), other->want == 0 ? 0 : 107041);
    return NULL;
}

static void in_other_thread(aclmdlRICaptureMode mode, aclError want)
{
    pthread_t thread;
    struct other other = {mode, want};
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, &other), 0);
    pthread_join(thread, NULL);
}

TEST(a_global_capture_forbids_copies_at_once_everywhere)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    unsafe_calls(107030);
    CHECK_MESSAGE("aclmdlRICaptureThreadExchangeMode");
    CHECK_EQ(exchange(THREAD), GLOBAL);
    unsafe_calls(107030);
    CHECK_EQ(exchange(RELAX), THREAD);
    unsafe_calls(0);
    CHECK_EQ(exchange(GLOBAL), RELAX);
    in_other_thread(GLOBAL, 107030);
    in_other_thread(THREAD, 0);
    in_other_thread(RELAX, 0);
    OK(aclmdlRICaptureEnd(first, &graph)); /* none of that had hurt it */
    unsafe_calls(0);
    OK(aclmdlRIDestroy(graph));
}

TEST(a_thread_local_capture_forbids_them_in_its_thread)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, THREAD));
    unsafe_calls(107030);
    in_other_thread(GLOBAL, 0);
    in_other_thread(THREAD, 0);
    exchange(RELAX);
    unsafe_calls(0);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));
}

TEST(a_relaxed_capture_forbids_nothing)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    unsafe_calls(0);
    in_other_thread(GLOBAL, 0);
    in_other_thread(THREAD, 0);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));
    aclmdlRICaptureMode bad = (aclmdlRICaptureMode)3;
    CHECK_ACL(aclmdlRICaptureThreadExchangeMode(&bad), 107000);
    CHECK_EQ(bad, 3);
    CHECK_ACL(aclmdlRICaptureThreadExchangeMode(NULL), 100000);
}

TEST(memory_and_objects_may_be_made_during_a_capture)
{
    aclmdlRI graph;
    void *memory, *host;
    aclrtStream stream;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMalloc(&memory, MIB, HUGE_FIRST));
    OK(aclrtMallocHost(&host, MIB));
    OK(aclrtCreateStream(&stream));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyEvent(sync_event()));
    OK(aclrtMemcpyAsync(memory, 8, host, 8, H2D, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, first);
    OK(aclmdlRIDestroy(graph));
    OK(aclrtFree(memory));
    OK(aclrtFreeHost(host));
}

/* ── Refusals ─────────────────────────────────────────────────────────────────────────────── */

TEST(begin_and_end_refuse)
{
    aclmdlRI graph = (aclmdlRI)1, other;
    aclrtStream persistent, task_only, foreign;
    aclrtContext context, own;
    open_all();
    CHECK_ACL(aclmdlRICaptureBegin(NULL, GLOBAL), 100000);
    CHECK_ACL(aclmdlRICaptureBegin(first, (aclmdlRICaptureMode)3), 107000);
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107029);
    CHECK_ACL(aclmdlRICaptureEnd(NULL, &graph), 100000);
    CHECK_ACL(aclmdlRICaptureGetInfo(first, NULL, NULL), 100000);
    CHECK_ACL(aclmdlRICaptureGetInfo(NULL, NULL, &graph), 100000);
    CHECK(graph == (aclmdlRI)1);
    OK(aclrtCtxGetCurrentDefaultStream(&other));
    CHECK_ACL(aclmdlRICaptureBegin(other, GLOBAL), 207000);
    OK(aclrtCreateStreamWithConfig(&task_only, 0, ACL_STREAM_DEVICE_USE_ONLY));
    CHECK_ACL(aclmdlRICaptureBegin(task_only, GLOBAL), 207000);
    OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
    OK(aclmdlRICaptureBegin(persistent, RELAX));
    OK(aclmdlRICaptureEnd(persistent, &graph));
    OK(aclmdlRIDestroy(graph));
    OK(aclrtGetCurrentContext(&own));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtCreateStream(&foreign));
    CHECK_ACL(aclmdlRICaptureBegin(first, GLOBAL), 107003);
    OK(aclmdlRICaptureBegin(foreign, GLOBAL));
    OK(aclmdlRICaptureEnd(foreign, &graph));
    OK(aclrtSetCurrentContext(own));
    CHECK_ACL(aclmdlRIExecuteAsync(graph, first), 107004);
    CHECK_ACL(aclmdlRIDestroy(graph), 107004);
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    CHECK_ACL(aclmdlRICaptureBegin(first, GLOBAL), 107027);
    CHECK_ACL(aclmdlRICaptureEnd(first, NULL), 107000);
    OK(aclmdlRICaptureEnd(first, &graph));
}

TEST(a_captured_stream_is_not_waited_for)
{
    aclmdlRI graph, seen;
    aclrtStreamStatus status;
    bool complete = true;
    (void)complete;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &seen));
    CHECK_ACL(aclrtSynchronizeStream(first), 107027);
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(first, 10), 107027);
    CHECK_ACL(aclrtStreamQuery(first, &status), 107027);
    CHECK_ACL(aclrtDestroyStream(first), 107027);
    CHECK_ACL(aclrtDestroyStreamForce(first), 107027);
    CHECK_ACL(aclrtStreamAbort(first), 107027);
    CHECK_ACL(aclrtStreamStop(first), 107027);
    CHECK_ACL(aclrtSynchronizeDevice(), 107027);
    CHECK_ACL(aclrtSynchronizeDeviceWithTimeout(10), 107027);
    CHECK_ACL(aclmdlRIExecuteAsync(seen, second), 107026);
    CHECK_ACL(aclmdlRIDestroy(seen), 107026);
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtSynchronizeDevice());
    OK(aclmdlRICaptureBegin(second, RELAX));
    CHECK_ACL(aclmdlRIExecuteAsync(graph, second), 107027); /* no graph in a graph */
    OK(aclmdlRICaptureEnd(second, &seen));
    OK(aclmdlRIDestroy(seen));
    OK(aclmdlRIDestroy(graph));
}

TEST(a_captured_event_tells_the_host_nothing)
{
    aclmdlRI graph;
    aclrtEvent event, plain;
    aclrtEventRecordedStatus recorded;
    aclrtEventWaitStatus waited;
    uint64_t stamp;
    float ms;
    open_all();
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    OK(aclrtCreateEvent(&plain));
    OK(aclrtRecordEvent(event, second));
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(event, first));
    CHECK_ACL(aclrtSynchronizeEvent(event), 107028);
    CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, 10), 107028);
    CHECK_ACL(aclrtQueryEventStatus(event, &recorded), 107028);
    CHECK_ACL(aclrtQueryEventWaitStatus(event, &waited), 107028);
    CHECK_ACL(aclrtEventGetTimestamp(event, &stamp), 107028);
    CHECK_ACL(aclrtEventElapsedTime(&ms, event, event), 107028);
    /* Legacy events do not go into a capture. */
    CHECK_ACL(aclrtRecordEvent(plain, first), 207000);
    CHECK_ACL(aclrtStreamWaitEvent(first, plain), 207000);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtQueryEventStatus(event, &recorded)); /* what it stood for before */
    CHECK_EQ(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtRecordEvent(event, second));
    OK(aclrtSynchronizeEvent(event));
    OK(aclmdlRIDestroy(graph));
    OK(aclrtDestroyEvent(event));
}

TEST(default_streams_stay_outside)
{
    aclmdlRI graph;
    open_all();
    aclrtEvent event = sync_event();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(event, first));
    CHECK_ACL(aclrtStreamWaitEvent(NULL, event), 107031);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));
}

TEST(pageable_memory_is_refused)
{
    aclmdlRI graph;
    uint64_t pageable = 0;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    CHECK_ACL(aclrtMemcpyAsync(words, 8, &pageable, 8, H2D, first), 107000);
    CHECK_MESSAGE("pageable");
    CHECK_ACL(aclrtMemcpy2dAsync(words, 8, &pageable, 8, 8, 1, H2D, first), 107000);
    CHECK_ACL(aclrtMemcpyAsync(words, 8, &pageable, 8, H2D, second), 107041);
    exchange(RELAX);
    OK(aclrtMemcpyAsync(words, 8, &pageable, 8, H2D, second));
    CHECK_ACL(aclrtMemcpyAsync(words, 8, &pageable, 8, H2D, first), 107000);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));
}

TEST(a_capture_must_not_depend_on_work_outside)
{
    aclmdlRI graph;
    open_all();
    aclrtEvent outside = sync_event(), never = sync_event();
    OK(aclrtRecordEvent(outside, second));
    OK(aclmdlRICaptureBegin(first, RELAX));
    CHECK_ACL(aclrtStreamWaitEvent(first, outside), 107024);
    CHECK_MESSAGE("ACL_EVENT_WAIT_EXTERNAL");
    OK(aclrtStreamWaitEvent(first, never)); /* nothing to wait for */
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, first);
    OK(aclmdlRIDestroy(graph));
}

TEST(what_went_out_must_come_back)
{
    aclmdlRI graph;
    aclmdlRICaptureStatus status;
    open_all();
    aclrtEvent out = sync_event(), back = sync_event();
    /* Never joined. */
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107025);
    CHECK_MESSAGE("not waited for");
    OK(aclrtSynchronizeStream(first)); /* the capture is over all the same */
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRICaptureGetInfo(second, &status, NULL));
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    /* A task behind the join. */
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    OK(aclrtRecordEvent(back, second));
    OK(aclrtStreamWaitEvent(first, back));
    copy_word(1, 0, second);
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107025);
    /* Joined on the way of a third, in two steps. */
    aclrtStream third;
    aclrtEvent more = sync_event();
    OK(aclrtCreateStream(&third));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    OK(aclrtRecordEvent(out, second));
    OK(aclrtStreamWaitEvent(third, out));
    copy_word(1, 0, third);
    OK(aclrtRecordEvent(more, third));
    OK(aclrtStreamWaitEvent(second, more));
    OK(aclrtRecordEvent(back, second));
    CHECK_ACL(aclmdlRICaptureEnd(second, &graph), 107036);
    OK(aclrtStreamWaitEvent(first, back));
    OK(aclmdlRICaptureEnd(first, &graph));
    put(0, 8);
    run(graph, first);
    CHECK_EQ(get(1), 8);
    OK(aclmdlRIDestroy(graph));
}

TEST(two_captures_that_meet_become_invalid)
{
    aclmdlRI graph;
    aclmdlRICaptureStatus status;
    open_all();
    aclrtEvent event = sync_event();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureBegin(second, RELAX));
    OK(aclrtRecordEvent(event, first));
    CHECK_ACL(aclrtStreamWaitEvent(second, event), 107032);
    OK(aclmdlRICaptureGetInfo(first, &status, NULL));
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
    CHECK_ACL(aclrtMemsetAsync(words, 8, 0, 8, first), 507903);
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 507903);
    CHECK_MESSAGE("waits for event");
    CHECK_ACL(aclmdlRICaptureEnd(second, &graph), 507903);
    OK(aclrtSynchronizeStream(first));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroy(graph));
}

static void *end_it(void *arg)
{
    aclmdlRI graph;
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), *(aclError *)arg);
    return NULL;
}

static void end_in_other_thread(aclError want)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, end_it, &want), 0);
    pthread_join(thread, NULL);
}

TEST(who_began_a_capture_ends_it)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    end_in_other_thread(107038);
    OK(aclmdlRICaptureEnd(first, &graph)); /* nothing had changed */
    OK(aclmdlRICaptureBegin(first, RELAX));
    end_in_other_thread(0);
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107029);
}

/* ── Events across the border ─────────────────────────────────────────────────────────────── */

TEST(external_events_cross_the_border)
{
    aclmdlRI sender, receiver;
    struct hold hold;
    open_all();
    aclrtEvent event = sync_event(), back = sync_event();
    CHECK_ACL(aclrtRecordEventWithFlag(sync_event(), first, 1), 207000);
    CHECK_ACL(aclrtStreamWaitEventWithFlag(first, sync_event(), 0, 1), 207000);
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(1, 0, first);
    OK(aclrtRecordEventWithFlag(event, first, ACL_EVENT_RECORD_EXTERNAL));
    CHECK_ACL(aclrtRecordEventWithFlag(event, first, ACL_EVENT_RECORD_EXTERNAL), 107000);
    CHECK_ACL(aclrtRecordEvent(event, first), 107000); /* of the other kind */
    OK(aclmdlRICaptureEnd(first, &sender));
    OK(aclmdlRICaptureBegin(first, RELAX));
    CHECK_ACL(aclrtStreamWaitEventWithFlag(first, event, 1, ACL_EVENT_WAIT_EXTERNAL), 107000);
    OK(aclrtStreamWaitEventWithFlag(first, event, 0, ACL_EVENT_WAIT_EXTERNAL));
    copy_word(2, 1, first);
    OK(aclrtRecordEventWithFlag(back, first, ACL_EVENT_RECORD_EXTERNAL));
    OK(aclmdlRICaptureEnd(first, &receiver));
    for (uint64_t i = 1; i < 20; i++) {
        hold_stream(&hold, first);
        put(0, i);
        OK(aclmdlRIExecuteAsync(sender, first));
        OK(aclmdlRIExecuteAsync(receiver, second));
        OK(aclrtStreamWaitEvent(NULL, back));
        copy_word(3, 2, NULL);
        usleep(500);
        CHECK_EQ(get(3), i - 1);
        let_go(&hold);
        OK(aclrtSynchronizeStream(NULL));
        CHECK_EQ(get(3), i);
        OK(aclrtSynchronizeEvent(back));
    }
    OK(aclmdlRIDestroy(sender));
    OK(aclmdlRIDestroy(receiver));
}

TEST(a_legacy_external_event_is_a_flag_for_graphs)
{
    aclmdlRI graph;
    aclrtEvent event;
    open_all();
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtStreamWaitEvent(first, event));
    OK(aclrtResetEvent(event, first));
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    for (uint64_t i = 1; i < 20; i++) {
        OK(aclmdlRIExecuteAsync(graph, first));
        put(0, i);
        CHECK_EQ(get(1), i - 1);
        OK(aclrtRecordEvent(event, second));
        OK(aclrtSynchronizeStream(first));
        CHECK_EQ(get(1), i);
    }
    OK(aclmdlRIDestroy(graph));
}

TEST(a_run_that_is_dropped_lets_those_outside_go)
{
    aclmdlRI graph;
    struct hold hold;
    open_all();
    aclrtEvent event = sync_event();
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(1, 0, first);
    OK(aclrtRecordEventWithFlag(event, first, ACL_EVENT_RECORD_EXTERNAL));
    OK(aclmdlRICaptureEnd(first, &graph));
    hold_stream(&hold, first);
    OK(aclmdlRIExecuteAsync(graph, first));
    OK(aclrtStreamWaitEvent(second, event));
    while (!atomic_load(&hold.running))
        usleep(100);
    let_go(&hold);
    OK(aclrtStreamAbort(first));
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRIDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_global_capture_forbids_copies_at_once_everywhere),
        cmocka_unit_test(a_thread_local_capture_forbids_them_in_its_thread),
        cmocka_unit_test(a_relaxed_capture_forbids_nothing),
        cmocka_unit_test(memory_and_objects_may_be_made_during_a_capture),
        cmocka_unit_test(begin_and_end_refuse),
        cmocka_unit_test(a_captured_stream_is_not_waited_for),
        cmocka_unit_test(a_captured_event_tells_the_host_nothing),
        cmocka_unit_test(default_streams_stay_outside),
        cmocka_unit_test(pageable_memory_is_refused),
        cmocka_unit_test(a_capture_must_not_depend_on_work_outside),
        cmocka_unit_test(what_went_out_must_come_back),
        cmocka_unit_test(two_captures_that_meet_become_invalid),
        cmocka_unit_test(who_began_a_capture_ends_it),
        cmocka_unit_test(external_events_cross_the_border),
        cmocka_unit_test(a_legacy_external_event_is_a_flag_for_graphs),
        cmocka_unit_test(a_run_that_is_dropped_lets_those_outside_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
