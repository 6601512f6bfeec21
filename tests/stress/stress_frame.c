/* SPDX-License-Identifier: Apache-2.0
 * Random takes and gives of frames beside an array of flags. */
#include "../unit/npu/mem_test.h"
#include "npu/frame.h"

#define FRAMES 3000 /* five giants and a rest */
#define RUNS   1024
#define STEPS  60000

static bool taken[FRAMES]; /* the model */
static struct {
    uint32_t first, count;
} runs[RUNS];
static uint32_t n_runs;

static void model_take(uint32_t first, uint32_t count)
{
    assert_true(first + count <= FRAMES);
    for (uint32_t i = first; i < first + count; i++) {
        assert_false(taken[i]);
        taken[i] = true;
    }
    runs[n_runs].first = first;
    runs[n_runs++].count = count;
}

/* Longest run of free frames below `below` that starts at a multiple of `align`. */
static uint32_t model_longest(uint32_t align, uint32_t below)
{
    uint32_t longest = 0;
    for (uint32_t first = 0; first < below; first += align) {
        uint32_t count = 0;
        while (first + count < below && !taken[first + count])
            count++;
        longest = count > longest ? count : longest;
        if (align == 1)
            first += count;
    }
    return longest;
}

static void step(struct blyi_frames *frames, struct rng *rng)
{
    uint32_t first, kind = (uint32_t)rng_below(rng, 10);
    uint32_t want = 1 + (uint32_t)rng_below(rng, 1u << rng_below(rng, 11));
    if (n_runs == RUNS || (n_runs > 0 && kind < 5)) {
        uint32_t i = (uint32_t)rng_below(rng, n_runs);
        uint32_t count = 1 + (uint32_t)rng_below(rng, runs[i].count); /* maybe a part only */
        blyi_frames_give(frames, runs[i].first, count);
        for (uint32_t f = 0; f < count; f++)
            taken[runs[i].first + f] = false;
        runs[i].first += count;
        runs[i].count -= count;
        if (runs[i].count == 0)
            runs[i] = runs[--n_runs];
        return;
    }
    if (kind < 8) {
        uint32_t got = blyi_frames_take(frames, want, NULL, &first);
        assert_true(got <= want);
        assert_int_equal(got == 0, blyi_frames_free(frames) == 0);
        if (got > 0)
            model_take(first, got);
    } else if (kind == 8) {
        uint32_t align = 1u << rng_below(rng, 10);
        bool expected = model_longest(align, FRAMES) >= want;
        assert_int_equal(blyi_frames_take_run(frames, want, align, &first), expected);
        if (expected) {
            assert_int_equal(first % align, 0);
            model_take(first, want);
        }
    } else {
        uint32_t below = (uint32_t)rng_below(rng, FRAMES);
        bool expected = model_longest(1, below) >= want;
        assert_int_equal(blyi_frames_take_below(frames, want, below, &first), expected);
        if (expected) {
            assert_true(first + want <= below);
            model_take(first, want);
        }
    }
}

static void compare(const struct blyi_frames *frames)
{
    uint32_t n_free = 0;
    assert_true(blyi_frames_audit(frames));
    for (uint32_t i = 0; i < FRAMES; i++) {
        n_free += !taken[i];
        assert_int_equal(blyi_frames_is_free(frames, i), !taken[i]);
    }
    assert_int_equal(blyi_frames_free(frames), n_free);
    assert_int_equal(blyi_frames_longest(frames), model_longest(1, FRAMES));
    uint32_t giants = 0;
    for (uint32_t first = 0; first + 512 <= FRAMES; first += 512) {
        bool all = true;
        for (uint32_t i = first; i < first + 512; i++)
            all = all && !taken[i];
        giants += all;
    }
    assert_int_equal(blyi_frames_giants(frames), giants);
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    void *memory = calloc(1, blyi_frames_footprint(FRAMES));
    struct blyi_frames *frames = blyi_frames_init(memory, FRAMES);
    for (int i = 0; i < STEPS; i++) {
        step(frames, &rng);
        if (i % 61 == 0)
            compare(frames);
    }
    while (n_runs > 0) {
        n_runs--;
        blyi_frames_give(frames, runs[n_runs].first, runs[n_runs].count);
    }
    assert_int_equal(blyi_frames_free(frames), FRAMES);
    assert_int_equal(blyi_frames_giants(frames), 5);
    assert_true(blyi_frames_audit(frames));
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
