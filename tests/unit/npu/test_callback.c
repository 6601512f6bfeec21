/* SPDX-License-Identifier: Apache-2.0 */
/* User code in stream order, on the context's thread or on a report thread. */
#include "order_test.h"

#include <errno.h>
#include <sys/syscall.h>

struct trace {
    uint32_t n; /* how many have run; futex word */
    long tids[64];
    int order[64];
};

static struct trace trace;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void note(void *arg)
{
    uint32_t n = __atomic_load_n(&trace.n, __ATOMIC_RELAXED);
    trace.tids[n] = syscall(SYS_gettid);
    trace.order[n] = (int)(intptr_t)arg;
    __atomic_store_n(&trace.n, n + 1, __ATOMIC_RELEASE);
}

static void pass_gate(void *arg)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    note(arg);
}

static uint32_t seen(void)
{
    return __atomic_load_n(&trace.n, __ATOMIC_ACQUIRE);
}

static int begin_trace(void **state)
{
    memset(&trace, 0, sizeof(trace));
    return begin(state);
}

static void host_functions_run_in_order_on_one_other_thread(void **state)
{
    (void)state;
    void *stream = new_stream();
    for (intptr_t i = 0; i < 20; i++)
        assert_ok(blyi_callback_host_func(stream, note, (void *)i, 0));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(seen(), 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(trace.order[i], i);
        assert_int_equal(trace.tids[i], trace.tids[0]);
    }
    assert_int_not_equal(trace.tids[0], syscall(SYS_gettid));
}

static void the_stream_waits_for_a_host_function(void **state)
{
    (void)state;
    void *stream = new_stream(), *event = new_event(MODERN);
    pthread_mutex_lock(&gate);
    assert_ok(blyi_callback_host_func(stream, pass_gate, NULL, 0));
    assert_ok(blyi_event_record(event, stream, 0));
    assert_status(blyi_event_sync(event, 1000000), BLY_E_TIMEOUT);
    pthread_mutex_unlock(&gate);
    assert_ok(blyi_event_sync(event, 0));
    assert_int_equal(seen(), 1);
}

static void *inner_stream;

static void use_everything(void *arg)
{
    struct blyi_card *card;
    struct blyi_mem_request request = {.asked = MiB, .rounded = MiB, .module = 33};
    void *memory, *pinned, *event, *stream;
    (void)arg;
    require(blyi_context_here_card(&card) == BLY_OK);
    require(blyi_mem_alloc(card, &request, &memory) == BLY_OK);
    require(blyi_pinned_alloc(4096, 4096, 0, 33, &pinned) == BLY_OK);
    require(blyi_stream_create(0, 0, 0, &stream) == BLY_OK);
    require(blyi_event_create(PLAIN, MODERN, 0, &event) == BLY_OK);
    require(blyi_set_async(memory, 7, MiB, stream, 0) == BLY_OK);
    require(blyi_copy_async(pinned, memory, 4096, stream, 0) == BLY_OK);
    require(blyi_event_record(event, stream, 0) == BLY_OK);
    require(blyi_stream_nop(inner_stream) == BLY_OK);
    require(blyi_stream_sync(stream, 0) == BLY_OK);
    require(((char *)pinned)[4095] == 7);
    require(blyi_event_destroy(event) == BLY_OK);
    require(blyi_stream_destroy(stream, false) == BLY_OK);
    require(blyi_mem_free(memory, 0) == BLY_OK);
    require(blyi_pinned_free(pinned, 0) == BLY_OK);
    note(NULL);
}

static void user_code_may_call_back(void **state)
{
    (void)state;
    inner_stream = new_stream();
    assert_ok(blyi_callback_host_func(inner_stream, use_everything, NULL, 0));
    assert_ok(blyi_stream_sync(inner_stream, 0));
    assert_int_equal(seen(), 1);
}

static void destroy_own(void *stream)
{
    require(blyi_stream_destroy(stream, true) == BLY_OK);
    note(NULL);
}

static void user_code_may_destroy_its_stream(void **state)
{
    (void)state;
    void *stream = new_stream();
    assert_ok(blyi_callback_host_func(stream, destroy_own, stream, 0));
    while (seen() == 0)
        sched_yield();
    assert_status(blyi_stream_sync(stream, 0), BLY_E_HANDLE);
}

static void reset_all(void *arg)
{
    require(blyi_device_reset(0, true) == BLY_OK);
    if (arg != NULL)
        blyi_runtime_finalise();
    note(NULL);
}

static void user_code_may_end_everything(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        void *stream = new_stream();
        assert_ok(blyi_callback_host_func(stream, reset_all, i % 2 ? stream : NULL, 0));
        while (seen() != (uint32_t)i + 1)
            sched_yield();
        blyi_runtime_finalise();
        assert_ok(blyi_device_set(0, 0));
        assert_ok(blyi_stream_nop(NULL));
        assert_ok(blyi_stream_sync(NULL, 0));
    }
}

static void streams_of_a_context_share_the_thread(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    assert_ok(blyi_callback_host_func(a, note, NULL, 0));
    assert_ok(blyi_stream_sync(a, 0));
    assert_ok(blyi_callback_host_func(b, note, NULL, 0));
    assert_ok(blyi_stream_sync(b, 0));
    assert_int_equal(trace.tids[0], trace.tids[1]);
}

static void a_stream_uses_one_mechanism_for_ever(void **state)
{
    (void)state;
    void *host = new_stream(), *report = new_stream();
    uint64_t self = (uint64_t)pthread_self();
    assert_ok(blyi_callback_host_func(host, note, NULL, 0));
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, host), BLY_E_SUBSCRIBED);
    assert_status(blyi_callback_launch(note, NULL, true, host, 0), BLY_E_SUBSCRIBED);
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, report));
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, report), BLY_E_SUBSCRIBED);
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self + 1, report),
                  BLY_E_SUBSCRIBED);
    assert_status(blyi_callback_host_func(report, note, NULL, 0), BLY_E_SUBSCRIBED);
    assert_ok(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, report));
    assert_status(blyi_callback_host_func(report, note, NULL, 0), BLY_E_SUBSCRIBED);
    assert_status(blyi_callback_launch(note, NULL, true, report, 0), BLY_E_NOT_SUBSCRIBED);
}

static void callbacks_run_where_they_are_processed(void **state)
{
    (void)state;
    void *stream = new_stream(), *event = new_event(MODERN);
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, (uint64_t)pthread_self(), stream));
    assert_status(blyi_callback_process(BLYI_SERVES_CALLBACKS, 1000000), BLY_E_TIMEOUT);
    assert_ok(blyi_callback_launch(note, (void *)1, true, stream, 0));
    assert_ok(blyi_event_record(event, stream, 0));
    assert_status(blyi_event_sync(event, 1000000), BLY_E_TIMEOUT); /* blocks its stream */
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_int_equal(trace.tids[0], syscall(SYS_gettid));
    assert_ok(blyi_event_sync(event, 0));
    assert_ok(blyi_callback_launch(note, (void *)2, false, stream, 0));
    assert_ok(blyi_callback_launch(note, (void *)3, false, stream, 0));
    assert_ok(blyi_stream_sync(stream, 0)); /* does not block */
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_int_equal(trace.order[1], 2);
    assert_int_equal(trace.order[2], 3);
}

static void one_thread_serves_many_streams(void **state)
{
    (void)state;
    void *streams[4];
    uint64_t self = (uint64_t)pthread_self();
    for (int i = 0; i < 4; i++) {
        streams[i] = new_stream();
        assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, streams[i]));
    }
    for (intptr_t i = 0; i < 40; i++)
        assert_ok(blyi_callback_launch(note, (void *)i, i % 3 == 0, streams[i % 4], 0));
    for (int i = 0; i < 40; i++)
        assert_ok(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0));
    assert_ok(blyi_device_sync(0));
    assert_int_equal(seen(), 40);
}

static void a_report_thread_serves_one_card(void **state)
{
    (void)state;
    void *here = new_stream(), *context, *there;
    assert_ok(blyi_context_create(1, 0, &context));
    there = new_stream();
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, (uint64_t)pthread_self(), here));
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, (uint64_t)pthread_self(), there),
                  BLY_E_SUBSCRIBED);
    assert_ok(blyi_context_destroy(context));
}

static void unprocessed_callbacks_end_with_their_subscription(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *c = new_stream();
    uint64_t self = (uint64_t)pthread_self();
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, a));
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, b));
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, c));
    assert_ok(blyi_callback_launch(note, NULL, true, a, 0));
    assert_ok(blyi_callback_launch(note, NULL, true, b, 0));
    assert_ok(blyi_callback_launch(note, NULL, false, c, 0));
    assert_ok(blyi_stream_sync(c, 0));
    assert_ok(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, a));
    assert_ok(blyi_stream_sync(a, 0));
    assert_ok(blyi_stream_destroy(b, true));
    assert_ok(blyi_stream_destroy(c, false));
    assert_status(blyi_callback_process(BLYI_SERVES_CALLBACKS, 0), BLY_E_NOT_SUBSCRIBED);
    assert_int_equal(seen(), 0);
}

static void wrong_arguments_are_told(void **state)
{
    (void)state;
    void *stale = new_stream(), *stream = new_stream();
    uint64_t self = (uint64_t)pthread_self();
    assert_ok(blyi_stream_destroy(stale, false));
    assert_status(blyi_callback_host_func(stale, note, NULL, 0), BLY_E_HANDLE);
    assert_status(blyi_callback_host_func(stream, NULL, NULL, 0), BLY_E_INVALID);
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, NULL), BLY_E_HANDLE);
    assert_status(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, stale), BLY_E_HANDLE);
    assert_status(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, NULL), BLY_E_HANDLE);
    assert_status(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self, stream),
                  BLY_E_NOT_SUBSCRIBED);
    assert_status(blyi_callback_launch(note, NULL, true, stale, 0), BLY_E_HANDLE);
    assert_status(blyi_callback_launch(note, NULL, true, stream, 0), BLY_E_NOT_SUBSCRIBED);
    assert_status(blyi_callback_process(BLYI_SERVES_CALLBACKS, 1000), BLY_E_NOT_SUBSCRIBED);
    assert_ok(blyi_callback_subscribe(BLYI_SERVES_CALLBACKS, self, stream));
    assert_status(blyi_callback_launch(NULL, NULL, true, stream, 0), BLY_E_INVALID);
    assert_status(blyi_callback_unsubscribe(BLYI_SERVES_CALLBACKS, self + 8, stream),
                  BLY_E_NOT_SUBSCRIBED);
}

static void each_failure_leaves_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t n = 1;; n++) {
            void *own, *stream = new_stream();
            assert_ok(blyi_context_create(0, 0, &own));
            if (kind == 0)
                blyi_host_fail_nth(n);
            else
                blyi_sys_fail_nth(n, EAGAIN);
            uint32_t before = seen();
            bly_status status = blyi_callback_host_func(NULL, note, NULL, 0);
            bool failed = kind == 0 ? blyi_host_failed() : blyi_sys_failed();
            blyi_host_fail_nth(0);
            blyi_sys_fail_nth(0, 0);
            assert_ok(blyi_stream_sync(NULL, 0));
            assert_int_equal(seen() - before, status == BLY_OK);
            assert_ok(blyi_context_destroy(own));
            assert_ok(blyi_stream_destroy(stream, false));
            if (!failed) {
                assert_int_equal(status, BLY_OK);
                break;
            }
            assert_true(n < 50);
        }
}

#define traced_test(fn) cmocka_unit_test_setup_teardown(fn, begin_trace, finish)

int main(void)
{
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        traced_test(each_failure_leaves_nothing),
        traced_test(host_functions_run_in_order_on_one_other_thread),
        traced_test(the_stream_waits_for_a_host_function),
        traced_test(user_code_may_call_back),
        traced_test(user_code_may_destroy_its_stream),
        traced_test(user_code_may_end_everything),
        traced_test(streams_of_a_context_share_the_thread),
        traced_test(a_stream_uses_one_mechanism_for_ever),
        traced_test(callbacks_run_where_they_are_processed),
        traced_test(one_thread_serves_many_streams),
        traced_test(a_report_thread_serves_one_card),
        traced_test(unprocessed_callbacks_end_with_their_subscription),
        traced_test(wrong_arguments_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
