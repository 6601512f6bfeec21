/* SPDX-License-Identifier: Apache-2.0 */
/* Which card a thread works on, and for how long. */
#include "order_test.h"

#include "npu/abort.h"
#include "npu/queue.h"

static void a_thread_without_a_device_is_told_where_the_process_is(void **state)
{
    (void)state;
    struct blyi_context *context;
    assert_status(blyi_context_here(&context), BLY_E_NO_CONTEXT);
    assert_sentence("no device set on this thread (tid ");
    assert_sentence("the process uses no card");
}

static void *use_nothing(void *arg)
{
    struct blyi_context *context;
    (void)arg;
    require(blyi_context_here(&context) == BLY_E_NO_CONTEXT);
    require(strstr(blyi_fail_text(), "; the process uses card 1") != NULL);
    return NULL;
}

static void other_threads_do_not_inherit_a_device(void **state)
{
    (void)state;
    bool active = true;
    assert_ok(blyi_device_set(1, 0));
    in_thread(use_nothing, NULL);
    assert_ok(blyi_device_active(0, &active));
    assert_false(active);
    assert_null(blyi_card_get(0));
}

static int n_warnings;

static void count_warning(void *arg, enum blyi_log_level level, const char *line)
{
    (void)arg;
    if (level == BLYI_LOG_WARN && strstr(line, "without a device"))
        __atomic_fetch_add(&n_warnings, 1, __ATOMIC_RELAXED);
}

static void *use_leniently(void *arg)
{
    struct blyi_context *context;
    int card;
    (void)arg;
    require(blyi_context_here_site(&context, 5) == BLY_OK);
    require(blyi_device_get(&card) == BLY_OK && card == 0);
    return NULL;
}

static void lenient_threads_land_on_card_0_with_one_warning_a_site(void **state)
{
    (void)state;
    assert_ok(blyi_option_set(BLYI_OPT_STRICT_DEVICE, "off"));
    blyi_log_set_sink(count_warning, NULL);
    n_warnings = 0;
    for (int i = 0; i < 16; i++)
        in_thread(use_leniently, NULL);
    blyi_log_set_sink(NULL, NULL);
    assert_int_equal(n_warnings, 1);
    assert_int_equal(blyi_card_get(0)->n_bound, 1);
    assert_ok(blyi_option_set(BLYI_OPT_STRICT_DEVICE, "on"));
}

static void a_default_device_serves_threads_that_set_none(void **state)
{
    (void)state;
    int card = -1;
    blyi_device_set_default(1);
    assert_ok(blyi_device_get(&card));
    assert_int_equal(card, 1);
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_device_get(&card));
    assert_int_equal(card, 0);
}

static void as_many_resets_as_sets(void **state)
{
    (void)state;
    bool active;
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_device_reset(0, false));
    assert_ok(blyi_device_active(0, &active));
    assert_true(active);
    assert_ok(blyi_device_reset(0, false));
    assert_ok(blyi_device_active(0, &active));
    assert_false(active);
    assert_status(blyi_device_reset(0, false), BLY_E_RELEASED);
    assert_status(blyi_device_reset(0, true), BLY_E_RELEASED);
    int card;
    assert_status(blyi_device_get(&card), BLY_E_NO_CONTEXT);
}

static void force_releases_whatever_the_count(void **state)
{
    (void)state;
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_device_set(0, 0));
    assert_ok(blyi_device_reset(0, true));
    assert_status(blyi_device_reset(0, true), BLY_E_RELEASED);
    assert_status(blyi_device_reset(0, false), BLY_E_RELEASED);
}

static void cards_out_of_range_are_refused(void **state)
{
    (void)state;
    void *handle = NULL;
    bool active;
    for (int card = -1; card <= 64; card += 1 + (card == 0) * 1) {
        if (card >= 0 && card < 2)
            continue;
        assert_status(blyi_device_set(card, 0), BLY_E_DEVICE);
        assert_status(blyi_device_reset(card, false), BLY_E_DEVICE);
        assert_status(blyi_device_active(card, &active), BLY_E_DEVICE);
        assert_status(blyi_context_create(card, 0, &handle), BLY_E_DEVICE);
    }
    assert_status(blyi_device_set(INT32_MAX, 0), BLY_E_DEVICE);
    assert_status(blyi_device_set(INT32_MIN, 0), BLY_E_DEVICE);
}

static void *use_the_dead_primary(void *arg)
{
    pthread_barrier_t *barrier = arg;
    int card;
    require(blyi_device_set(0, 0) == BLY_OK);
    pthread_barrier_wait(barrier); /* the test resets now */
    pthread_barrier_wait(barrier);
    require(blyi_device_get(&card) == BLY_E_NO_CONTEXT);
    require(strstr(blyi_fail_text(), "was destroyed or reset") != NULL);
    require(blyi_device_set(0, 0) == BLY_OK);
    require(blyi_device_get(&card) == BLY_OK);
    return NULL;
}

static void other_threads_lose_a_reset_primary(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, use_the_dead_primary, &barrier);
    pthread_barrier_wait(&barrier);
    assert_ok(blyi_device_reset(0, true));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static void a_reset_takes_memory_streams_and_events(void **state)
{
    (void)state;
    void *stream = new_stream(), *modern = new_event(MODERN), *legacy = new_event(LEGACY);
    void *memory = card_alloc(3 * MiB);
    bool complete;
    assert_ok(blyi_event_record(legacy, stream, 0));
    assert_ok(blyi_device_reset(0, false));
    assert_ok(blyi_device_set(0, 0));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_HANDLE);
    assert_status(blyi_stream_destroy(stream, true), BLY_E_HANDLE);
    assert_status(blyi_event_query(modern, &complete), BLY_E_HANDLE);
    assert_status(blyi_event_destroy(legacy), BLY_E_HANDLE);
    assert_status(blyi_mem_free(memory, 0), BLY_E_INVALID);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_EVENTS), 0);
    assert_true(blyi_card_audit(blyi_card_get(0)));
}

static void explicit_contexts_outlive_a_reset(void **state)
{
    (void)state;
    void *context, *stream;
    assert_ok(blyi_context_create(0, 0, &context));
    stream = new_stream();
    assert_ok(blyi_device_reset(0, true));
    assert_ok(blyi_stream_nop(stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_ok(blyi_stream_destroy(stream, false));
    assert_ok(blyi_context_destroy(context));
}

static void the_explicit_context_comes_first(void **state)
{
    (void)state;
    void *primary, *first, *second, *current;
    int card;
    assert_ok(blyi_context_get(&primary));
    assert_ok(blyi_context_create(1, 0, &first));
    assert_ok(blyi_device_get(&card));
    assert_int_equal(card, 1);
    assert_ok(blyi_context_create(0, 0, &second));
    assert_ok(blyi_context_set(first));
    assert_ok(blyi_context_get(&current));
    assert_ptr_equal(current, first);
    assert_ok(blyi_device_set(0, 0)); /* drops the explicit one */
    assert_ok(blyi_context_get(&current));
    assert_ptr_equal(current, primary);
    assert_ok(blyi_context_set(second));
    assert_ok(blyi_context_destroy(second));
    assert_status(blyi_context_get(&current), BLY_E_NO_CONTEXT);
    assert_ok(blyi_context_set(primary));
    assert_ok(blyi_context_destroy(first));
}

static void a_destroyed_context_falls_back_to_the_primary(void **state)
{
    (void)state;
    void *primary, *own, *current;
    assert_ok(blyi_context_get(&primary));
    assert_ok(blyi_context_create(0, 0, &own));
    assert_ok(blyi_context_destroy(own));
    assert_ok(blyi_context_get(&current));
    assert_ptr_equal(current, primary);
}

static void dead_and_foreign_handles_are_no_contexts(void **state)
{
    (void)state;
    void *own, *primary, *stream = new_stream();
    assert_ok(blyi_context_get(&primary));
    assert_ok(blyi_context_create(0, 0, &own));
    assert_ok(blyi_context_destroy(own));
    void *wrong[] = {NULL, own, stream, (void *)1, (void *)-1, &own};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_status(blyi_context_destroy(wrong[i]), BLY_E_NO_CONTEXT);
        assert_status(blyi_context_set(wrong[i]), BLY_E_NO_CONTEXT);
    }
    assert_status(blyi_context_destroy(primary), BLY_E_NO_CONTEXT);
    assert_sentence("primary context");
}

static void *keep_current(void *arg)
{
    void **shared = arg;
    int card;
    require(blyi_context_set(shared[0]) == BLY_OK);
    pthread_barrier_wait(shared[1]);
    pthread_barrier_wait(shared[1]);
    require(blyi_device_get(&card) == BLY_E_NO_CONTEXT);
    return NULL;
}

/* The structure of a dead context is used again, its failure is not. */
static void a_new_context_has_no_failure_of_an_old_one(void **state)
{
    (void)state;
    struct blyi_stream *stream;
    void *own;
    assert_ok(blyi_context_create(0, 0, &own));
    void *handle = new_stream();
    assert_ok(blyi_stream_set_failure_mode(handle, 1));
    assert_ok(blyi_stream_pin_any(handle, &stream));
    blyi_context_task_failed(stream, blyi_fail(BLY_E_STATE, "a task failed"));
    blyi_stream_unpin(stream);
    assert_status(blyi_stream_nop(handle), BLY_E_STATE);
    assert_ok(blyi_context_destroy(own));
    assert_ok(blyi_context_create(0, 0, &own));
    assert_ok(blyi_stream_nop(new_stream()));
    assert_ok(blyi_context_destroy(own));
}

static void a_context_destroyed_elsewhere_is_unusable(void **state)
{
    (void)state;
    pthread_barrier_t barrier;
    pthread_t thread;
    void *shared[2] = {NULL, &barrier};
    pthread_barrier_init(&barrier, NULL, 2);
    assert_ok(blyi_context_create(0, 0, &shared[0]));
    pthread_create(&thread, NULL, keep_current, shared);
    pthread_barrier_wait(&barrier);
    assert_ok(blyi_context_destroy(shared[0]));
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static void parameters_are_known_once_set(void **state)
{
    (void)state;
    int64_t value = 0;
    assert_status(blyi_context_get_param(0, &value), BLY_E_STATE);
    assert_ok(blyi_context_set_param(0, 7));
    assert_ok(blyi_context_set_param(0, -9));
    assert_ok(blyi_context_get_param(0, &value));
    assert_int_equal(value, -9);
    assert_status(blyi_context_set_param(-1, 0), BLY_E_INVALID);
    assert_status(blyi_context_get_param(1000, &value), BLY_E_INVALID);
}

static void a_finalised_runtime_starts_again(void **state)
{
    (void)state;
    int card;
    for (int i = 0; i < 20; i++) {
        void *stream = new_stream(), *memory = card_alloc(MiB);
        assert_ok(blyi_set_async(memory, 1, MiB, stream, 0));
        blyi_runtime_finalise();
        assert_status(blyi_device_get(&card), BLY_E_NO_CONTEXT);
        assert_status(blyi_device_reset(0, false), BLY_E_RELEASED);
        assert_ok(blyi_device_set(0, 0));
        assert_status(blyi_stream_nop(stream), BLY_E_HANDLE);
        struct blyi_mem_figures figures;
        blyi_mem_figures(blyi_card_get(0), &figures);
        assert_int_equal(figures.live, 0);
    }
}

static void each_failure_leaves_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t n = 1;; n++) {
            void *own = NULL;
            int card;
            if (kind == 0)
                blyi_host_fail_nth(n);
            else
                blyi_sys_fail_nth(n, 12);
            bly_status set = blyi_device_set(1, 0);
            bly_status made = blyi_context_create(1, 0, &own);
            bool failed = kind == 0 ? blyi_host_failed() : blyi_sys_failed();
            blyi_host_fail_nth(0);
            blyi_sys_fail_nth(0, 0);
            if (made == BLY_OK)
                assert_ok(blyi_context_destroy(own));
            assert_int_equal(blyi_device_get(&card), set == BLY_OK ? BLY_OK : BLY_E_NO_CONTEXT);
            assert_int_equal(blyi_device_reset(1, false), set == BLY_OK ? BLY_OK : BLY_E_RELEASED);
            if (blyi_card_get(1) != NULL)
                assert_int_equal(blyi_card_get(1)->n_bound, 0);
            if (!failed) {
                assert_int_equal(set, BLY_OK);
                assert_int_equal(made, BLY_OK);
                break;
            }
            assert_true(n < 500);
        }
}

static void contexts_that_come_and_go_cost_nothing(void **state)
{
    (void)state;
    struct blyi_host_stats before, after;
    for (int i = 0; i < 400; i++) {
        void *own;
        assert_ok(blyi_device_set(0, 0));
        assert_ok(blyi_context_create(0, 0, &own));
        assert_ok(blyi_context_destroy(own));
        assert_ok(blyi_device_reset(0, false));
        assert_status(blyi_context_set(own), BLY_E_NO_CONTEXT);
        if (i == 100)
            blyi_host_stats(&before);
    }
    blyi_host_stats(&after);
    assert_true(after.live_bytes <= before.live_bytes + 128 * KiB); /* the handles' quarantine */
}

static void *set_and_reset(void *arg)
{
    (void)arg;
    for (int i = 0; i < 300; i++) {
        require(blyi_device_set(0, 0) == BLY_OK);
        bly_status status = blyi_stream_nop(NULL);
        require(status == BLY_OK || status == BLY_E_NO_CONTEXT || status == BLY_E_HANDLE);
        require(blyi_device_reset(0, false) == BLY_OK);
    }
    return NULL;
}

static void many_threads_set_and_reset_one_card(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, set_and_reset, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_status(blyi_device_reset(0, false), BLY_E_RELEASED);
    assert_int_equal(blyi_card_get(0)->n_bound, 0);
}

int main(void)
{
    setenv("BELAY_CARDS", "2", 1);
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        bare_test(a_thread_without_a_device_is_told_where_the_process_is),
        bare_test(other_threads_do_not_inherit_a_device), /* needs card 0 not opened yet */
        bare_test(each_failure_leaves_nothing),
        bare_test(lenient_threads_land_on_card_0_with_one_warning_a_site),
        bare_test(a_default_device_serves_threads_that_set_none),
        bare_test(as_many_resets_as_sets),
        bare_test(force_releases_whatever_the_count),
        bare_test(cards_out_of_range_are_refused),
        order_test(other_threads_lose_a_reset_primary),
        order_test(a_reset_takes_memory_streams_and_events),
        order_test(explicit_contexts_outlive_a_reset),
        order_test(the_explicit_context_comes_first),
        order_test(a_destroyed_context_falls_back_to_the_primary),
        order_test(dead_and_foreign_handles_are_no_contexts),
        order_test(a_new_context_has_no_failure_of_an_old_one),
        order_test(a_context_destroyed_elsewhere_is_unusable),
        order_test(parameters_are_known_once_set),
        order_test(a_finalised_runtime_starts_again),
        bare_test(contexts_that_come_and_go_cost_nothing),
        bare_test(many_threads_set_and_reset_one_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
