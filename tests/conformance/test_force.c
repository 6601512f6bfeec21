/* SPDX-License-Identifier: Apache-2.0 */
/* Ending work by force beside user code and kernels that do not return. */
#include "acl_test.h"

#include <belay/kernel.h>
#include <pthread.h>

static atomic_int begun, ended, ran;
static atomic_bool released;
static aclrtStream old_stream;

/* Ends when it is let go, which is after what it held has ended without it. */
static void hold(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&released))
        sched_yield();
    atomic_fetch_add(&ended, 1);
}

static void count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&ran, 1);
}

static void await(atomic_int *what, int n)
{
    while (atomic_load(what) < n)
        sched_yield();
}

static void begin(aclrtStream *stream)
{
    setenv("BELAY_FORCE_WAIT_MS", "50", 1);
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(stream));
}

/* The card is as new. */
static void is_usable(void)
{
    aclrtStream stream = NULL;
    void *block = NULL;
    int before = atomic_load(&ran);
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc(&block, MIB, HUGE_FIRST));
    OK(aclrtMemsetAsync(block, MIB, 1, MIB, stream));
    OK(aclrtLaunchHostFunc(stream, count, NULL));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ran), before + 1);
    OK(aclrtFree(block));
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
}

TEST(a_reset_leaves_a_host_function_behind)
{
    aclrtStream stream = NULL, other = NULL;
    aclrtEvent event = NULL;
    begin(&stream);
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    OK(aclrtResetOverflowStatus(stream)); /* a task that does nothing */
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(other, event));
    await(&begun, 1);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(atomic_load(&ended), 0);
    CHECK_ACL(aclrtSynchronizeStream(stream), 107017);
    is_usable();
    atomic_store(&released, true);
    await(&ended, 1);
    is_usable();
    OK(aclFinalize());
}

static void use_the_past(void *arg)
{
    void *block = NULL;
    hold(arg);
    CHECK_ACL(aclrtMalloc(&block, MIB, HUGE_FIRST), 107002);
    CHECK_ACL(aclrtSynchronizeStream(old_stream), 107017);
    CHECK_ACL(aclrtSynchronizeDevice(), 107002);
    atomic_fetch_add(&ended, 1);
}

TEST(what_was_left_behind_finds_its_context_gone)
{
    begin(&old_stream);
    OK(aclrtLaunchHostFunc(old_stream, use_the_past, NULL));
    await(&begun, 1);
    OK(aclrtResetDeviceForce(0));
    atomic_store(&released, true);
    await(&ended, 2);
    is_usable();
}

TEST(finalising_leaves_it_behind)
{
    aclrtStream stream = NULL;
    begin(&stream);
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    await(&begun, 1);
    OK(aclFinalize());
    CHECK_EQ(atomic_load(&ended), 0);
    is_usable();
    atomic_store(&released, true);
    await(&ended, 1);
}

/* Other streams of the context have another thread from then on. */
TEST(destroying_a_stream_leaves_it_behind)
{
    aclrtStream stream = NULL, other = NULL;
    begin(&stream);
    OK(aclrtCreateStream(&other));
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    await(&begun, 1);
    OK(aclrtLaunchHostFunc(stream, count, NULL)); /* dropped */
    OK(aclrtLaunchHostFunc(other, count, NULL));
    OK(aclrtDestroyStreamForce(stream));
    OK(aclrtSynchronizeStream(other));
    CHECK_EQ(atomic_load(&ran), 1);
    CHECK_EQ(atomic_load(&ended), 0);
    OK(aclrtLaunchHostFunc(other, count, NULL));
    OK(aclrtSynchronizeDevice());
    CHECK_EQ(atomic_load(&ran), 2);
    atomic_store(&released, true);
    await(&ended, 1);
    OK(aclrtDestroyStream(other));
    OK(aclrtResetDevice(0));
}

TEST(an_abort_leaves_it_behind)
{
    aclrtStream stream = NULL;
    begin(&stream);
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    await(&begun, 1);
    OK(aclrtLaunchHostFunc(stream, count, NULL)); /* dropped */
    OK(aclrtStreamAbort(stream));
    OK(aclrtLaunchHostFunc(stream, count, NULL));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ran), 1);
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    await(&begun, 2);
    OK(aclrtDeviceTaskAbort(0, 0));
    OK(aclrtSynchronizeStream(stream));
    CHECK_EQ(atomic_load(&ended), 0);
    atomic_store(&released, true);
    await(&ended, 2);
    OK(aclrtResetDevice(0));
}

static void *report_thread(void *arg)
{
    (void)arg;
    aclError error = 0;
    while (error == 0 || error == 107012) {
        if (atomic_load(&released))
            return NULL;
        error = aclrtProcessReport(-1);
    }
    return NULL;
}

TEST(a_reset_leaves_a_callback_behind)
{
    aclrtStream stream = NULL;
    pthread_t thread;
    begin(&stream);
    CHECK(pthread_create(&thread, NULL, report_thread, NULL) == 0);
    OK(aclrtSubscribeReport((uint64_t)thread, stream));
    OK(aclrtLaunchCallback(hold, NULL, ACL_CALLBACK_BLOCK, stream));
    await(&begun, 1);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(atomic_load(&ended), 0);
    is_usable();
    atomic_store(&released, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_EQ(atomic_load(&ended), 1);
}

/* It runs on a line of the graph: the stream that executes the graph waits for that. */
TEST(a_reset_leaves_a_host_function_of_a_graph_behind)
{
    aclrtStream stream = NULL;
    aclmdlRI graph = NULL;
    begin(&stream);
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtLaunchHostFunc(stream, hold, NULL));
    OK(aclmdlRICaptureEnd(stream, &graph));
    OK(aclmdlRIExecuteAsync(graph, stream));
    await(&begun, 1);
    OK(aclrtResetDeviceForce(0));
    CHECK_EQ(atomic_load(&ended), 0);
    is_usable();
    atomic_store(&released, true);
    await(&ended, 1);
}

static void spin(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
    atomic_fetch_add(&begun, 1);
    for (;;)
        __asm__ volatile("" ::: "memory");
}

TEST(a_reset_stops_a_kernel)
{
    aclrtStream stream = NULL, other = NULL;
    aclrtEvent event = NULL;
    begin(&stream);
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    CHECK_EQ(bly_kernel_launch(spin, NULL, 0, NULL, stream), BLY_OK);
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(other, event));
    OK(aclrtResetOverflowStatus(other));
    await(&begun, 1);
    OK(aclrtResetDeviceForce(0));
    is_usable();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reset_leaves_a_host_function_behind),
        cmocka_unit_test(what_was_left_behind_finds_its_context_gone),
        cmocka_unit_test(finalising_leaves_it_behind),
        cmocka_unit_test(destroying_a_stream_leaves_it_behind),
        cmocka_unit_test(an_abort_leaves_it_behind),
        cmocka_unit_test(a_reset_leaves_a_callback_behind),
        cmocka_unit_test(a_reset_leaves_a_host_function_of_a_graph_behind),
        cmocka_unit_test(a_reset_stops_a_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
