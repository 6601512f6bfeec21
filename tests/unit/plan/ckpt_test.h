/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_test.h - what the tests of bly_checkpoint share: cmocka, a seeded generator, chains.
 */
#ifndef CKPT_TEST_H
#define CKPT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <belay/checkpoint.h>

#define assert_ok(status)                                                                          \
    do {                                                                                           \
        if ((status) != BLY_OK)                                                                    \
            fail_msg("%s", bly_last_error());                                                      \
    } while (0)

/* xorshift64*: the same numbers in every run. */
struct rng {
    uint64_t state;
};

/* The seed of this run; TEST_SEED=n repeats one that failed. */
static inline struct rng rng_start(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20240229;
    print_message("seed %llu\n", (unsigned long long)seed);
    return (struct rng){seed ? seed : 1};
}

static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
    rng->state ^= rng->state >> 12;
    rng->state ^= rng->state << 25;
    rng->state ^= rng->state >> 27;
    return (rng->state * 0x2545f4914f6cdd1du >> 11) % n;
}

/* A transformer: an embedding, layers that are all alike, a head. Figures are made up. */
static inline bly_chain layers_chain(size_t n, bly_chain_stage *stages, uint64_t unit)
{
    for (size_t i = 0; i < n; i++)
        stages[i] = (bly_chain_stage){NULL,      4000000,  8000000,  2 * unit,
                                      70 * unit, 2 * unit, 1 * unit, 15 * unit};
    stages[0] = (bly_chain_stage){NULL, 70000, 140000, 2 * unit, 3 * unit, 2 * unit, 0, 0};
    stages[n - 1] = (bly_chain_stage){NULL, 9000000, 18000000, 0, 60 * unit, 0, 0, 58 * unit};
    return (bly_chain){n, stages, unit, unit};
}

/* Memory of each stage once: everything saved. */
static inline uint64_t full_peak(const bly_chain *chain)
{
    bly_ckpt_op *ops = calloc(chain->n * 2, sizeof(*ops));
    bly_ckpt_replay replay;
    for (size_t i = 0; i < chain->n; i++) {
        ops[i] = (bly_ckpt_op){BLY_CKPT_SAVE, (uint32_t)i + 1};
        ops[chain->n * 2 - 1 - i] = (bly_ckpt_op){BLY_CKPT_BACKWARD, (uint32_t)i + 1};
    }
    assert_ok(bly_checkpoint_replay(chain, ops, chain->n * 2, &replay, NULL));
    free(ops);
    return replay.peak;
}

#endif
