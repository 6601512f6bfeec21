/* SPDX-License-Identifier: Apache-2.0
 *
 * test_policy.c - what a pool trades for what: where blocks lie when the budget is short, how long
 * handles are, and when memory of the card is had rather than waited for. On a simulated card, so
 * that all figures are exact.
 */
#include "sim_pool_test.h"

#include "pool/place.h"
#include "pool/recent.h"

/* --- sizes that come again, and others ---------------------------------------------------- */

static void test_new_sizes_are_told_from_old_ones(void **state)
{
    (void)state;
    struct blyi_variety variety = {.fresh = 0};
    for (uint32_t i = 0; i < 5000; i++)
        blyi_variety_note(&variety, 1000 + i % 20 * 777);
    assert_int_equal(variety.fresh / 16, 0);
    assert_false(blyi_variety_is_high(&variety));
    for (uint32_t i = 0; i < 4; i++)
        blyi_variety_note(&variety, 50000 + i);
    assert_false(blyi_variety_is_high(&variety));
    blyi_variety_note(&variety, 60000); /* 1 - (15/16)^5 is above 1/4 */
    assert_true(blyi_variety_is_high(&variety));
    assert_false(blyi_variety_is_most(&variety));
    for (uint32_t i = 0; i < 6; i++)
        blyi_variety_note(&variety, 70000 + i);
    assert_true(blyi_variety_is_most(&variety)); /* 1 - (15/16)^11 is above 1/2 */
}

static void test_handles_are_short_where_sizes_do_not_come_again(void **state)
{
    (void)state;
    begin(64 * GiB, 0);
    void *all[2][60];
    for (unsigned i = 0; i < 60; i++)
        all[0][i] = take(0, 64 * MiB);
    assert_int_equal(blyi_handle_length(pool, 32, 32), 1920 / 64); /* nothing has moved yet */
    assert_int_equal(blyi_handle_ahead(pool, 32), 16);
    for (unsigned i = 0; i < 60; i++)
        all[1][i] = take(0, (16 + i) * MiB + i * 4096);
    assert_int_equal(blyi_handle_length(pool, 32, 32), 32 / 8);
    assert_int_equal(blyi_handle_length(pool, 7, 7), 1);
    assert_int_equal(blyi_handle_ahead(pool, 7), 1);
    for (unsigned i = 0; i < 60; i++) {
        give(0, all[0][i], 64 * MiB);
        give(0, all[1][i], (16 + i) * MiB + i * 4096);
    }
    end();
}

/* --- places by what they cost ------------------------------------------------------------- */

static struct blyi_span *span_of(struct blyi_arena *arena, uint64_t size)
{
    struct blyi_want want = {.asked = size, .size = size};
    struct blyi_span *span = NULL;
    assert_ok(blyi_arena_take(arena, &want, &span));
    return span;
}

/* A hole of three whole granules, and a longer one that begins and ends within granules in use. */
static void test_a_place_costs_whole_granules(void **state)
{
    (void)state;
    struct blyi_arena *arena;
    struct blyi_place place;
    begin(4 * GiB, 0);
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(0), &arena));
    struct blyi_span *first = span_of(arena, MiB), *ragged = span_of(arena, 13 * MiB / 2);
    struct blyi_span *between = span_of(arena, MiB / 2), *whole = span_of(arena, 6 * MiB);
    struct blyi_span *last = span_of(arena, 2 * MiB);
    uintptr_t base = first->address;
    assert_int_equal(base % (2 * MiB), 0);
    assert_int_equal(ragged->address, base + MiB);
    assert_int_equal(whole->address, base + 8 * MiB);
    blyi_arena_give(ragged);
    blyi_arena_give(whole);
    blyi_recent_join_all(pool);
    assert_int_equal(pool->is.loose, 4 * MiB + 6 * MiB + info().reserved - 16 * MiB);

    struct blyi_want want = {.size = 5 * MiB, .align = BLYI_QUANTUM};
    const struct blyi_zone *zone = first->extent->zone;
    assert_true(blyi_place_fit(zone, &want, &place));
    assert_int_equal(place.address, base + 8 * MiB); /* the shorter hole */
    struct blyi_price price = BLYI_PRICE_ANY;
    assert_true(blyi_place_cheaper(zone, &want, &price, &place));
    assert_int_equal(place.address, base + MiB); /* two granules, not three */
    assert_int_equal(price.cost, 2);
    assert_false(blyi_place_cheaper(zone, &want, &price, &place)); /* none is cheaper than that */
    want.size = 6 * MiB;
    price = BLYI_PRICE_ANY;
    assert_true(blyi_place_cheaper(zone, &want, &price, &place));
    assert_int_equal(place.address, base + MiB); /* though the other one fits exactly */
    blyi_arena_give(first);
    blyi_arena_give(between);
    blyi_arena_give(last);
    blyi_recent_join_all(pool);
    assert_int_equal(pool->is.loose, info().reserved);
    end();
}

/* --- waits -------------------------------------------------------------------------------- */

enum { STREAMS = 64, BLOCK = 8 };

/* Each stream in turn queues work on a block of 8 MiB and frees it. Waits of such a round. */
static uint64_t go_round(void)
{
    uint64_t before = info().waits;
    for (uint32_t s = 0; s < STREAMS; s++)
        give(s, take(s, BLOCK * MiB), BLOCK * MiB);
    return info().waits - before;
}

static void test_queues_of_others_are_not_waited_for_for_ever(void **state)
{
    (void)state;
    begin(8 * GiB, BLYI_SIM_HELD);
    assert_int_equal(go_round(), 5); /* as many as say that waits are many */
    assert_in_range(info().reserved, 58 * BLOCK * MiB, 62 * BLOCK * MiB);
    (void)go_round();
    assert_int_equal(go_round(), 0); /* each has its own by now */
    assert_in_range(info().reserved, STREAMS * BLOCK * MiB, (STREAMS + 8) * BLOCK * MiB);
    end();
}

static void test_a_full_card_is_waited_for(void **state)
{
    (void)state;
    begin(128 * MiB, BLYI_SIM_HELD); /* a quarter of it stays free */
    assert_true(go_round() > STREAMS / 2);
    assert_true(info().reserved <= 96 * MiB);
    end();
}

static void test_own_queues_are_no_reason_to_grow(void **state)
{
    (void)state;
    begin(8 * GiB, BLYI_SIM_HELD);
    void *one = take(0, 32 * MiB), *two = take(0, 32 * MiB);
    void *other[16];
    give(0, one, 32 * MiB);
    give(0, two, 32 * MiB);
    for (unsigned i = 0; i < 16; i++) /* what lives is more than what is queued */
        other[i] = take(1, 4 * MiB);
    assert_true(info().reserved <= 72 * MiB);
    for (unsigned i = 0; i < 16; i++)
        give(1, other[i], 4 * MiB);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_sizes_are_told_from_old_ones),
        cmocka_unit_test(test_handles_are_short_where_sizes_do_not_come_again),
        cmocka_unit_test(test_a_place_costs_whole_granules),
        cmocka_unit_test(test_queues_of_others_are_not_waited_for_for_ever),
        cmocka_unit_test(test_a_full_card_is_waited_for),
        cmocka_unit_test(test_own_queues_are_no_reason_to_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
