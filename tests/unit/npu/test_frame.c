/* SPDX-License-Identifier: Apache-2.0
 * The buddy allocator of frames: what it chooses. tests/stress/stress_frame.c runs it beside a
 * naive model. */
#include "mem_test.h"
#include "npu/frame.h"

static struct blyi_frames *frames;
static void *memory;

static void start(uint32_t n)
{
    free(memory);
    memory = aligned_alloc(64, blyi_align_up(blyi_frames_footprint(n), 64));
    memset(memory, 0, blyi_frames_footprint(n));
    frames = blyi_frames_init(memory, n);
    assert_true(blyi_frames_audit(frames));
    assert_int_equal(blyi_frames_free(frames), n);
}

static uint32_t take(uint32_t want, uint32_t expected_length)
{
    uint32_t first = BLYI_FRAME_NONE;
    assert_int_equal(blyi_frames_take(frames, want, NULL, &first), expected_length);
    assert_true(blyi_frames_audit(frames));
    return first;
}

static void smallest_block_that_holds_all(void **state)
{
    (void)state;
    start(31216); /* 910B: 60 giants and 496 frames */
    assert_int_equal(blyi_frames_giants(frames), 60);
    assert_int_equal(blyi_frames_longest(frames), 31216);
    assert_int_equal(take(8, 8), 30720 + 480); /* from the rest, no giant is broken */
    assert_int_equal(blyi_frames_giants(frames), 60);
    assert_int_equal(take(3, 3), 30720 + 488);
    assert_int_equal(take(1, 1), 30720 + 491);
    assert_int_equal(take(512, 512), 0);
    assert_int_equal(take(1300, 1024), 512); /* whole GiB in a row, the rest elsewhere */
    assert_int_equal(take(276, 276), 1536);
}

static void largest_block_when_none_holds_all(void **state)
{
    (void)state;
    start(7);
    assert_int_equal(blyi_frames_giants(frames), 0);
    assert_int_equal(take(600, 4), 0);
    assert_int_equal(take(596, 2), 4);
    assert_int_equal(take(594, 1), 6);
    assert_int_equal(take(1, 0), BLYI_FRAME_NONE);
    blyi_frames_give(frames, 3, 3);
    assert_int_equal(blyi_frames_longest(frames), 3);
    assert_true(blyi_frames_audit(frames));
}

static void rows_of_giants(void **state)
{
    (void)state;
    start(512 * 6);
    uint32_t first;
    assert_true(blyi_frames_take_run(frames, 512, 512, &first)); /* 0 */
    assert_true(blyi_frames_take_run(frames, 512, 512, &first)); /* 1 */
    blyi_frames_give(frames, 0, 512);
    assert_int_equal(take(1024, 1024), 1024); /* the first row that is long enough: 2, 3 */
    assert_int_equal(take(2048, 1024), 2048); /* the longest there is: 4, 5 */
    assert_int_equal(take(1024, 512), 0);
}

static void exact_runs(void **state)
{
    (void)state;
    uint32_t first = 77;
    start(1024);
    assert_true(blyi_frames_take_run(frames, 300, 1, &first));
    assert_int_equal(first, 0);
    assert_true(blyi_frames_take_run(frames, 300, 256, &first));
    assert_int_equal(first, 512);
    assert_int_equal(blyi_frames_longest(frames), 212);
    assert_false(blyi_frames_take_run(frames, 213, 1, &first));
    assert_int_equal(first, 512);
    assert_true(blyi_frames_take_run(frames, 212, 1, &first)); /* both rests have 212 frames */
    assert_int_equal(first, 300);
    assert_false(blyi_frames_take_run(frames, 512, 512, &first));
    blyi_frames_give(frames, 0, 512);
    assert_true(blyi_frames_take_run(frames, 512, 512, &first));
    assert_int_equal(first, 0);
    assert_true(blyi_frames_audit(frames));
    start(4096);
    assert_false(blyi_frames_take_below(frames, 2049, 2048, &first));
    assert_true(blyi_frames_take_below(frames, 2048, 2048, &first));
    assert_int_equal(first, 0);
    assert_false(blyi_frames_take_below(frames, 1, 2048, &first));
    assert_true(blyi_frames_take_below(frames, 1, 1u << 30, &first));
    assert_true(blyi_frames_audit(frames));
}

static void resident_frames_first(void **state)
{
    (void)state;
    uint32_t first, blocks[16];
    uint64_t prefer[1] = {0};
    start(64);
    for (int i = 0; i < 16; i++)
        assert_int_equal(blyi_frames_take(frames, 1, NULL, &blocks[i]), 1);
    for (int i = 1; i < 16; i += 2)
        blyi_frames_give(frames, blocks[i], 1);
    prefer[0] = (uint64_t)1 << 11;
    assert_int_equal(blyi_frames_take(frames, 1, prefer, &first), 1);
    assert_int_equal(first, 11);
    assert_int_equal(blyi_frames_take(frames, 1, prefer, &first), 1);
    assert_int_equal(first, 1);
}

static void give_twice(void)
{
    start(64);
    blyi_frames_give(frames, 5, 1);
}

static void give_outside(void)
{
    start(64);
    blyi_frames_give(frames, 63, 2);
}

static void a_double_give_stops_the_process(void **state)
{
    (void)state;
    expect_death(give_twice, "[5, +1)", "free");
    expect_death(give_outside, "[63, +2)", "of 64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(smallest_block_that_holds_all),
                                       cmocka_unit_test(largest_block_when_none_holds_all),
                                       cmocka_unit_test(rows_of_giants),
                                       cmocka_unit_test(exact_runs),
                                       cmocka_unit_test(resident_frames_first),
                                       cmocka_unit_test(a_double_give_stops_the_process)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(memory);
    return failed;
}
