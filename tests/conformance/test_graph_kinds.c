/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of tasks in captured graphs that are more than a copy or a kernel: copies by address,
 * random numbers, forms of arguments, subscribed host functions, the overflow status. */
#include "graph_test.h"

#include <pthread.h>

#define INNER ACL_MEMCPY_INNER_DEVICE_TO_DEVICE

static char *card_block(size_t size)
{
    void *block = NULL;
    OK(aclrtMalloc(&block, size, HUGE_FIRST));
    OK(aclrtMemset(block, size, 0, size));
    return block;
}

/* ── Copies by address ────────────────────────────────────────────────────────────────────── */

/* A run copies what the descriptor says then. */
TEST(a_descriptor_is_read_by_each_run)
{
    aclmdlRI graph;
    open_all();
    char *desc = card_block(256);
    put(0, 10);
    put(1, 11);
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    /* Writes card memory at once, but is no copy of the program's: captures do not forbid it. */
    OK(aclrtSetMemcpyDesc(desc, INNER, words, words + 8, 8, NULL));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    CHECK_EQ(get(8), 0);
    run(graph, second);
    CHECK_EQ(get(8), 10);
    OK(aclrtSetMemcpyDesc(desc, INNER, words + 1, words + 9, 8, NULL));
    run(graph, first);
    CHECK_EQ(get(8), 10);
    CHECK_EQ(get(9), 11);
    OK(aclmdlRIDestroy(graph));
}

TEST(words_with_addresses_are_read_by_each_run)
{
    aclmdlRI graph;
    open_all();
    put(0, 20);
    put(1, 21);
    put(4, (uint64_t)(uintptr_t)(words + 8)); /* where to */
    put(5, (uint64_t)(uintptr_t)words);       /* where from */
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtMemcpyAsyncWithOffset((void **)(words + 4), 8, 0, (const void **)(words + 5), 8, 8,
                                  INNER, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    run(graph, first);
    CHECK_EQ(get(8), 21);
    put(4, (uint64_t)(uintptr_t)(words + 16));
    put(5, (uint64_t)(uintptr_t)(words - 1));
    run(graph, first);
    CHECK_EQ(get(8), 21);
    CHECK_EQ(get(16), 20);
    put(5, 64);
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507013);
    OK(aclmdlRIDestroy(graph));
}

/* The next owner of the descriptor's memory is not asked where to copy. */
TEST(a_descriptor_that_was_freed_copies_nothing)
{
    aclmdlRI graph;
    open_all();
    char *desc = card_block(256);
    put(0, 30);
    OK(aclrtSetMemcpyDesc(desc, INNER, words, words + 8, 8, NULL));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtFree(desc));
    char *next = card_block(256);
    OK(aclrtSetMemcpyDesc(next, INNER, words, words + 9, 8, NULL));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK_ACL(aclrtSynchronizeStream(first), 507013);
    CHECK_MESSAGE("was freed after the task was captured");
    CHECK_EQ(get(8), 0);
    if (next == desc)
        CHECK_EQ(get(9), 0);
    OK(aclmdlRIDestroy(graph));
}

TEST(copies_by_address_are_printed)
{
    static char text[8192];
    aclmdlRI graph;
    open_all();
    char *desc = card_block(256), path[] = "/tmp/graph_kinds_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtMemcpyAsyncWithDesc(desc, INNER, first));
    OK(aclrtMemcpyAsyncWithOffset((void **)words, 8, 0, (const void **)(words + 1), 8, 8, INNER,
                                  first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIDebugJsonPrint(graph, path, 0));
    ssize_t length = read(fd, text, sizeof(text) - 1);
    CHECK(length > 0);
    CHECK(strstr(text, "MEMCPY_INDIRECT") != NULL);
    CHECK(strstr(text, "\"descriptor\"") != NULL && strstr(text, "\"src at\"") != NULL);
    CHECK(close(fd) == 0 && unlink(path) == 0);
    OK(aclmdlRIDestroy(graph));
}

/* ── Random numbers ───────────────────────────────────────────────────────────────────────── */

static aclrtRandomParaInfo value(uint64_t word, uint8_t size)
{
    aclrtRandomParaInfo param = {.isAddr = 0, .size = size};
    memcpy(param.valueOrAddr, &word, size);
    return param;
}

TEST(each_run_draws_from_the_counter_that_it_finds)
{
    enum { N = 16 };
    int32_t direct[2][N], drawn[2][N];
    const uint64_t counters[2][2] = {{0, 0}, {77, 0}};
    aclmdlRI graph;
    open_all();
    char *result = card_block(N * 4), *counter = card_block(16), *params = card_block(16);
    aclrtRandomNumTaskInfo info = {.dataType = ACL_INT32,
                                   .randomParaAddr = params,
                                   .randomResultAddr = result,
                                   .randomCounterAddr = counter,
                                   .randomSeed = value(7, 8),
                                   .randomNum = value(N, 8)};
    info.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = value(1, 4);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = value(1000000, 4);
    for (int i = 0; i < 2; i++) {
        OK(aclrtMemcpy(counter, 16, counters[i], 16, H2D));
        OK(aclrtRandomNumAsync(&info, first, NULL));
        OK(aclrtSynchronizeStream(first));
        OK(aclrtMemcpy(direct[i], sizeof(direct[i]), result, sizeof(direct[i]), D2H));
    }
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtRandomNumAsync(&info, first, NULL));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 2; i++) {
        OK(aclrtMemcpy(counter, 16, counters[i], 16, H2D));
        OK(aclrtMemset(result, N * 4, 0, N * 4));
        run(graph, first);
        OK(aclrtMemcpy(drawn[i], sizeof(drawn[i]), result, sizeof(drawn[i]), D2H));
    }
    CHECK(memcmp(direct, drawn, sizeof(direct)) == 0);
    CHECK(memcmp(drawn[0], drawn[1], sizeof(drawn[0])) != 0);
    /* It is no kernel of the program's: nobody may ask for, or set, its function. */
    aclrtStream own;
    aclmdlRITask task;
    aclmdlRITaskType type;
    uint32_t n = 1;
    OK(aclmdlRIGetStreams(graph, &own, &n));
    OK(aclmdlRIGetTasksByStream(own, &task, &n));
    OK(aclmdlRITaskGetType(task, &type));
    CHECK_EQ(type, 0);
    OK(aclrtFree(counter));
    OK(aclmdlRIExecuteAsync(graph, first));
    CHECK(aclrtSynchronizeStream(first) != 0);
    CHECK_MESSAGE("was freed after the task was captured");
    OK(aclmdlRIDestroy(graph));
}

TEST(a_task_group_takes_no_random_numbers)
{
    aclmdlRI graph;
    open_all();
    char *result = card_block(64), *counter = card_block(16);
    aclrtRandomNumTaskInfo info = {.dataType = ACL_INT32,
                                   .randomResultAddr = result,
                                   .randomCounterAddr = counter,
                                   .randomSeed = value(7, 8),
                                   .randomNum = value(16, 8)};
    info.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS;
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.min = value(1, 4);
    info.randomNumFuncParaInfo.paramInfo.uniformDisInfo.max = value(9, 4);
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureTaskGrpBegin(first));
    CHECK_ACL(aclrtRandomNumAsync(&info, first, NULL), 507009);
    CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107033);
}

/* ── Forms of arguments ───────────────────────────────────────────────────────────────────── */

TEST(a_graph_has_its_copy_of_all_arguments)
{
    aclmdlRI graph;
    size_t handle_size = 0, size = 0;
    open_all();
    void *pointer = words, *array[1] = {&pointer};
    aclrtFuncHandle func = function("add_one");
    OK(aclrtKernelArgsGetHandleMemSize(func, &handle_size));
    OK(aclrtKernelArgsGetMemSize(func, sizeof(pointer), &size));
    void **block = calloc(1, size);
    aclrtArgsHandle args = calloc(1, handle_size);
    aclrtParamHandle param;
    CHECK(block != NULL && args != NULL);
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclrtLaunchKernelWithArgsArray(func, 1, first, NULL, array));
    pointer = words + 1;
    OK(aclrtKernelArgsInitByUserMem(func, args, block, size));
    OK(aclrtKernelArgsAppend(args, &pointer, sizeof(pointer), &param));
    OK(aclrtKernelArgsFinalize(args));
    OK(aclrtLaunchKernelWithConfig(func, 1, first, NULL, args, NULL));
    OK(aclmdlRICaptureEnd(first, &graph));
    pointer = words + 2;
    memset(block, 0, size);
    free(block);
    free(args);
    run(graph, first);
    run(graph, second);
    CHECK_EQ(get(0), 2);
    CHECK_EQ(get(1), 2);
    CHECK_EQ(get(2), 0);
    OK(aclmdlRIDestroy(graph));
}

/* ── Host functions that a thread subscribed to ───────────────────────────────────────────── */

static pthread_t ran_on;
static int n_ran;

static void note(void *arg)
{
    (void)arg;
    ran_on = pthread_self();
    n_ran++;
}

TEST(a_run_waits_for_the_thread_that_serves_the_captured_stream)
{
    uint64_t me = (uint64_t)pthread_self();
    aclmdlRI graph;
    open_all();
    OK(aclrtSubscribeHostFunc(me, first));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    copy_word(1, 0, first);
    OK(aclrtLaunchHostFunc(first, note, NULL));
    copy_word(2, 1, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    CHECK_ACL(aclrtProcessHostFunc(1), 507012);
    put(0, 5);
    for (int i = 1; i <= 2; i++) { /* on a stream that nobody serves */
        OK(aclmdlRIExecuteAsync(graph, second));
        if (i == 1) {
            CHECK_ACL(aclrtSynchronizeStreamWithTimeout(second, 5), 507046);
        } else { /* a thread that serves is told that it would wait for itself */
            CHECK_ACL(aclrtSynchronizeStream(second), 507000);
            CHECK_MESSAGE("waits for the host function or callback");
        }
        CHECK_EQ(get(2), i == 1 ? 0 : 5);
        OK(aclrtProcessHostFunc(-1));
        OK(aclrtSynchronizeStream(second));
        CHECK_EQ(n_ran, i);
        CHECK(pthread_equal(ran_on, pthread_self()));
        CHECK_EQ(get(2), 5);
    }
    /* Dropped, like any that nobody serves any more. */
    OK(aclmdlRIExecuteAsync(graph, second));
    OK(aclrtUnSubscribeHostFunc(me, first));
    OK(aclrtSynchronizeStream(second));
    run(graph, second);
    CHECK_EQ(n_ran, 2);
    OK(aclmdlRIDestroy(graph));
}

/* An abort does not wait for a thread that may be the caller. */
TEST(an_abort_drops_what_waits_for_a_thread)
{
    uint64_t me = (uint64_t)pthread_self();
    aclmdlRI graph;
    open_all();
    OK(aclrtSubscribeHostFunc(me, first));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtLaunchHostFunc(first, note, NULL));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecuteAsync(graph, second));
    OK(aclrtProcessHostFunc(-1));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(n_ran, 1);
    OK(aclmdlRIExecuteAsync(graph, second));
    CHECK_ACL(aclrtSynchronizeStream(second), 507000); /* it waits for this thread */
    OK(aclrtStreamAbort(second));
    OK(aclrtSynchronizeStream(second));
    CHECK_ACL(aclrtProcessHostFunc(1), 507012);
    CHECK_EQ(n_ran, 1);
    /* Aborting the served stream leaves a run on another one alone. */
    OK(aclmdlRIExecuteAsync(graph, second));
    CHECK_ACL(aclrtSynchronizeStream(second), 507000);
    OK(aclrtStreamAbort(first));
    OK(aclrtProcessHostFunc(-1));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(n_ran, 2);
    OK(aclmdlRIDestroy(graph));
}

/* ── What other processes see ─────────────────────────────────────────────────────────────── */

TEST(events_of_several_processes_stay_outside)
{
    aclmdlRI graph;
    aclrtEvent event;
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    open_all();
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    OK(aclmdlRICaptureBegin(first, RELAX));
    for (int i = 0; i < 20; i++) /* more than it can have under way */
        CHECK_ACL(aclrtRecordEvent(event, first), 207000);
    CHECK_MESSAGE("is shared between processes");
    CHECK_ACL(aclrtStreamWaitEvent(first, event), 207000);
    CHECK_ACL(aclrtRecordEventWithFlag(event, first, ACL_EVENT_RECORD_EXTERNAL), 207000);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtRecordEvent(event, first));
    OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtSynchronizeEvent(event));
    OK(aclrtQueryEventStatus(event, &status));
    CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
    OK(aclrtSynchronizeStream(second));
    OK(aclmdlRIDestroy(graph));
}

TEST(a_notify_of_several_processes_is_set_by_each_run)
{
    aclmdlRI graph;
    aclrtNotify notify;
    char key[65];
    open_all();
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtNotifyGetExportKey(notify, key, sizeof(key), 2));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtRecordNotify(notify, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 3; i++) {
        OK(aclrtWaitAndResetNotify(notify, second, 0));
        CHECK_ACL(aclrtSynchronizeStreamWithTimeout(second, 5), 507046);
        run(graph, first);
        OK(aclrtSynchronizeStream(second));
    }
    OK(aclmdlRIDestroy(graph));
    OK(aclrtDestroyNotify(notify));
}

/* ── The overflow status ──────────────────────────────────────────────────────────────────── */

static uint32_t status_word(void)
{
    return (uint32_t)get(64);
}

static void put_float(float number)
{
    OK(aclrtMemcpy(words, sizeof(number), &number, sizeof(number), H2D));
}

TEST(a_graph_looks_for_overflow_where_its_stream_did)
{
    aclmdlRI graph;
    aclrtTaskGrp group;
    open_all();
    OK(aclrtSetStreamOverflowSwitch(first, 1));
    OK(aclmdlRICaptureBegin(first, GLOBAL));
    OK(aclmdlRICaptureTaskGrpBegin(first));
    OK(launch("square", words, first));
    OK(aclmdlRICaptureTaskGrpEnd(first, &group));
    OK(aclrtGetOverflowStatus(words + 64, 64, first));
    OK(aclrtResetOverflowStatus(first));
    OK(aclmdlRICaptureEnd(first, &graph));
    for (int i = 0; i < 2; i++) {
        put_float(1e30f);
        run(graph, second); /* whose switch is off */
        CHECK_EQ(status_word(), 1);
        put_float(3);
        run(graph, second);
        CHECK_EQ(status_word(), 0);
        /* Another launch in its place, from a stream whose switch is off. */
        OK(aclmdlRICaptureTaskUpdateBegin(second, group));
        OK(launch("square", words, second));
        OK(aclmdlRICaptureTaskUpdateEnd(second));
        OK(aclrtSynchronizeStream(second));
    }
    OK(aclmdlRIDestroy(graph));
}

/* ── User code of a run ───────────────────────────────────────────────────────────────────── */

static aclmdlRI inner;
static aclError code, code_of_destroy, code_of_sync;

static void ask_for_own_end(void *arg)
{
    (void)arg;
    if (n_ran++ != 0)
        return;
    code = aclmdlRIExecute(inner, -1);
    code_of_destroy = aclmdlRIDestroy(inner);
    code_of_sync = aclrtSynchronizeStream(second);
}

/* Runs of one graph come one after another, so this one would come after its own host function. */
TEST(user_code_of_a_run_cannot_wait_for_that_run)
{
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtLaunchHostFunc(first, ask_for_own_end, NULL));
    OK(aclmdlRICaptureEnd(first, &inner));
    OK(aclmdlRIExecuteAsync(inner, second));
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(code, 507000);
    CHECK_EQ(code_of_destroy, 107037);
    CHECK_EQ(code_of_sync, 507000);
    OK(aclmdlRIDestroy(inner)); /* behind the run that was asked for */
    CHECK_EQ(n_ran, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_read_by_each_run),
        cmocka_unit_test(words_with_addresses_are_read_by_each_run),
        cmocka_unit_test(a_descriptor_that_was_freed_copies_nothing),
        cmocka_unit_test(copies_by_address_are_printed),
        cmocka_unit_test(each_run_draws_from_the_counter_that_it_finds),
        cmocka_unit_test(a_task_group_takes_no_random_numbers),
        cmocka_unit_test(a_graph_has_its_copy_of_all_arguments),
        cmocka_unit_test(a_run_waits_for_the_thread_that_serves_the_captured_stream),
        cmocka_unit_test(an_abort_drops_what_waits_for_a_thread),
        cmocka_unit_test(events_of_several_processes_stay_outside),
        cmocka_unit_test(a_notify_of_several_processes_is_set_by_each_run),
        cmocka_unit_test(a_graph_looks_for_overflow_where_its_stream_did),
        cmocka_unit_test(user_code_of_a_run_cannot_wait_for_that_run),
    };
    return cmocka_run_group_tests_name("graph_kinds", tests, NULL, NULL);
}
