/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: making and ending them, waiting for them, what sticks to them. */
#include "order_test.h"

static void tasks_end_and_are_counted(void **state)
{
    (void)state;
    void *stream = new_stream();
    assert_true(is_idle(stream));
    for (int i = 0; i < 100; i++)
        assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(pending(stream), 0);
    assert_true(is_idle(stream));
    assert_ok(blyi_stream_destroy(stream, false));
}

static void a_paused_stream_holds_its_tasks(void **state)
{
    (void)state;
    void *stream = new_stream();
    assert_ok(blyi_stream_pause(stream));
    for (int i = 0; i < 5; i++)
        assert_ok(blyi_stream_nop(stream));
    assert_false(is_idle(stream));
    assert_int_equal(pending(stream), 5);
    assert_status(blyi_stream_sync(stream, 1000000), BLY_E_TIMEOUT);
    assert_sentence("5 tasks have not ended within 1 ms");
    assert_int_equal(pending(stream), 5);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(pending(stream), 0);
}

static void *resume(void *stream)
{
    require(blyi_stream_resume(stream) == BLY_OK);
    return NULL;
}

static void a_full_ring_makes_the_submitter_wait(void **state)
{
    (void)state;
    void *stream = new_stream();
    pthread_t thread;
    assert_ok(blyi_stream_pause(stream));
    uint64_t waits = blyi_stat_read(BLYI_STAT_submit_waits);
    for (int i = 0; i < 2048; i++)
        assert_ok(blyi_stream_nop(stream));
    assert_int_equal(blyi_stat_read(BLYI_STAT_submit_waits), waits);
    pthread_create(&thread, NULL, resume, stream);
    for (int i = 0; i < 5000; i++)
        assert_ok(blyi_stream_nop(stream));
    pthread_join(thread, NULL);
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(pending(stream), 0);
}

static void null_is_the_default_stream(void **state)
{
    (void)state;
    void *stream;
    int32_t id, same;
    assert_ok(blyi_context_here_default(&stream, NULL));
    assert_ok(blyi_stream_nop(NULL));
    assert_ok(blyi_stream_sync(NULL, 0));
    assert_ok(blyi_stream_id(NULL, &id));
    assert_ok(blyi_stream_id(stream, &same));
    assert_int_equal(id, same);
    assert_status(blyi_stream_destroy(NULL, false), BLY_E_HANDLE);
    assert_status(blyi_stream_destroy(stream, false), BLY_E_INVALID);
    assert_sentence("default stream");
}

static void attributes_are_kept(void **state)
{
    (void)state;
    void *stream;
    uint32_t value;
    assert_ok(blyi_stream_create(99, 0xffffffffu, 0, &stream));
    assert_ok(blyi_stream_priority(stream, &value));
    assert_int_equal(value, 7);
    assert_ok(blyi_stream_flags(stream, &value));
    assert_int_equal(value, 0x3f);
    assert_ok(blyi_stream_priority(NULL, &value));
    assert_int_equal(value, 0);
}

static void wrong_handles_are_told(void **state)
{
    (void)state;
    void *stale = new_stream(), *event = new_event(MODERN);
    assert_ok(blyi_stream_destroy(stale, false));
    void *wrong[] = {stale, event, (void *)8, (void *)-1, &stale};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        bool complete;
        int32_t id;
        uint32_t value;
        uint64_t n;
        assert_status(blyi_stream_sync(wrong[i], 0), BLY_E_HANDLE);
        assert_status(blyi_stream_query(wrong[i], &complete), BLY_E_HANDLE);
        assert_status(blyi_stream_nop(wrong[i]), BLY_E_HANDLE);
        assert_status(blyi_stream_id(wrong[i], &id), BLY_E_HANDLE);
        assert_status(blyi_stream_priority(wrong[i], &value), BLY_E_HANDLE);
        assert_status(blyi_stream_flags(wrong[i], &value), BLY_E_HANDLE);
        assert_status(blyi_stream_pending(wrong[i], &n), BLY_E_HANDLE);
        assert_status(blyi_stream_pause(wrong[i]), BLY_E_HANDLE);
        assert_status(blyi_stream_resume(wrong[i]), BLY_E_HANDLE);
        assert_status(blyi_stream_destroy(wrong[i], false), BLY_E_HANDLE);
        assert_status(blyi_stream_destroy(wrong[i], true), BLY_E_HANDLE);
    }
}

static void work_stays_in_its_context(void **state)
{
    (void)state;
    void *stream = new_stream(), *own;
    assert_ok(blyi_context_create(0, 0, &own));
    assert_status(blyi_stream_nop(stream), BLY_E_STREAM_CONTEXT);
    assert_status(blyi_stream_destroy(stream, false), BLY_E_STREAM_CONTEXT);
    assert_ok(blyi_stream_sync(stream, 0));
    bool complete;
    assert_ok(blyi_stream_query(stream, &complete));
    assert_ok(blyi_context_destroy(own));
    assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_destroy(stream, false));
}

static void force_drops_queued_work(void **state)
{
    (void)state;
    void *stream = new_stream();
    char *memory = card_alloc(4096);
    assert_ok(blyi_set_now(memory, 1, 4096));
    assert_ok(blyi_stream_pause(stream));
    assert_ok(blyi_set_async(memory, 2, 4096, stream, 0));
    assert_ok(blyi_stream_destroy(stream, true));
    char back[4096];
    assert_ok(blyi_copy_now(back, memory, sizeof(back)));
    assert_int_equal(back[0], 1);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void plain_destruction_waits_for_work(void **state)
{
    (void)state;
    void *stream = new_stream();
    char *memory = card_alloc(4 * MiB), back[16];
    for (int i = 0; i < 20; i++)
        assert_ok(blyi_set_async(memory, (uint8_t)i, 4 * MiB, stream, 0));
    assert_ok(blyi_stream_destroy(stream, false));
    assert_ok(blyi_copy_now(back, memory, sizeof(back)));
    assert_int_equal(back[0], 19);
}

static void the_first_error_is_returned_once(void **state)
{
    (void)state;
    void *stream = new_stream(), *freed = card_alloc(4 * MiB), *other = card_alloc(4 * MiB);
    assert_ok(blyi_mem_free(freed, 0));
    assert_ok(blyi_set_async(freed, 1, 100, stream, 0));
    assert_ok(blyi_set_async((char *)other + 4 * MiB, 1, 100, stream, 0));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_FAULT);
    assert_sentence("on stream ");
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ok(blyi_set_async(freed, 1, 100, stream, 0));
    assert_status(blyi_device_sync(0), BLY_E_FAULT);
    assert_ok(blyi_device_sync(0));
}

static void every_stream_of_the_context_is_synchronised(void **state)
{
    (void)state;
    void *streams[8];
    for (int i = 0; i < 8; i++) {
        streams[i] = new_stream();
        for (int k = 0; k < 50; k++)
            assert_ok(blyi_stream_nop(streams[i]));
    }
    assert_ok(blyi_device_sync(0));
    for (int i = 0; i < 8; i++)
        assert_true(is_idle(streams[i]));
    assert_ok(blyi_stream_pause(streams[3]));
    assert_ok(blyi_stream_nop(streams[3]));
    assert_status(blyi_device_sync(1000000), BLY_E_TIMEOUT);
    assert_ok(blyi_stream_resume(streams[3]));
    assert_ok(blyi_device_sync(0));
}

static void streams_of_others_are_not_waited_for(void **state)
{
    (void)state;
    const uint32_t flags[] = {BLYI_STREAM_PERSISTENT, BLYI_STREAM_CPU_SCHEDULE,
                              BLYI_STREAM_DEVICE_USE_ONLY};
    for (int i = 0; i < 3; i++) {
        void *stream;
        assert_ok(blyi_stream_create(0, flags[i], 0, &stream));
        assert_ok(blyi_stream_pause(stream));
        assert_ok(blyi_stream_nop(stream));
        assert_ok(blyi_stream_sync(stream, 0));
        assert_true(is_idle(stream));
        assert_ok(blyi_device_sync(0));
        assert_ok(blyi_stream_destroy(stream, true));
    }
}

static void *make_streams(uint32_t site, int n, void **streams)
{
    for (int i = 0; i < n; i++)
        assert_ok(blyi_stream_create(0, 0, site, &streams[i]));
    return NULL;
}

static void the_limit_of_streams_names_its_holders(void **state)
{
    (void)state;
    void *streams[33];
    uint32_t here = blyi_site_intern((const void *)(uintptr_t)make_streams);
    uint32_t there = blyi_site_intern((const void *)(uintptr_t)new_stream);
    make_streams(here, 20, streams);
    make_streams(there, 12, streams + 20);
    assert_status(blyi_stream_create(0, 0, here, &streams[32]), BLY_E_NO_STREAM);
    assert_sentence("card 0: no stream left: 32/32 in use; 20 made at ");
    assert_sentence(", 12 at ");
    struct blyi_mem_figures figures;
    char text[128];
    blyi_mem_figures(blyi_card_get(0), &figures);
    snprintf(text, sizeof(text),
             "; card memory free is %llu B (240 MiB), this is not a memory shortage",
             (unsigned long long)figures.free);
    assert_sentence(text);
    assert_ok(blyi_stream_destroy(streams[5], false));
    assert_ok(blyi_stream_create(0, 0, here, &streams[5]));
}

static void *destroy(void *stream)
{
    require(blyi_device_set(0, 0) == BLY_OK);
    bly_status status = blyi_stream_destroy(stream, false);
    require(blyi_device_reset(0, false) == BLY_OK);
    return (void *)(intptr_t)status;
}

static void one_of_many_destroys_a_stream(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        void *stream = new_stream(), *results[4];
        pthread_t threads[4];
        int n_ok = 0;
        assert_ok(blyi_stream_nop(stream));
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, destroy, stream);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], &results[i]);
            bly_status status = (bly_status)(intptr_t)results[i];
            assert_true(status == BLY_OK || status == BLY_E_HANDLE);
            n_ok += status == BLY_OK;
        }
        assert_int_equal(n_ok, 1);
    }
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void each_failure_of_host_or_system_leaves_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t n = 1;; n++) {
            void *stream = NULL;
            if (kind == 0)
                blyi_host_fail_nth(n);
            else
                blyi_sys_fail_nth(n, 12);
            bly_status status = blyi_stream_create(0, 0, 0, &stream);
            bly_status queued = status == BLY_OK ? blyi_stream_nop(stream) : BLY_OK;
            bool failed = kind == 0 ? blyi_host_failed() : blyi_sys_failed();
            blyi_host_fail_nth(0);
            blyi_sys_fail_nth(0, 0);
            if (status == BLY_OK) {
                assert_ok(blyi_stream_sync(stream, 0));
                assert_ok(blyi_stream_destroy(stream, false));
            } else {
                assert_null(stream);
            }
            assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
            if (!failed) {
                assert_int_equal(status, BLY_OK);
                assert_int_equal(queued, BLY_OK);
                break;
            }
            assert_true(n < 50);
        }
}

int main(void)
{
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_STREAMS", "32", 1);
    const struct CMUnitTest tests[] = {
        order_test(each_failure_of_host_or_system_leaves_nothing),
        order_test(tasks_end_and_are_counted),
        order_test(a_paused_stream_holds_its_tasks),
        order_test(a_full_ring_makes_the_submitter_wait),
        order_test(null_is_the_default_stream),
        order_test(attributes_are_kept),
        order_test(wrong_handles_are_told),
        order_test(work_stays_in_its_context),
        order_test(force_drops_queued_work),
        order_test(plain_destruction_waits_for_work),
        order_test(the_first_error_is_returned_once),
        order_test(every_stream_of_the_context_is_synchronised),
        order_test(streams_of_others_are_not_waited_for),
        order_test(the_limit_of_streams_names_its_holders),
        order_test(one_of_many_destroys_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
