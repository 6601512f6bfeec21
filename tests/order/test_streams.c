/* SPDX-License-Identifier: Apache-2.0 */
/* Interleavings of streams and events, forced by pausing streams. Each task leaves its mark in a
 * log on the card's side (host functions), so that the test sees the order in which it ran. */
#include "../unit/npu/order_test.h"

enum { MOST = 64 };

static char marks[MOST + 1];
static uint32_t n_marks;

static void mark(void *arg)
{
    uint32_t i = __atomic_fetch_add(&n_marks, 1, __ATOMIC_ACQ_REL);
    if (i < MOST)
        marks[i] = (char)(intptr_t)arg;
}

static void put(void *stream, char what)
{
    assert_ok(blyi_callback_host_func(stream, mark, (void *)(intptr_t)what, 0));
}

static int begin_marks(void **state)
{
    memset(marks, 0, sizeof(marks));
    n_marks = 0;
    return begin(state);
}

/* Runs whatever can run. */
static void settle(void *stream)
{
    assert_ok(blyi_stream_sync(stream, 0));
}

static void a_chain_over_three_streams(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *c = new_stream();
    void *first = new_event(MODERN), *second = new_event(LEGACY);
    assert_ok(blyi_stream_pause(a));
    assert_ok(blyi_event_wait(second, c, 0, 0));
    put(c, 'c');
    put(a, 'a');
    assert_ok(blyi_event_record(first, a, 0));
    put(a, 'A');
    assert_ok(blyi_event_wait(first, b, 0, 0));
    put(b, 'b');
    assert_ok(blyi_event_record(second, b, 0));
    assert_string_equal(marks, "");
    assert_ok(blyi_stream_resume(a));
    settle(c);
    settle(a);
    const char *order = marks;
    assert_true(strchr(order, 'a') < strchr(order, 'b'));
    assert_true(strchr(order, 'b') < strchr(order, 'c'));
    assert_true(strchr(order, 'a') < strchr(order, 'A'));
}

static void two_waiters_of_one_record(void **state)
{
    (void)state;
    void *a = new_stream(), *b[8], *event = new_event(MODERN);
    assert_ok(blyi_stream_pause(a));
    put(a, 'a');
    assert_ok(blyi_event_record(event, a, 0));
    for (int i = 0; i < 8; i++) {
        b[i] = new_stream();
        assert_ok(blyi_event_wait(event, b[i], 0, 0));
        put(b[i], 'b');
    }
    assert_ok(blyi_stream_resume(a));
    assert_ok(blyi_device_sync(0));
    assert_string_equal(marks, "abbbbbbbb");
}

/* Waits for different positions of one stream: each passes with its own. */
static void waiters_of_several_positions(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *c = new_stream();
    void *early = new_event(MODERN), *late = new_event(MODERN), *gate = new_event(LEGACY);
    assert_ok(blyi_stream_pause(a));
    assert_ok(blyi_event_record(early, a, 0));
    assert_ok(blyi_event_wait(gate, a, 0, 0));
    assert_ok(blyi_event_record(late, a, 0));
    assert_ok(blyi_event_wait(late, c, 0, 0));
    put(c, 'c');
    assert_ok(blyi_event_wait(early, b, 0, 0));
    put(b, 'b');
    assert_ok(blyi_stream_resume(a));
    settle(b);
    assert_string_equal(marks, "b");
    assert_int_equal(pending(c), 2);
    assert_ok(blyi_event_record(gate, b, 0));
    settle(c);
    assert_string_equal(marks, "bc");
}

static void streams_that_wait_for_each_other_in_turn(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    void *to_b = new_event(MODERN), *to_a = new_event(MODERN);
    assert_ok(blyi_stream_pause(a));
    for (int i = 0; i < 16; i++) {
        put(a, 'a');
        assert_ok(blyi_event_record(to_b, a, 0));
        assert_ok(blyi_event_wait(to_b, b, 0, 0));
        put(b, 'b');
        assert_ok(blyi_event_record(to_a, b, 0));
        assert_ok(blyi_event_wait(to_a, a, 0, 0));
    }
    assert_ok(blyi_stream_resume(a));
    settle(a);
    assert_string_equal(marks, "abababababababababababababababab");
}

static void a_record_on_the_own_stream_never_blocks_it(void **state)
{
    (void)state;
    void *a = new_stream(), *modern = new_event(MODERN), *legacy = new_event(LEGACY);
    assert_ok(blyi_event_record(modern, a, 0));
    assert_ok(blyi_event_wait(modern, a, 0, 0));
    assert_ok(blyi_event_record(legacy, a, 0));
    assert_ok(blyi_event_wait(legacy, a, 0, 0));
    settle(a);
}

static void a_forced_end_frees_those_who_wait(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *event = new_event(MODERN);
    assert_ok(blyi_stream_pause(a));
    put(a, 'a');
    assert_ok(blyi_event_record(event, a, 0));
    assert_ok(blyi_event_wait(event, b, 0, 0));
    put(b, 'b');
    assert_ok(blyi_stream_destroy(a, true));
    settle(b);
    assert_string_equal(marks, "b");
}

static void a_blocked_stream_can_be_ended_by_force(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *c = new_stream();
    void *modern = new_event(MODERN), *legacy = new_event(LEGACY);
    assert_ok(blyi_stream_pause(a));
    assert_ok(blyi_event_record(modern, a, 0));
    assert_ok(blyi_event_wait(modern, b, 0, 0));
    put(b, 'b');
    assert_ok(blyi_event_wait(legacy, c, 0, 0));
    put(c, 'c');
    assert_ok(blyi_stream_destroy(b, true));
    assert_ok(blyi_stream_destroy(c, true));
    assert_ok(blyi_stream_resume(a));
    settle(a);
    assert_ok(blyi_event_record(legacy, a, 0));
    settle(a);
    assert_string_equal(marks, "");
}

static void pause_and_resume_at_every_step(void **state)
{
    (void)state;
    void *a = new_stream();
    for (int i = 0; i < 16; i++) {
        assert_ok(blyi_stream_pause(a));
        put(a, (char)('a' + i));
        assert_int_equal(n_marks, i);
        assert_ok(blyi_stream_resume(a));
        settle(a);
        assert_int_equal(n_marks, i + 1);
    }
    assert_string_equal(marks, "abcdefghijklmnop");
}

static void a_pageable_copy_waits_for_what_is_before_it(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *event = new_event(MODERN);
    char *card = card_alloc(MiB), host[64] = {0};
    assert_ok(blyi_set_now(card, 1, MiB));
    assert_ok(blyi_event_record(event, b, 0));
    assert_ok(blyi_event_wait(event, a, 0, 0));
    assert_ok(blyi_set_async(card, 2, MiB, a, 0));
    assert_ok(blyi_copy_async(host, card, sizeof(host), a, 0));
    assert_int_equal(host[63], 2);
}

static void *sync_in_thread(void *stream)
{
    require(blyi_stream_sync(stream, 0) == BLY_OK);
    return NULL;
}

static void many_threads_wait_for_one_stream(void **state)
{
    (void)state;
    void *a = new_stream();
    pthread_t threads[6];
    assert_ok(blyi_stream_pause(a));
    for (int i = 0; i < 6; i++) {
        assert_ok(blyi_stream_nop(a));
        pthread_create(&threads[i], NULL, sync_in_thread, a);
    }
    assert_ok(blyi_stream_resume(a));
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(pending(a), 0);
}

static void every_task_is_held_back_once(void **state)
{
    (void)state;
    /* The same small program, paused before each of its tasks in turn, ends the same way. */
    for (int held = 0; held < 6; held++) {
        void *a = new_stream(), *b = new_stream(), *event = new_event(held % 2 == 0);
        unsigned char *card = card_alloc(8192), back[2];
        for (int step = 0; step < 6; step++) {
            if (step == held)
                assert_ok(blyi_stream_pause(step % 2 ? b : a));
            switch (step) {
            case 0:
                assert_ok(blyi_set_async(card, 1, 4096, a, 0));
                break;
            case 1:
                assert_ok(blyi_set_async(card + 4096, 9, 4096, b, 0));
                break;
            case 2:
                assert_ok(blyi_event_record(event, a, 0));
                break;
            case 3:
                assert_ok(blyi_event_wait(event, b, 0, 0));
                break;
            case 4:
                assert_ok(blyi_stream_nop(a));
                break;
            case 5:
                assert_ok(blyi_copy_async(card + 4096, card, 1, b, 0));
                break;
            }
        }
        assert_ok(blyi_stream_resume(a));
        assert_ok(blyi_stream_resume(b));
        settle(b);
        settle(a);
        assert_ok(blyi_copy_now(back, card + 4096, 2));
        assert_int_equal(back[0], 1);
        assert_int_equal(back[1], 9);
    }
}

#define marked_test(fn) cmocka_unit_test_setup_teardown(fn, begin_marks, finish)

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        marked_test(a_chain_over_three_streams),
        marked_test(two_waiters_of_one_record),
        marked_test(waiters_of_several_positions),
        marked_test(streams_that_wait_for_each_other_in_turn),
        marked_test(a_record_on_the_own_stream_never_blocks_it),
        marked_test(a_forced_end_frees_those_who_wait),
        marked_test(a_blocked_stream_can_be_ended_by_force),
        marked_test(pause_and_resume_at_every_step),
        marked_test(a_pageable_copy_waits_for_what_is_before_it),
        marked_test(many_threads_wait_for_one_stream),
        marked_test(every_task_is_held_back_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
