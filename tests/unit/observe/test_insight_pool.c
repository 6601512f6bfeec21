/* SPDX-License-Identifier: Apache-2.0
 *
 * test_insight_pool.c - memory of pools: what is idle, what pins it, what could go back.
 */
#include "insight_test.h"

static void segment(struct story *s, uint64_t address, uint64_t bytes)
{
    TELL(s, SEGMENT, .address = address, .asked = bytes);
}

static void segment_free(struct story *s, uint64_t address, uint64_t bytes)
{
    TELL(s, SEGMENT_FREE, .address = address, .asked = bytes);
}

static void idle_memory_is_pinned_or_can_go(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    uint32_t small = site_at(&s, "small", 1), large = site_at(&s, "large", 2);
    segment(&s, 0x1000000, 20 * MiB);
    segment(&s, 0x8000000, 20 * MiB);
    segment(&s, 0x20000000, 2 * MiB);
    make(&s, 0x1000000, MiB, small);           /* the first MiB of the first */
    make(&s, 0x1000000 + 4 * MiB, MiB, small); /* 3 idle before, 15 behind */
    make(&s, 0x8000000, 18 * MiB, large);      /* 2 idle behind */
    make(&s, 0x90000000, 100, large);          /* in no segment */
    look(&s);
    const struct blyi_fragments *f = &s.in->fragments;
    assert_int_equal(f->n_pieces, 3);
    assert_int_equal(f->reserved, 42 * MiB);
    assert_int_equal(f->live, 20 * MiB);
    assert_int_equal(f->idle, 22 * MiB);
    assert_int_equal(f->free_pieces, 1);
    assert_int_equal(f->releasable, 2 * MiB);
    assert_int_equal(f->pinned, 20 * MiB);
    assert_int_equal(f->largest, 15 * MiB);
    assert_int_equal(f->outside, 100);
    assert_int_equal(f->n_pins, 2);
    assert_int_equal(f->pins[0].idle, 18 * MiB);
    assert_int_equal(f->pins[0].blocks, 2);
    assert_string_equal(label(&s, f->pins[0].label), "small story.c:1");
    assert_int_equal(f->sparse, 1);
    assert_int_equal(f->sparse_blocks, 2);
    assert_int_equal(f->sparse_bytes + f->sparse_idle, 20 * MiB);
    story_end(&s);
}

static void a_freed_block_waits_until_its_uses_are_done(void **state)
{
    struct story s;
    struct blyi_fragments f;
    (void)state;
    story_begin(&s, 0);
    segment(&s, 0x1000000, 4 * MiB);
    make(&s, 0x1000000, MiB, 0);
    make(&s, 0x1000000 + MiB, MiB, 0);
    TELL(&s, USE, .address = 0x1000000, .stream = 2);
    end(&s, 0x1000000);       /* position 4: waits */
    end(&s, 0x1000000 + MiB); /* 5: does not */
    TELL(&s, USE_DONE, .address = 0x1000000);
    look(&s);
    assert_int_equal(s.in->peaks[0].waiting, MiB);
    assert_int_equal(s.in->peaks[0].end.waiting, 0);
    assert_ok(blyi_fragments_make(&s.in->history, s.in->labels, BLYI_ALL_CARDS, 5, &f));
    assert_int_equal(f.waiting, MiB);
    assert_int_equal(f.live, 0);
    assert_int_equal(f.releasable, 0); /* what waits pins it */
    assert_int_equal(f.pinned, 3 * MiB);
    blyi_host_free(f.pins);
    assert_int_equal(s.in->fragments.releasable, 4 * MiB);
    story_end(&s);
}

static void a_sync_of_the_card_ends_all_waiting(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    make(&s, 0x1000, 100, 0);
    TELL(&s, FREE, .address = 0x1000, .aux = 1);
    make(&s, 0x2000, 50, 0);
    TELL(&s, USE, .address = 0x2000, .stream = 3);
    end(&s, 0x2000);
    TELL(&s, STREAM_SYNC, .stream = 3); /* says nothing of other streams */
    TELL(&s, CARD_SYNC);
    make(&s, 0x1000, 1, 0);
    look(&s);
    assert_int_equal(s.in->peaks[0].waiting, 150);
    assert_int_equal(s.in->peaks[0].end.waiting, 0);
    story_end(&s);
}

static void parts_of_a_segment_go_back(void **state)
{
    struct story s;
    (void)state;
    story_begin(&s, 0);
    segment(&s, 0x10000000, 10 * MiB);
    segment_free(&s, 0x10000000 + 4 * MiB, 2 * MiB); /* out of the middle */
    segment_free(&s, 0x60000000, 8 * MiB);           /* was there before recording */
    segment(&s, 0x10000000 + 4 * MiB, 2 * MiB);
    segment(&s, 0x10000000 + 5 * MiB, 3 * MiB); /* over others: their end was lost */
    look(&s);
    assert_int_equal(s.in->peaks[0].start.reserved, 8 * MiB);
    assert_int_equal(s.in->peaks[0].reserved, 18 * MiB);
    assert_int_equal(s.in->peaks[0].end.reserved, 10 * MiB);
    assert_int_equal(s.in->fragments.reserved, 10 * MiB);
    story_end(&s);
}

/* A block over two neighbours shows that they are one range; else they are two. */
static void idle_rows_reach_over_neighbours_only_in_one_range(void **state)
{
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        struct story s;
        story_begin(&s, 0);
        for (uint64_t i = 0; i < 4; i++)
            segment(&s, 0x10000000 + i * 2 * MiB, 2 * MiB);
        if (joined)
            make(&s, 0x10000000, 3 * MiB, 0);
        look(&s);
        assert_int_equal(s.in->fragments.largest, joined ? 5 * MiB : 2 * MiB);
        assert_int_equal(s.in->fragments.live, joined ? 3 * MiB : 0);
        assert_int_equal(s.in->fragments.free_pieces, joined ? 2 : 4);
        story_end(&s);
    }
}

/* ── A naive model: one byte for each unit ────────────────────────────────────────────────── */

#define UNITS 256

static void random_pools_agree_with_a_map_of_units(void **state)
{
    struct rng rng = rng_start();
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct story s;
        char owned[UNITS] = {0}; /* 1: the pool's, 2: and live */
        uint64_t start[UNITS] = {0}, reserved = 0, live = 0, most = 0;
        story_begin(&s, 0);
        for (int i = 0; i < 400; i++) {
            uint64_t at = rng_below(&rng, UNITS), n = 1 + rng_below(&rng, 12);
            bool all_free = at + n <= UNITS, all_owned = all_free, any_live = false;
            for (uint64_t k = at; k < at + n && k < UNITS; k++) {
                all_free = all_free && owned[k] == 0;
                all_owned = all_owned && owned[k] == 1;
                any_live = any_live || owned[k] == 2;
            }
            uint64_t address = (at + 1000) * 4096;
            if (start[at] > 0) {
                end(&s, address);
                memset(owned + at, 1, start[at]);
                live -= start[at];
                start[at] = 0;
            } else if (all_free) {
                segment(&s, address, n * 4096);
                memset(owned + at, 1, n);
                reserved += n;
            } else if (all_owned && rng_below(&rng, 4) > 0) {
                make(&s, address, n * 4096, 0);
                memset(owned + at, 2, n);
                start[at] = n;
                live += n;
            } else if (!any_live && at + n <= UNITS && owned[at] == 1) {
                segment_free(&s, address, n * 4096); /* of any part of any pieces */
                for (uint64_t k = at; k < at + n; k++)
                    reserved -= owned[k] == 1;
                memset(owned + at, 0, n);
            }
            most = reserved > most ? reserved : most;
        }
        look(&s);
        assert_int_equal(s.in->peaks[0].reserved, most * 4096);
        assert_int_equal(s.in->fragments.reserved, reserved * 4096);
        assert_int_equal(s.in->fragments.live, live * 4096);
        assert_int_equal(s.in->fragments.idle, (reserved - live) * 4096);
        assert_int_equal(s.in->fragments.idle, s.in->fragments.pinned + s.in->fragments.releasable);
        assert_int_equal(s.in->fragments.outside, 0);
        story_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_memory_is_pinned_or_can_go),
        cmocka_unit_test(a_freed_block_waits_until_its_uses_are_done),
        cmocka_unit_test(a_sync_of_the_card_ends_all_waiting),
        cmocka_unit_test(parts_of_a_segment_go_back),
        cmocka_unit_test(idle_rows_reach_over_neighbours_only_in_one_range),
        cmocka_unit_test(random_pools_agree_with_a_map_of_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
