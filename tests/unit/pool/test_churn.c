/* SPDX-License-Identifier: Apache-2.0
 *
 * test_churn.c - what a pool does where sizes do not come again, on a simulated card.
 */
#include "sim_pool_test.h"

#include "pool/borrow.h"
#include "pool/recent.h"

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

/* --- what is held ------------------------------------------------------------------------- */

struct mix {
    uint64_t least, most, live;
    uint32_t streams;
    unsigned rounds;
    double allowed; /* held, of what lives */
};

enum { MOST = 8192 };
struct block {
    void *address;
    uint64_t size;
    uint32_t stream;
};

static void drop(struct block *block, struct block *last)
{
    give(block->stream, block->address, block->size);
    *block = *last;
}

static void expect_ratio(const struct mix *mix, uint64_t peak)
{
    struct blyi_sim_figures is;
    blyi_sim_figures(sim, &is);
    double ratio = (double)is.held_peak / (double)peak;
    if (ratio > mix->allowed)
        fail_msg("blocks of %g to %g MiB on %u streams, %g GiB: held %.4f of what lives, allowed "
                 "is %.4f",
                 (double)mix->least / MiB, (double)mix->most / MiB, mix->streams,
                 (double)mix->live / GiB, ratio, mix->allowed);
}

/* As many blocks as fill `live` bytes, and random ones make room. */
static void churn(const struct mix *mix)
{
    static struct block all[MOST];
    uint64_t bytes = 0, peak = 0;
    unsigned n = 0;
    random_state = UINT64_C(0x2545F4914F6CDD1D);
    begin(4 * mix->live, 32);
    for (unsigned i = 0; i < mix->rounds; i++) {
        uint64_t size = mix->least + draw(mix->most - mix->least);
        while (bytes + size > mix->live || n == MOST) {
            unsigned at = (unsigned)draw(n--);
            bytes -= all[at].size;
            drop(&all[at], &all[n]);
        }
        uint32_t stream = mix->streams > 1 ? (uint32_t)draw(mix->streams) : 0;
        all[n++] = (struct block){take(stream, size), size, stream};
        bytes += size;
        peak = bytes > peak ? bytes : peak;
    }
    expect_ratio(mix, peak);
    while (n > 0) {
        n--;
        drop(&all[n], &all[n]);
    }
    for (uint32_t i = 0; i < mix->streams; i++)
        blyi_sim_complete(sim, blyi_sim_stream(i));
    assert_ok(bly_pool_poll(pool));
    end();
}

static void test_random_sizes_fit(void **state)
{
    (void)state;
    static const struct mix mixes[] = {
        {MiB, 16 * MiB, GiB, 1, 8000, 1.08},
        {MiB, 16 * MiB, 8 * GiB, 1, 12000, 1.055},
        {64 * KiB, 4 * MiB, 4 * GiB, 1, 20000, 1.08},
        {16 * MiB, 256 * MiB, 16 * GiB, 1, 2000, 1.055},
        {64 * MiB, GiB, 32 * GiB, 1, 600, 1.055},
        /* below a granule: with slots alone 1.098, with long slabs 1.148 */
        {64 * KiB, 512 * KiB, GiB, 1, 20000, 1.07},
        {4 * KiB, 64 * KiB, 256 * MiB, 1, 30000, 1.12},
        /* without loans the first 1.123 */
        {64 * KiB, 512 * KiB, GiB, 4, 20000, 1.09},
        {64 * KiB, 8 * MiB, 2 * GiB, 4, 10000, 1.09},
    };
    for (unsigned i = 0; i < BLYI_COUNT(mixes); i++)
        churn(&mixes[i]);
}

/* --- slots, or spans of their own --------------------------------------------------------- */

static void test_sizes_that_come_again_are_slots(void **state)
{
    (void)state;
    void *all[400];
    begin(4 * GiB, 0);
    for (unsigned i = 0; i < 400; i++)
        all[i] = take(0, 300 * KiB + i % 5 * UINT64_C(40000));
    assert_int_equal(pool->is.blocks_live, 0);
    for (unsigned i = 0; i < 400; i++)
        give(0, all[i], 300 * KiB + i % 5 * UINT64_C(40000));
    end();
}

static void test_others_are_not_once_they_are_many(void **state)
{
    (void)state;
    enum { N = 600 };
    void *all[N];
    uint64_t size = 0, last = 0, asked = 0;
    begin(4 * GiB, 0);
    for (unsigned i = 0; i < N; i++) {
        last = pool->is.blocks_live;
        size = 300 * KiB + i * UINT64_C(357);
        all[i] = take(0, size);
        asked += size;
        if (pool->is.held < BLYI_ALONE_LEAST * pool->granule)
            assert_int_equal(pool->is.blocks_live, 0);
    }
    assert_int_equal(pool->is.blocks_live - last, blyi_align_up(size, BLYI_QUANTUM));
    bly_pool_info all_of_it = info();
    assert_int_equal(all_of_it.asked, asked);
    assert_int_equal(all_of_it.blocks, N);
    for (unsigned i = 0; i < N; i++)
        give(0, all[i], 300 * KiB + i * UINT64_C(357));
    end();
}

/* A slot of a larger class serves where it is aligned as the request wants. */
static void test_slots_keep_their_alignment(void **state)
{
    (void)state;
    enum { N = 4000, LIVE = 500 };
    void *all[LIVE] = {NULL};
    begin(4 * GiB, 0);
    random_state = 7;
    for (unsigned i = 0; i < N; i++) {
        bly_pool_request request = {.struct_size = sizeof request,
                                    .size = 512 + draw(60 * KiB),
                                    .align = UINT64_C(512) << draw(4)};
        void **block = &all[draw(LIVE)];
        assert_ok(bly_pool_free(*block));
        assert_ok(bly_pool_alloc_with(pool, &request, blyi_sim_stream(0), block));
        assert_int_equal((uintptr_t)*block % request.align, 0);
    }
    assert_true(blyi_variety_is_most(&pool->slots));
    assert_ok(bly_pool_audit(pool));
    for (unsigned i = 0; i < LIVE; i++)
        assert_ok(bly_pool_free(all[i]));
    end();
}

/* --- memory of other streams -------------------------------------------------------------- */

static struct blyi_arena *arena_of(uint32_t stream)
{
    struct blyi_arena *arena = NULL;
    assert_ok(blyi_arena_of(pool, blyi_sim_stream(stream), &arena));
    return arena;
}

/* Of two streams: each has a granule in use, and the second a hole of 800 KiB in it. */
static void test_the_tightest_place_is_lent_when_its_work_has_ended(void **state)
{
    (void)state;
    const uint64_t size = 800 * KiB;
    begin(4 * GiB, BLYI_SIM_HELD);
    void *own = take(0, 600 * KiB), *low = take(1, 600 * KiB), *hole = take(1, size);
    void *high = take(1, 648 * KiB);
    assert_int_equal((uintptr_t)high + 648 * KiB, (uintptr_t)low + 2 * MiB);
    give(1, hole, size);
    blyi_recent_join_all(pool);

    const struct blyi_arena *mine = arena_of(0);
    struct blyi_want want = {.asked = size, .size = size, .align = BLYI_QUANTUM};
    struct blyi_zone *zone = mine->zones[0];
    struct blyi_place place;
    pool->variety.fresh = 65536;
    assert_true(blyi_borrow_tightest(zone, &want, &place));
    assert_ptr_equal(place.hole->arena, mine); /* work on the other has not ended */
    blyi_sim_complete(sim, blyi_sim_stream(1));
    assert_true(blyi_borrow_tightest(zone, &want, &place));
    assert_int_equal(place.address, (uintptr_t)hole);
    want.slab = low;
    assert_true(blyi_borrow_tightest(zone, &want, &place));
    assert_ptr_equal(place.hole->arena, mine); /* slabs stay with their stream */
    want.slab = NULL;
    pool->variety.fresh = 0;
    assert_true(blyi_borrow_tightest(zone, &want, &place));
    assert_ptr_equal(place.hole->arena, mine); /* nor is anything lent to a step that repeats */

    pool->variety.fresh = 65536;
    assert_ptr_equal(take(0, size), hole);
    give(0, hole, size); /* the lender's again behind the borrower's work */
    assert_int_equal(info().waiting, size);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info().waiting, 0);
    assert_ptr_equal(take(1, size), hole);
    give(0, own, 600 * KiB);
    give(1, low, 600 * KiB);
    give(1, hole, size);
    give(1, high, 648 * KiB);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sizes_fit),
        cmocka_unit_test(test_sizes_that_come_again_are_slots),
        cmocka_unit_test(test_others_are_not_once_they_are_many),
        cmocka_unit_test(test_slots_keep_their_alignment),
        cmocka_unit_test(test_the_tightest_place_is_lent_when_its_work_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
