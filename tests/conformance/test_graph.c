/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that were captured: what runs, in which order, how often, and what becomes of memory. */
#include "graph_test.h"

#include <pthread.h>

TEST(captured_tasks_run_when_the_graph_runs)
{
    aclmdlRI graph, seen;
    aclmdlRICaptureStatus status;
    open_all();
    put(0, 7);
    OK(aclmdlRICaptureGetInfo(first, &status, &seen));
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
    CHECK(seen == NULL);
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(1, 0, first);
    OK(aclrtMemsetAsync(words + 2, 8, 0x11, 8, first));
    OK(aclmdlRICaptureGetInfo(first, &status, &seen));
    CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
    OK(aclmdlRICaptureEnd(first, &graph));
    CHECK(graph == seen);
    OK(aclrtSynchronizeStream(first));
    CHECK_EQ(get(1), 0);
    CHECK_EQ(get(2), 0);
    for (uint64_t i = 1; i <= 5; i++) {
        put(0, i);
        run(graph, i % 2 ? first : second);
        CHECK_EQ(get(1), i);
        CHECK_EQ(get(2), 0x1111111111111111);
    }
    run(graph, NULL); /* on the default stream */
    OK(aclmdlRIExecute(graph, -1));
    OK(aclmdlRIExecute(graph, 10000));
    OK(aclmdlRIDestroy(graph));
    CHECK_ACL(aclmdlRIExecuteAsync(graph, first), 107017);
    CHECK_ACL(aclmdlRIDestroy(graph), 107017);
    /* The stream is as any again. */
    copy_word(3, 0, first);
    OK(aclrtSynchronizeStream(first));
    CHECK_EQ(get(3), 5);
}

TEST(buffers_of_the_runtime_live_as_long_as_the_graph)
{
    aclmdlRI graph;
    open_all();
    pinned[0] = 77;
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemcpyAsync(words, 8, pinned, 8, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, first));
    pinned[0] = 0; /* it was read */
    OK(aclrtMemsetD32Async(words + 1, 8, 0x01020304, 2, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 3; i++) {
        put(0, 0);
        put(1, 0);
        run(graph, first);
        CHECK_EQ(get(0), 77);
        CHECK_EQ(get(1), 0x0102030401020304);
    }
    OK(aclmdlRIDestroy(graph));
}

static void count(void *arg)
{
    ++*(int *)arg;
}

TEST(every_kind_of_task_is_captured)
{
    aclmdlRI graph;
    aclrtNotify notify;
    aclrtCntNotify counting;
    aclrtCntNotifyRecordInfo record = {ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 2};
    aclrtCntNotifyWaitInfo wait = {
        .mode = ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, .value = 2, .isClear = 1};
    int calls = 0;
    open_all();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtCntNotifyCreate(&counting, 0));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemcpyAsync(words, 64, pinned, 64, H2D, first));
    OK(aclrtMemcpy2dAsync(words + 16, 32, words, 16, 16, 4, D2D, first));
    OK(aclrtRecordNotify(notify, first));
    OK(aclrtWaitAndResetNotify(notify, first, 0));
    OK(aclrtCntNotifyRecord(counting, first, &record));
    OK(aclrtCntNotifyWaitWithTimeout(counting, first, &wait));
    OK(aclrtValueWrite(words + 100, 9, 0, first));
    OK(aclrtValueWait(words + 100, 9, ACL_STREAM_WAIT_VALUE_EQ, first));
    OK(aclrtReduceAsync(words + 101, words + 100, 8, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_INT32,
                        first, NULL));
    OK(aclrtLaunchHostFunc(first, count, &calls));
    OK(launch("add_one", words + 102, first));
    OK(aclrtMemcpyAsync(pinned + 8, 8, words + 102, 8, D2H, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (uint64_t i = 1; i <= 3; i++) {
        pinned[0] = 1000 + i;
        run(graph, second);
        CHECK_EQ(get(0), 1000 + i);
        CHECK_EQ(get(16), 1000 + i);
        CHECK_EQ(get(101), 9 * i);
        CHECK_EQ(calls, i);
        CHECK_EQ(pinned[8], i);
    }
    OK(aclmdlRIDestroy(graph));
    OK(aclrtDestroyNotify(notify));
    OK(aclrtCntNotifyDestroy(counting));
    OK(aclrtBinaryUnLoad(binary));
}

static atomic_int done;
static aclrtStream served;

static void *serve(void *arg)
{
    OK(aclrtSetDevice(0));
    OK(aclrtSubscribeReport((uint64_t)pthread_self(), served));
    atomic_store((atomic_int *)arg, 1);
    while (atomic_load(&done) < 4)
        aclrtProcessReport(100);
    OK(aclrtUnSubscribeReport((uint64_t)pthread_self(), served));
    return NULL;
}

static void one_done(void *arg)
{
    (void)arg;
    atomic_fetch_add(&done, 1);
}

TEST(callbacks_go_to_the_thread_that_serves_the_captured_stream)
{
    aclmdlRI graph;
    pthread_t thread;
    atomic_int ready = 0;
    open_all();
    served = first;
    CHECK_EQ(pthread_create(&thread, NULL, serve, &ready), 0);
    while (atomic_load(&ready) == 0)
        usleep(100);
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtLaunchCallback(one_done, NULL, ACL_CALLBACK_BLOCK, first));
    OK(aclrtLaunchCallback(one_done, NULL, ACL_CALLBACK_NO_BLOCK, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, second);
    CHECK(atomic_load(&done) >= 1);
    run(graph, second);
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&done), 4);
    OK(aclmdlRIDestroy(graph));
}

TEST(runs_stand_in_the_order_of_their_stream)
{
    aclmdlRI graph;
    struct hold hold;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    hold_stream(&hold, second);
    OK(aclrtMemcpyAsync(words, 8, words + 5, 8, D2D, second)); /* 3 comes from there */
    put(5, 3);
    OK(aclmdlRIExecuteAsync(graph, second));
    copy_word(2, 1, second);
    OK(aclmdlRIExecuteAsync(graph, second));
    usleep(10000);
    CHECK_EQ(get(1), 0);
    let_go(&hold);
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(get(2), 3);
    OK(aclmdlRIDestroy(graph));
}

/* first: A ─ record ─────────── wait ─ C;  second: wait ─ B ─ record. */
static aclmdlRI capture_fork(void)
{
    aclmdlRI graph;
    aclrtEvent out = sync_event(), back = sync_event();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    copy_word(2, 1, second);
    copy_word(4, 0, first);
    OK(aclrtRecordEvent(back, second));
    OK(aclrtStreamWaitEvent(first, back));
    copy_word(3, 2, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtDestroyEvent(out));
    OK(aclrtDestroyEvent(back));
    return graph;
}

TEST(a_capture_takes_in_other_streams_through_events)
{
    open_all();
    aclmdlRI graph = capture_fork();
    uint32_t n = 0;
    for (uint64_t i = 1; i < 20; i++) {
        put(0, i);
        run(graph, i % 2 ? first : second);
        CHECK_EQ(get(3), i);
        CHECK_EQ(get(4), i);
    }
    OK(aclmdlRIGetStreams(graph, NULL, &n));
    CHECK_EQ(n, 2);
    OK(aclmdlRIDestroy(graph));
}

TEST(lines_of_a_graph_run_beside_one_another)
{
    aclmdlRI graph;
    aclrtNotify there, back;
    open_all();
    aclrtEvent out = sync_event(), in = sync_event();
    OK(aclrtCreateNotify(&there, 0));
    OK(aclrtCreateNotify(&back, 0));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    /* Each waits for the other: in one line after another this would never end. */
    OK(aclrtWaitAndResetNotify(there, first, 0));
    OK(aclrtRecordNotify(back, first));
    OK(aclrtRecordNotify(there, second));
    OK(aclrtWaitAndResetNotify(back, second, 0));
    OK(aclrtRecordEvent(in, second));
    OK(aclrtStreamWaitEvent(first, in));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 50; i++)
        run(graph, first);
    OK(aclmdlRIDestroy(graph));
}

TEST(one_graph_on_two_streams_runs_once_at_a_time)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(launch("add_one", words, first));
    OK(launch("add_one", words + 1, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 500; i++) {
        OK(aclmdlRIExecuteAsync(graph, first));
        OK(aclmdlRIExecuteAsync(graph, second));
    }
    OK(aclrtSynchronizeStream(first));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(get(0), 1000);
    CHECK_EQ(get(1), 1000);
    OK(aclmdlRIDestroy(graph));
}

TEST(a_graph_may_have_more_tasks_than_a_ring)
{
    enum { N = 10000 };
    aclmdlRI graph;
    open_all();
    aclrtEvent out = sync_event(), in = sync_event();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtRecordEvent(out, first));
    OK(aclrtStreamWaitEvent(second, out));
    for (int i = 0; i < N; i++) {
        OK(launch("add_one", words, first));
        OK(launch("add_one", words + 1, second));
        if (i % 1000 == 999) {
            OK(aclrtRecordEvent(in, second));
            OK(aclrtStreamWaitEvent(first, in));
            copy_word(2 + i / 1000, 1, first);
        }
    }
    OK(aclmdlRICaptureEnd(first, &graph));
    for (uint64_t round = 0; round < 3; round++) {
        run(graph, first);
        CHECK_EQ(get(0), N * (round + 1));
        CHECK_EQ(get(1), N * (round + 1));
        for (int i = 0; i < 10; i++)
            CHECK(get(2 + i) >= N * round + 1000 * (uint64_t)(i + 1));
    }
    OK(aclmdlRIDestroy(graph));
}

/* ── Memory ───────────────────────────────────────────────────────────────────────────────── */

TEST(memory_that_was_freed_is_not_touched)
{
    aclmdlRI graph;
    uint64_t *gone, *other;
    open_all();
    OK(aclrtMalloc((void **)&gone, 2 * MIB, HUGE_FIRST));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemsetAsync(gone, 2 * MIB, 0xff, 2 * MIB, first));
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, first);
    OK(aclrtFree(gone));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507013);
    CHECK_MESSAGE("was freed after the task was captured");
    /* Now the address belongs to another. */
    OK(aclrtMalloc((void **)&other, 2 * MIB, HUGE_FIRST));
    CHECK(other == gone);
    OK(aclrtMemset(other, 2 * MIB, 0, 2 * MIB));
    put(0, 5);
    OK(aclmdlRIExecuteAsync(graph, second));
    CHECK_ACL(aclrtSynchronizeStream(second), 507013);
    CHECK_MESSAGE("now it is in block");
    uint64_t got;
    OK(aclrtMemcpy(&got, 8, other, 8, D2H));
    CHECK_EQ(got, 0);
    CHECK_EQ(get(1), 5); /* the tasks behind run, as on any stream */
    OK(aclmdlRIDestroy(graph));
}

TEST(a_kernel_does_not_run_on_memory_that_was_freed)
{
    aclmdlRI graph;
    uint32_t *gone, *other, got;
    open_all();
    OK(aclrtMalloc((void **)&gone, 64 * KIB, HUGE_FIRST));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(launch("add_one", gone, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, first);
    OK(aclrtFree(gone));
    OK(aclrtMalloc((void **)&other, 64 * KIB, HUGE_FIRST));
    CHECK(other == gone);
    OK(aclrtMemset(other, 64 * KIB, 0, 64 * KIB));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507035);
    CHECK_MESSAGE("was freed after the task was captured");
    OK(aclrtMemcpy(&got, 4, other, 4, D2H));
    CHECK_EQ(got, 0);
    OK(aclmdlRIDestroy(graph));
}

TEST(pinned_memory_that_was_freed_is_not_touched)
{
    aclmdlRI graph;
    uint64_t *gone, *other;
    open_all();
    OK(aclrtMallocHost((void **)&gone, 4096));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemcpyAsync(gone, 8, words, 8, D2H, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    put(0, 42);
    run(graph, first);
    CHECK_EQ(gone[0], 42);
    OK(aclrtFreeHost(gone));
    OK(aclrtMallocHost((void **)&other, 4096));
    other[0] = 1;
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507013);
    CHECK_MESSAGE("was freed after");
    CHECK_EQ(other[0], 1);
    OK(aclmdlRIDestroy(graph));
}

TEST(reserved_addresses_may_be_mapped_anew_behind_a_graph)
{
    aclmdlRI graph;
    void *address;
    aclrtDrvMemHandle physical[2];
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    uint64_t got;
    open_all();
    OK(aclrtReserveMemAddress(&address, 2 * MIB, 0, NULL, 1));
    OK(aclrtMallocPhysical(&physical[0], 2 * MIB, &prop, 0));
    OK(aclrtMallocPhysical(&physical[1], 2 * MIB, &prop, 0));
    OK(aclrtMapMem(address, 2 * MIB, 0, physical[0], 0));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemcpyAsync(address, 8, words, 8, D2D, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    put(0, 11);
    run(graph, first);
    OK(aclrtUnmapMem(address));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507013);
    OK(aclrtMapMem(address, 2 * MIB, 0, physical[1], 0));
    put(0, 12);
    run(graph, first);
    OK(aclrtMemcpy(&got, 8, address, 8, D2H));
    CHECK_EQ(got, 12);
    OK(aclmdlRIDestroy(graph));
}

/* ── Failures, ends ───────────────────────────────────────────────────────────────────────── */

TEST(the_stream_gets_the_first_failure_of_its_run)
{
    aclmdlRI graph;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(launch("trap", words, first));
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (uint64_t i = 1; i <= 3; i++) {
        OK(aclmdlRIExecuteAsync(graph, second));
        CHECK_ACL(aclrtSynchronizeStream(second), 507035);
        CHECK_MESSAGE("trap");
        OK(aclrtSynchronizeStream(second));
        CHECK_EQ(get(0), i);
    }
    OK(aclmdlRIDestroy(graph));
}

TEST(a_context_that_stops_on_failure_stops_for_a_graph)
{
    aclmdlRI graph;
    open_all();
    OK(aclrtSetStreamFailureMode(second, 1));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(launch("trap", words, first));
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecuteAsync(graph, second));
    CHECK_ACL(aclrtSynchronizeStream(second), 507035);
    CHECK_ACL(aclmdlRIExecuteAsync(graph, second), 507035);
    OK(aclmdlRIDestroy(graph));
}

TEST(aborting_the_stream_ends_its_run)
{
    aclmdlRI graph;
    uint32_t *flag;
    open_all();
    OK(aclrtMalloc((void **)&flag, 64 * KIB, HUGE_FIRST));
    OK(aclrtMemset(flag, 64, 0, 64));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(launch("forever", flag, first));
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecuteAsync(graph, second));
    OK(aclmdlRIExecuteAsync(graph, first)); /* waits for its turn */
    for (uint32_t got = 0; got == 0; usleep(1000))
        OK(aclrtMemcpy(&got, 4, flag, 4, D2H));
    OK(aclrtStreamAbort(first));
    OK(aclrtSynchronizeStream(first));
    OK(aclrtStreamAbort(second));
    CHECK_ACL(aclrtSynchronizeStream(second), 507035); /* the kernel that was ended */
    CHECK_EQ(get(0), 0);
    /* All of it works again. */
    OK(aclmdlRIExecuteAsync(graph, second));
    usleep(20000);
    OK(aclrtDeviceTaskAbort(0, 0));
    OK(aclmdlRIDestroy(graph));
    copy_word(1, 0, second);
    OK(aclrtSynchronizeStream(second));
}

static void set_flag(void *arg)
{
    *(int *)arg += 1;
}

TEST(destruction_waits_for_runs_and_calls_back)
{
    aclmdlRI graph;
    struct hold hold;
    int called = 0, never = 0;
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroyRegisterCallback(graph, set_flag, &called));
    OK(aclmdlRIDestroyRegisterCallback(graph, count, &never));
    OK(aclmdlRIDestroyUnregisterCallback(graph, count));
    CHECK_ACL(aclmdlRIDestroyUnregisterCallback(graph, count), 107000);
    hold_stream(&hold, first);
    put(0, 9);
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclmdlRIDestroy(graph), 107037);
    CHECK_MESSAGE("has not ended within 10 s");
    CHECK_EQ(called, 0);
    let_go(&hold);
    OK(aclmdlRIDestroy(graph));
    CHECK_EQ(called, 1);
    CHECK_EQ(never, 0);
    CHECK_EQ(get(1), 9);
}

TEST(graphs_end_with_their_context)
{
    aclmdlRI graph;
    aclrtContext context;
    int called = 0;
    struct hold hold;
    uint32_t before, after;
    open_all();
    OK(aclrtGetStreamAvailableNum(&before));
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtCreateStream(&first));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDestroyRegisterCallback(graph, set_flag, &called));
    hold_stream(&hold, first);
    OK(aclmdlRIExecuteAsync(graph, first));
    OK(aclmdlRICaptureBegin(first, GLOBAL)); /* and one that never ends */
    copy_word(2, 0, first);
    let_go(&hold);
    OK(aclrtDestroyContext(context));
    CHECK_EQ(called, 1);
    OK(aclrtSetDevice(0));
    CHECK_ACL(aclmdlRIDestroy(graph), 107017);
    OK(aclrtGetStreamAvailableNum(&after));
    CHECK_EQ(after, before);
}

TEST(names_ids_and_prints)
{
    aclmdlRI graph;
    uint32_t id = 0;
    char name[600], path[64], text[8192];
    open_all();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIGetName(graph, sizeof(name), name));
    CHECK_EQ(strlen(name), 0);
    OK(aclmdlRISetName(graph, "step"));
    OK(aclmdlRIGetName(graph, sizeof(name), name));
    CHECK(strcmp(name, "step") == 0);
    OK(aclmdlRIGetName(graph, 3, name));
    CHECK(strcmp(name, "st") == 0);
    memset(name, 'x', sizeof(name));
    name[599] = '\0';
    OK(aclmdlRISetName(graph, name));
    OK(aclmdlRIGetName(graph, sizeof(name), name));
    CHECK_EQ(strlen(name), 512);
    OK(aclmdlRIGetId(graph, &id));
    CHECK(id != 0);
    OK(aclmdlRIDebugPrint(graph));
    snprintf(path, sizeof(path), "/tmp/graph.%d.json", (int)getpid());
    OK(aclmdlRIDebugJsonPrint(graph, path, ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE));
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    remove(path);
    CHECK(strstr(text, "\"MEMCPY\"") != NULL);
    CHECK(strstr(text, "\"kernel\": \"add_one\"") != NULL);
    CHECK_ACL(aclmdlRIDebugJsonPrint(graph, "/nowhere/graph.json", 0), 100003);
    CHECK_ACL(aclmdlRIDebugJsonPrint(graph, path, 2), 107000);
    CHECK_ACL(aclmdlRIAbort(graph), 207000);
    OK(aclmdlRIDestroy(graph));
}

TEST(a_line_takes_a_stream_of_the_card)
{
    aclmdlRI graph;
    uint32_t before, during, after;
    open_all();
    OK(aclrtGetStreamAvailableNum(&before));
    graph = capture_fork();
    OK(aclrtGetStreamAvailableNum(&during));
    CHECK_EQ(during, before - 2);
    OK(aclmdlRIDestroy(graph));
    OK(aclrtGetStreamAvailableNum(&after));
    CHECK_EQ(after, before);
    static aclrtStream all[4096];
    for (uint32_t i = 0; i < before; i++)
        OK(aclrtCreateStream(&all[i]));
    CHECK_ACL(aclmdlRICaptureBegin(first, GLOBAL), 207008);
    CHECK_MESSAGE("stream");
    OK(aclrtSynchronizeStream(first));
    OK(aclrtDestroyStream(all[0]));
    aclrtEvent event = sync_event();
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtRecordEvent(event, first));
    CHECK_ACL(aclrtStreamWaitEvent(second, event), 207008);
    OK(aclmdlRICaptureEnd(first, &graph)); /* nothing had changed */
    run(graph, first);
    OK(aclmdlRIDestroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured_tasks_run_when_the_graph_runs),
        cmocka_unit_test(buffers_of_the_runtime_live_as_long_as_the_graph),
        cmocka_unit_test(every_kind_of_task_is_captured),
        cmocka_unit_test(callbacks_go_to_the_thread_that_serves_the_captured_stream),
        cmocka_unit_test(runs_stand_in_the_order_of_their_stream),
        cmocka_unit_test(a_capture_takes_in_other_streams_through_events),
        cmocka_unit_test(lines_of_a_graph_run_beside_one_another),
        cmocka_unit_test(one_graph_on_two_streams_runs_once_at_a_time),
        cmocka_unit_test(a_graph_may_have_more_tasks_than_a_ring),
        cmocka_unit_test(memory_that_was_freed_is_not_touched),
        cmocka_unit_test(a_kernel_does_not_run_on_memory_that_was_freed),
        cmocka_unit_test(pinned_memory_that_was_freed_is_not_touched),
        cmocka_unit_test(reserved_addresses_may_be_mapped_anew_behind_a_graph),
        cmocka_unit_test(the_stream_gets_the_first_failure_of_its_run),
        cmocka_unit_test(a_context_that_stops_on_failure_stops_for_a_graph),
        cmocka_unit_test(aborting_the_stream_ends_its_run),
        cmocka_unit_test(destruction_waits_for_runs_and_calls_back),
        cmocka_unit_test(graphs_end_with_their_context),
        cmocka_unit_test(names_ids_and_prints),
        cmocka_unit_test(a_line_takes_a_stream_of_the_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
