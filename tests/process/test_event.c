/* SPDX-License-Identifier: Apache-2.0 */
/* Events between processes: order, handles, death of the other side. */
#include "signal_test.h"

static void records_and_exports(struct peer *me)
{
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = ipc_event();
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE); /* never recorded */
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    peer_done(me);
    peer_wait(me); /* the other one recorded it anew, and it is not complete */
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, 20), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    OK(aclrtStreamWaitEvent(stream, event));
    atomic_store(&shared->go, 1);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&shared->flag), 1);
    OK(aclrtSynchronizeEvent(event));
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtDestroyEvent(event));
    quit();
    peer_done(me);
}

MANY_TEST(an_event_goes_there_and_back)
{
    share();
    struct peer peer = peer_start(records_and_exports);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = open_event();
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtStreamWaitEvent(stream, event));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtLaunchHostFunc(stream, until_go, NULL));
    OK(aclrtRecordEvent(event, stream));
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    peer_step(&peer);
    peer_end(&peer);
    /* The maker has gone; the record is still ours. */
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtDestroyEvent(event));
    quit();
}

static void waits_for_record(struct peer *me)
{
    peer_wait(me);
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = open_event();
    OK(aclrtStreamWaitEvent(stream, event));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_EQ(atomic_load(&shared->flag), 0);
    peer_done(me);
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&shared->flag), 1);
    OK(aclrtDestroyEvent(event));
    peer_done(me);
}

MANY_TEST(a_stream_waits_for_a_record_elsewhere)
{
    share();
    struct peer peer = peer_start(waits_for_record);
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = ipc_event();
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    OK(aclrtLaunchHostFunc(stream, until_go, NULL));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtDestroyEvent(event)); /* what is queued keeps it */
    peer_step(&peer);
    atomic_store(&shared->go, 1);
    CHECK(peer_answers(&peer));
    peer_end(&peer);
    OK(aclrtSynchronizeStream(stream));
    quit();
}

/* A wait is for the record before it, not for later ones. */
MANY_TEST(a_wait_is_for_the_record_before_it)
{
    share();
    struct peer peer = peer_start(waits_for_record);
    bind_card(0);
    aclrtStream first = new_stream(), second = new_stream();
    aclrtEvent event = ipc_event();
    struct hold hold;
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    OK(aclrtLaunchHostFunc(first, until_go, NULL));
    OK(aclrtRecordEvent(event, first));
    peer_step(&peer);
    hold_stream(&hold, second);
    OK(aclrtRecordEvent(event, second)); /* never runs while the other waits */
    atomic_store(&shared->go, 1);
    CHECK(peer_answers(&peer));
    peer_end(&peer);
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    let_go(&hold);
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    quit();
}

static void records_and_hangs(struct peer *me)
{
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = ipc_event();
    OK(aclrtIpcGetEventHandle(event, &shared->handle));
    OK(aclrtLaunchHostFunc(stream, until_go, NULL));
    OK(aclrtRecordEvent(event, stream));
    peer_done(me);
    peer_wait(me);
}

MANY_TEST(who_waits_for_the_dead_gets_an_error)
{
    char who[32];
    share();
    struct peer peer = peer_start(records_and_hangs);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtStream stream = new_stream(), other = new_stream();
    aclrtEvent event = open_event();
    OK(aclrtStreamWaitEvent(stream, event));
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    snprintf(who, sizeof who, "process %d (", (int)peer.pid);
    peer_kill(&peer);
    CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 1000 * TEST_SECONDS),
              ACL_ERROR_RT_IPC_ERROR);
    CHECK_MESSAGE(who);
    CHECK_ACL(aclrtSynchronizeEvent(event), ACL_ERROR_RT_IPC_ERROR);
    CHECK_MESSAGE("ended before that record ran");
    aclrtEventRecordedStatus status;
    CHECK_ACL(aclrtQueryEventStatus(event, &status), ACL_ERROR_RT_IPC_ERROR);
    /* A wait that is queued now fails as well, and a new record makes it whole. */
    OK(aclrtStreamWaitEvent(other, event));
    CHECK_ACL(aclrtSynchronizeStream(other), ACL_ERROR_RT_IPC_ERROR);
    OK(aclrtRecordEvent(event, other));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtStreamWaitEvent(stream, event));
    OK(aclrtSynchronizeStream(stream));
    quit();
}

MANY_TEST(a_host_that_waits_for_the_dead_goes_on)
{
    share();
    struct peer peer = peer_start(records_and_hangs);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtEvent event = open_event();
    CHECK(kill(peer.pid, SIGKILL) == 0);
    CHECK_ACL(aclrtSynchronizeEvent(event), ACL_ERROR_RT_IPC_ERROR);
    close(peer.to), close(peer.from);
    CHECK_EQ(waitpid(peer.pid, NULL, 0), peer.pid);
    quit();
}

MANY_TEST(a_wait_for_another_process_ends_with_its_stream)
{
    share();
    struct peer peer = peer_start(records_and_hangs);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtStream stream = new_stream(), other = new_stream();
    aclrtEvent event = open_event();
    OK(aclrtStreamWaitEvent(stream, event));
    OK(aclrtStreamWaitEventWithTimeout(other, event, 1));
    CHECK_ACL(aclrtSynchronizeStream(other), ACL_ERROR_RT_STREAM_ABORT);
    CHECK_MESSAGE("waited 1 s for shared event");
    OK(aclrtDestroyStreamForce(stream));
    OK(aclrtDestroyEvent(event));
    peer_kill(&peer);
    quit();
}

MANY_TEST(what_shared_events_cannot_do)
{
    bind_card(0);
    aclrtStream stream = new_stream();
    aclrtEvent event = ipc_event(), plain = NULL, twin = NULL;
    uint32_t id;
    uint64_t stamp;
    float ms;
    aclrtEventStatus status;
    aclrtEventWaitStatus waits;
    aclrtIpcEventHandle handle;
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtSynchronizeStream(stream));
    CHECK_ACL(aclrtResetEvent(event, stream), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtQueryEvent(event, &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtQueryEventWaitStatus(event, &waits), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtGetEventId(event, &id), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtEventGetTimestamp(event, &stamp), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtEventElapsedTime(&ms, event, event), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_ACL(aclrtCreateEventExWithFlag(&plain, ACL_EVENT_IPC | ACL_EVENT_SYNC),
              ACL_ERROR_RT_PARAM_INVALID);
    OK(aclrtCreateEventExWithFlag(&plain, ACL_EVENT_SYNC));
    CHECK_ACL(aclrtIpcGetEventHandle(plain, &handle), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    OK(aclrtIpcGetEventHandle(event, &handle));
    CHECK_ACL(aclrtIpcOpenEventHandle(handle, &twin), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_MESSAGE("by this very process");
    CHECK(twin == NULL);
    quit();
}

MANY_TEST(no_handle_can_be_forged)
{
    share();
    struct peer peer = peer_start(exports);
    CHECK(peer_answers(&peer));
    bind_card(0);
    aclrtEvent event = NULL;
    for (size_t i = 0; i < sizeof shared->handle; i++)
        for (int bit = 0; bit < 8; bit++) {
            aclrtIpcEventHandle bad = shared->handle;
            bad.reserved[i] = (char)(bad.reserved[i] ^ (1 << bit));
            if (i >= 14 && i < 16) /* of the generation 16 bits count */
                continue;
            CHECK_ACL(aclrtIpcOpenEventHandle(bad, &event), ACL_ERROR_RT_PARAM_INVALID);
        }
    CHECK(event == NULL);
    /* Opened twice: two events, one record; closed twice. */
    aclrtEvent first = open_event(), second = open_event();
    peer_step(&peer);
    aclrtStream stream = new_stream();
    OK(aclrtRecordEvent(first, stream));
    OK(aclrtStreamWaitEvent(stream, second));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyEvent(first));
    OK(aclrtSynchronizeEvent(second));
    OK(aclrtDestroyEvent(second));
    CHECK_ACL(aclrtIpcOpenEventHandle(shared->handle, &event), ACL_ERROR_RT_PARAM_INVALID);
    CHECK_MESSAGE("no event has this handle");
    peer_end(&peer);
    quit();
}

MANY_TEST(records_under_way_are_counted)
{
    bind_card(0);
    struct hold holds[LANES + 1];
    aclrtStream streams[LANES + 1];
    aclrtEvent event = ipc_event();
    for (int i = 0; i <= LANES; i++) {
        streams[i] = new_stream();
        hold_stream(&holds[i], streams[i]);
    }
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < 3; k++) /* as many as one likes on one stream */
            OK(aclrtRecordEvent(event, streams[i]));
    CHECK_ACL(aclrtRecordEvent(event, streams[LANES]), ACL_ERROR_RT_NO_EVENT_RESOURCE);
    CHECK_MESSAGE("under way on 8 streams");
    let_go(&holds[0]); /* the one that runs: host functions have one thread */
    OK(aclrtSynchronizeStream(streams[0]));
    OK(aclrtRecordEvent(event, streams[LANES]));
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    for (int i = 0; i <= LANES; i++)
        let_go(&holds[i]);
    OK(aclrtSynchronizeDevice());
    CHECK_EQ(status_of(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    quit();
}

MANY_TEST(records_come_back)
{
    bind_card(0);
    for (int i = 0; i < 5000; i++)
        OK(aclrtDestroyEvent(ipc_event()));
    all_signals_are_free();
    for (int i = 0; i < 8; i++)
        ipc_event();
    OK(aclrtResetDevice(0)); /* takes them */
    OK(aclrtSetDevice(0));
    all_signals_are_free();
    quit();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_goes_there_and_back),
        cmocka_unit_test(a_stream_waits_for_a_record_elsewhere),
        cmocka_unit_test(a_wait_is_for_the_record_before_it),
        cmocka_unit_test(who_waits_for_the_dead_gets_an_error),
        cmocka_unit_test(a_host_that_waits_for_the_dead_goes_on),
        cmocka_unit_test(a_wait_for_another_process_ends_with_its_stream),
        cmocka_unit_test(what_shared_events_cannot_do),
        cmocka_unit_test(no_handle_can_be_forged),
        cmocka_unit_test(records_under_way_are_counted),
        cmocka_unit_test(records_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
