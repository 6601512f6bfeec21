/* SPDX-License-Identifier: Apache-2.0
 *
 * random.h - random numbers in card memory, in stream order, by Philox 4x32-10.
 *
 * The key is the seed; the 128 bits at `counter` are the number of the first block of four words,
 * which is only read. So the same seed and counter give the same numbers, whatever else runs.
 * Uniform numbers lie in [low, high), and are low where both are equal; truncated normal ones are
 * drawn again until they lie within two deviations of the mean; a bit of a mask is 1 ("kept") with
 * probability 1 - ratio, the lowest bit of the first byte being the first.
 */
#ifndef BLYI_RANDOM_H
#define BLYI_RANDOM_H

#include <belay/base.h>
#include <stdbool.h>

enum blyi_random_kind {
    BLYI_RANDOM_MASK,
    BLYI_RANDOM_UNIFORM,
    BLYI_RANDOM_NORMAL,
    BLYI_RANDOM_TRUNCATED,
};

enum blyi_random_type {
    BLYI_RANDOM_INT32,
    BLYI_RANDOM_INT64,
    BLYI_RANDOM_UINT32,
    BLYI_RANDOM_UINT64,
    BLYI_RANDOM_BF16,
    BLYI_RANDOM_FP16,
    BLYI_RANDOM_FP32,
};
uint32_t blyi_random_size(enum blyi_random_type type); /* bytes of one number */

/* A parameter: its bytes, or the address on the card where they lie when the task runs. */
struct blyi_random_param {
    uint64_t word;
    bool is_address;
};

struct blyi_random {
    enum blyi_random_kind kind;
    enum blyi_random_type type;             /* of the numbers; of a mask: of its ratio */
    struct blyi_random_param first, second; /* low and high, mean and deviation, ratio */
    struct blyi_random_param seed, n;
    void *result;
    const void *counter; /* 16 bytes */
};

/* stream NULL: default. E_INVALID: result or counter is no memory of the stream's card, `high` is
 * below `low`, or n numbers do not fit into 64 bits. What is only known when the task runs, it
 * fails on (E_FAULT): the numbers go beyond their block, high below low. [any] */
bly_status blyi_random_async(const struct blyi_random *random, void *stream, uint32_t site);

/* The generator itself: block number `index` behind a counter. */
void blyi_philox(uint64_t seed, const uint32_t counter[4], uint64_t index, uint32_t out[4]);

#endif
