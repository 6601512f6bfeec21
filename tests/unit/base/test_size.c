/* SPDX-License-Identifier: Apache-2.0
 * Sizes as text and back. */
#include "base_test.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/size.h"

static void texts(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *brief, *full;
    } rows[] = {
        {0, "0 B", "0 B"},
        {500, "500 B", "500 B"},
        {1023, "1023 B", "1023 B"},
        {1024, "1 KiB", "1024 B (1 KiB)"},
        {1025, "1.0 KiB", "1025 B (1.0 KiB)"},
        {1536, "1.5 KiB", "1536 B (1.5 KiB)"},
        {268435456, "256 MiB", "268435456 B (256 MiB)"},
        {2411725, "2.3 MiB", "2411725 B (2.3 MiB)"},
        {1048575, "1.0 MiB", "1048575 B (1.0 MiB)"},
        {(uint64_t)1 << 40, "1 TiB", "1099511627776 B (1 TiB)"},
        {(uint64_t)1 << 63, "8388608 TiB", "9223372036854775808 B (8388608 TiB)"},
        {UINT64_MAX, "16777216.0 TiB", "18446744073709551615 B (16777216.0 TiB)"},
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        char buf[BLYI_SIZE_TEXT];
        assert_string_equal(blyi_size_short(rows[i].bytes, buf), rows[i].brief);
        assert_string_equal(blyi_size_text(rows[i].bytes, buf), rows[i].full);
    }
}

static void sizes_that_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"500B", 500},
        {"4KiB", 4096},
        {"4 KiB", 4096},
        {"4k", 4096},
        {"2M", 2 << 20},
        {"2mib", 2 << 20},
        {"1g", 1 << 30},
        {"1T", (uint64_t)1 << 40},
        {"0.5", 0},
        {"1.5K", 1536},
        {"60.97GiB", 65466039009}, /* floor(60.97 * 2^30) */
        {"0.1GiB", 107374182},
        {"0.9999999999999999999999999999TiB", ((uint64_t)1 << 40) - 1},
        {"9223372036854775808", (uint64_t)1 << 63},
        {"8388608TiB", (uint64_t)1 << 63},
        {"8388607.99999999999999999999TiB", ((uint64_t)1 << 63) - 1},
        {"00000000000000000000000000012", 12},
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        uint64_t bytes = 77;
        if (blyi_size_parse(rows[i].text, &bytes) != BLY_OK || bytes != rows[i].bytes)
            fail_msg("%s: %llu", rows[i].text, (unsigned long long)bytes);
    }
}

static void texts_that_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        " ",
        "-1",
        "+1",
        "1 2",
        "1. 5K",
        ".5K",
        "1.",
        "1.K",
        " 1",
        "1 ",
        "1K ",
        "1KB",
        "KiB",
        "0x10",
        "1e3",
        "1 KiBs",
        "1,5K",
        "1..5",
        "1.5.5",
        "nan",
        "1P",
        "1K B",
        "9223372036854775809",
        "8388609TiB",
        "8388608.00000000001TiB",
        "99999999999999999999999999",
        "18446744073709551616",
        "18446744073709551616TiB",
    };
    for (size_t i = 0; i < BLYI_COUNT(rows); i++) {
        uint64_t bytes = 77;
        if (blyi_size_parse(rows[i], &bytes) != BLY_E_PARSE || bytes != 77)
            fail_msg("\"%s\" was read", rows[i]);
        if (rows[i][0] && !strstr(bly_last_error(), rows[i]))
            fail_msg("%s", bly_last_error());
        blyi_fail_clear();
        assert_false(blyi_size_try_parse(rows[i], &bytes));
        assert_string_equal(bly_last_error(), "");
    }
}

/* Exact divisions of 2^k, written with all their digits, come back exactly. */
static void fractions_are_exact(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    for (int i = 0; i < 2000; i++) {
        uint64_t bytes = rng_next(&rng) >> (20 + rng_below(&rng, 40));
        uint64_t rest = bytes & (GiB - 1);
        char text[128];
        int n = snprintf(text, sizeof(text), "%llu.", (unsigned long long)(bytes / GiB));
        do {
            rest *= 10;
            text[n++] = (char)('0' + rest / GiB);
            rest %= GiB;
        } while (rest > 0);
        snprintf(text + n, sizeof(text) - (size_t)n, "GiB");
        uint64_t back = 0;
        assert_int_equal(blyi_size_parse(text, &back), BLY_OK);
        assert_int_equal(back, bytes);
    }
}

static void short_forms_that_are_exact_come_back(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    for (int i = 0; i < 2000; i++) {
        uint64_t bytes = (1 + rng_below(&rng, 1023)) << (10 * rng_below(&rng, 5)), back = 0;
        char buf[BLYI_SIZE_TEXT];
        assert_int_equal(blyi_size_parse(blyi_size_short(bytes, buf), &back), BLY_OK);
        assert_int_equal(back, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(sizes_that_are_read),
        cmocka_unit_test(texts_that_are_refused),
        cmocka_unit_test(fractions_are_exact),
        cmocka_unit_test(short_forms_that_are_exact_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
