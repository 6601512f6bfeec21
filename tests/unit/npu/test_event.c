/* SPDX-License-Identifier: Apache-2.0 */
/* Both families of events, one thread of control: streams are paused where order matters. */
#include "order_test.h"

#define SECOND 1000000000ull

static void flags_follow_the_rules(void **state)
{
    (void)state;
    const struct {
        uint32_t flags;
        bool modern;
        bly_status status;
    } rows[] = {
        {0, LEGACY, BLY_E_INVALID},    {0, MODERN, BLY_E_INVALID},
        {0x01, LEGACY, BLY_OK},        {0x0b, LEGACY, BLY_OK},
        {0x02, MODERN, BLY_OK},        {0x08, MODERN, BLY_OK},
        {0x10, LEGACY, BLY_OK},        {0x20, MODERN, BLY_OK},
        {0x11, LEGACY, BLY_E_INVALID}, {0x28, MODERN, BLY_E_INVALID},
        {0x40, LEGACY, BLY_E_INVALID}, {0x40, MODERN, BLY_OK},
        {0x41, MODERN, BLY_E_INVALID}, {0x04, LEGACY, BLY_E_INVALID},
        {0x80, MODERN, BLY_E_INVALID}, {0xffffffffu, MODERN, BLY_E_INVALID},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        void *event = NULL;
        assert_status(blyi_event_create(rows[i].flags, rows[i].modern, 0, &event), rows[i].status);
        if (rows[i].status == BLY_OK)
            assert_ok(blyi_event_destroy(event));
        else
            assert_null(event);
    }
}

static void unrecorded_events(void **state)
{
    (void)state;
    void *modern = new_event(MODERN), *legacy = new_event(LEGACY);
    assert_true(is_done(modern));
    assert_false(is_done(legacy));
    assert_ok(blyi_event_sync(modern, 0));
    assert_ok(blyi_event_sync(legacy, 0));
    uint64_t ns;
    assert_status(blyi_event_timestamp(modern, &ns), BLY_E_NOT_RECORDED);
    assert_ok(blyi_event_wait(modern, NULL, 0, 0));
    assert_ok(blyi_stream_sync(NULL, 0));
}

static void a_record_is_complete_when_it_has_run(void **state)
{
    (void)state;
    void *stream = new_stream();
    for (int modern = 0; modern < 2; modern++) {
        void *event = new_event(modern);
        assert_ok(blyi_stream_pause(stream));
        assert_ok(blyi_event_record(event, stream, 0));
        assert_false(is_done(event));
        assert_status(blyi_event_sync(event, 1000000), BLY_E_TIMEOUT);
        assert_sentence("has not run within 1 ms");
        assert_ok(blyi_stream_resume(stream));
        assert_ok(blyi_event_sync(event, 0));
        assert_true(is_done(event));
        /* A second record overrides what the host sees. */
        assert_ok(blyi_stream_pause(stream));
        assert_ok(blyi_event_record(event, stream, 0));
        assert_false(is_done(event));
        assert_ok(blyi_stream_resume(stream));
        assert_ok(blyi_stream_sync(stream, 0));
        assert_true(is_done(event));
    }
}

static void a_modern_wait_means_the_record_before_it(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *event = new_event(MODERN);
    assert_ok(blyi_stream_pause(a));
    assert_ok(blyi_event_wait(event, b, 0, 0)); /* nothing was recorded: passes */
    assert_ok(blyi_stream_sync(b, 0));
    assert_ok(blyi_event_record(event, a, 0));
    assert_ok(blyi_event_wait(event, b, 0, 0));
    assert_ok(blyi_stream_nop(b));
    assert_status(blyi_stream_sync(b, 1000000), BLY_E_TIMEOUT);
    assert_int_equal(pending(b), 2);
    /* Recorded anew elsewhere: the queued wait still means the first. */
    void *c = new_stream();
    assert_ok(blyi_event_record(event, c, 0));
    assert_ok(blyi_event_sync(event, 0));
    assert_int_equal(pending(b), 2);
    assert_ok(blyi_stream_resume(a));
    assert_ok(blyi_stream_sync(b, 0));
}

static void a_legacy_wait_means_the_flag(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *event = new_event(LEGACY);
    bool passed;
    assert_ok(blyi_event_wait(event, b, 0, 0));
    assert_ok(blyi_event_query_wait(event, &passed));
    assert_false(passed);
    assert_int_equal(pending(b), 1);
    assert_ok(blyi_event_record(event, a, 0)); /* after the wait, and yet it frees it */
    assert_ok(blyi_stream_sync(b, 0));
    assert_ok(blyi_event_query_wait(event, &passed));
    assert_true(passed);
    assert_true(is_done(event));
    assert_ok(blyi_event_reset(event, b, 0));
    assert_ok(blyi_stream_sync(b, 0));
    assert_false(is_done(event));
    assert_ok(blyi_event_wait(event, b, 0, 0));
    assert_int_equal(pending(b), 1);
    assert_ok(blyi_event_record(event, a, 0));
    assert_ok(blyi_stream_sync(b, 0));
}

static void what_an_event_was_not_made_for_is_refused(void **state)
{
    (void)state;
    void *silent, *external, *modern = new_event(MODERN);
    bool value;
    uint64_t ns;
    int64_t span;
    assert_ok(blyi_event_create(BLYI_EVENT_TIME_LINE, LEGACY, 0, &silent));
    assert_ok(blyi_event_create(BLYI_EVENT_EXTERNAL, MODERN, 0, &external));
    assert_status(blyi_event_wait(silent, NULL, 0, 0), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_reset(silent, NULL, 0), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_reset(modern, NULL, 0), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_query_wait(modern, &value), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_query(external, &value), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_sync(external, 0), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_timestamp(external, &ns), BLY_E_UNSUPPORTED);
    void *timeless;
    assert_ok(blyi_event_create(BLYI_EVENT_SYNC, MODERN, 0, &timeless));
    assert_ok(blyi_event_record(timeless, NULL, 0));
    assert_ok(blyi_event_sync(timeless, 0));
    assert_status(blyi_event_timestamp(timeless, &ns), BLY_E_UNSUPPORTED);
    assert_status(blyi_event_elapsed(timeless, timeless, &span), BLY_E_UNSUPPORTED);
}

static void times_are_those_of_the_clock(void **state)
{
    (void)state;
    void *stream = new_stream(), *start = new_event(MODERN), *end = new_event(LEGACY);
    int64_t ns;
    uint64_t first, second;
    blyi_clock_set_virtual(true);
    assert_ok(blyi_event_record(start, stream, 0));
    assert_ok(blyi_stream_sync(stream, 0));
    blyi_clock_advance(1500);
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_event_record(end, stream, 0));
    assert_status(blyi_event_elapsed(start, end, &ns), BLY_E_NOT_COMPLETE);
    blyi_clock_advance(500);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ok(blyi_event_elapsed(start, end, &ns));
    assert_int_equal(ns, 2000);
    assert_ok(blyi_event_elapsed(end, start, &ns));
    assert_int_equal(ns, -2000);
    assert_ok(blyi_event_timestamp(start, &first));
    assert_ok(blyi_event_timestamp(end, &second));
    assert_int_equal(second - first, 2000);
}

static void a_wait_gives_up_in_time(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    blyi_clock_set_virtual(true);
    for (int modern = 0; modern < 2; modern++) {
        void *event = new_event(modern);
        assert_ok(blyi_stream_pause(a));
        if (modern)
            assert_ok(blyi_event_record(event, a, 0));
        assert_ok(blyi_event_wait(event, b, 2, 0));
        while (pending(b) != 1)
            sched_yield();
        /* Not before its time: the wait may begin anywhere between. */
        blyi_clock_advance(SECOND);
        assert_int_equal(pending(b), 1);
        while (pending(b) != 0)
            blyi_clock_advance(SECOND);
        assert_status(blyi_stream_sync(b, 0), BLY_E_ABORTED);
        assert_sentence("waited 2 s for event");
        assert_ok(blyi_stream_resume(a));
    }
    blyi_event_set_wait_timeout(1);
    void *event = new_event(LEGACY);
    assert_ok(blyi_event_wait(event, b, 0, 0));
    while (pending(b) != 0)
        blyi_clock_advance(SECOND);
    assert_status(blyi_stream_sync(b, 0), BLY_E_ABORTED);
    blyi_event_set_wait_timeout(0);
}

static void destroyed_events_live_until_their_work_ends(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream();
    for (int modern = 0; modern < 2; modern++) {
        void *event = new_event(modern);
        assert_ok(blyi_stream_pause(a));
        assert_ok(blyi_event_record(event, a, 0));
        assert_ok(blyi_event_wait(event, b, 0, 0));
        assert_ok(blyi_event_destroy(event));
        assert_status(blyi_event_destroy(event), BLY_E_HANDLE);
        assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), modern ? 0 : 1);
        assert_ok(blyi_stream_resume(a));
        assert_ok(blyi_stream_sync(b, 0));
        assert_ok(blyi_stream_sync(a, 0));
        assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), 0);
    }
}

static void a_record_outlives_its_stream(void **state)
{
    (void)state;
    void *event = new_event(MODERN), *stream = new_stream();
    assert_ok(blyi_event_record(event, stream, 0));
    assert_ok(blyi_stream_destroy(stream, false));
    assert_true(is_done(event));
    assert_ok(blyi_event_sync(event, 0));
    assert_ok(blyi_event_wait(event, NULL, 0, 0));
    assert_ok(blyi_stream_sync(NULL, 0));
    /* Dropped with its stream: nobody waits for it, and it has no time. */
    stream = new_stream();
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_event_record(event, stream, 0));
    assert_ok(blyi_event_wait(event, NULL, 0, 0));
    assert_ok(blyi_stream_destroy(stream, true));
    assert_ok(blyi_stream_sync(NULL, 0));
    uint64_t ns;
    assert_status(blyi_event_timestamp(event, &ns), BLY_E_ABORTED);
}

static void the_limit_of_events_names_its_holders(void **state)
{
    (void)state;
    void *s1 = new_stream(), *s2 = new_stream(), *event = NULL;
    uint32_t site = blyi_site_intern((const void *)(uintptr_t)new_event);
    for (int i = 1; i <= 1024; i++) {
        assert_ok(blyi_event_create(PLAIN, LEGACY, site, &event));
        assert_ok(blyi_event_record(event, s1, 0));
        assert_ok(blyi_event_wait(event, s2, 0, 0));
    }
    assert_ok(blyi_event_create(PLAIN, LEGACY, site, &event));
    /* All have run before the sentence counts them: its own patience is 20 ms. */
    assert_ok(blyi_stream_sync(s1, 0));
    assert_ok(blyi_stream_sync(s2, 0));
    assert_status(blyi_event_record(event, s1, 0), BLY_E_NO_EVENT);
    assert_sentence("card 0: no event id left: 1024/1024 in use; 1024 complete, 0 pending; "
                    "all made at ");
    assert_sentence(" s ago; safe to destroy now: 1024");
    void *modern = new_event(MODERN); /* needs no id */
    assert_ok(blyi_event_record(modern, s1, 0));
}

static void events_that_are_destroyed_leave_nothing(void **state)
{
    (void)state;
    void *s1 = new_stream(), *s2 = new_stream();
    struct blyi_host_stats before, after;
    for (int i = 0; i < 20000; i++) {
        void *event = new_event(LEGACY);
        assert_ok(blyi_event_record(event, s1, 0));
        assert_ok(blyi_event_wait(event, s2, 0, 0));
        assert_ok(blyi_stream_sync(s2, 0));
        assert_ok(blyi_event_destroy(event));
        if (i == 1000)
            blyi_host_stats(&before);
    }
    assert_ok(blyi_device_sync(0));
    blyi_host_stats(&after);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), 0);
    assert_true(after.live_bytes < before.live_bytes + MiB);
}

static void wrong_handles_are_told(void **state)
{
    (void)state;
    void *stale = new_event(MODERN), *good = new_event(MODERN), *stream = new_stream(), *own;
    assert_ok(blyi_event_destroy(stale));
    void *wrong[] = {NULL, stale, stream, (void *)8, (void *)-1, &stale};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        bool value;
        int64_t span;
        uint64_t ns;
        uint32_t id;
        assert_status(blyi_event_destroy(wrong[i]), BLY_E_HANDLE);
        assert_status(blyi_event_record(wrong[i], stream, 0), BLY_E_HANDLE);
        assert_status(blyi_event_wait(wrong[i], stream, 0, 0), BLY_E_HANDLE);
        assert_status(blyi_event_reset(wrong[i], stream, 0), BLY_E_HANDLE);
        assert_status(blyi_event_sync(wrong[i], 0), BLY_E_HANDLE);
        assert_status(blyi_event_query(wrong[i], &value), BLY_E_HANDLE);
        assert_status(blyi_event_query_wait(wrong[i], &value), BLY_E_HANDLE);
        assert_status(blyi_event_elapsed(wrong[i], good, &span), BLY_E_HANDLE);
        assert_status(blyi_event_elapsed(good, wrong[i], &span), BLY_E_HANDLE);
        assert_status(blyi_event_timestamp(wrong[i], &ns), BLY_E_HANDLE);
        assert_status(blyi_event_id(wrong[i], &id), BLY_E_HANDLE);
        if (wrong[i] != NULL && wrong[i] != stream) {
            assert_status(blyi_event_record(good, wrong[i], 0), BLY_E_HANDLE);
            assert_status(blyi_event_wait(good, wrong[i], 0, 0), BLY_E_HANDLE);
        }
    }
    assert_ok(blyi_context_create(0, 0, &own));
    assert_status(blyi_event_record(good, stream, 0), BLY_E_STREAM_CONTEXT);
    assert_status(blyi_event_wait(good, stream, 0, 0), BLY_E_STREAM_CONTEXT);
    assert_ok(blyi_context_destroy(own));
}

static void teardown_does_not_wait_for_what_cannot_come(void **state)
{
    (void)state;
    void *a = new_stream(), *b = new_stream(), *never = new_event(LEGACY);
    assert_ok(blyi_event_wait(never, a, 0, 0));
    assert_ok(blyi_stream_pause(b));
    assert_ok(blyi_stream_nop(b));
    assert_ok(blyi_device_reset(0, true));
    assert_ok(blyi_device_set(0, 0));
}

static void each_failure_leaves_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t n = 1;; n++) {
            void *event = NULL;
            if (kind == 0)
                blyi_host_fail_nth(n);
            else
                blyi_sys_fail_nth(n, 12);
            bly_status status = blyi_event_create(PLAIN, LEGACY, 0, &event);
            if (status == BLY_OK)
                status = blyi_event_record(event, NULL, 0);
            if (status == BLY_OK)
                status = blyi_event_wait(event, NULL, 5, 0);
            bool failed = kind == 0 ? blyi_host_failed() : blyi_sys_failed();
            blyi_host_fail_nth(0);
            blyi_sys_fail_nth(0, 0);
            assert_ok(blyi_stream_sync(NULL, 0));
            if (event != NULL)
                assert_ok(blyi_event_destroy(event));
            assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), 0);
            if (!failed) {
                assert_int_equal(status, BLY_OK);
                break;
            }
            assert_true(n < 50);
        }
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_EVENTS", "1024", 1);
    const struct CMUnitTest tests[] = {
        order_test(each_failure_leaves_nothing),
        order_test(flags_follow_the_rules),
        order_test(unrecorded_events),
        order_test(a_record_is_complete_when_it_has_run),
        order_test(a_modern_wait_means_the_record_before_it),
        order_test(a_legacy_wait_means_the_flag),
        order_test(what_an_event_was_not_made_for_is_refused),
        order_test(times_are_those_of_the_clock),
        order_test(a_wait_gives_up_in_time),
        order_test(destroyed_events_live_until_their_work_ends),
        order_test(a_record_outlives_its_stream),
        order_test(the_limit_of_events_names_its_holders),
        order_test(events_that_are_destroyed_leave_nothing),
        order_test(wrong_handles_are_told),
        order_test(teardown_does_not_wait_for_what_cannot_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
