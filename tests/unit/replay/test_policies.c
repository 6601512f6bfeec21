/* SPDX-License-Identifier: Apache-2.0
 * Each policy on traces so short that the figures were worked out by hand. */
#include "replay_test.h"

#include "base/host.h"

static struct blyi_replay_figures figures_of(const struct blyi_replay_policy *policy,
                                             struct blyi_replay_event *events, size_t n,
                                             uint64_t capacity)
{
    struct blyi_replay_trace trace = trace_of(events, n);
    struct blyi_replay_result result;
    if (run_on(policy, &trace, capacity, &result) != BLY_OK)
        fail_msg("%s", bly_last_error());
    return result.figures;
}

#define FIGURES(policy, events, capacity)                                                          \
    figures_of(&blyi_replay_##policy, events, BLYI_COUNT(events), capacity)

static void stock_takes_whole_pages(void **state)
{
    struct blyi_replay_event events[] = {A(0, 1, 0), A(1, 2 * MiB, 0), A(2, 2 * MiB + 1, 1), F(1),
                                         A(3, 512, 0)};
    struct blyi_replay_figures f = FIGURES(stock, events, 0);
    (void)state;
    assert_int_equal(f.peak_reserved, 8 * MiB);
    assert_int_equal(f.reserved, 8 * MiB);
    assert_int_equal(f.pages_mapped, 5);
    assert_int_equal(f.pages_unmapped, 1);
    assert_int_equal(f.handles_mapped, 4);
    assert_int_equal(f.ranges_unmapped, 1);
}

static void pad_is_part_of_every_request(void **state)
{
    struct blyi_replay_event events[] = {A(0, 2 * MiB, 0), A(1, 2 * MiB - 32, 0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_setup setup = {
        .trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED, .pad = 32};
    struct blyi_replay_result result;
    (void)state;
    assert_int_equal(blyi_replay_run(&blyi_replay_stock, &setup, NULL, NULL, &result), BLY_OK);
    assert_int_equal(result.figures.peak_reserved, 6 * MiB);
    assert_int_equal(result.live, 4 * MiB - 32); /* of what was asked for */
}

static void segments_by_size(void **state)
{
    struct {
        uint64_t bytes, reserved;
    } cases[] = {
        {1, 2 * MiB},
        {1 * MiB, 2 * MiB},
        {1 * MiB + 1, 20 * MiB},
        {10 * MiB - 512, 20 * MiB},
        {10 * MiB, 10 * MiB},
        {10 * MiB - 1, 10 * MiB}, /* rounded to 512 first */
        {11 * MiB, 12 * MiB},
        {64 * MiB + 1, 66 * MiB},
    };
    (void)state;
    for (size_t i = 0; i < BLYI_COUNT(cases); i++) {
        struct blyi_replay_event events[] = {A(0, cases[i].bytes, 0)};
        assert_int_equal(FIGURES(caching, events, 0).peak_reserved, cases[i].reserved);
    }
}

static void caching_splits_and_joins(void **state)
{
    /* Two halves of a small segment; freed and joined, they are one block of 1 MiB + 1 MiB. */
    struct blyi_replay_event small[] = {A(0, 512 * KiB, 0), A(1, 512 * KiB, 0), F(0), F(1),
                                        A(2, 1 * MiB, 0),   A(3, 1 * MiB, 0)};
    /* A rest of at most 1 MiB stays with a large block. */
    struct blyi_replay_event kept[] = {A(0, 19 * MiB / 2, 0), A(1, 19 * MiB / 2, 0),
                                       A(2, 3 * MiB / 2, 0)};
    /* The best fit is the hole of 4 MiB, not what is left at the end. */
    struct blyi_replay_event best[] = {A(0, 4 * MiB, 0), A(1, 2 * MiB, 0), A(2, 5 * MiB, 0), F(0),
                                       A(3, 4 * MiB, 0), A(4, 9 * MiB, 0)};
    (void)state;
    assert_int_equal(FIGURES(caching, small, 0).peak_reserved, 2 * MiB);
    assert_int_equal(FIGURES(caching, kept, 0).peak_reserved, 40 * MiB);
    assert_int_equal(FIGURES(caching, best, 0).peak_reserved, 20 * MiB);
}

static void streams_share_nothing(void **state)
{
    struct blyi_replay_event events[] = {A(0, 1 * MiB, 0), F(0), A(1, 1 * MiB, 1), F(1),
                                         A(2, 1 * MiB, 0)};
    (void)state;
    assert_int_equal(FIGURES(caching, events, 0).peak_reserved, 4 * MiB);
    assert_int_equal(FIGURES(expandable, events, 0).peak_reserved, 4 * MiB);
    assert_int_equal(FIGURES(firstfit, events, 0).peak_reserved, 2 * MiB);
}

static void caching_flushes_whole_segments(void **state)
{
    /* 12 MiB idle alone, 16 beside a live block; 18 MiB more than the card has. */
    struct blyi_replay_event events[] = {
        A(0, 12 * MiB, 0), A(1, 4 * MiB, 0), A(2, 2 * MiB, 0), F(0), F(2), A(3, 17 * MiB, 0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_result result;
    struct blyi_replay_figures f = FIGURES(caching, events, 38 * MiB);
    (void)state;
    assert_int_equal(f.flushes, 1);
    assert_int_equal(f.reserved, 38 * MiB);
    assert_int_equal(f.ranges_unmapped, 1);
    assert_int_equal(f.pages_unmapped, 6);
    assert_int_equal(run_on(&blyi_replay_caching, &trace, 38 * MiB - 1, &result), BLY_E_NO_MEMORY);
    assert_int_equal(result.failed_at, 5);
    assert_string_equal(
        bly_last_error(),
        "caching: no room on a card of 39845887 B (38.0 MiB) for event 6, which asks for "
        "17825792 B (17 MiB) on stream 0 (reserved 20971520 B (20 MiB), live 4194304 B (4 MiB), "
        "idle 16777216 "
        "B (16 MiB))");
}

static void expandable_grows_by_chunks(void **state)
{
    /* 21 MiB need two chunks of 20; the next 19 MiB lie behind them without another. */
    struct blyi_replay_event events[] = {A(0, 21 * MiB, 0), A(1, 19 * MiB, 0), A(2, 2 * MiB, 0)};
    struct blyi_replay_figures f = FIGURES(expandable, events, 0);
    (void)state;
    assert_int_equal(f.peak_reserved, 60 * MiB);
    assert_int_equal(f.ranges_mapped, 2);
    assert_int_equal(f.handles_mapped, 3);
    assert_int_equal(f.pages_mapped, 30);
}

static void expandable_flushes_chunks_inside_blocks(void **state)
{
    /* 5 MiB live, 50 idle, 5 live: of the idle ones one chunk lies whole inside, [20, 40) MiB. The
     * 55 MiB then begin behind them, in three chunks. */
    struct blyi_replay_event events[] = {A(0, 5 * MiB, 0), A(1, 50 * MiB, 0),
                                         A(2, 5 * MiB, 0), F(1),
                                         A(3, 512, 1),     A(4, 55 * MiB, 0)};
    struct blyi_replay_figures f = FIGURES(expandable, events, 102 * MiB);
    (void)state;
    assert_int_equal(f.flushes, 1);
    assert_int_equal(f.ranges_unmapped, 1);
    assert_int_equal(f.handles_unmapped, 1);
    assert_int_equal(f.reserved, 102 * MiB);
}

static void expandable_prefers_what_cannot_grow(void **state)
{
    /* Idle are 8 MiB in the middle and the last 6 MiB, which count as large: the middle is taken,
     * and the edge has room for what follows. */
    struct blyi_replay_event events[] = {A(0, 8 * MiB, 0), A(1, 6 * MiB, 0), F(0), A(2, 5 * MiB, 0),
                                         A(3, 6 * MiB, 0)};
    (void)state;
    assert_int_equal(FIGURES(expandable, events, 0).peak_reserved, 20 * MiB);
}

static void firstfit_takes_the_lowest(void **state)
{
    /* Holes of 4 and 2 MiB: 2 MiB go into the first, so 4 MiB more do not fit below. */
    struct blyi_replay_event events[] = {
        A(0, 4 * MiB, 0), A(1, 512, 0),    A(2, 2 * MiB, 1), A(3, 512, 0), F(0), F(2),
        A(4, 2 * MiB, 2), A(5, 4 * MiB, 0)};
    struct blyi_replay_figures f = FIGURES(firstfit, events, 0);
    (void)state;
    assert_int_equal(f.peak_reserved, 12 * MiB);
    assert_int_equal(f.pages_unmapped, 0);
}

/* ---- order ------------------------------------------------------------------------------- */

static uint64_t stock_peak(struct blyi_replay_event *events, size_t n)
{
    return figures_of(&blyi_replay_stock, events, n, 0).peak_reserved;
}

static void a_used_block_comes_back_when_told(void **state)
{
    struct blyi_replay_event before[] = {A(0, 1, 0), U(0, 1), U(0, 2),    F_TOLD(0), M,
                                         M,          M,       A(1, 1, 0), D(0)};
    struct blyi_replay_event after[] = {A(0, 1, 0), U(0, 1), F_TOLD(0), D(0), A(1, 1, 0)};
    (void)state;
    assert_int_equal(stock_peak(before, BLYI_COUNT(before)), 4 * MiB);
    assert_int_equal(stock_peak(after, BLYI_COUNT(after)), 2 * MiB);
}

static void a_used_block_comes_back_after_the_lag(void **state)
{
    struct blyi_replay_event early[] = {A(0, 1, 0), U(0, 1), F(0), A(1, 1, 0)};
    struct blyi_replay_event late[] = {A(0, 1, 0), U(0, 1), F(0), M, A(1, 1, 0)};
    (void)state;
    assert_int_equal(stock_peak(early, BLYI_COUNT(early)), 4 * MiB);
    assert_int_equal(stock_peak(late, BLYI_COUNT(late)), 2 * MiB);
}

static void a_sync_ends_all_uses(void **state)
{
    struct blyi_replay_event events[] = {A(0, 1, 0), U(0, 1), A(1, 1, 0), U(1, 1),
                                         F_TOLD(1),  F(0),    S(3),       A(2, 3 * MiB, 0)};
    struct blyi_replay_figures f = FIGURES(stock, events, 0);
    (void)state;
    assert_int_equal(f.peak_reserved, 4 * MiB);
}

static void a_full_card_ends_all_uses_of_a_pool(void **state)
{
    struct blyi_replay_event events[] = {A(0, 12 * MiB, 0), U(0, 1), F_TOLD(0), A(1, 12 * MiB, 0),
                                         D(0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_result result;
    struct blyi_replay_figures f = FIGURES(caching, events, 12 * MiB);
    (void)state;
    assert_int_equal(f.flushes, 1);
    assert_int_equal(f.peak_reserved, 12 * MiB);
    /* A driver does not wait. */
    assert_int_equal(run_on(&blyi_replay_stock, &trace, 12 * MiB, &result), BLY_E_NO_MEMORY);
    assert_int_equal(result.figures.flushes, 0);
}

/* ---- runs -------------------------------------------------------------------------------- */

static void least_is_the_smallest(void **state)
{
    struct blyi_replay_event events[] = {
        A(0, 12 * MiB, 0), A(1, 4 * MiB, 0), A(2, 2 * MiB, 0), F(0), F(2), A(3, 17 * MiB, 0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_setup setup = {.trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED};
    struct blyi_replay_result result;
    uint64_t least;
    (void)state;
    assert_int_equal(blyi_replay_least(&blyi_replay_caching, &setup, 0, &least, &result), BLY_OK);
    assert_int_equal(least, 38 * MiB);
    assert_int_equal(result.figures.flushes, 1);
    assert_int_equal(run_on(&blyi_replay_caching, &trace, least - 2 * MiB, &result),
                     BLY_E_NO_MEMORY);
    /* Without a limit it takes 50 MiB; 20 are too few, so within 30 it is known. */
    assert_int_equal(blyi_replay_least(&blyi_replay_caching, &setup, 30 * MiB, &least, &result),
                     BLY_OK);
    assert_int_equal(least, 50 * MiB);
}

/* Takes what stock takes, but wants five pages more on a card where that is less than all. */
static bly_status greedy_make(const struct blyi_replay_setup *setup, void **made)
{
    struct blyi_replay_setup less = *setup;
    if (less.capacity < 1 * GiB)
        less.capacity -= less.capacity < 10 * MiB ? less.capacity : 10 * MiB;
    return blyi_replay_stock.make(&less, made);
}

static void least_may_be_above_the_peak(void **state)
{
    struct blyi_replay_event events[] = {A(0, 3 * MiB, 0), A(1, 1 * MiB, 0)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_setup setup = {.trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED};
    struct blyi_replay_policy greedy = blyi_replay_stock;
    struct blyi_replay_result result;
    uint64_t least;
    (void)state;
    greedy.make = greedy_make;
    assert_int_equal(blyi_replay_least(&greedy, &setup, 0, &least, &result), BLY_OK);
    assert_int_equal(least, 16 * MiB);
}

static void least_of_nothing_is_nothing(void **state)
{
    struct blyi_replay_trace trace = {.events = NULL};
    struct blyi_replay_setup setup = {.trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED};
    struct blyi_replay_result result;
    uint64_t least = 1;
    (void)state;
    assert_int_equal(blyi_replay_least(&blyi_replay_stock, &setup, 0, &least, &result), BLY_OK);
    assert_int_equal(least, 0);
}

struct seen {
    size_t events;
    uint64_t reserved[5], live[5];
};

static void see(void *context, size_t event, uint64_t reserved, uint64_t live)
{
    struct seen *seen = context;
    seen->reserved[event] = reserved;
    seen->live[event] = live;
    seen->events++;
}

static void a_run_can_be_watched(void **state)
{
    struct blyi_replay_event events[] = {A(0, 1, 0), A(1, 3, 0), U(0, 1), F(0), F(1)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    struct blyi_replay_setup setup = {.trace = &trace, .capacity = BLYI_REPLAY_UNBOUNDED, .lag = 9};
    struct blyi_replay_result result;
    struct seen seen = {0};
    static const uint64_t reserved[] = {2 * MiB, 4 * MiB, 4 * MiB, 4 * MiB, 2 * MiB};
    static const uint64_t live[] = {1, 4, 4, 3, 0};
    (void)state;
    assert_int_equal(blyi_replay_run(&blyi_replay_stock, &setup, see, &seen, &result), BLY_OK);
    assert_int_equal(seen.events, 5);
    assert_memory_equal(seen.reserved, reserved, sizeof(reserved));
    assert_memory_equal(seen.live, live, sizeof(live));
}

/* Every allocation of the host fails once; nothing is lost, nothing is wrong afterwards. */
static void host_memory_may_run_out(void **state)
{
    static const struct blyi_replay_policy *const policies[] = {
        &blyi_replay_stock, &blyi_replay_caching, &blyi_replay_expandable, &blyi_replay_firstfit};
    struct blyi_replay_event events[] = {A(0, 30 * MiB, 0),
                                         A(1, 512, 0),
                                         A(2, 5 * MiB, 1),
                                         U(0, 1),
                                         F(0),
                                         A(3, 28 * MiB, 0),
                                         F(1),
                                         F(2),
                                         F(3)};
    struct blyi_replay_trace trace = trace_of(events, BLYI_COUNT(events));
    (void)state;
    for (size_t p = 0; p < BLYI_COUNT(policies); p++) {
        struct blyi_replay_result result;
        struct blyi_host_stats before, after;
        bly_status status = BLY_E_HOST_MEMORY;
        blyi_host_stats(&before);
        for (uint64_t nth = 1; status != BLY_OK; nth++) {
            blyi_host_fail_nth(nth);
            status = run_on(policies[p], &trace, 82 * MiB, &result);
            assert_true(status == BLY_OK || status == BLY_E_HOST_MEMORY);
            assert_int_equal(status == BLY_OK, !blyi_host_failed());
            blyi_host_stats(&after);
            assert_int_equal(after.live_blocks, before.live_blocks);
            assert_true(nth < 100);
        }
        blyi_host_fail_nth(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stock_takes_whole_pages),
        cmocka_unit_test(pad_is_part_of_every_request),
        cmocka_unit_test(segments_by_size),
        cmocka_unit_test(caching_splits_and_joins),
        cmocka_unit_test(streams_share_nothing),
        cmocka_unit_test(caching_flushes_whole_segments),
        cmocka_unit_test(expandable_grows_by_chunks),
        cmocka_unit_test(expandable_flushes_chunks_inside_blocks),
        cmocka_unit_test(expandable_prefers_what_cannot_grow),
        cmocka_unit_test(firstfit_takes_the_lowest),
        cmocka_unit_test(a_used_block_comes_back_when_told),
        cmocka_unit_test(a_used_block_comes_back_after_the_lag),
        cmocka_unit_test(a_sync_ends_all_uses),
        cmocka_unit_test(a_full_card_ends_all_uses_of_a_pool),
        cmocka_unit_test(least_is_the_smallest),
        cmocka_unit_test(least_may_be_above_the_peak),
        cmocka_unit_test(least_of_nothing_is_nothing),
        cmocka_unit_test(a_run_can_be_watched),
        cmocka_unit_test(host_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
