/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_close.c - ends beside work: streams, contexts, cards and the runtime are ended by one
 * thread while others use them. Every call returns, and nothing is left behind.
 */
#include "../unit/npu/order_test.h"

#include <sched.h>

#include "base/handle.h"
#include "npu/queue.h"

enum { SUBMITTERS = 2, CARDS = 2, MOST_MADE = 64 };

/* A hang ends the program with the name of the test, long before the suite's limit. */
enum { LIMIT_S = 1800 };

static uint32_t rounds_of(uint32_t otherwise)
{
    const char *text = getenv("TEST_ROUNDS");
    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    assert_int_equal(pthread_create(thread, NULL, fn, arg), 0);
}

static void raise_flag(uint32_t *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static bool is_raised(const uint32_t *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0;
}

/* ── A stream is destroyed while others submit to it ──────────────────────────────────────── */

struct target {
    void *stream;
    uint32_t stop;
};

static void *submit(void *arg)
{
    struct target *target = arg;
    require(blyi_device_set(0, 0) == BLY_OK);
    while (!is_raised(&target->stop)) {
        void *stream = __atomic_load_n(&target->stream, __ATOMIC_ACQUIRE);
        bly_status status = stream != NULL ? blyi_stream_nop(stream) : BLY_E_HANDLE;
        require(status == BLY_OK || status == BLY_E_HANDLE);
        if (status != BLY_OK)
            sched_yield(); /* who makes the next one may need this processor */
    }
    require(blyi_device_reset(0, false) == BLY_OK);
    return NULL;
}

static void destroy_under_submission(bool force)
{
    struct target target = {0};
    pthread_t threads[SUBMITTERS];
    for (int i = 0; i < SUBMITTERS; i++)
        start(&threads[i], submit, &target);
    for (uint32_t i = rounds_of(200); i > 0; i--) {
        void *stream = new_stream();
        __atomic_store_n(&target.stream, stream, __ATOMIC_RELEASE);
        for (uint32_t n = i % 8; n > 0; n--)
            sched_yield();
        assert_ok(blyi_stream_destroy(stream, force));
    }
    raise_flag(&target.stop);
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void a_stream_ends_under_submission(void **state)
{
    (void)state;
    destroy_under_submission(false);
}

static void a_stream_ends_by_force_under_submission(void **state)
{
    (void)state;
    destroy_under_submission(true);
}

/* ── A card is reset while a stream with host functions is destroyed ──────────────────────── */

static void add_one(void *arg)
{
    __atomic_fetch_add((uint32_t *)arg, 1, __ATOMIC_RELAXED);
}

static void *destroy(void *stream)
{
    if (blyi_device_set(0, 0) != BLY_OK)
        return NULL;
    bly_status status = blyi_stream_destroy(stream, false);
    require(status == BLY_OK || status == BLY_E_HANDLE || status == BLY_E_NO_CONTEXT ||
            status == BLY_E_STREAM_CONTEXT);
    return NULL;
}

/* Returns once a thread has begun to destroy the stream. */
static void until_closing(void *handle)
{
    struct blyi_stream *stream;
    assert_ok(blyi_stream_pin_any(handle, &stream));
    while (__atomic_load_n(&stream->closing, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    blyi_stream_unpin(stream);
}

/* The stream waits for an event that outlives the card's primary context. */
static void a_blocked_stream_that_is_destroyed_ends_with_its_card(void **state)
{
    (void)state;
    uint32_t ran = 0;
    void *other;
    assert_ok(blyi_context_create(0, 0, &other));
    void *event = new_event(LEGACY), *recorder = new_stream();
    assert_ok(blyi_device_set(0, 0));
    void *stream = new_stream();
    assert_ok(blyi_event_wait(event, stream, 0, 0));
    assert_ok(blyi_callback_host_func(stream, add_one, &ran, 0));
    pthread_t thread;
    start(&thread, destroy, stream);
    until_closing(stream);
    assert_ok(blyi_device_reset(0, true));
    pthread_join(thread, NULL);
    assert_ok(blyi_context_set(other));
    assert_ok(blyi_event_record(event, recorder, 0));
    assert_ok(blyi_stream_sync(recorder, 0));
    assert_int_equal(ran, 0);
    assert_ok(blyi_context_destroy(other));
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

static void a_card_is_reset_beside_destruction(void **state)
{
    (void)state;
    uint32_t ran = 0;
    for (uint32_t i = rounds_of(400); i > 0; i--) {
        assert_ok(blyi_device_set(0, 0));
        void *stream = new_stream();
        for (uint32_t n = 1 + i % 4; n > 0; n--)
            assert_ok(blyi_callback_host_func(stream, add_one, &ran, 0));
        pthread_t thread;
        start(&thread, destroy, stream);
        for (uint32_t n = i % 16; n > 0; n--)
            sched_yield();
        assert_ok(blyi_device_reset(0, true));
        pthread_join(thread, NULL);
        blyi_runtime_finalise(); /* that thread may have set the card anew */
        assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
    }
}

/* A host function destroys its own stream and ends: what is queued behind it outlives the card. */
static void destroy_own(void *stream)
{
    bly_status status = blyi_stream_destroy(stream, false); /* its card may have ended */
    require(status == BLY_OK || status == BLY_E_HANDLE || status == BLY_E_NO_CONTEXT);
}

static void a_stream_that_destroys_itself_ends_with_its_card(void **state)
{
    (void)state;
    uint32_t ran = 0;
    for (uint32_t i = rounds_of(400); i > 0; i--) {
        assert_ok(blyi_device_set(0, 0));
        void *stream = new_stream();
        assert_ok(blyi_stream_pause(stream));
        assert_ok(blyi_callback_host_func(stream, destroy_own, stream, 0));
        for (int n = 0; n < 4; n++)
            assert_ok(blyi_callback_host_func(stream, add_one, &ran, 0));
        assert_ok(blyi_stream_resume(stream));
        for (uint32_t n = i % 8; n > 0; n--)
            sched_yield();
        assert_ok(blyi_device_reset(0, true));
    }
}

/* ── The runtime is finalised beside waits with a limit ───────────────────────────────────── */

static void *finalise_over_and_over(void *arg)
{
    while (!is_raised(arg)) {
        blyi_runtime_finalise();
        sched_yield();
    }
    return NULL;
}

static void *advance_over_and_over(void *arg)
{
    while (!is_raised(arg)) {
        blyi_clock_advance(100000000u);
        sched_yield();
    }
    return NULL;
}

/* Any call may be refused, since all may have ended; what was queued ends. */
static void wait_once(void)
{
    void *stream, *event;
    if (blyi_device_set(0, 0) == BLY_OK && blyi_stream_create(0, 0, 0, &stream) == BLY_OK &&
        blyi_event_create(PLAIN, LEGACY, 0, &event) == BLY_OK &&
        blyi_event_wait(event, stream, 1, 0) == BLY_OK)
        (void)blyi_stream_sync(stream, 0);
    blyi_fail_clear();
}

static void timed_waits_end_beside_finalisation(void **state)
{
    (void)state;
    blyi_clock_set_virtual(true);
    uint32_t stop = 0;
    pthread_t threads[2];
    start(&threads[0], finalise_over_and_over, &stop);
    start(&threads[1], advance_over_and_over, &stop);
    for (uint32_t i = rounds_of(100); i > 0; i--)
        wait_once();
    raise_flag(&stop);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    blyi_runtime_finalise();
    assert_int_equal(blyi_tally_used(0, BLYI_LIMIT_STREAMS), 0);
}

/* ── Contexts are made and destroyed beside those who use them ────────────────────────────── */

struct users {
    void *context;
    pthread_barrier_t ready;
};

static int users_card;

static void use_once(void)
{
    struct blyi_card *card;
    struct blyi_mem_request request = {.asked = 4096, .rounded = 4096, .module = 33};
    void *memory, *event;
    if (blyi_context_here_card(&card) == BLY_OK &&
        blyi_mem_alloc(card, &request, &memory) == BLY_OK)
        require(blyi_mem_free(memory, 0) == BLY_OK);
    void *stream;
    if (blyi_context_here_default(&stream, &card) == BLY_OK)
        require(card->id == users_card); /* of the context that the thread has, not of the next */
    (void)blyi_event_create(PLAIN, MODERN, 0, &event); /* or the context has ended */
    (void)blyi_stream_nop(NULL);
}

/* Makes streams and events until the context has ended; they end with it. */
static void *use(void *arg)
{
    struct users *users = arg;
    require(blyi_context_set(users->context) == BLY_OK);
    pthread_barrier_wait(&users->ready);
    for (int made = 0; made < MOST_MADE; made++) {
        void *stream;
        if (blyi_stream_create(0, 0, 0, &stream) != BLY_OK)
            break;
        use_once();
    }
    return NULL;
}

static void contexts_end_beside_their_users(void **state)
{
    (void)state;
    struct users users;
    assert_int_equal(pthread_barrier_init(&users.ready, NULL, SUBMITTERS + 1), 0);
    for (uint32_t i = rounds_of(400); i > 0; i--) {
        pthread_t threads[SUBMITTERS];
        users_card = (int)(i % CARDS);
        assert_ok(blyi_context_create(users_card, 0, &users.context));
        for (int t = 0; t < SUBMITTERS; t++)
            start(&threads[t], use, &users);
        pthread_barrier_wait(&users.ready);
        for (uint32_t n = i % 8; n > 0; n--)
            sched_yield();
        assert_ok(blyi_context_destroy(users.context));
        /* The structure at once for another card, while the users still look. */
        void *next;
        assert_ok(blyi_context_create((int)((i + 1) % CARDS), 0, &next));
        assert_ok(blyi_context_destroy(next));
        for (int t = 0; t < SUBMITTERS; t++)
            pthread_join(threads[t], NULL);
        for (int card = 0; card < CARDS; card++)
            if (blyi_card_get(card) != NULL)
                assert_int_equal(blyi_tally_used(card, BLYI_LIMIT_STREAMS), 0);
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_STREAM), 0);
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_EVENT), 0);
    }
    pthread_barrier_destroy(&users.ready);
}

static int limit(void **state)
{
    (void)state;
    alarm(LIMIT_S);
    return 0;
}

static int limit_with_card(void **state)
{
    return limit(state) == 0 ? begin(state) : -1;
}

#define card_test(fn) cmocka_unit_test_setup_teardown(fn, limit_with_card, finish)
#define free_test(fn) cmocka_unit_test_setup_teardown(fn, limit, finish)

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    setenv("BELAY_HBM", "256MiB", 1);
    setenv("BELAY_CARDS", "2", 1);
    const struct CMUnitTest tests[] = {
        card_test(a_stream_ends_under_submission),
        card_test(a_stream_ends_by_force_under_submission),
        free_test(a_blocked_stream_that_is_destroyed_ends_with_its_card),
        free_test(a_card_is_reset_beside_destruction),
        free_test(a_stream_that_destroys_itself_ends_with_its_card),
        free_test(timed_waits_end_beside_finalisation),
        free_test(contexts_end_beside_their_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
