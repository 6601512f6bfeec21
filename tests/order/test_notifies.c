/* SPDX-License-Identifier: Apache-2.0 */
/* Interleavings of notifies, words, kernels and aborts on paused streams. */
#include <belay/kernel.h>
#include <sched.h>

#include "../unit/npu/order_test.h"
#include "npu/abort.h"
#include "npu/notify.h"
#include "npu/value.h"

enum { MOST = 64 };

static char marks[MOST + 1];
static uint32_t n_marks;

/* A kernel may do this: marks are plain memory of the process. */
static void mark(const void *args, uint32_t block, uint32_t n_blocks)
{
    uint32_t i = __atomic_fetch_add(&n_marks, 1, __ATOMIC_ACQ_REL);
    (void)block, (void)n_blocks;
    if (i < MOST)
        marks[i] = *(const char *)args;
}

static void put(void *stream, char what, bly_engine engine)
{
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.engine = engine;
    assert_ok(bly_kernel_launch(mark, &what, 1, &opts, stream));
}

static int begin_marks(void **state)
{
    memset(marks, 0, sizeof(marks));
    n_marks = 0;
    return begin(state);
}

static void *new_notify(void)
{
    void *notify;
    assert_ok(blyi_notify_create(false, 0, &notify));
    return notify;
}

static void record(void *notify, void *stream)
{
    assert_ok(blyi_notify_record(notify, false, BLYI_NOTIFY_SET, 1, stream, 0));
}

static void wait_for(void *notify, void *stream)
{
    assert_ok(blyi_notify_wait(notify, false, BLYI_NOTIFY_EQUAL, 1, true, 0, stream, 0));
}

static void settle(void *stream)
{
    assert_ok(blyi_stream_sync(stream, 0));
}

/* Kernels on different engines, one after the other by notifies. */
static void a_ring_of_engines(void **state)
{
    (void)state;
    void *streams[4], *notifies[4];
    for (int i = 0; i < 4; i++) {
        streams[i] = new_stream();
        notifies[i] = new_notify();
        assert_ok(blyi_stream_pause(streams[i]));
    }
    for (int round = 0; round < 2; round++)
        for (int i = 3; i >= 0; i--) {
            if (round > 0 || i > 0)
                wait_for(notifies[(i + 3) % 4], streams[i]);
            put(streams[i], (char)('a' + 4 * round + i), (bly_engine)(1 + i));
            record(notifies[i], streams[i]);
        }
    /* Let go in the wrong order. */
    for (int i = 3; i >= 0; i--)
        assert_ok(blyi_stream_resume(streams[i]));
    for (int i = 0; i < 4; i++)
        settle(streams[i]);
    assert_string_equal(marks, "abcdefgh");
}

static void one_record_lets_one_waiter_pass(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *c = new_stream(), *notify = new_notify();
    wait_for(notify, a);
    wait_for(notify, b);
    record(notify, c);
    settle(c);
    while (pending(a) + pending(b) > 1)
        sched_yield();
    assert_int_equal(pending(a) + pending(b), 1);
    record(notify, c);
    settle(a);
    settle(b);
    assert_ok(blyi_notify_destroy(notify, false));
}

static void a_wait_ends_in_time(void **state)
{
    (void)state;
    void *stream = new_stream(), *notify = new_notify();
    blyi_clock_set_virtual(true);
    assert_ok(blyi_notify_wait(notify, false, BLYI_NOTIFY_EQUAL, 1, true, 5, stream, 0));
    put(stream, 'x', BLY_ENGINE_AICPU);
    blyi_clock_advance(4999999999u);
    assert_false(is_idle(stream));
    while (!is_idle(stream)) /* its time runs from when the engine comes to it */
        blyi_clock_advance(1000000000u);
    assert_status(blyi_stream_sync(stream, 0), BLY_E_ABORTED);
    assert_string_equal(marks, "x");
}

static void an_abort_frees_waiters_of_everything(void **state)
{
    (void)state;
    void *on_notify = new_stream(), *on_word = new_stream(), *on_event = new_stream();
    void *paused = new_stream(), *notify = new_notify(), *event = new_event(LEGACY);
    uint64_t *word = card_alloc(4096);
    void *all[] = {on_notify, on_word, on_event, paused};
    assert_ok(blyi_set_now(word, 0, 4096));
    wait_for(notify, on_notify);
    assert_ok(blyi_value_wait(word, 1, BLYI_VALUE_EQUAL, on_word, 0));
    assert_ok(blyi_event_wait(event, on_event, 0, 0));
    assert_ok(blyi_stream_pause(paused));
    for (int i = 0; i < 4; i++) {
        put(all[i], 'x', BLY_ENGINE_VECTOR);
        assert_ok(blyi_stream_abort(all[i]));
        settle(all[i]);
    }
    assert_string_equal(marks, "");
    assert_ok(blyi_stream_resume(paused));
    for (int i = 0; i < 4; i++) {
        put(all[i], 'y', BLY_ENGINE_VECTOR);
        settle(all[i]);
    }
    assert_string_equal(marks, "yyyy");
}

static void trap(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
    __builtin_trap();
}

/* The context stops; a stream that waits for another context's record ends its queue as well. */
static void a_stop_reaches_blocked_streams(void **state)
{
    (void)state;
    keep_fault_handler();
    void *bad = new_stream(), *blocked = new_stream(), *event = new_event(LEGACY);
    assert_ok(blyi_stream_set_failure_mode(bad, 1));
    assert_ok(blyi_event_wait(event, blocked, 0, 0));
    put(blocked, 'x', BLY_ENGINE_VECTOR);
    assert_ok(blyi_stream_pause(bad)); /* once stopped it takes no work any more */
    assert_ok(bly_kernel_launch(trap, NULL, 0, NULL, bad));
    put(bad, 'x', BLY_ENGINE_VECTOR);
    assert_ok(blyi_stream_resume(bad));
    assert_status(blyi_stream_sync(blocked, 0), BLY_E_KERNEL_VECTOR);
    assert_status(blyi_stream_sync(bad, 0), BLY_E_KERNEL_VECTOR);
    assert_status(blyi_stream_nop(blocked), BLY_E_KERNEL_VECTOR);
    assert_string_equal(marks, "");
    assert_ok(blyi_card_abort(0, 0));
    put(blocked, 'y', BLY_ENGINE_VECTOR);
    settle(blocked);
    assert_string_equal(marks, "y");
}

#define notify_test(fn) cmocka_unit_test_setup_teardown(fn, begin_marks, finish)

int main(void)
{
    keep_fault_handler();
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        notify_test(a_ring_of_engines),
        notify_test(one_record_lets_one_waiter_pass),
        notify_test(a_wait_ends_in_time),
        notify_test(an_abort_frees_waiters_of_everything),
        notify_test(a_stop_reaches_blocked_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
