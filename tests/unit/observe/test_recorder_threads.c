/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads: one order of all events, exact rings, threads that come and go, recordings that
 * start and stop under them. For ThreadSanitizer too.
 */
#include "trace_test.h"

#include <sched.h>
#include <stdatomic.h>

#define EVENTS 20000
#define PAIRS  5000 /* of a thread in a turn, however long that takes */

static atomic_bool stop_now;
static atomic_uint turn;

/* Each thread has blocks of its own, so what is live follows from its own events. */
static void work(int index)
{
    struct rng rng = {(uint64_t)index + 99};
    bool live[64] = {false};
    for (int i = 0; i < EVENTS; i++) {
        uint64_t block = rng_below(&rng, 64), address = ((uint64_t)index * 64 + block + 1) << 21;
        if (live[block])
            emit_free(address, block + 1);
        else
            emit_alloc(address, block + 1);
        live[block] = !live[block];
    }
}

/* Numbers without a gap; frees and allocations of a block take turns from its state at the start.
 */
static void check_history(struct blyi_trace *trace)
{
    static bool live[64 * TEST_THREADS + 1];
    struct blyi_trace_event e;
    size_t n;
    memset(live, 0, sizeof(live));
    const struct blyi_trace_block *blocks = blyi_trace_start_blocks(trace, &n);
    for (size_t i = 0; i < n; i++)
        live[blocks[i].address >> 21] = true;
    uint64_t seq = blyi_trace_info(trace)->first_seq;
    for (; blyi_trace_next(trace, &e); seq++) {
        if (e.seq != seq)
            fail_msg("number %llu, not %llu", (unsigned long long)e.seq, (unsigned long long)seq);
        if (live[e.probe.address >> 21] != (e.probe.kind == BLYI_PROBE_FREE))
            fail_msg("event %llu does not fit", (unsigned long long)seq);
        live[e.probe.address >> 21] = e.probe.kind == BLYI_PROBE_ALLOC;
    }
    assert_int_equal(seq - 1, blyi_trace_info(trace)->seen);
    assert_int_equal(blyi_trace_info(trace)->lost, 0);
}

static void events_of_threads_have_one_order(void **state)
{
    (void)state;
    static const uint64_t rings[] = {0, 1, 1000, 50000};
    for (size_t i = 0; i < BLYI_COUNT(rings); i++) {
        start("threads", rings[i]);
        run_threads(work);
        assert_true(blyi_recorder_audit());
        assert_ok(bly_trace_stop());
        struct blyi_trace *trace = open_trace("threads");
        assert_int_equal(blyi_trace_info(trace)->seen, EVENTS * TEST_THREADS);
        if (rings[i] > 0)
            assert_int_equal(blyi_trace_info(trace)->kept, rings[i]);
        check_history(trace);
        blyi_trace_close(trace);
    }
}

static void *one_event(void *arg)
{
    emit_alloc((uint64_t)(uintptr_t)arg << 21, 1);
    return NULL;
}

static void threads_come_and_go(void **state)
{
    (void)state;
    struct stat about;
    static const uint64_t rings[] = {0, 100};
    for (size_t r = 0; r < BLYI_COUNT(rings); r++) {
        start("many", rings[r]);
        for (uintptr_t i = 1; i <= 2000; i++) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, one_event, (void *)i), 0);
            pthread_join(thread, NULL);
        }
        assert_ok(bly_trace_stop());
        struct blyi_trace *trace = open_trace("many");
        assert_int_equal(blyi_trace_info(trace)->seen, 2000);
        assert_int_equal(blyi_trace_info(trace)->lost, 0);
        assert_int_equal(blyi_trace_info(trace)->n_threads, 2000);
        uint32_t last = 0;
        struct blyi_trace_event e;
        while (blyi_trace_next(trace, &e)) {
            assert_int_not_equal(e.thread, last);
            last = e.thread;
        }
        blyi_trace_close(trace);
        assert_int_equal(stat(in_folder("many"), &about), 0);
        assert_true(about.st_size < (off_t)MiB); /* chunks are handed on */
    }
}

static void *emit_until_stopped(void *arg)
{
    uint64_t address = ((uint64_t)(uintptr_t)arg + 1) << 21;
    unsigned in = 0, n = 0;
    while (!stop_now) {
        if (in != turn) {
            in = turn;
            n = 0;
        }
        if (n++ >= PAIRS) {
            sched_yield();
            continue;
        }
        emit_alloc(address, 1);
        emit_free(address, 1);
    }
    return NULL;
}

static void recordings_start_and_stop_under_threads(void **state)
{
    (void)state;
    pthread_t threads[TEST_THREADS];
    stop_now = false;
    for (uintptr_t i = 0; i < TEST_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_until_stopped, (void *)i), 0);
    for (int i = 0; i < 40; i++) {
        turn++;
        start(i % 4 == 3 ? NULL : "often", i % 2 ? 200 : 0);
        turn++;
        for (int k = 0; k < 20; k++)
            sched_yield();
        assert_ok(bly_trace_dump(in_folder("dump")));
        if (i % 2) {
            struct blyi_trace *trace = open_trace("dump");
            check_history(trace);
            blyi_trace_close(trace);
        }
        turn++;
        assert_ok(bly_trace_stop());
    }
    stop_now = true;
    for (int i = 0; i < TEST_THREADS; i++)
        pthread_join(threads[i], NULL);
    struct blyi_trace *trace = open_trace("often");
    check_history(trace);
    blyi_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_threads_have_one_order),
        cmocka_unit_test(threads_come_and_go),
        cmocka_unit_test(recordings_start_and_stop_under_threads),
    };
    return cmocka_run_group_tests(tests, trace_setup, trace_teardown);
}
