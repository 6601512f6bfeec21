/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in the hands of several threads, and whose parts end before they do. */
#include "graph_test.h"

#include <pthread.h>

static aclrtContext context;
static atomic_bool stop;
static aclmdlRI graph;

static void start_threads(pthread_t *threads, int n, void *(*fn)(void *))
{
    OK(aclrtGetCurrentContext(&context));
    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&threads[i], NULL, fn, (void *)(intptr_t)i) == 0);
}

static void join_threads(const pthread_t *threads, int n)
{
    for (int i = 0; i < n; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ── Captures beside submissions ──────────────────────────────────────────────────────────── */

static void *submit_all_kinds(void *arg)
{
    intptr_t kind = (intptr_t)arg;
    OK(aclrtSetCurrentContext(context));
    aclrtEvent event = sync_event();
    while (!atomic_load(&stop))
        switch (kind % 5) { /* in or out of a capture: both are right */
        case 0:
            OK(aclrtMemcpyAsync(words, 8, words + 1, 8, D2D, first));
            break;
        case 1:
            (void)aclrtRecordEvent(event, first);
            break;
        case 2:
            (void)aclrtStreamWaitEvent(first, event);
            break;
        case 3:
            OK(launch("add_one", words + 2, first));
            break;
        default:
            OK(aclrtMemsetAsync(words + 3, 8, 0, 8, first));
            break;
        }
    return NULL;
}

TEST(a_capture_may_begin_while_others_submit)
{
    pthread_t threads[5];
    open_all();
    (void)function("add_one");
    start_threads(threads, 5, submit_all_kinds);
    for (int i = 0; i < 400; i++) {
        OK(aclmdlRICaptureBegin(first, RELAX));
        OK(aclmdlRICaptureEnd(first, &graph));
        OK(aclmdlRIDestroy(graph));
    }
    atomic_store(&stop, true);
    join_threads(threads, 5);
}

static void *submit_copies(void *arg)
{
    (void)arg;
    OK(aclrtSetCurrentContext(context));
    for (int i = 0; i < 100; i++)
        copy_word(0, 1, first);
    return NULL;
}

TEST(more_threads_than_a_line_has_room_for)
{
    enum { THREADS = 100 };
    pthread_t threads[THREADS];
    aclrtStream line;
    uint32_t n = 1, n_tasks = 0;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    start_threads(threads, THREADS, submit_copies);
    join_threads(threads, THREADS);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIGetStreams(graph, &line, &n));
    OK(aclmdlRIGetTasksByStream(line, NULL, &n_tasks));
    CHECK_EQ(n_tasks, THREADS * 100);
    OK(aclmdlRIDestroy(graph));
}

static void *run_what_is_captured(void *arg)
{
    (void)arg;
    aclrtStream stream;
    OK(aclrtSetCurrentContext(context));
    OK(aclrtCreateStream(&stream));
    while (!atomic_load(&stop)) {
        aclmdlRI seen = NULL;
        OK(aclmdlRICaptureGetInfo(first, NULL, &seen));
        for (int i = 0; seen != NULL && i < 20; i++)
            CHECK(aclmdlRIExecuteAsync(seen, stream) != 0); /* it never becomes a graph */
    }
    OK(aclrtSynchronizeStream(stream));
    return NULL;
}

TEST(a_capture_that_fails_is_never_run)
{
    pthread_t threads[2];
    open_all();
    aclrtEvent event = sync_event();
    start_threads(threads, 2, run_what_is_captured);
    for (int i = 0; i < 1000; i++) {
        OK(aclmdlRICaptureBegin(first, RELAX));
        copy_word(0, 1, first);
        OK(aclrtRecordEvent(event, first));
        OK(aclrtStreamWaitEvent(second, event));
        copy_word(1, 2, second);
        CHECK_ACL(aclmdlRICaptureEnd(first, &graph), 107025);
    }
    atomic_store(&stop, true);
    join_threads(threads, 2);
}

/* ── Runs ─────────────────────────────────────────────────────────────────────────────────── */

static void *run_it_in_vain(void *arg)
{
    (void)arg;
    OK(aclrtSetCurrentContext(context));
    for (int i = 0; i < 100; i++)
        CHECK_ACL(aclmdlRIExecute(graph, -1), 507013);
    return NULL;
}

TEST(each_execution_hears_of_its_own_run)
{
    pthread_t threads[4];
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(0, 1, first);
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclrtFree(words));
    start_threads(threads, 4, run_it_in_vain);
    join_threads(threads, 4);
    OK(aclmdlRIDestroy(graph));
}

static aclmdlRI capture_external(int to, int from, aclrtEvent event)
{
    aclmdlRI captured;
    OK(aclmdlRICaptureBegin(first, RELAX));
    copy_word(to, from, first);
    OK(aclrtRecordEventWithFlag(event, first, ACL_EVENT_RECORD_EXTERNAL));
    OK(aclmdlRICaptureEnd(first, &captured));
    return captured;
}

/* The run that was queued when the wait was, not one that comes to its end before. */
static void wait_for_the_first_of_two_runs(bool same_graph)
{
    struct hold hold;
    aclrtStream third;
    open_all();
    OK(aclrtCreateStream(&third));
    aclrtEvent event = sync_event();
    aclmdlRI a = capture_external(0, 10, event);
    aclmdlRI b = same_graph ? a : capture_external(1, 11, event);
    put(10, 77);
    hold_stream(&hold, first);
    OK(aclrtMemcpyAsync(words + 10, 8, words + 12, 8, D2D, first)); /* 0 */
    OK(aclmdlRIExecuteAsync(a, first));
    OK(aclrtStreamWaitEvent(third, event));
    copy_word(5, 0, third);
    put(5, 99);
    OK(aclmdlRIExecuteAsync(b, second));
    OK(aclrtSynchronizeStream(second));
    let_engine_look();
    CHECK_EQ(get(5), 99);
    let_go(&hold);
    OK(aclrtSynchronizeStream(third));
    CHECK_EQ(get(5), 0);
    OK(aclrtSynchronizeStream(first));
    OK(aclrtSynchronizeEvent(event));
}

TEST(who_waits_for_a_run_is_not_let_go_by_another_graph)
{
    wait_for_the_first_of_two_runs(false);
}

TEST(who_waits_for_a_run_is_not_let_go_by_the_next)
{
    wait_for_the_first_of_two_runs(true);
}

/* ── What ends before the graph ───────────────────────────────────────────────────────────── */

TEST(a_group_may_end_while_it_is_updated)
{
    aclrtTaskGrp group;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureTaskGrpBegin(first));
    OK(launch("add_one", words, first));
    OK(aclmdlRICaptureTaskGrpEnd(first, &group));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRICaptureTaskUpdateBegin(second, group));
    OK(aclmdlRIDestroy(graph));
    CHECK_ACL(launch("add_one", words, second), 107017);
    CHECK_MESSAGE("of the task group was destroyed");
    CHECK_ACL(aclmdlRICaptureTaskUpdateEnd(second), 107017);
    OK(launch("add_one", words, second)); /* a common stream again */
    OK(aclrtSynchronizeStream(second));
    CHECK_EQ(get(0), 1);
}

TEST(a_condition_does_not_touch_a_word_that_was_freed)
{
    aclmdlRICondHandle handle;
    uint64_t *word = NULL, *mine = NULL;
    open_all();
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclmdlRICaptureGetInfo(first, NULL, &graph));
    OK(aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle));
    OK(aclmdlRICondHandleGetCondPtr(handle, &word));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRIExecute(graph, -1));
    OK(aclrtFree(word));
    OK(aclrtMalloc((void **)&mine, sizeof(*mine), HUGE_FIRST));
    CHECK(mine == word); /* else the test shows nothing */
    OK(aclrtMemset(mine, 8, 7, 8));
    CHECK_ACL(aclmdlRIExecute(graph, -1), 507013);
    CHECK_MESSAGE("was freed after the task was captured");
    OK(aclmdlRIDestroy(graph));
    uint64_t got = 0;
    OK(aclrtMemcpy(&got, 8, mine, 8, D2H));
    CHECK_EQ(got, 0x0707070707070707);
    OK(aclrtFree(mine));
}

/* Another process: makes two blocks, tells their keys, and lives until it is told not to. */
static void make_blocks(int out, int in)
{
    char key[65] = "", end;
    OK(aclrtSetDevice(0));
    for (int i = 1; i <= 2; i++) {
        void *block;
        OK(aclrtMalloc(&block, 2 * MIB, HUGE_FIRST));
        OK(aclrtMemset(block, 2 * MIB, i, 2 * MIB));
        OK(aclrtIpcMemGetExportKey(block, 2 * MIB, key, sizeof(key), 1));
        CHECK(write(out, key, sizeof(key)) == sizeof(key));
    }
    (void)!read(in, &end, 1);
    _exit(0);
}

TEST(memory_of_another_process_that_was_closed_is_not_touched)
{
    int keys_of[2], ends[2];
    char keys[2][65];
    void *import = NULL, *other = NULL;
    aclmdlRI kernel;
    char folder[] = "/tmp/belay-misuse.XXXXXX", command[64];
    CHECK(mkdtemp(folder) != NULL);
    setenv("BELAY_STATE", folder, 1);
    CHECK(pipe(keys_of) == 0 && pipe(ends) == 0);
    pid_t maker = fork();
    if (maker == 0) {
        close(ends[1]);
        make_blocks(keys_of[1], ends[0]);
    }
    close(ends[0]);
    CHECK(read(keys_of[0], keys[0], 65) == 65 && read(keys_of[0], keys[1], 65) == 65);
    open_all();
    OK(aclrtIpcMemImportByKey(&import, keys[0], 0));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(aclrtMemcpyAsync(words, 8, import, 8, D2D, first));
    OK(aclmdlRICaptureEnd(first, &graph));
    OK(aclmdlRICaptureBegin(first, RELAX));
    OK(launch("add_one", import, first));
    OK(aclmdlRICaptureEnd(first, &kernel));
    run(graph, first);
    CHECK_EQ(get(0), 0x0101010101010101);
    OK(aclrtIpcMemClose(keys[0]));
    CHECK_ACL(aclmdlRIExecute(graph, -1), 507013);
    OK(aclrtIpcMemImportByKey(&other, keys[1], 0));
    CHECK(other == import); /* else the test shows nothing */
    CHECK_ACL(aclmdlRIExecute(graph, -1), 507013);
    CHECK_MESSAGE("now it is in block");
    CHECK(aclmdlRIExecute(kernel, -1) != 0);
    CHECK_EQ(get(0), 0x0101010101010101);
    OK(aclrtMemcpy(pinned, 8, other, 8, D2H));
    CHECK_EQ(pinned[0], 0x0202020202020202);
    close(ends[1]);
    CHECK(waitpid(maker, NULL, 0) == maker);
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_may_begin_while_others_submit),
        cmocka_unit_test(more_threads_than_a_line_has_room_for),
        cmocka_unit_test(a_capture_that_fails_is_never_run),
        cmocka_unit_test(each_execution_hears_of_its_own_run),
        cmocka_unit_test(who_waits_for_a_run_is_not_let_go_by_another_graph),
        cmocka_unit_test(who_waits_for_a_run_is_not_let_go_by_the_next),
        cmocka_unit_test(a_group_may_end_while_it_is_updated),
        cmocka_unit_test(a_condition_does_not_touch_a_word_that_was_freed),
        cmocka_unit_test(memory_of_another_process_that_was_closed_is_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
