/* SPDX-License-Identifier: Apache-2.0 */
/* User code in stream order that waits for, or ends, work which waits for that very code. */
#include "order_test.h"

#include "npu/abort.h"
#include "npu/engine.h"
#include "npu/graph.h"
#include "npu/notify.h"

enum { LIMIT_S = 600 }; /* a hang ends the program with the name of the test */

static uint32_t go, ran, ended;

static void count(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
}

static uint32_t n_ran(void)
{
    return __atomic_load_n(&ran, __ATOMIC_ACQUIRE);
}

/* A host function: its thread is busy with it until release(). */
static void (*body)(void *arg);

static void held(void *arg)
{
    while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    body(arg);
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
}

static void hold(void *stream, void (*fn)(void *), void *arg)
{
    body = fn;
    assert_ok(blyi_callback_host_func(stream, held, arg, 0));
}

/* All that an engine can do is done: what waits, waits. */
static void until_all_wait(void)
{
    while (!blyi_engine_is_asleep(0, BLYI_ENGINE_COPY))
        sched_yield();
}

static void release(void)
{
    until_all_wait();
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
}

static int begin_limited(void **state)
{
    alarm(LIMIT_S);
    go = ran = ended = 0;
    return begin(state);
}

/* ── Ends ─────────────────────────────────────────────────────────────────────────────────── */

static void reset_card(void *arg)
{
    (void)arg;
    require(blyi_device_reset(0, true) == BLY_OK);
}

static void a_reset_drops_what_waits_for_its_own_thread(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    hold(a, reset_card, NULL);
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    release();
    blyi_runtime_finalise();
    assert_int_equal(n_ran(), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

/* Made first, so that it is looked at first. */
static void a_reset_sees_through_waits(void **state)
{
    (void)state;
    void *far = new_stream(), *near = new_stream(), *noted = new_stream();
    void *a = new_stream(), *b = new_stream(), *notify;
    void *modern = new_event(MODERN), *legacy = new_event(LEGACY);
    assert_ok(blyi_notify_create(false, 0, &notify));
    hold(a, reset_card, NULL);
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    assert_ok(blyi_event_record(modern, b, 0));
    assert_ok(blyi_notify_record(notify, false, BLYI_NOTIFY_SET, 1, b, 0));
    assert_ok(blyi_event_wait(modern, near, 0, 0));
    assert_ok(blyi_event_record(legacy, near, 0));
    assert_ok(blyi_event_wait(legacy, far, 0, 0));
    assert_ok(blyi_notify_wait(notify, false, BLYI_NOTIFY_GREATER_EQUAL, 1, true, 0, noted, 0));
    release();
    blyi_runtime_finalise();
    assert_int_equal(n_ran(), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void destroy_context(void *context)
{
    require(blyi_context_destroy(context) == BLY_OK);
}

static void a_context_may_be_destroyed_from_its_thread(void **state)
{
    (void)state;
    void *context;
    assert_ok(blyi_context_create(0, 0, &context));
    void *a = new_stream(), *b = new_stream();
    hold(a, destroy_context, context);
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    release();
    assert_int_equal(n_ran(), 0);
}

static void destroy_stream(void *stream)
{
    require(blyi_stream_destroy(stream, false) == BLY_OK);
}

/* Not by force: what was queued still runs, once the thread is free. */
static void a_stream_that_is_destroyed_from_its_thread_ends_later(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    hold(a, destroy_stream, b);
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    release();
    while (n_ran() != 1)
        sched_yield();
    assert_status(blyi_stream_sync(b, 0), BLY_E_HANDLE);
    assert_ok(blyi_stream_sync(a, 0));
}

static void abort_stream(void *stream)
{
    require(blyi_stream_abort(stream) == BLY_OK);
}

static void a_stream_may_be_aborted_from_its_thread(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    hold(a, abort_stream, b);
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    release();
    assert_ok(blyi_callback_host_func(b, count, NULL, 0));
    assert_ok(blyi_stream_sync(b, 0));
    assert_int_equal(n_ran(), 1);
}

/* ── Waits ────────────────────────────────────────────────────────────────────────────────── */

static struct {
    void *own, *other, *free, *event;
} names;

static void wait_for_all(void *arg)
{
    char host[64] = {0}, *card = arg;
    require(blyi_stream_sync(names.own, 0) == BLY_E_STATE);
    require(strstr(blyi_fail_text(), "waits for the host function or callback that waits for it"));
    require(blyi_stream_sync(names.other, 0) == BLY_E_STATE);
    require(blyi_stream_sync(names.other, 3600000000000ull) == BLY_E_STATE);
    require(blyi_event_sync(names.event, 0) == BLY_E_STATE);
    require(blyi_device_sync(0) == BLY_E_STATE);
    require(blyi_copy_async(card, host, 64, names.other, 0) == BLY_E_STATE);
    require(blyi_stream_sync(names.free, 0) == BLY_OK);
    require(blyi_copy_async(card, host, 64, names.free, 0) == BLY_OK);
}

static void waits_that_would_never_end_are_refused(void **state)
{
    (void)state;
    names.own = new_stream();
    names.other = new_stream();
    names.free = new_stream();
    names.event = new_event(MODERN);
    char *card = card_alloc(MiB);
    hold(names.own, wait_for_all, card);
    assert_ok(blyi_callback_host_func(names.other, count, NULL, 0));
    assert_ok(blyi_event_record(names.event, names.other, 0));
    assert_ok(blyi_set_async(card, 1, MiB, names.free, 0));
    release();
    assert_ok(blyi_device_sync(0));
    assert_int_equal(n_ran(), 1);
    assert_ok(blyi_mem_free(card, 0));
}

/* ── Threads that process reports ─────────────────────────────────────────────────────────── */

static void a_report_thread_is_not_waited_for_by_itself(void **state)
{
    (void)state;
    uint64_t self = (uint64_t)pthread_self();
    void *a = new_stream(), *b = new_stream();
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, a));
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, b));
    assert_ok(blyi_callback_launch(count, NULL, true, a, 0));
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_ok(blyi_callback_launch(count, NULL, true, b, 0));
    until_all_wait();
    assert_status(blyi_stream_sync(b, 0), BLY_E_STATE);
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_ok(blyi_stream_sync(b, 0));
    assert_int_equal(n_ran(), 2);
    assert_ok(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, a));
    assert_ok(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, b));
}

static void process_and_reset(void *arg)
{
    (void)arg;
    body = reset_card;
    go = 1;
    require(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0) ==
            BLY_OK); /* runs held() on the second stream */
}

static void a_reset_inside_two_callbacks_returns(void **state)
{
    (void)state;
    uint64_t self = (uint64_t)pthread_self();
    void *streams[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = new_stream();
        assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, streams[i]));
    }
    assert_ok(blyi_callback_launch(process_and_reset, NULL, true, streams[0], 0));
    until_all_wait();
    assert_ok(blyi_callback_launch(held, NULL, true, streams[1], 0));
    until_all_wait();
    assert_ok(blyi_callback_launch(count, NULL, true, streams[2], 0));
    until_all_wait();
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_int_equal(n_ran(), 0);
    blyi_runtime_finalise();
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

/* ── Runs of graphs ───────────────────────────────────────────────────────────────────────── */

/* A graph of two streams, whose second one calls count(). */
static void *counting_graph(void)
{
    void *graph, *one = new_stream(), *two = new_stream();
    void *out = new_event(MODERN), *back = new_event(MODERN);
    assert_ok(blyi_capture_begin(one, NULL, BLYI_CAPTURE_RELAXED, 0));
    assert_ok(blyi_event_record(out, one, 0));
    assert_ok(blyi_event_wait(out, two, 0, 0));
    assert_ok(blyi_callback_host_func(two, count, NULL, 0));
    assert_ok(blyi_event_record(back, two, 0));
    assert_ok(blyi_event_wait(back, one, 0, 0));
    assert_ok(blyi_capture_end(one, &graph));
    return graph;
}

static void wait_for_runs(void *graph)
{
    require(blyi_stream_sync(names.own, 0) == BLY_E_STATE);
    require(blyi_stream_sync(names.other, 0) == BLY_E_STATE);
    require(blyi_event_sync(names.event, 0) == BLY_E_STATE);
    require(blyi_device_sync(0) == BLY_E_STATE);
    require(blyi_graph_execute_now(graph, 0, 0) == BLY_E_STATE);
    require(blyi_stream_sync(names.free, 0) == BLY_OK);
}

/* names.own runs the graph, names.other waits for its turn, names.event for both. */
static void waits_for_runs_that_would_never_end_are_refused(void **state)
{
    (void)state;
    void *a = new_stream(), *graph = counting_graph(), *far = new_stream();
    names.own = new_stream();
    names.other = new_stream();
    names.free = new_stream();
    names.event = new_event(MODERN);
    hold(a, wait_for_runs, graph);
    assert_ok(blyi_graph_execute(graph, names.own, 0));
    until_all_wait();
    assert_ok(blyi_graph_execute(graph, names.other, 0));
    void *between = new_event(MODERN);
    assert_ok(blyi_event_record(between, names.other, 0));
    assert_ok(blyi_event_wait(between, far, 0, 0));
    assert_ok(blyi_event_record(names.event, far, 0));
    release();
    assert_ok(blyi_device_sync(0));
    assert_ok(blyi_graph_destroy(graph)); /* behind the third run, which went on */
    assert_int_equal(n_ran(), 3);
}

static void a_reset_drops_runs_that_wait_for_its_own_thread(void **state)
{
    (void)state;
    void *a = new_stream(), *graph = counting_graph(), *b = new_stream(), *c = new_stream();
    hold(a, reset_card, NULL);
    assert_ok(blyi_graph_execute(graph, b, 0));
    until_all_wait();
    assert_ok(blyi_graph_execute(graph, c, 0));
    release();
    blyi_runtime_finalise();
    assert_int_equal(n_ran(), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void a_run_may_be_aborted_from_its_thread(void **state)
{
    (void)state;
    void *a = new_stream(), *graph = counting_graph(), *b = new_stream(), *c = new_stream();
    hold(a, abort_stream, b);
    assert_ok(blyi_graph_execute(graph, b, 0));
    until_all_wait();
    assert_ok(blyi_graph_execute(graph, c, 0));
    release();
    assert_ok(blyi_stream_sync(b, 0));
    assert_ok(blyi_stream_sync(c, 0));
    assert_int_equal(n_ran(), 1);
    assert_ok(blyi_graph_execute(graph, b, 0));
    assert_ok(blyi_stream_sync(b, 0));
    assert_int_equal(n_ran(), 2);
    assert_ok(blyi_graph_destroy(graph));
}

static void a_stream_with_a_run_ends_later(void **state)
{
    (void)state;
    void *a = new_stream(), *graph = counting_graph(), *b = new_stream();
    hold(a, destroy_stream, b);
    assert_ok(blyi_graph_execute(graph, b, 0));
    release();
    while (n_ran() != 1)
        sched_yield();
    assert_status(blyi_stream_sync(b, 0), BLY_E_HANDLE);
    assert_ok(blyi_graph_destroy(graph));
}

#define limited_test(fn) cmocka_unit_test_setup_teardown(fn, begin_limited, finish)

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        limited_test(a_reset_drops_what_waits_for_its_own_thread),
        limited_test(a_reset_sees_through_waits),
        limited_test(a_context_may_be_destroyed_from_its_thread),
        limited_test(a_stream_that_is_destroyed_from_its_thread_ends_later),
        limited_test(a_stream_may_be_aborted_from_its_thread),
        limited_test(waits_that_would_never_end_are_refused),
        limited_test(a_report_thread_is_not_waited_for_by_itself),
        limited_test(a_reset_inside_two_callbacks_returns),
        limited_test(waits_for_runs_that_would_never_end_are_refused),
        limited_test(a_reset_drops_runs_that_wait_for_its_own_thread),
        limited_test(a_run_may_be_aborted_from_its_thread),
        limited_test(a_stream_with_a_run_ends_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
