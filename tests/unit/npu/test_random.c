/* SPDX-License-Identifier: Apache-2.0
 * The generator against published values, and what is built on it. */
#include "mem_test.h"
#include "npu/half.h"
#include "npu/random_inside.h"

/* Known answers of the authors' library (kat_vectors, philox4x32 10). */
static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4];
        uint64_t key;
        uint32_t out[4];
    } rows[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
         UINT64_MAX,
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
         UINT64_C(0x299f31d0a4093822),
         {0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}},
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        uint32_t out[4];
        blyi_philox(rows[i].key, rows[i].counter, 0, out);
        assert_memory_equal(out, rows[i].out, sizeof(out));
    }
}

static void the_counter_carries(void **state)
{
    (void)state;
    const uint32_t before[4] = {0xffffffffu, 0xffffffffu, 7, 0}, after[4] = {0, 0, 8, 0};
    uint32_t a[4], b[4];
    blyi_philox(3, before, 1, a);
    blyi_philox(3, after, 0, b);
    assert_memory_equal(a, b, sizeof(a));
}

static void check_near(double got, double want, double error)
{
    if (!(got >= want - error && got <= want + error))
        fail_msg("%.17g is not %.17g", got, want);
}

static void logarithms_and_roots(void **state)
{
    (void)state;
    check_near(blyi_random_log(1), 0, 0);
    check_near(blyi_random_log(2.718281828459045), 1, 1e-15);
    check_near(blyi_random_log(0.5), -0.6931471805599453, 1e-15);
    check_near(blyi_random_log(1e-60), -138.15510557964274, 1e-12);
    check_near(blyi_random_log(0.999999), -1.0000005000003334e-06, 1e-16);
    check_near(blyi_random_root(2), 1.4142135623730951, 1e-15);
    check_near(blyi_random_root(1e-30), 1e-15, 1e-29);
    check_near(blyi_random_root(12345678), 3513.641700572214, 1e-11);
}

#define N 200000

/* Mean and deviation of many draws lie within five standard errors. */
static void moments_of_normal_numbers(void **state)
{
    (void)state;
    for (int kind = BLYI_RANDOM_NORMAL; kind <= BLYI_RANDOM_TRUNCATED; kind++) {
        struct blyi_random random = {.kind = (enum blyi_random_kind)kind,
                                     .type = BLYI_RANDOM_FP32,
                                     .first = {blyi_bits_of(3), false},
                                     .second = {blyi_bits_of(2), false}};
        struct blyi_draw draw = {.seed = 42};
        double sum = 0, squares = 0, most = 0;
        for (int i = 0; i < N; i++) {
            double x = (double)blyi_float_of((uint32_t)blyi_random_next(&draw, &random)) - 3;
            sum += x;
            squares += x * x;
            most = x > most ? x : most;
        }
        /* The deviation of a normal number cut off at two deviations is 0.8796 of it. */
        double deviation = kind == BLYI_RANDOM_NORMAL ? 2 : 2 * 0.87962566;
        check_near(sum / N, 0, 5 * deviation / 447);
        check_near(squares / N, deviation * deviation, 5 * 1.42 * deviation * deviation / 447);
        assert_true(kind == BLYI_RANDOM_NORMAL ? most > 7 : most <= 4);
    }
}

static void moments_of_uniform_numbers(void **state)
{
    (void)state;
    static const enum blyi_random_type types[] = {BLYI_RANDOM_BF16, BLYI_RANDOM_FP16,
                                                  BLYI_RANDOM_FP32};
    static const uint64_t low[] = {0x3f80, 0x3c00, 0x3f800000}, /* 1 and 2 */
        high[] = {0x4000, 0x4000, 0x40000000};
    for (size_t i = 0; i < BLYI_COUNT(types); i++) {
        struct blyi_random random = {.kind = BLYI_RANDOM_UNIFORM,
                                     .type = types[i],
                                     .first = {low[i], false},
                                     .second = {high[i], false}};
        struct blyi_draw draw = {.seed = i};
        double sum = 0;
        for (int k = 0; k < N; k++) {
            double x = blyi_random_real(types[i], blyi_random_next(&draw, &random));
            assert_true(x >= 1 && x < 2);
            sum += x;
        }
        check_near(sum / N, 1.5, types[i] == BLYI_RANDOM_BF16 ? 0.01 : 0.004);
    }
}

static void integers_lie_within_their_bounds(void **state)
{
    (void)state;
    struct blyi_random random = {.kind = BLYI_RANDOM_UNIFORM, .type = BLYI_RANDOM_INT32};
    struct blyi_draw draw = {.seed = 1};
    uint32_t counts[10] = {0};
    random.first.word = (uint32_t)-5;
    random.second.word = 5;
    for (int i = 0; i < N; i++) {
        int32_t x = (int32_t)blyi_random_next(&draw, &random);
        assert_true(x >= -5 && x < 5);
        counts[x + 5]++;
    }
    for (int i = 0; i < 10; i++)
        check_near(counts[i], N / 10.0, 5 * 134.2);
    random.type = BLYI_RANDOM_INT64;
    random.first.word = (uint64_t)INT64_MIN;
    random.second.word = INT64_MAX;
    int negative = 0;
    for (int i = 0; i < N; i++)
        negative += (int64_t)blyi_random_next(&draw, &random) < 0;
    check_near(negative, N / 2.0, 5 * 223.6);
    random.first.word = random.second.word = 9;
    assert_int_equal(blyi_random_next(&draw, &random), 9);
}

static void masks_keep_their_share(void **state)
{
    (void)state;
    struct blyi_draw draw = {.seed = 5};
    int kept = 0;
    for (int i = 0; i < N / 8; i++)
        kept += __builtin_popcount(blyi_random_mask(&draw, 0.25, 8));
    check_near(kept, N * 0.75, 5 * 193.6);
    assert_int_equal(blyi_random_mask(&draw, 0, 8), 0xff);
    assert_int_equal(blyi_random_mask(&draw, 1, 8), 0);
    assert_int_equal(blyi_random_mask(&draw, 0, 3), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(the_counter_carries),
        cmocka_unit_test(logarithms_and_roots),
        cmocka_unit_test(moments_of_normal_numbers),
        cmocka_unit_test(moments_of_uniform_numbers),
        cmocka_unit_test(integers_lie_within_their_bounds),
        cmocka_unit_test(masks_keep_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
