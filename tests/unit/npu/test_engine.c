/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that run tasks: started when needed, awake while there is work, asleep without. */
#include "order_test.h"

#include <sys/resource.h>
#include <time.h>

#include "npu/engine.h"
#include "npu/queue.h"

static void wait_until_asleep(void)
{
    while (!blyi_engine_is_asleep(0, BLYI_ENGINE_COPY))
        sched_yield();
}

static void an_engine_starts_at_the_first_task(void **state)
{
    (void)state;
    uint64_t before = blyi_sys_count(BLYI_SYS_thread_create);
    void *stream = new_stream();
    assert_int_equal(blyi_sys_count(BLYI_SYS_thread_create), before);
    assert_ok(blyi_stream_nop(stream));
    assert_int_equal(blyi_sys_count(BLYI_SYS_thread_create), before + 1);
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ok(blyi_stream_nop(NULL));
    assert_ok(blyi_stream_sync(NULL, 0));
    assert_int_equal(blyi_sys_count(BLYI_SYS_thread_create), before + 1);
}

static void submission_makes_no_system_call_while_an_engine_is_awake(void **state)
{
    (void)state;
    void *stream = new_stream();
    for (int i = 0; i < 2000; i++)
        assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    /* Where other work wants the CPUs the engine sleeps early: until it was awake all the time. */
    bool awake = false;
    while (!awake) {
        uint64_t wakes = blyi_stat_read(BLYI_STAT_engine_wakes);
        uint64_t futexes = blyi_sys_count(BLYI_SYS_futex);
        awake = !blyi_engine_is_asleep(0, BLYI_ENGINE_COPY);
        for (int i = 0; i < 2000; i++)
            assert_ok(blyi_stream_nop(stream));
        uint64_t calls = blyi_sys_count(BLYI_SYS_futex) - futexes;
        awake = awake && !blyi_engine_is_asleep(0, BLYI_ENGINE_COPY) &&
                blyi_stat_read(BLYI_STAT_engine_wakes) == wakes;
        if (awake)
            assert_int_equal(calls, 0);
        assert_ok(blyi_stream_sync(stream, 0));
    }
}

struct submitter {
    struct blyi_stream *stream;
    uint32_t ended;
};

static void *submit_one(void *arg)
{
    struct submitter *submitter = arg;
    struct blyi_task task = {.kind = BLYI_TASK_NOP};
    blyi_queue_put(submitter->stream, &task);
    __atomic_store_n(&submitter->ended, 1, __ATOMIC_RELEASE);
    return NULL;
}

static uint64_t cpu_ns_of(pthread_t thread)
{
    clockid_t id;
    struct timespec used;
    assert_int_equal(pthread_getcpuclockid(thread, &id), 0);
    assert_int_equal(clock_gettime(id, &used), 0);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* It does not stay awake for the 200 ms of BELAY_SPIN_US first. */
static void a_submitter_on_a_full_ring_sleeps(void **state)
{
    (void)state;
    void *handle = new_stream();
    struct submitter submitter = {0};
    assert_ok(blyi_stream_pin(handle, &submitter.stream));
    assert_ok(blyi_stream_pause(handle));
    for (uint32_t i = 0; i < BLYI_RING_TASKS; i++)
        assert_ok(blyi_stream_nop(handle));
    wait_until_asleep(); /* nobody but the submitter uses a CPU */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_one, &submitter), 0);
    while (__atomic_load_n(&submitter.stream->sleepers, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    assert_true(cpu_ns_of(thread) < 50000000);
    assert_int_equal(__atomic_load_n(&submitter.ended, __ATOMIC_ACQUIRE), 0);
    assert_int_equal(pending(handle), BLYI_RING_TASKS);
    assert_ok(blyi_stream_resume(handle));
    pthread_join(thread, NULL);
    blyi_stream_unpin(submitter.stream);
    assert_ok(blyi_stream_sync(handle, 0));
    assert_int_equal(pending(handle), 0);
}

static void a_sleeping_engine_is_woken_once(void **state)
{
    (void)state;
    void *stream = new_stream();
    assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    for (int i = 0; i < 5; i++) {
        wait_until_asleep();
        uint64_t wakes = blyi_stat_read(BLYI_STAT_engine_wakes);
        assert_ok(blyi_stream_nop(stream));
        assert_ok(blyi_stream_sync(stream, 0));
        assert_int_equal(blyi_stat_read(BLYI_STAT_engine_wakes), wakes + 1);
    }
}

static void idle_streams_cost_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++)
        assert_ok(blyi_stream_nop(new_stream()));
    assert_ok(blyi_device_sync(0));
    wait_until_asleep();
    uint64_t futexes = blyi_sys_count(BLYI_SYS_futex);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    usleep(300000); /* what is measured, not what makes it right */
    getrusage(RUSAGE_SELF, &after);
    assert_true(blyi_sys_count(BLYI_SYS_futex) <= futexes + 1); /* the one it sleeps in */
    long us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec -
              before.ru_utime.tv_usec;
    assert_true(us < 5000);
}

static void urgent_streams_go_first(void **state)
{
    (void)state;
    void *hold = new_stream(), *late, *soon;
    void *gate = new_event(MODERN), *late_done = new_event(MODERN), *soon_done = new_event(MODERN);
    int64_t ns;
    blyi_clock_set_virtual(true);
    assert_ok(blyi_stream_create(7, 0, 0, &late));
    assert_ok(blyi_stream_create(0, 0, 0, &soon));
    /* Both become ready at the same instant, the less urgent one first in line. */
    assert_ok(blyi_stream_pause(hold));
    assert_ok(blyi_event_record(gate, hold, 0));
    assert_ok(blyi_event_wait(gate, soon, 0, 0));
    assert_ok(blyi_event_wait(gate, late, 0, 0));
    assert_ok(blyi_event_record(soon_done, soon, 0));
    assert_ok(blyi_event_record(late_done, late, 0));
    assert_ok(blyi_stream_resume(hold));
    assert_ok(blyi_device_sync(0));
    assert_ok(blyi_event_elapsed(soon_done, late_done, &ns));
    assert_true(ns >= 0);
}

static void engines_stop_and_start_again(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++) {
        assert_ok(blyi_stream_nop(NULL));
        assert_ok(blyi_stream_sync(NULL, 0));
        blyi_runtime_finalise();
        assert_true(blyi_engine_is_asleep(0, BLYI_ENGINE_COPY));
        assert_ok(blyi_device_set(0, 0));
    }
}

static void a_thread_that_cannot_be_made_is_told(void **state)
{
    (void)state;
    void *stream = new_stream();
    blyi_sys_fail_nth(1, 11);
    assert_status(blyi_stream_nop(stream), BLY_E_SYSTEM);
    assert_sentence("card 0: the thread of engine bly-copy cannot be made");
    assert_int_equal(pending(stream), 0);
    assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_sync(stream, 0));
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_SPIN_US", "200000", 1);
    const struct CMUnitTest tests[] = {
        order_test(an_engine_starts_at_the_first_task),
        order_test(submission_makes_no_system_call_while_an_engine_is_awake),
        order_test(a_submitter_on_a_full_ring_sleeps),
        order_test(a_sleeping_engine_is_woken_once),
        order_test(idle_streams_cost_nothing),
        order_test(urgent_streams_go_first),
        order_test(engines_stop_and_start_again),
        order_test(a_thread_that_cannot_be_made_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
