/* SPDX-License-Identifier: Apache-2.0
 *
 * test_arena.c - arenas and granules over a simulated card, with exact figures.
 */
#include "../npu/mem_test.h"

#include "backend/sim.h"
#include "pool/arena.h"
#include "pool/opts.h"
#include "pool/pool.h"
#include "pool/trim.h"
#include "pool/trimmer.h"

static struct blyi_sim *sim;
static bly_pool *pool;

static void begin_with(uint64_t total, uint64_t lag, const bly_pool_opts *asked)
{
    bly_pool_opts opts;
    assert_ok(blyi_opts_read(asked, &opts));
    assert_ok(blyi_sim_create(total, lag, &sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(sim), &opts, &pool));
}

/* Exactly what is needed: no slack, nothing ahead. */
static void begin(uint64_t total)
{
    bly_pool_opts opts = bly_pool_opts_default();
    opts.profile = BLY_POOL_TIGHT;
    begin_with(total, BLYI_SIM_HELD, &opts);
}

static void end(void)
{
    assert_ok(bly_pool_audit(pool));
    assert_ok(bly_pool_destroy(pool)); /* the card looks whether all came back */
}

static bly_status try_take(uint32_t stream, uint64_t size, struct blyi_span **span)
{
    struct blyi_arena *arena = NULL;
    struct blyi_want want = {.asked = size, .size = size};
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(stream), &arena));
    return blyi_arena_take(arena, &want, span);
}

static struct blyi_span *take(uint32_t stream, uint64_t size)
{
    struct blyi_span *span = NULL;
    assert_ok(try_take(stream, size, &span));
    assert_int_equal(span->size, blyi_align_up(size, BLYI_QUANTUM));
    (void)blyi_sim_use(sim, blyi_sim_stream(stream), (void *)span->address, span->size);
    return span;
}

/* Behind work of its stream. */
static void give(uint32_t stream, struct blyi_span *span)
{
    (void)blyi_sim_use(sim, blyi_sim_stream(stream), (void *)span->address, span->size);
    blyi_arena_give(span);
}

static bly_pool_info info(void)
{
    bly_pool_info all = {.struct_size = sizeof all};
    assert_ok(bly_pool_get_info(pool, &all));
    assert_int_equal(all.live + all.idle + all.waiting + all.parked, all.reserved);
    return all;
}

static void test_spans_share_granules(void **state)
{
    (void)state;
    begin(GiB);
    struct blyi_span *a = take(0, 3 * MiB), *b = take(0, MiB);
    assert_int_equal(info().reserved, 4 * MiB);
    assert_int_equal(info().live, 4 * MiB);
    assert_int_equal(b->address, a->address + 3 * MiB);
    uintptr_t at = a->address;
    give(0, a);
    a = take(0, 2 * MiB); /* in order of its stream: at once */
    assert_int_equal(a->address, at);
    give(0, a);
    give(0, b);
    assert_int_equal(info().idle, 4 * MiB);
    assert_int_equal(info().largest, 4 * MiB);
    end();
}

static void test_idle_memory_moves_to_another_stream(void **state)
{
    (void)state;
    begin(GiB);
    struct blyi_span *a = take(0, 64 * MiB);
    give(0, a);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    struct blyi_span *b = take(1, 64 * MiB);
    assert_int_equal(info().reserved, 64 * MiB);
    assert_int_equal(info().waits, 0);
    assert_int_equal(info().maps, 2);
    assert_int_equal(info().unmaps, 1);
    give(1, b);
    end();
}

static void test_a_granule_in_use_is_waited_for(void **state)
{
    (void)state;
    begin(GiB);
    give(0, take(0, 64 * MiB));
    struct blyi_span *b = take(1, 64 * MiB); /* the work of stream 0 has not ended */
    assert_int_equal(info().reserved, 64 * MiB);
    assert_int_equal(info().waits, 1);
    give(1, b);
    end();
}

static void test_a_stream_that_stands_still_is_passed_by(void **state)
{
    (void)state;
    begin(GiB);
    give(0, take(0, 64 * MiB));
    blyi_sim_stick(sim, blyi_sim_stream(0), true);
    struct blyi_span *b = take(1, 64 * MiB), *c = take(1, 4 * MiB);
    assert_int_equal(info().reserved, (64 + 68) * MiB);
    assert_int_equal(info().waits, 1); /* in vain, and not again */
    assert_int_equal(info().releasable, 0);
    give(1, b);
    give(1, c);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    blyi_sim_complete(sim, blyi_sim_stream(1));
    assert_int_equal(info().releasable, (64 + 68) * MiB);
    end();
}

static void test_a_full_card_tells_what_is_held(void **state)
{
    (void)state;
    struct blyi_span *none = NULL;
    begin(128 * MiB);
    struct blyi_span *a = take(0, 100 * MiB), *b = take(0, 20 * MiB);
    give(0, b);
    assert_fails(try_take(0, 40 * MiB, &none), BLY_E_NO_MEMORY, "pool pool", "no room for",
                 "(40 MiB)", "live 104857600 B (100 MiB)", "simulated card");
    assert_null(none);
    b = take(0, 28 * MiB); /* what is idle, and what is left */
    assert_int_equal(info().reserved, 128 * MiB);
    give(0, a);
    give(0, b);
    end();
}

static void test_the_limit_is_named(void **state)
{
    (void)state;
    struct blyi_span *none = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.limit = 64 * MiB;
    opts.name = "small";
    begin_with(GiB, BLYI_SIM_HELD, &opts);
    struct blyi_span *a = take(0, 60 * MiB);
    assert_fails(try_take(0, 6 * MiB, &none), BLY_E_NO_MEMORY, "pool small",
                 "of its limit 67108864 B (64 MiB)");
    give(0, a);
    end();
}

static void test_reserve_is_the_last_resort(void **state)
{
    (void)state;
    struct blyi_span *none = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.profile = BLY_POOL_TIGHT;
    opts.reserve = 32 * MiB;
    begin_with(128 * MiB, BLYI_SIM_HELD, &opts);
    struct blyi_span *a = take(0, 96 * MiB), *b = take(0, 30 * MiB);
    assert_int_equal(info().reserved, 126 * MiB);
    assert_int_equal(try_take(0, 4 * MiB, &none), BLY_E_NO_MEMORY);
    give(0, a);
    give(0, b);
    end();
}

static void test_old_idle_memory_goes_back(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.profile = BLY_POOL_TIGHT;
    opts.trim_ms = 10; /* the thread is bly_pool_create()'s; here the test ticks */
    begin_with(GiB, BLYI_SIM_HELD, &opts);
    struct blyi_span *a = take(0, 16 * MiB), *live = take(0, 2 * MiB), *b = take(0, 32 * MiB);
    give(0, a);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_int_equal(info().idle, 16 * MiB);
    blyi_trim_tick(pool);
    give(0, b);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_int_equal(info().idle, 48 * MiB);
    blyi_trim_tick(pool);
    assert_int_equal(info().idle, 48 * MiB);
    blyi_trim_tick(pool);
    assert_int_equal(info().idle, 32 * MiB);
    blyi_trim_tick(pool);
    assert_int_equal(info().idle, 0);
    assert_int_equal(info().reserved, 2 * MiB);
    give(0, live);
    end();
}

/* However the thread and the end of a pool meet. */
static void test_the_trimmer_comes_and_goes(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.trim_ms = 1;
    for (unsigned i = 0; i < 50; i++) {
        begin_with(GiB, BLYI_SIM_HELD, &opts);
        give(0, take(0, 4 * MiB));
        blyi_sim_complete(sim, blyi_sim_stream(0));
        assert_ok(blyi_trimmer_add(pool));
        blyi_trimmer_remove(pool);
        end(); /* which removes it once more */
    }
}

/* Handles go whole; what is to stay is held again, and what was taken in vain goes as well. */
static void test_what_is_held_from_the_start_stays(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.prefill = 62 * MiB;
    opts.threshold = 0;
    opts.trim_ms = 10;
    begin_with(GiB, BLYI_SIM_HELD, &opts);
    struct blyi_span *a = take(0, 512 * MiB);
    give(0, a);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    uint64_t before = info().reserved;
    assert_true(before >= 512 * MiB);
    for (unsigned i = 0; i < 4; i++)
        blyi_trim_tick(pool);
    assert_int_equal(info().reserved, 62 * MiB);
    give(0, take(0, 512 * MiB));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_int_equal(blyi_trim_reclaim(pool, 0, GiB), info().reserved_peak - 62 * MiB);
    assert_int_equal(info().reserved, 62 * MiB);
    give(0, take(0, 512 * MiB));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    blyi_pools_synced_slow();
    assert_int_equal(info().reserved, 62 * MiB);
    assert_ok(bly_pool_trim(pool, 0, NULL)); /* but where it is asked for */
    assert_int_equal(info().reserved, 0);
    end();
}

/* Idle memory that was unmapped for a request which failed goes back in time, too. */
static void test_spare_memory_goes_back(void **state)
{
    (void)state;
    struct blyi_span *none = NULL;
    bly_pool_opts opts = bly_pool_opts_default();
    opts.profile = BLY_POOL_TIGHT;
    opts.trim_ms = 10;
    opts.limit = 48 * MiB;
    begin_with(GiB, BLYI_SIM_HELD, &opts);
    struct blyi_span *live = take(0, 32 * MiB);
    give(0, take(0, 16 * MiB));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_int_equal(try_take(1, 40 * MiB, &none), BLY_E_NO_MEMORY);
    assert_int_equal(pool->is.spare, 16 * MiB);
    for (unsigned i = 0; i < 4; i++)
        blyi_trim_tick(pool);
    assert_int_equal(info().reserved, 32 * MiB);
    give(0, live);
    end();
}

/* A block that is joined late does not take the mark of a neighbour back that was freed after it.
 */
static void test_marks_of_shared_granules_grow(void **state)
{
    (void)state;
    begin(GiB);
    struct blyi_span *a = take(0, MiB), *b = take(0, MiB);
    give(0, b); /* recent: not joined yet */
    blyi_sim_complete(sim, blyi_sim_stream(0));
    struct blyi_arena *arena = a->arena;
    blyi_mark before = blyi_arena_mark(arena);
    (void)blyi_sim_use(sim, blyi_sim_stream(0), (void *)a->address, MiB);
    assert_true(blyi_arena_mark(arena) > before);
    give(0, a); /* joins b, then stands for itself */
    assert_int_equal(info().releasable, 0);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_int_equal(info().releasable, 2 * MiB);
    end();
}

static void test_arenas_of_ended_streams_are_taken_over(void **state)
{
    (void)state;
    struct blyi_arena *first = NULL, *second = NULL, *third = NULL;
    begin(GiB);
    give(0, take(0, 8 * MiB));
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(0), &first));
    blyi_mark mark = blyi_arena_mark(first);
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(1), &second));
    assert_true(second != first);
    blyi_sim_end(sim, blyi_sim_stream(0));
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(2), &third));
    assert_true(third == first);
    assert_true(blyi_arena_passed(third, mark));
    assert_true(blyi_arena_mark(third) > mark);
    struct blyi_span *span = take(2, 8 * MiB); /* the memory is there */
    assert_int_equal(info().maps, 1);
    give(2, span);
    end();
}

/* More holes than are looked at, and none is at a multiple: no memory, as there are addresses. */
static void test_many_holes_that_do_not_fit(void **state)
{
    (void)state;
    enum { N = 100 };
    struct blyi_span *spans[2 * N], *rest;
    struct blyi_sim_figures is, then;
    begin(4 * GiB);
    struct blyi_arena *arena = NULL;
    struct blyi_want want = {.asked = 14 * MiB, .size = 14 * MiB, .align = GiB};
    for (unsigned i = 0; i < 2 * N; i++)
        spans[i] = take(0, i % 2 == 0 ? 16 * MiB : 4 * MiB);
    for (unsigned i = 0; i < 2 * N; i += 2)
        give(0, spans[i]);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    blyi_sim_set_total(sim, N * 4 * MiB + 16 * MiB);
    assert_ok(bly_pool_trim(pool, 0, NULL));
    assert_int_equal(info().reserved, N * 4 * MiB);
    rest = take(0, 12 * MiB);
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(0), &arena));
    blyi_sim_figures(sim, &is);
    for (unsigned i = 0; i < 4; i++) {
        struct blyi_span *none = NULL;
        assert_fails(blyi_arena_take(arena, &want, &none), BLY_E_NO_MEMORY, "no room for");
    }
    blyi_sim_figures(sim, &then);
    assert_int_equal(then.reserved, is.reserved); /* no addresses are lost to it */
    give(0, rest);
    assert_ok(blyi_arena_take(arena, &want, &rest));
    assert_int_equal(rest->address % GiB, 0);
    give(0, rest);
    for (unsigned i = 1; i < 2 * N; i += 2)
        give(0, spans[i]);
    end();
}

static void test_many_streams_need_few_addresses(void **state)
{
    (void)state;
    struct blyi_sim_figures is;
    begin(64 * GiB);
    for (uint32_t i = 0; i < 1024; i++)
        give(i, take(i, MiB));
    blyi_sim_figures(sim, &is);
    assert_true(is.reserved < 512 * GiB);
    give(1000, take(1000, 32 * GiB)); /* and one of them as many as it likes */
    end();
}

static void test_a_reset_ends_all(void **state)
{
    (void)state;
    struct blyi_arena *arena = NULL;
    begin(GiB);
    (void)take(0, 8 * MiB);
    blyi_sim_reset(sim);
    assert_fails(blyi_arena_of(pool, blyi_sim_stream(3), &arena), BLY_E_STATE, "reset");
    assert_ok(bly_pool_destroy(pool));
}

static void test_ranges_are_counted_as_the_card_sees_them(void **state)
{
    (void)state;
    struct blyi_sim_figures is;
    begin(4 * GiB);
    struct blyi_span *spans[20];
    for (unsigned i = 0; i < 20; i++)
        spans[i] = take(0, (i + 1) * 5 * MiB);
    for (unsigned i = 0; i < 20; i += 2)
        give(0, spans[i]);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    struct blyi_span *other = take(1, 300 * MiB);
    blyi_sim_figures(sim, &is);
    assert_int_equal(info().handle_ops, is.maps + is.unmaps);
    assert_int_equal(info().reserved, is.held);
    assert_int_equal(is.mapped, is.held);
    give(1, other);
    end();
}

static void test_short_handles_become_long_ones(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    begin_with(16 * GiB, BLYI_SIM_HELD, &opts);
    pool->policy.ahead = 1;
    pool->policy.slack = pool->policy.wait_slack = 0;
    struct blyi_span *all = take(2, 2 * GiB), *spans[64];
    for (unsigned i = 0; i < 64; i++) /* a handle each */
        spans[i] = take(0, 2 * MiB);
    uint64_t held = info().reserved, before = info().handle_ops;
    for (unsigned i = 0; i < 64; i++)
        give(0, spans[i]);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    struct blyi_span *other = take(1, 128 * MiB);
    assert_int_equal(info().reserved, held);
    /* 64 go; a handle is one 128th of 1088 granules */
    assert_int_equal(info().handle_ops - before, 64 + 128 / 2 / 8);
    give(1, other);
    give(2, all);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_share_granules),
        cmocka_unit_test(test_idle_memory_moves_to_another_stream),
        cmocka_unit_test(test_a_granule_in_use_is_waited_for),
        cmocka_unit_test(test_a_stream_that_stands_still_is_passed_by),
        cmocka_unit_test(test_a_full_card_tells_what_is_held),
        cmocka_unit_test(test_the_limit_is_named),
        cmocka_unit_test(test_reserve_is_the_last_resort),
        cmocka_unit_test(test_old_idle_memory_goes_back),
        cmocka_unit_test(test_what_is_held_from_the_start_stays),
        cmocka_unit_test(test_spare_memory_goes_back),
        cmocka_unit_test(test_the_trimmer_comes_and_goes),
        cmocka_unit_test(test_marks_of_shared_granules_grow),
        cmocka_unit_test(test_arenas_of_ended_streams_are_taken_over),
        cmocka_unit_test(test_many_holes_that_do_not_fit),
        cmocka_unit_test(test_many_streams_need_few_addresses),
        cmocka_unit_test(test_a_reset_ends_all),
        cmocka_unit_test(test_ranges_are_counted_as_the_card_sees_them),
        cmocka_unit_test(test_short_handles_become_long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
