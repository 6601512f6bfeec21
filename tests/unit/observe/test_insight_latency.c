/* SPDX-License-Identifier: Apache-2.0
 *
 * How long calls took: percentiles that are known beforehand, and bends at known calls.
 */
#include "insight_test.h"
#include "observe/insight_bend.h"

#define MIB ((uint64_t)1 << 20)

static void begin(struct story *s)
{
    story_begin(s, 0);
    s->now = 1000000000; /* every call began after the clock did */
    blyi_tracewriter_card(s->w, &(struct blyi_trace_card){0, 1000 * MIB, 10 * MIB});
}

static void took(struct story *s, struct blyi_probe probe, uint64_t ns)
{
    probe.began_ns = s->now + 1000 - ns;
    tell(s, probe);
}

static void make_in(struct story *s, uint64_t address, uint64_t bytes, uint64_t ns)
{
    took(s,
         (struct blyi_probe){.kind = BLYI_PROBE_ALLOC,
                             .address = address,
                             .asked = bytes,
                             .rounded = bytes,
                             .backed = bytes},
         ns);
}

static void end_in(struct story *s, uint64_t address, uint64_t bytes, uint64_t ns)
{
    took(s, (struct blyi_probe){.kind = BLYI_PROBE_FREE, .address = address, .asked = bytes}, ns);
}

static const struct blyi_latency *row(const struct story *s, enum blyi_call_op op,
                                      unsigned size_class)
{
    const struct blyi_latencies *all = &s->in->latencies;
    for (size_t i = 0; i < all->n_rows; i++)
        if (all->rows[i].op == op && all->rows[i].size_class == size_class)
            return &all->rows[i].latency;
    fail_msg("no row of %s, class %u", blyi_call_key(op), size_class);
    return NULL;
}

static void percentiles_are_of_calls(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    for (uint64_t i = 0; i < 200; i++) /* 1 .. 200 ns, in another order: 77 and 200 are coprime */
        make_in(&s, (i + 1) << 21, 4096, i * 77 % 200 + 1);
    make_in(&s, 4096, 4097, 7);
    for (uint64_t i = 0; i < 3; i++)
        end_in(&s, (i + 1) << 21, 4096, 50 + i);
    look(&s);
    const struct blyi_latencies *all = &s.in->latencies;
    assert_int_equal(all->n_rows, 4); /* alloc: all and two classes; free */
    const struct blyi_latency *l = row(&s, BLYI_CALL_ALLOC, 0);
    assert_int_equal(l->count, 200);
    assert_int_equal(l->p50_ns, 100);
    assert_int_equal(l->p99_ns, 198);
    assert_int_equal(l->max_ns, 200);
    assert_int_equal(l->sum_ns, 200 * 201 / 2);
    assert_int_equal(l->max_seq, 188); /* 187 * 77 % 200 is 199 */
    assert_int_equal(l->max_at_ns, 188 * 1000 + 1000000000);
    assert_int_equal(row(&s, BLYI_CALL_ALLOC, 1)->count, 1);
    assert_int_equal(row(&s, BLYI_CALL_ALLOC, 1)->p99_ns, 7);
    assert_int_equal(row(&s, BLYI_CALL_ALLOC, BLYI_LATENCY_ALL)->count, 201);
    l = row(&s, BLYI_CALL_FREE, 0);
    assert_int_equal(l->count, 3);
    assert_int_equal(l->p50_ns, 51);
    assert_int_equal(l->p99_ns, 52);
    assert_int_equal(all->n_bends, 0);
    uint64_t n[BLYI_CALL_OPS] = {0};
    for (size_t i = 0; i < all->n_windows; i++)
        n[all->windows[i].op] += all->windows[i].latency.count;
    assert_int_equal(n[BLYI_CALL_ALLOC], 201);
    assert_int_equal(n[BLYI_CALL_FREE], 3);
    assert_int_equal(all->windows[0].blocks, 16);
    assert_int_equal(all->windows[0].from_ns, 1000 + 1000000000);
    story_end(&s);
}

/* Every 40th call is very slow; from one call on all are. */
static void tell_bend(struct story *s, uint64_t n, uint64_t at, uint64_t before, uint64_t after)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t ns = i < at ? before : after;
        if (i == at)
            TELL(s, MARK, .event = name_of(s, "step 7"));
        make_in(s, (i + 1) << 21, 65536, i % 40 == 39 ? 500000 : ns + i % 7);
    }
}

static void a_bend_is_found_at_its_call(void **state)
{
    (void)state;
    static const uint64_t at[] = {32, 333, 500, 501, 650, 900};
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        struct story s;
        begin(&s);
        tell_bend(&s, 1000, at[i], 1000, 4000);
        look(&s);
        assert_int_equal(s.in->latencies.n_bends, 1);
        const struct blyi_bend *bend = &s.in->latencies.bends[0];
        assert_int_equal(bend->op, BLYI_CALL_ALLOC);
        assert_int_equal(bend->size_class, 1);
        assert_int_equal(bend->seq, at[i] + 2); /* numbers begin at 1, and there is the mark */
        assert_int_equal(bend->before.count, at[i]);
        assert_int_equal(bend->after.count, 1000 - at[i]);
        assert_in_range(bend->before.p50_ns, 1000, 1006);
        assert_in_range(bend->after.p50_ns, 4000, 4006);
        assert_int_equal(bend->first.blocks, 1);
        assert_int_equal(bend->then.blocks, at[i] + 1);
        assert_int_equal(bend->then.backed, (at[i] + 1) * 65536);
        assert_true(bend->free_told);
        assert_int_equal(bend->first.free, 990 * MIB - 65536);
        assert_int_equal(bend->then.free, 990 * MIB - (at[i] + 1) * 65536);
        assert_string_equal(blyi_trace_name(s.trace, s.in->history.moments[bend->moment - 1].name),
                            "step 7");
        story_end(&s);
    }
}

static void calls_may_become_faster(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    tell_bend(&s, 1000, 400, 4000, 1900);
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 1);
    assert_int_equal(s.in->latencies.bends[0].before.count, 400);
    assert_in_range(s.in->latencies.bends[0].after.p50_ns, 1900, 1906);
    story_end(&s);
}

static void what_is_no_bend(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    tell_bend(&s, 1000, 400, 1000, 1900); /* less than twice */
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 0);
    story_end(&s);

    begin(&s);
    tell_bend(&s, 1000, 12, 9000, 1000); /* a cold start */
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 0);
    story_end(&s);

    begin(&s);
    tell_bend(&s, 63, 30, 1000, 9000); /* too few to tell */
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 0);
    story_end(&s);

    begin(&s);
    for (uint64_t i = 0; i < 1000; i++) /* other sizes, not other times */
        make_in(&s, (i + 1) << 27, i < 500 ? 4096 : 32 * MIB, i < 500 ? 1000 : 90000);
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 0);
    assert_int_equal(row(&s, BLYI_CALL_ALLOC, 0)->p50_ns, 1000);
    assert_int_equal(row(&s, BLYI_CALL_ALLOC, 4)->p50_ns, 90000);
    story_end(&s);

    begin(&s);
    for (uint64_t i = 0; i < 2000; i++) /* now slow, now fast */
        make_in(&s, (i + 1) << 21, 4096, i / 100 % 2 ? 1000 : 9000);
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 0);
    story_end(&s);
}

static void each_kind_of_call_has_its_own(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    for (uint64_t i = 0; i < 640; i++) {
        make_in(&s, (i + 1) << 21, 4096, 1000);
        end_in(&s, (i + 1) << 21, 4096, i < 320 ? 100 : 10000);
        took(&s,
             (struct blyi_probe){.kind = BLYI_PROBE_HOST_ALLOC,
                                 .card = -1,
                                 .address = (i + 1) << 12,
                                 .asked = 4096,
                                 .backed = 4096},
             i < 64 ? 1000 : 3000);
        if (i % 160 == 0)
            took(&s,
                 (struct blyi_probe){.kind = BLYI_PROBE_ALLOC_FAIL,
                                     .asked = 5 * 1024 * MIB,
                                     .aux = BLY_E_NO_MEMORY},
                 77);
    }
    look(&s);
    const struct blyi_latencies *all = &s.in->latencies;
    assert_int_equal(row(&s, BLYI_CALL_REFUSED, 6)->count, 4);
    assert_int_equal(row(&s, BLYI_CALL_REFUSED, 6)->p50_ns, 77);
    assert_int_equal(all->n_bends, 2);
    assert_int_equal(all->bends[0].op, BLYI_CALL_FREE); /* 320 x 9900 is more than 576 x 2000 */
    assert_int_equal(all->bends[0].before.p50_ns, 100);
    assert_int_equal(all->bends[0].after.p50_ns, 10000);
    assert_int_equal(all->bends[0].then.blocks, 0);
    assert_int_equal(all->bends[1].op, BLYI_CALL_HOST_ALLOC);
    assert_int_equal(all->bends[1].card, BLYI_NO_CARD);
    assert_int_equal(all->bends[1].then.blocks, 65);
    assert_false(all->bends[1].free_told);
    story_end(&s);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Against a sort: of any, few, one, rising, falling and pipe-organ times. */
static void percentiles_are_those_of_a_sort(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static struct blyi_call calls[MOST];
    static const struct blyi_call *order[MOST];
    static uint64_t room[MOST], sorted[MOST];
    struct rng rng = rng_start();
    for (int round = 0; round < 600; round++) {
        size_t n = 1 + rng_below(&rng, round % 2 ? 40 : MOST);
        for (size_t i = 0; i < n; i++) {
            const uint64_t times[] = {rng_next(&rng), rng_below(&rng, 4),   7, i,
                                      n - i,          i < n / 2 ? i : n - i};
            calls[i] = (struct blyi_call){.took_ns = times[round / 2 % 6]};
            order[i] = &calls[i];
            sorted[i] = calls[i].took_ns;
        }
        struct blyi_latency latency;
        blyi_latency_of(order, n, room, &latency);
        qsort(sorted, n, sizeof(*sorted), by_number);
        assert_int_equal(latency.p50_ns, sorted[(n + 1) / 2 - 1]);
        assert_int_equal(latency.p99_ns, sorted[(n * 99 + 99) / 100 - 1]);
        assert_int_equal(latency.max_ns, sorted[n - 1]);
        qsort(room, n, sizeof(*room), by_number); /* nothing was lost on the way */
        assert_memory_equal(room, sorted, n * sizeof(*room));
    }
}

static void a_file_that_does_not_tell(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    for (uint64_t i = 0; i < 200; i++)
        make(&s, (i + 1) << 21, 4096, 0);
    /* Damage: a call that ended before it began. */
    TELL(&s, ALLOC, .address = 4096, .asked = 1, .began_ns = s.now + 5000);
    look(&s);
    assert_int_equal(s.in->latencies.n_rows, 0);
    assert_int_equal(s.in->latencies.n_windows, 0);
    assert_int_equal(s.in->latencies.n_bends, 0);
    story_end(&s);
}

static void the_longest_times_do_not_overflow(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    s.now = UINT64_MAX - 2000000;
    for (uint64_t i = 0; i < 400; i++)
        took(&s,
             (struct blyi_probe){.kind = BLYI_PROBE_ALLOC, .address = (i + 1) << 21, .asked = 1},
             i < 200 ? s.now : 1);
    look(&s);
    assert_int_equal(s.in->latencies.n_bends, 1);
    assert_int_equal(s.in->latencies.bends[0].before.count, 200);
    assert_true(s.in->latencies.bends[0].before.p50_ns > UINT64_MAX / 2);
    assert_int_equal(s.in->latencies.bends[0].after.p50_ns, 1);
    story_end(&s);
}

static void blocks_add_up(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    blyi_tracewriter_block(s.w, &(struct blyi_trace_block){.address = 1 << 21, .asked = 10});
    make(&s, 2 << 21, 10, 0);
    make(&s, 2 << 21, 20, 0); /* the free between is not in the file */
    make(&s, 3 << 21, 10, 0);
    end(&s, 3 << 21);
    end(&s, 3 << 21); /* nothing lives there */
    TELL(&s, RESET_FREE, .address = 1 << 21);
    TELL(&s, RESET_FREE, .address = 3 << 21);
    make(&s, 4 << 21, 10, 0);
    look(&s);
    const struct blyi_counts *counts = &s.in->history.counts;
    assert_int_equal(s.in->history.n_start, 1);
    assert_int_equal(counts->made, 4);
    assert_int_equal(counts->frees, 2);
    assert_int_equal(counts->resets, 2);
    assert_int_equal(counts->unknown_frees, 2);
    assert_int_equal(counts->lost_frees, 1);
    assert_int_equal(s.in->history.n_start + counts->made - counts->frees - counts->resets +
                         counts->unknown_frees - counts->lost_frees,
                     s.in->peaks[BLYI_ALL_CARDS].end.count);
    story_end(&s);
}

static void host_memory_that_fails(void **state)
{
    (void)state;
    struct story s;
    begin(&s);
    tell_bend(&s, 200, 100, 1000, 4000);
    look(&s);
    struct blyi_latencies latencies;
    int n_failed = 0;
    for (uint64_t nth = 1;; nth++, n_failed++) {
        blyi_host_fail_nth(nth);
        bly_status status = blyi_latencies_make(&s.in->history, &latencies);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        if (!failed) {
            assert_ok(status);
            break;
        }
        assert_int_equal(status, BLY_E_HOST_MEMORY);
        assert_null(latencies.rows);
    }
    assert_int_equal(n_failed, 6);
    assert_int_equal(latencies.n_bends, 1);
    blyi_latencies_fini(&latencies);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_of_calls),
        cmocka_unit_test(a_bend_is_found_at_its_call),
        cmocka_unit_test(calls_may_become_faster),
        cmocka_unit_test(what_is_no_bend),
        cmocka_unit_test(each_kind_of_call_has_its_own),
        cmocka_unit_test(percentiles_are_those_of_a_sort),
        cmocka_unit_test(a_file_that_does_not_tell),
        cmocka_unit_test(the_longest_times_do_not_overflow),
        cmocka_unit_test(blocks_add_up),
        cmocka_unit_test(host_memory_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
