/* SPDX-License-Identifier: Apache-2.0
 * Schedules of small random chains beside an exhaustive search. */
#include "ckpt_test.h"
#include "ckpt_search.h"

#define N_CHAINS 40 /* of each length */

static bly_chain random_chain(struct rng *rng, size_t n, bly_chain_stage *stages)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t output = 1 + rng_below(rng, 8);
        stages[i] = (bly_chain_stage){
            .forward_ns = 1 + rng_below(rng, 10),
            .backward_ns = 1 + rng_below(rng, 20),
            .output = output,
            .saved = output + rng_below(rng, 11),
            .gradient = i + 1 < n ? output : rng_below(rng, 3),
            .forward_temp = rng_below(rng, 5),
            .backward_temp = rng_below(rng, 7),
        };
    }
    return (bly_chain){n, stages, 1 + rng_below(rng, 4), 1};
}

static struct counts {
    int points, better, best;
} counts;

static void check_point(const bly_chain *chain, uint64_t budget)
{
    uint64_t best = search_best_ns(chain, budget);
    uint64_t persistent = search_persistent_ns(chain, budget);
    bly_ckpt_opts opts = bly_ckpt_opts_default();
    opts.unpacked = 1;
    bly_ckpt_schedule schedule;
    bly_status status = bly_checkpoint(chain, budget, &opts, &schedule);
    if (best == UINT64_MAX) {
        assert_int_equal(status, BLY_E_NO_MEMORY);
        return;
    }
    assert_ok(status);
    assert_true(schedule.exact);
    assert_int_equal(schedule.persistent_ns, persistent);
    assert_true(schedule.time_ns >= best);
    assert_true(schedule.time_ns <= persistent);
    assert_true(schedule.peak <= budget);
    counts.points++;
    counts.better += schedule.time_ns < persistent;
    counts.best += schedule.time_ns == best;
    bly_ckpt_schedule_release(&schedule);

    opts.persistent = 1;
    status = bly_checkpoint(chain, budget, &opts, &schedule);
    assert_int_equal(status == BLY_OK ? schedule.time_ns : UINT64_MAX, persistent);
    if (status == BLY_OK)
        bly_ckpt_schedule_release(&schedule);
}

/* The persistent ones are as good as any persistent one; the others are better at a third of
 * the points at least, and the best there is nearly everywhere. */
static void small_chains(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    for (size_t n = 1; n <= 6; n++) {
        counts = (struct counts){0};
        for (int i = 0; i < N_CHAINS; i++) {
            bly_chain_stage stages[SEARCH_STAGES_MAX];
            bly_chain chain = random_chain(&rng, n, stages);
            uint64_t full = full_peak(&chain);
            for (uint64_t percent = 95; percent >= 30; percent -= 5)
                check_point(&chain, full * percent / 100);
        }
        print_message("%zu stages: %d points, better than persistent at %d, best at %d\n", n,
                      counts.points, counts.better, counts.best);
        assert_true(n < 5 || counts.better * 3 >= counts.points);
        assert_true(counts.best * 10 >= counts.points * 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
