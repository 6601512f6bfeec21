/* SPDX-License-Identifier: Apache-2.0
 * bly_plan() beside an exhaustive search, and its promises one by one. */
#include "plan_test.h"

#include <string.h>

#include "base/host.h"

static bly_plan_opts nodes(uint64_t budget)
{
    bly_plan_opts opts = bly_plan_opts_default();
    opts.node_budget = budget;
    opts.n_threads = 1;
    return opts;
}

static void check_result(const bly_plan_buffer *b, size_t n, const bly_plan_opts *opts,
                         const bly_plan_result *r)
{
    uint64_t peak;
    assert_ok(bly_plan_verify(b, n, opts->align, r->offset, r->region, &peak));
    assert_int_equal(peak, r->peak);
    assert_true(r->lower_bound <= r->peak);
    assert_int_equal(r->optimal, r->peak == r->lower_bound);
}

static void small_problems_are_solved(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    for (int round = 0; round < 300; round++) {
        bly_plan_buffer b[7];
        size_t n = 1 + plan_rand(&seed) % 7;
        plan_random(&seed, b, n, 8, 9);
        bly_plan_opts opts = nodes(20000);
        bly_plan_result r;
        assert_ok(bly_plan(b, n, &opts, &r));
        check_result(b, n, &opts, &r);
        assert_int_equal(r.peak, plan_exhaustive(b, n));
        assert_true(r.optimal); /* the search ended, so the bound rose to the optimum */
        bly_plan_release(&r);
    }
}

static void planted_optimum_is_found(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    for (int round = 0; round < 20; round++) {
        bly_plan_buffer b[60];
        plan_planted(&seed, b, 60, 200, 1000);
        bly_plan_opts opts = nodes(300000);
        bly_plan_result r;
        assert_ok(bly_plan(b, 60, &opts, &r));
        check_result(b, 60, &opts, &r);
        assert_int_equal(r.lower_bound, 1000);
        assert_true(r.peak <= 1150);
        bly_plan_release(&r);
    }
}

/* Alignments, fixed offsets, gaps and hints at random: the sweep decides. */
static void wishes_are_kept(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    for (int round = 0; round < 200; round++) {
        enum { N = 40 };
        bly_plan_buffer b[N];
        bly_plan_gap gaps[N];
        plan_random(&seed, b, N, 60, 5000);
        for (size_t i = 0; i < N; i++) {
            b[i].align = plan_rand(&seed) % 3 == 0 ? (uint64_t)1 << plan_between(&seed, 0, 9) : 0;
            b[i].hint = plan_rand(&seed) % 4 == 0 ? plan_between(&seed, 0, 9999) : BLY_PLAN_FREE;
            if (plan_rand(&seed) % 3 != 0 || b[i].upper - b[i].lower < 4)
                continue;
            uint64_t kept = plan_rand(&seed) % (b[i].size + 1);
            gaps[i] = (bly_plan_gap){b[i].lower + 1, b[i].upper - 1, kept / 2, kept};
            b[i].gaps = &gaps[i];
            b[i].n_gaps = 1;
        }
        b[0].align = 1;
        b[0].offset = 12345;
        bly_plan_opts opts = nodes(3000);
        opts.align = 64;
        bly_plan_result r;
        assert_ok(bly_plan(b, N, &opts, &r));
        check_result(b, N, &opts, &r);
        bly_plan_release(&r);
    }
}

static void a_gap_lets_another_in(void **state)
{
    (void)state;
    bly_plan_gap gap = {2, 8, 0, 0}, half = {2, 8, 0, 50};
    bly_plan_buffer b[2] = {bly_plan_buffer_make(0, 10, 100), bly_plan_buffer_make(3, 7, 100)};
    bly_plan_opts opts = nodes(1000);
    bly_plan_result r;
    b[0].gaps = &gap;
    b[0].n_gaps = 1;
    assert_ok(bly_plan(b, 2, &opts, &r));
    assert_int_equal(r.peak, 100);
    bly_plan_release(&r);
    b[0].gaps = &half;
    assert_ok(bly_plan(b, 2, &opts, &r));
    assert_int_equal(r.peak, 150);
    assert_true(r.optimal);
    bly_plan_release(&r);
}

static void a_hinted_plan_is_never_lost(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 80 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 100, 1000);
    bly_plan_opts opts = nodes(200000), few = nodes(1);
    bly_plan_result r, again;
    assert_ok(bly_plan(b, N, &opts, &r));
    for (size_t i = 0; i < N; i++)
        b[i].hint = (int64_t)r.offset[i];
    assert_ok(bly_plan(b, N, &few, &again));
    assert_true(again.peak <= r.peak);
    bly_plan_release(&r);
    bly_plan_release(&again);
}

static void regions_take_what_fits(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 60 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 80, 1000);
    b[5].region = 1;
    uint64_t capacity[2] = {4000, 0};
    bly_plan_opts opts = nodes(20000);
    opts.capacity = capacity;
    opts.n_regions = 2;
    bly_plan_result r;
    assert_ok(bly_plan(b, N, &opts, &r));
    check_result(b, N, &opts, &r);
    assert_true(r.region_peak[0] > 0 && r.region_peak[0] <= 4000);
    assert_int_equal(r.region[5], 1);
    bly_plan_release(&r);
    capacity[1] = 10;
    assert_int_equal(bly_plan(b, N, &opts, &r), BLY_E_NO_MEMORY);
}

static void capacity_decides(void **state)
{
    (void)state;
    uint64_t seed = plan_seed(), capacity = 1150;
    bly_plan_buffer b[60];
    plan_planted(&seed, b, 60, 200, 1000);
    bly_plan_opts opts = nodes(1000000);
    opts.capacity = &capacity;
    bly_plan_result r;
    assert_ok(bly_plan(b, 60, &opts, &r));
    assert_true(r.peak <= capacity);
    bly_plan_release(&r);
    capacity = 999;
    assert_int_equal(bly_plan(b, 60, &opts, &r), BLY_E_NO_MEMORY);
    assert_non_null(strstr(bly_last_error(), "999"));
}

static void equal_arguments_give_equal_plans(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 200 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 150, 100000);
    bly_plan_opts opts = nodes(60000);
    opts.seed = 7;
    bly_plan_result one, many;
    assert_ok(bly_plan(b, N, &opts, &one));
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        opts.n_threads = threads;
        assert_ok(bly_plan(b, N, &opts, &many));
        assert_int_equal(one.nodes, many.nodes);
        assert_memory_equal(one.offset, many.offset, N * sizeof(*one.offset));
        bly_plan_release(&many);
    }
    bly_plan_release(&one);
}

struct steps {
    uint64_t peak;
    size_t n;
    volatile int cancel;
};

static void note_step(const bly_plan_progress *progress, void *arg)
{
    struct steps *steps = arg;
    assert_true(steps->n == 0 || progress->peak < steps->peak);
    assert_true(progress->lower_bound <= progress->peak);
    steps->peak = progress->peak;
    steps->n++;
}

static void stop_at_once(const bly_plan_progress *progress, void *arg)
{
    struct steps *steps = arg;
    steps->peak = progress->peak;
    steps->cancel = 1;
}

static void progress_is_monotone(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 300 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 100, 100000);
    struct steps steps = {0, 0, 0};
    bly_plan_opts opts = nodes(50000);
    opts.progress = note_step;
    opts.progress_arg = &steps;
    bly_plan_result r;
    assert_ok(bly_plan(b, N, &opts, &r));
    assert_true(steps.n > 0);
    assert_int_equal(steps.peak, r.peak);
    bly_plan_release(&r);
}

static void cancelling_keeps_the_plan(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 400 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 100, 100000);
    struct steps steps = {0, 0, 0};
    bly_plan_opts opts = bly_plan_opts_default();
    opts.deadline_ns = UINT64_MAX; /* only the flag ends it */
    opts.cancel = &steps.cancel;
    opts.progress = stop_at_once;
    opts.progress_arg = &steps;
    bly_plan_result r;
    assert_ok(bly_plan(b, N, &opts, &r));
    assert_true(r.cancelled || r.optimal);
    check_result(b, N, &opts, &r);
    bly_plan_release(&r);
    assert_int_equal(bly_plan(b, N, &opts, &r), BLY_E_CANCELLED);
}

/* A deadline that is over before it begins still gives a plan. */
static void any_deadline_gives_a_plan(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    enum { N = 2000 };
    bly_plan_buffer *b = malloc(N * sizeof(*b));
    plan_random(&seed, b, N, 3000, 100000);
    bly_plan_opts opts = bly_plan_opts_default();
    opts.deadline_ns = 1;
    bly_plan_result r;
    assert_ok(bly_plan(b, N, &opts, &r));
    check_result(b, N, &opts, &r);
    bly_plan_release(&r);
    b[3].offset = 4096; /* other solvers make the first plan then */
    assert_ok(bly_plan(b, N, &opts, &r));
    check_result(b, N, &opts, &r);
    bly_plan_release(&r);
    free(b);
}

static void extremes(void **state)
{
    (void)state;
    bly_plan_result r;
    assert_ok(bly_plan(NULL, 0, NULL, &r));
    assert_int_equal(r.peak, 0);
    assert_true(r.optimal);
    bly_plan_release(&r);
    bly_plan_buffer one = bly_plan_buffer_make(INT64_MIN, INT64_MAX, (uint64_t)1 << 61);
    assert_ok(bly_plan(&one, 1, NULL, &r));
    assert_int_equal(r.peak, (uint64_t)1 << 61);
    bly_plan_release(&r);
    enum { MANY = 1000000 };
    bly_plan_buffer *b = malloc(MANY * sizeof(*b));
    for (size_t i = 0; i < MANY; i++)
        b[i] = bly_plan_buffer_make(0, 1, 4096);
    bly_plan_opts opts = bly_plan_opts_default();
    opts.deadline_ns = UINT64_MAX; /* it ends as the plan is optimal, on the slowest machine */
    assert_ok(bly_plan(b, MANY, &opts, &r));
    assert_true(r.optimal);
    assert_int_equal(r.peak, (uint64_t)MANY * 4096);
    bly_plan_release(&r);
    free(b);
}

static void refused(const bly_plan_buffer *b, size_t n, const char *word)
{
    bly_plan_result r;
    assert_int_equal(bly_plan(b, n, NULL, &r), BLY_E_INVALID);
    if (strstr(bly_last_error(), word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", bly_last_error(), word);
}

static void bad_buffers_are_refused(void **state)
{
    (void)state;
    bly_plan_buffer good = bly_plan_buffer_make(0, 10, 100), b[2] = {good, good};
    bly_plan_gap gap = {0, 10, 0, 0};
    b[1].upper = 0;
    refused(b, 2, "buffer 1: lifetime [0, 0) is empty");
    b[1] = good;
    b[1].size = 0;
    refused(b, 2, "size 0");
    b[1].size = UINT64_MAX;
    refused(b, 2, "2^62");
    b[0].offset = b[1].offset = 0;
    b[1].size = 100;
    refused(b, 2, "fixed at 0 and 0");
    b[1].offset = -7;
    refused(b, 2, "out of range");
    b[1] = good;
    b[1].align = 64;
    b[1].offset = 100;
    refused(b, 2, "multiple of 64");
    b[1] = good;
    b[1].region = 3;
    refused(b, 2, "region 3");
    b[1] = good;
    b[1].n_gaps = 1;
    refused(b, 2, "no array");
    b[1].gaps = &gap;
    refused(b, 2, "no time");
    gap = (bly_plan_gap){2, 12, 0, 0};
    refused(b, 2, "outside");
    gap = (bly_plan_gap){2, 4, 90, 101};
    refused(b, 2, "keeps bytes");
    bly_plan_opts opts = bly_plan_opts_default();
    bly_plan_result r;
    opts.struct_size = 3;
    assert_int_equal(bly_plan(&good, 1, &opts, &r), BLY_E_INVALID);
}

static void the_sweep_sees_overlaps(void **state)
{
    (void)state;
    bly_plan_buffer b[2] = {bly_plan_buffer_make(0, 10, 100), bly_plan_buffer_make(9, 20, 100)};
    uint64_t good[2] = {0, 100}, bad[2] = {0, 99}, peak;
    assert_ok(bly_plan_verify(b, 2, 1, good, NULL, &peak));
    assert_int_equal(peak, 200);
    assert_int_equal(bly_plan_verify(b, 2, 1, bad, NULL, &peak), BLY_E_INVALID);
    assert_int_equal(bly_plan_verify(b, 2, 64, good, NULL, &peak), BLY_E_INVALID);
    b[0].upper = 9;
    assert_ok(bly_plan_verify(b, 2, 1, bad, NULL, &peak));
    b[0].offset = 8;
    assert_int_equal(bly_plan_verify(b, 2, 1, bad, NULL, &peak), BLY_E_INVALID);
}

/* Each host allocation fails once; nothing is lost and a plan, if there is one, is valid. */
static bool overlap_anywhere(const bly_plan_buffer *b, const uint64_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (b[i].lower < b[k].upper && b[k].lower < b[i].upper && at[i] < at[k] + b[k].size &&
                at[k] < at[i] + b[i].size)
                return true;
        }
    }
    return false;
}

/* In and out of order of birth, as whole buffers and as spans (one region; two of them). */
static void the_sweep_agrees_with_all_pairs(void **state)
{
    (void)state;
    enum { N = 12 };
    uint64_t random = 7, refused = 0;
    for (int round = 0; round < 4000; round++) {
        bly_plan_buffer b[N];
        uint64_t at[N], peak;
        uint32_t region[N] = {0};
        for (int i = 0; i < N; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int64_t lower = round % 2 == 0 ? i : (int64_t)(random >> 40) % N;
            b[i] = bly_plan_buffer_make(lower, lower + 1 + (int64_t)(random >> 50) % 3,
                                        1 + (random >> 55) % 4);
            at[i] = (random >> 33) % 100;
        }
        bool overlap = overlap_anywhere(b, at, N);
        refused += overlap;
        bly_status wanted = overlap ? BLY_E_INVALID : BLY_OK;
        assert_int_equal(bly_plan_verify(b, N, 1, at, NULL, &peak), wanted);
        assert_int_equal(bly_plan_verify(b, N, 1, at, region, &peak), wanted);
        region[0] = 1;
        overlap = overlap_anywhere(b + 1, at + 1, N - 1);
        wanted = overlap ? BLY_E_INVALID : BLY_OK;
        assert_int_equal(bly_plan_verify(b, N, 1, at, region, &peak), wanted);
    }
    assert_in_range(refused, 400, 3600);
}

static void host_memory_may_fail_anywhere(void **state)
{
    (void)state;
    uint64_t seed = 5;
    enum { N = 60 };
    bly_plan_buffer b[N];
    plan_random(&seed, b, N, 60, 1000);
    bly_plan_opts opts = nodes(20000);
    struct blyi_host_stats before, after;
    blyi_host_stats(&before);
    for (uint64_t nth = 1;; nth++) {
        bly_plan_result r;
        blyi_host_fail_nth(nth);
        bly_status status = bly_plan(b, N, &opts, &r);
        int failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        assert_true(status == BLY_OK || (failed && status == BLY_E_HOST_MEMORY));
        if (status == BLY_OK) {
            check_result(b, N, &opts, &r);
            bly_plan_release(&r);
        }
        blyi_host_stats(&after);
        assert_int_equal(before.live_blocks, after.live_blocks);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_problems_are_solved),
        cmocka_unit_test(planted_optimum_is_found),
        cmocka_unit_test(wishes_are_kept),
        cmocka_unit_test(a_gap_lets_another_in),
        cmocka_unit_test(a_hinted_plan_is_never_lost),
        cmocka_unit_test(regions_take_what_fits),
        cmocka_unit_test(capacity_decides),
        cmocka_unit_test(equal_arguments_give_equal_plans),
        cmocka_unit_test(progress_is_monotone),
        cmocka_unit_test(cancelling_keeps_the_plan),
        cmocka_unit_test(any_deadline_gives_a_plan),
        cmocka_unit_test(extremes),
        cmocka_unit_test(bad_buffers_are_refused),
        cmocka_unit_test(the_sweep_sees_overlaps),
        cmocka_unit_test(the_sweep_agrees_with_all_pairs),
        cmocka_unit_test(host_memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
