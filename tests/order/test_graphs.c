/* SPDX-License-Identifier: Apache-2.0 */
/* Interleavings of graphs on paused streams: whose turn it is, what a drop ends, what is stuck. */
#include <inttypes.h>
#include <sched.h>
#include "../unit/npu/order_test.h"
#include "base/handle.h"
#include "npu/abort.h"
#include "npu/graph.h"
#include "npu/notify.h"

static uint64_t *words;

static int open_words(void **state)
{
    if (begin(state) != 0)
        return -1;
    words = card_alloc(4096);
    return blyi_set_now(words, 0, 4096) == BLY_OK ? 0 : -1;
}

static uint64_t get(int i)
{
    uint64_t got;
    assert_ok(blyi_copy_now(&got, words + i, sizeof(got)));
    return got;
}

static void set(void *stream, int i, uint8_t value)
{
    assert_ok(blyi_set_async(words + i, value, 1, stream, 0));
}

static void *begin_capture(void *stream)
{
    assert_ok(blyi_capture_begin(stream, NULL, BLYI_CAPTURE_RELAXED, 0));
    return stream;
}

static void *end_capture(void *stream)
{
    void *graph;
    assert_ok(blyi_capture_end(stream, &graph));
    return graph;
}

static void *own_stream(void *graph, uint32_t i)
{
    void *streams[4];
    uint32_t n = 4;
    assert_ok(blyi_graph_streams(graph, streams, &n));
    assert_true(i < n);
    return streams[i];
}

static uint32_t reached;

static void reach(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&reached, 1, __ATOMIC_RELEASE);
}

/* Word 0 := 1 on one line; 1 := word 0 on the other, joined; 2 := word 1. */
static void *capture_two(void *first, void *second)
{
    void *out = new_event(MODERN), *back = new_event(MODERN);
    begin_capture(first);
    set(first, 0, 1);
    assert_ok(blyi_callback_host_func(first, reach, NULL, 0));
    assert_ok(blyi_event_record(out, first, 0));
    assert_ok(blyi_event_wait(out, second, 0, 0));
    assert_ok(blyi_copy_async(words + 1, words, 8, second, 0));
    assert_ok(blyi_event_record(back, second, 0));
    assert_ok(blyi_event_wait(back, first, 0, 0));
    assert_ok(blyi_copy_async(words + 2, words + 1, 8, first, 0));
    assert_ok(blyi_event_destroy(out));
    assert_ok(blyi_event_destroy(back));
    return end_capture(first);
}

/* The run has come to the mark behind the first task. */
static void until_reached(uint32_t before)
{
    while (__atomic_load_n(&reached, __ATOMIC_ACQUIRE) == before)
        sched_yield();
}

static void lines_wait_for_one_another(void **state)
{
    (void)state;
    void *first = new_stream(), *second = new_stream(), *graph = capture_two(first, second);
    for (uint32_t held = 0; held < 2; held++) {
        assert_ok(blyi_set_now(words, 0, 24));
        uint32_t before = __atomic_load_n(&reached, __ATOMIC_RELAXED);
        assert_ok(blyi_stream_pause(own_stream(graph, held)));
        assert_ok(blyi_graph_execute(graph, second, 0));
        set(second, 3, 7);
        if (held == 1)
            until_reached(before);
        assert_int_equal(get(0), held);
        assert_int_equal(get(1), 0);
        assert_int_equal(get(2), 0);
        assert_false(is_idle(second));
        assert_int_equal(pending(second), 2);
        assert_ok(blyi_stream_resume(own_stream(graph, held)));
        assert_ok(blyi_stream_sync(second, 0));
        assert_int_equal(get(2), 1);
        assert_int_equal(get(3), 7);
        assert_ok(blyi_set_now(words + 3, 0, 8));
    }
    assert_ok(blyi_graph_destroy(graph));
}

static void runs_take_turns_and_leave_the_line(void **state)
{
    (void)state;
    void *streams[4], *first = new_stream();
    begin_capture(first);
    set(first, 0, 1);
    void *graph = end_capture(first), *own = own_stream(graph, 0);
    assert_ok(blyi_stream_pause(own));
    for (int i = 0; i < 4; i++) {
        streams[i] = new_stream();
        assert_ok(blyi_graph_execute(graph, streams[i], 0));
        set(streams[i], 1 + i, 1);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pending(streams[i]), 2);
    /* One in the middle and the last leave; aborting waits for nobody's run but its own. */
    assert_ok(blyi_stream_abort(streams[1]));
    assert_ok(blyi_stream_abort(streams[3]));
    assert_true(is_idle(streams[1]));
    assert_ok(blyi_stream_resume(own));
    for (int i = 0; i < 4; i++) {
        assert_ok(blyi_stream_sync(streams[i], 0));
        assert_int_equal(get(1 + i), i % 2 == 0);
    }
    assert_ok(blyi_graph_destroy(graph));
}

static void an_abort_ends_a_run_whose_line_is_paused(void **state)
{
    (void)state;
    void *first = new_stream(), *second = new_stream(), *graph = capture_two(first, second);
    uint32_t before = __atomic_load_n(&reached, __ATOMIC_RELAXED);
    assert_ok(blyi_stream_pause(own_stream(graph, 1)));
    assert_ok(blyi_graph_execute(graph, first, 0));
    until_reached(before);
    assert_int_equal(get(0), 1);
    assert_ok(blyi_stream_abort(first));
    assert_true(is_idle(first));
    assert_int_equal(get(2), 0);
    assert_ok(blyi_stream_resume(own_stream(graph, 1)));
    assert_ok(blyi_graph_execute(graph, first, 0));
    assert_ok(blyi_stream_sync(first, 0));
    assert_int_equal(get(2), 1);
    assert_ok(blyi_graph_destroy(graph));
}

static void teardown_passes_by_runs_that_nothing_ends(void **state)
{
    (void)state;
    void *first = new_stream(), *second = new_stream(), *notify, *event;
    assert_ok(blyi_notify_create(false, 0, &notify));
    assert_ok(blyi_event_create(BLYI_EVENT_EXTERNAL, LEGACY, 0, &event));
    begin_capture(first);
    assert_ok(blyi_event_wait(event, first, 0, 0)); /* which nobody records */
    set(first, 0, 1);
    void *graph = end_capture(first);
    assert_ok(blyi_graph_execute(graph, first, 0));
    assert_ok(blyi_graph_execute(graph, second, 0)); /* waits for its turn */
    begin_capture(new_stream());
    assert_ok(blyi_device_reset(0, true));
    assert_ok(blyi_device_set(0, 0));
    assert_status(blyi_graph_destroy(graph), BLY_E_HANDLE);
}

struct inner {
    void *stream, *graph;
    bly_status destroy, sync;
};

static void end_from_inside(void *arg)
{
    struct inner *inner = arg;
    inner->destroy = blyi_graph_destroy(inner->graph);
    inner->sync = blyi_stream_destroy(inner->stream, false);
}

static void a_host_function_of_a_graph_may_end_its_stream(void **state)
{
    (void)state;
    void *first = new_stream(), *second = new_stream();
    struct inner inner = {.stream = second};
    begin_capture(first);
    assert_ok(blyi_callback_host_func(first, end_from_inside, &inner, 0));
    inner.graph = end_capture(first);
    assert_ok(blyi_graph_execute(inner.graph, second, 0));
    while (blyi_graph_destroy(inner.graph) != BLY_OK)
        usleep(1000);
    assert_int_equal(inner.destroy, BLY_E_GRAPH_RUNNING);
    assert_int_equal(inner.sync, BLY_OK);
}

/* Everything of a graph, up to the first refusal; then all is let go. */
static void use_once(void *first, void *second)
{
    void *event = NULL, *graph = NULL, *group = NULL, *condition, *body;
    struct blyi_context *context;
    if (blyi_context_here(&context) != BLY_OK ||
        blyi_capture_begin(first, NULL, BLYI_CAPTURE_RELAXED, 0) != BLY_OK)
        return;
    if (blyi_event_create(BLYI_EVENT_SYNC, MODERN, 0, &event) == BLY_OK) {
        (void)blyi_set_async(words, 1, 8, first, 0);
        if (blyi_event_record(event, first, 0) == BLY_OK &&
            blyi_event_wait(event, second, 0, 0) == BLY_OK) {
            (void)blyi_set_async(words + 1, 1, 8, second, 0);
            if (blyi_event_record(event, second, 0) == BLY_OK)
                (void)blyi_event_wait(event, first, 0, 0);
        }
        assert_ok(blyi_event_destroy(event));
    }
    if (blyi_group_begin(first) == BLY_OK)
        (void)blyi_group_end(first, &group);
    if (blyi_capture_info(first, NULL, &graph) == BLY_OK &&
        blyi_condition_create(graph, 1, true, 0, &condition) == BLY_OK &&
        blyi_condition_add(condition, BLYI_CONDITION_IF, 1, &body, first, 0) == BLY_OK &&
        blyi_capture_begin(second, body, BLYI_CAPTURE_RELAXED, 0) == BLY_OK) {
        (void)blyi_set_async(words + 2, 1, 8, second, 0);
        (void)blyi_capture_end(second, NULL);
    }
    if (blyi_capture_end(first, &graph) == BLY_OK) {
        if (blyi_graph_execute(graph, first, 0) == BLY_OK)
            (void)blyi_stream_sync(first, 0);
        assert_ok(blyi_graph_destroy(graph));
    }
}

static void each_host_allocation_may_fail(void **state)
{
    (void)state;
    void *first = new_stream(), *second = new_stream();
    use_once(first, second);
    size_t streams = blyi_handle_live(BLYI_HANDLE_STREAM);
    for (uint64_t nth = 1;; nth++) {
        blyi_host_fail_nth(nth);
        use_once(first, second);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        /* Nothing is left of it, and all works again. */
        enum blyi_capture_status status;
        assert_ok(blyi_capture_info(second, &status, NULL));
        assert_int_equal(status, BLYI_CAPTURE_NONE);
        assert_ok(blyi_stream_sync(first, 0));
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_GRAPH), 0);
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_CONDITION), 0);
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_STREAM), streams);
        if (!failed)
            break;
    }
}

#define graph_test(test) cmocka_unit_test_setup_teardown(test, open_words, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        graph_test(lines_wait_for_one_another),
        graph_test(runs_take_turns_and_leave_the_line),
        graph_test(an_abort_ends_a_run_whose_line_is_paused),
        graph_test(teardown_passes_by_runs_that_nothing_ends),
        graph_test(a_host_function_of_a_graph_may_end_its_stream),
        graph_test(each_host_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
