/* SPDX-License-Identifier: Apache-2.0
 *
 * random.c - the generator, and what draws numbers from it.
 *
 * Philox: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Normal numbers
 * by Marsaglia's polar method, which needs a logarithm and a root; both are here, since the
 * library has no libm.
 */
#include "npu/random_inside.h"

#include <string.h>
#include "npu/half.h"

#define ROUNDS 10

static void multiply(uint32_t factor, uint32_t word, uint32_t *high, uint32_t *low)
{
    uint64_t product = (uint64_t)factor * word;
    *high = (uint32_t)(product >> 32);
    *low = (uint32_t)product;
}

void blyi_philox(uint64_t seed, const uint32_t counter[4], uint64_t index, uint32_t out[4])
{
    uint32_t c[4], key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint64_t low, high;
    memcpy(&low, counter, sizeof(low));
    memcpy(&high, counter + 2, sizeof(high));
    high += __builtin_add_overflow(low, index, &low);
    memcpy(c, &low, sizeof(low));
    memcpy(c + 2, &high, sizeof(high));
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t high0, low0, high1, low1;
        multiply(0xd2511f53u, c[0], &high0, &low0);
        multiply(0xcd9e8d57u, c[2], &high1, &low1);
        c[0] = high1 ^ c[1] ^ key[0];
        c[1] = low1;
        c[2] = high0 ^ c[3] ^ key[1];
        c[3] = low0;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    memcpy(out, c, sizeof(c));
}

static uint32_t next32(struct blyi_draw *draw)
{
    if (draw->left == 0) {
        blyi_philox(draw->seed, draw->counter, draw->index++, draw->words);
        draw->left = 4;
    }
    return draw->words[4 - draw->left--];
}

static uint64_t next64(struct blyi_draw *draw)
{
    uint64_t low = next32(draw);
    return low | (uint64_t)next32(draw) << 32;
}

/* [0, 1), in steps of 2^-53. */
static double next_unit(struct blyi_draw *draw)
{
    return (double)(next64(draw) >> 11) * 0x1p-53;
}

/* ── Logarithm and root ───────────────────────────────────────────────────────────────────── */

/* Of a normal number above 0; the series has errors below 1e-15. */
double blyi_random_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof(x)); /* 1 .. 2 */
    if (x > 1.4142135623730951) {
        x /= 2;
        exponent++;
    }
    double s = (x - 1) / (x + 1), square = s * s, sum = 0;
    for (int n = 23; n >= 1; n -= 2)
        sum = sum * square + 1.0 / n;
    return 2 * s * sum + exponent * 0.6931471805599453;
}

/* Of a normal number above 0, by Newton's steps from half the exponent. */
double blyi_random_root(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits >> 1) + ((uint64_t)1023 << 51);
    double root;
    memcpy(&root, &bits, sizeof(root));
    for (int i = 0; i < 5; i++)
        root = (root + x / root) / 2;
    return root;
}

static double next_normal(struct blyi_draw *draw)
{
    if (draw->has_spare) {
        draw->has_spare = false;
        return draw->spare;
    }
    double a, b, square;
    do {
        a = 2 * next_unit(draw) - 1;
        b = 2 * next_unit(draw) - 1;
        square = a * a + b * b;
    } while (square >= 1 || square < 0x1p-200);
    double factor = blyi_random_root(-2 * blyi_random_log(square) / square);
    draw->spare = b * factor;
    draw->has_spare = true;
    return a * factor;
}

/* ── Numbers of a type ────────────────────────────────────────────────────────────────────── */

double blyi_random_real(enum blyi_random_type type, uint64_t word)
{
    switch (type) {
    case BLYI_RANDOM_BF16:
        return (double)blyi_from_bf16((uint16_t)word);
    case BLYI_RANDOM_FP16:
        return (double)blyi_from_fp16((uint16_t)word);
    default:
        return (double)blyi_float_of((uint32_t)word);
    }
}

static uint64_t word_of(enum blyi_random_type type, double value)
{
    switch (type) {
    case BLYI_RANDOM_BF16:
        return blyi_to_bf16((float)value);
    case BLYI_RANDOM_FP16:
        return blyi_to_fp16((float)value);
    default:
        return blyi_bits_of((float)value);
    }
}

static uint64_t uniform_real(struct blyi_draw *draw, const struct blyi_random *random)
{
    double low = blyi_random_real(random->type, random->first.word);
    double high = blyi_random_real(random->type, random->second.word);
    uint64_t word = random->first.word;
    if (low == high)
        return word;
    do { /* a number just below `high` may be rounded to it */
        word = word_of(random->type, low + (high - low) * next_unit(draw));
    } while (blyi_random_real(random->type, word) >= high);
    return word;
}

/* The high half of random * span, whose bias is below span / 2^64. */
static uint64_t uniform_integer(struct blyi_draw *draw, const struct blyi_random *random)
{
    uint64_t span = random->second.word - random->first.word;
    if (random->type == BLYI_RANDOM_INT32 || random->type == BLYI_RANDOM_UINT32)
        span = (uint32_t)span;
    __extension__ typedef unsigned __int128 wide;
    return random->first.word + (uint64_t)(((wide)next64(draw) * span) >> 64);
}

static uint64_t normal(struct blyi_draw *draw, const struct blyi_random *random)
{
    double value = next_normal(draw);
    while (random->kind == BLYI_RANDOM_TRUNCATED && (value < -2 || value > 2))
        value = next_normal(draw);
    return word_of(random->type, blyi_random_real(random->type, random->first.word) +
                                     value * blyi_random_real(random->type, random->second.word));
}

uint64_t blyi_random_next(struct blyi_draw *draw, const struct blyi_random *random)
{
    if (random->kind != BLYI_RANDOM_UNIFORM)
        return normal(draw, random);
    return blyi_random_is_real(random->type) ? uniform_real(draw, random)
                                             : uniform_integer(draw, random);
}

uint8_t blyi_random_mask(struct blyi_draw *draw, double ratio, unsigned n_bits)
{
    uint8_t byte = 0;
    for (unsigned bit = 0; bit < n_bits; bit++)
        byte |= (uint8_t)((next32(draw) * 0x1p-32 >= ratio) << bit);
    return byte;
}
