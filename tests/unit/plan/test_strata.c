/* SPDX-License-Identifier: Apache-2.0
 *
 * test_strata.c - what is placed class by class of size, and plans of long traces that begin so.
 */
#include "plan_test.h"

#include <string.h>

#include "base/host.h"
#include "plan/bound.h"
#include "plan/pack.h"
#include "plan/strata.h"

enum { SMALL = 60, MIDDLE = 240, ROUNDS = 300, LONG = 60000, LARGE = 301000 };

struct placed {
    struct blyi_pack pack;
    struct blyi_timeline line;
    int64_t bound;
    int64_t *offset; /* units */
};

static void placed_init(struct placed *p, const bly_plan_buffer *b, size_t n)
{
    assert_ok(blyi_pack_init(&p->pack, b, NULL, n, 1));
    assert_ok(blyi_timeline_init(&p->line, &p->pack));
    assert_ok(blyi_bound_load(&p->pack, NULL, &p->bound));
    p->offset = malloc(n * sizeof(*p->offset));
    assert_non_null(p->offset);
}

static void placed_fini(struct placed *p)
{
    blyi_timeline_fini(&p->line);
    blyi_pack_fini(&p->pack);
    free(p->offset);
}

static bool place(struct placed *p, int64_t limit, uint64_t deadline_ns)
{
    struct blyi_stop stop = {deadline_ns, NULL, 0, false};
    bool done;
    assert_ok(blyi_strata(&p->pack, &p->line, p->bound, limit, &stop, p->offset, &done));
    return done;
}

/* A sweep that shares nothing with it finds no overlap. Returns the peak in bytes. */
static uint64_t verified(const struct placed *p, const bly_plan_buffer *b, size_t n)
{
    uint64_t peak, *offset = malloc(n * sizeof(*offset));
    assert_non_null(offset);
    for (size_t i = 0; i < n; i++)
        offset[i] = (uint64_t)(p->offset[i] * p->pack.unit);
    assert_ok(bly_plan_verify(b, n, 1, offset, NULL, &peak));
    free(offset);
    return peak;
}

/* Is [start, start + size) free for item i, whatever else lies where it lies? */
static bool is_free(const struct placed *p, uint32_t i, int64_t start)
{
    const struct blyi_pack_item *a = &p->pack.items[i];
    for (uint32_t k = 0; k < p->pack.n; k++) {
        const struct blyi_pack_item *b = &p->pack.items[k];
        if (k != i && a->first <= b->last && b->first <= a->last &&
            start < p->offset[k] + b->size && p->offset[k] < start + a->size)
            return false;
    }
    return true;
}

/* Whatever was placed first, nothing fits lower down than where it lies: at the bottom, or on top
 * of something that it meets. */
static void nothing_could_lie_lower(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    for (int round = 0; round < ROUNDS; round++) {
        bly_plan_buffer b[SMALL];
        struct placed p;
        plan_random(&seed, b, SMALL, plan_between(&seed, 2, 200), plan_between(&seed, 1, 2000));
        placed_init(&p, b, SMALL);
        assert_true(place(&p, INT64_MAX, UINT64_MAX));
        verified(&p, b, SMALL);
        for (uint32_t i = 0; i < SMALL; i++) {
            if (p.offset[i] > 0)
                assert_false(is_free(&p, i, 0));
            for (uint32_t k = 0; k < SMALL; k++) {
                int64_t top = p.offset[k] + p.pack.items[k].size;
                if (top < p.offset[i])
                    assert_false(is_free(&p, i, top));
            }
        }
        placed_fini(&p);
    }
}

/* The largest lies at the bottom although it is born last. */
static void larger_ones_come_first(void **state)
{
    (void)state;
    bly_plan_buffer b[] = {bly_plan_buffer_make(0, 5, 9), bly_plan_buffer_make(1, 5, 2),
                           bly_plan_buffer_make(2, 5, 16)};
    struct placed p;
    placed_init(&p, b, 3);
    assert_true(place(&p, INT64_MAX, UINT64_MAX));
    assert_int_equal(p.offset[2], 0);
    assert_int_equal(p.offset[0], 16);
    assert_int_equal(p.offset[1], 25);
    placed_fini(&p);
}

/* Two of 11 and one of 10 are the peak; 13 lives elsewhere but meets one of them. By size alone it
 * would come first and lift an 11; it waits, since those at the peak count as larger. */
static void the_peak_comes_first(void **state)
{
    (void)state;
    bly_plan_buffer b[] = {bly_plan_buffer_make(0, 4, 11), bly_plan_buffer_make(3, 4, 11),
                           bly_plan_buffer_make(3, 4, 10), bly_plan_buffer_make(1, 2, 13)};
    struct placed p;
    placed_init(&p, b, 4);
    assert_int_equal(p.bound, 32);
    assert_true(place(&p, INT64_MAX, UINT64_MAX));
    assert_int_equal(p.offset[0], 0);
    assert_int_equal(p.offset[3], 11);
    assert_int_equal(verified(&p, b, 4), 32);
    placed_fini(&p);
}

/* The unit is 1 byte, so the bound does not fit into the 32 bits that places are counted in. */
static void huge_sizes_are_counted_in_cells(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    bly_plan_buffer b[SMALL];
    struct placed p;
    plan_random(&seed, b, SMALL, 40, INT64_C(1) << 50);
    b[0].size |= 1;
    placed_init(&p, b, SMALL);
    assert_int_equal(p.pack.unit, 1);
    assert_true(p.bound >= INT64_C(1) << 32);
    assert_true(place(&p, INT64_MAX, UINT64_MAX));
    verified(&p, b, SMALL);
    placed_fini(&p);
}

static void it_gives_up_above_the_limit_and_late(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    bly_plan_buffer b[MIDDLE];
    struct placed p;
    plan_random(&seed, b, MIDDLE, 200, 2000);
    placed_init(&p, b, MIDDLE);
    assert_true(place(&p, INT64_MAX, UINT64_MAX));
    int64_t peak = blyi_pack_peak(&p.pack, p.offset);
    assert_true(place(&p, peak, UINT64_MAX));
    assert_false(place(&p, peak - 1, UINT64_MAX));
    assert_false(place(&p, INT64_MAX, 0));
    placed_fini(&p);
}

/* All of many live at once: each would look at all others. */
static void it_leaves_crowds_to_others(void **state)
{
    (void)state;
    bly_plan_buffer *b = malloc(LONG * sizeof(*b));
    assert_non_null(b);
    for (int i = 0; i < LONG; i++)
        b[i] = bly_plan_buffer_make(i, LONG + i, 1 + (uint64_t)i % 7);
    struct placed p;
    placed_init(&p, b, LONG);
    assert_false(place(&p, INT64_MAX, UINT64_MAX));
    placed_fini(&p);
    bly_plan_opts opts = bly_plan_opts_default();
    opts.node_budget = 1;
    bly_plan_result r;
    assert_ok(bly_plan(b, LONG, &opts, &r)); /* by other means */
    bly_plan_release(&r);
    free(b);
}

/* Each of its allocations fails once; nothing leaks and it says so. */
static void host_memory_may_run_out(void **state)
{
    (void)state;
    uint64_t seed = plan_seed();
    bly_plan_buffer b[SMALL];
    struct placed p;
    struct blyi_host_stats before, after;
    plan_random(&seed, b, SMALL, 200, 2000);
    placed_init(&p, b, SMALL);
    uint64_t nth = 1;
    for (bool failed = true; failed; nth++) {
        struct blyi_stop stop = {UINT64_MAX, NULL, 0, false};
        bool done;
        blyi_host_stats(&before);
        blyi_host_fail_nth(nth);
        bly_status status =
            blyi_strata(&p.pack, &p.line, p.bound, INT64_MAX, &stop, p.offset, &done);
        failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        blyi_host_stats(&after);
        assert_int_equal(status, failed ? BLY_E_HOST_MEMORY : BLY_OK);
        assert_int_equal(after.live_bytes, before.live_bytes);
    }
    assert_true(nth > 5);
    placed_fini(&p);
}

/* One in two hundred lives for a hundred times as long as the others; or, as with requests to a
 * model, what is larger lives longer. */
static bly_plan_buffer *make_trace(size_t n, bool lasting)
{
    bly_plan_buffer *b = malloc(n * sizeof(*b));
    assert_non_null(b);
    uint64_t seed = 1;
    for (size_t i = 0; i < n; i++) {
        int64_t size = (int64_t)16 << plan_between(&seed, 0, 8);
        size += plan_between(&seed, 0, size - 1);
        int64_t life = lasting ? plan_between(&seed, 1, 300) : 1 + size / 16;
        if (lasting && i % 200 == 0)
            life = plan_between(&seed, 3000, 30000);
        b[i] = bly_plan_buffer_make((int64_t)i, (int64_t)i + life, (uint64_t)size);
    }
    return b;
}

/* Without any search: a sweep in order of birth ends 10 to 20 % above the bound. */
static void one_pass_comes_close_to_the_bound(void **state)
{
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++) {
        bly_plan_buffer *b = make_trace(LONG, lasting);
        struct placed p;
        placed_init(&p, b, LONG);
        assert_true(place(&p, INT64_MAX, UINT64_MAX));
        double ratio = (double)verified(&p, b, LONG) / (double)(p.bound * p.pack.unit);
        print_message("%.4f\n", ratio);
        assert_true(ratio <= 1.06);
        placed_fini(&p);
        free(b);
    }
}

static void long_traces_stay_close_to_the_bound(void **state)
{
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++) {
        bly_plan_buffer *b = make_trace(LARGE, lasting);
        bly_plan_opts opts = bly_plan_opts_default();
        opts.node_budget = 1000;
        opts.deadline_ns = UINT64_MAX;
        bly_plan_result r;
        assert_ok(bly_plan(b, LARGE, &opts, &r));
        print_message("%.4f by %s\n", (double)r.peak / (double)r.lower_bound, r.solver);
        assert_true((double)r.peak <= 1.04 * (double)r.lower_bound);
        bly_plan_release(&r);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_could_lie_lower),
        cmocka_unit_test(larger_ones_come_first),
        cmocka_unit_test(the_peak_comes_first),
        cmocka_unit_test(huge_sizes_are_counted_in_cells),
        cmocka_unit_test(it_gives_up_above_the_limit_and_late),
        cmocka_unit_test(it_leaves_crowds_to_others),
        cmocka_unit_test(host_memory_may_run_out),
        cmocka_unit_test(one_pass_comes_close_to_the_bound),
        cmocka_unit_test(long_traces_stay_close_to_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
