/* SPDX-License-Identifier: Apache-2.0
 * Frames that are used in 4 KiB pages, beside an array of pages. */
#include "mem_test.h"
#include "npu/partial.h"

#define PARTIALS 12
#define SPACE    ((uintptr_t)1 << 40)

static struct blyi_partials *partials;
static bool used[PARTIALS][BLYI_FRAME_PAGES]; /* the model */

static struct blyi_partial *add(uint32_t frame)
{
    struct blyi_partial *partial = blyi_partial_new();
    assert_non_null(partial);
    blyi_partial_add(partials, partial, SPACE + frame * FRAME, frame);
    return partial;
}

static int start(void **state)
{
    (void)state;
    partials = blyi_partials_create(PARTIALS);
    memset(used, 0, sizeof used);
    return partials == NULL;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(blyi_partials_count(partials), 0);
    blyi_partials_destroy(partials);
    return 0;
}

static void best_fit(void **state)
{
    (void)state;
    struct blyi_partial *a = add(3), *b = add(5);
    blyi_partial_take(partials, a, 0, 100, false);
    blyi_partial_take(partials, a, 110, 300, false); /* holes of 10 and 102 */
    blyi_partial_take(partials, b, 0, 400, true);    /* a hole of 112 */
    assert_true(blyi_partials_audit(partials));
    assert_int_equal(blyi_partials_unused(partials), (112 + 112) * 4096);
    assert_int_equal(blyi_partials_longest(partials), 112 * 4096);
    assert_ptr_equal(blyi_partial_choose(partials, 5, UINT32_MAX), a);
    assert_int_equal(blyi_partial_fit(a, 5), 100);
    assert_int_equal(blyi_partial_fit(a, 11), 410);
    assert_ptr_equal(blyi_partial_choose(partials, 110, UINT32_MAX), b);
    assert_null(blyi_partial_choose(partials, 110, 5));
    assert_null(blyi_partial_choose(partials, 113, UINT32_MAX));
    assert_int_equal(blyi_partial_bad(a, 0, 512, false), 100);
    assert_int_equal(blyi_partial_bad(b, 0, 400, false), 400);
    assert_int_equal(blyi_partial_bad(b, 7, 400, true), 7); /* read-only */
    assert_ptr_equal(blyi_partial_of(partials, 5), b);
    assert_null(blyi_partial_of(partials, 4));
    blyi_partial_give(partials, a, 0, 100);
    blyi_partial_give(partials, a, 110, 300);
    blyi_partial_give(partials, b, 0, 400);
    blyi_partial_remove(partials, a);
    blyi_partial_remove(partials, b);
}

static uint32_t model_longest(uint32_t i)
{
    uint32_t longest = 0, run = 0;
    for (uint32_t p = 0; p < BLYI_FRAME_PAGES; p++) {
        run = used[i][p] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    struct {
        struct blyi_partial *partial;
        uint32_t page, pages;
    } live[200];
    uint32_t n = 0;
    for (int i = 0; i < 20000; i++) {
        if (n == 200 || (n > 0 && rng_below(&rng, 2))) {
            uint32_t k = (uint32_t)rng_below(&rng, n);
            struct blyi_partial *partial = live[k].partial;
            memset(&used[partial->frame][live[k].page], 0, live[k].pages);
            blyi_partial_give(partials, partial, live[k].page, live[k].pages);
            if (partial->n_used == 0)
                blyi_partial_remove(partials, partial);
            live[k] = live[--n];
        } else {
            uint32_t pages = 1 + (uint32_t)rng_below(&rng, 1u << rng_below(&rng, 9));
            uint32_t best = UINT32_MAX, fresh = PARTIALS;
            for (uint32_t f = 0; f < PARTIALS; f++) {
                uint32_t longest = model_longest(f);
                if (!blyi_partial_of(partials, f))
                    fresh = f;
                else if (longest >= pages && longest < best)
                    best = longest;
            }
            struct blyi_partial *partial = blyi_partial_choose(partials, pages, UINT32_MAX);
            assert_int_equal(partial ? partial->node.key : UINT32_MAX, best);
            if (!partial && fresh < PARTIALS)
                partial = add(fresh);
            if (!partial)
                continue;
            uint32_t page = blyi_partial_fit(partial, pages);
            for (uint32_t p = page; p < page + pages; p++) {
                assert_false(used[partial->frame][p]);
                used[partial->frame][p] = true;
            }
            blyi_partial_take(partials, partial, page, pages, false);
            live[n].partial = partial;
            live[n].page = page;
            live[n++].pages = pages;
        }
        if (i % 17 == 0)
            assert_true(blyi_partials_audit(partials));
    }
    while (n-- > 0) {
        blyi_partial_give(partials, live[n].partial, live[n].page, live[n].pages);
        if (live[n].partial->n_used == 0)
            blyi_partial_remove(partials, live[n].partial);
    }
    assert_int_equal(blyi_partials_unused(partials), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(best_fit, start, stop),
                                       cmocka_unit_test_setup_teardown(random_steps, start, stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
