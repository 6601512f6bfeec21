/* SPDX-License-Identifier: Apache-2.0
 *
 * test_profiles.c - what profiles are documented as, and the reserve that they set.
 */
#include "../npu/mem_test.h"

#include <inttypes.h>

#include "backend/sim.h"
#include "pool/opts.h"
#include "pool/pool.h"

static struct blyi_sim *sim;
static bly_pool *pool;

static void begin(uint64_t total, bly_pool_profile profile, uint64_t reserve)
{
    bly_pool_opts opts = bly_pool_opts_default(), read;
    opts.profile = profile;
    opts.reserve = reserve;
    assert_ok(blyi_opts_read(&opts, &read));
    assert_ok(blyi_sim_create(total, BLYI_SIM_HELD, &sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(sim), &read, &pool));
}

static bly_pool_info info(void)
{
    bly_pool_info all = {.struct_size = sizeof all};
    assert_ok(bly_pool_get_info(pool, &all));
    assert_ok(bly_pool_audit(pool));
    return all;
}

static void *take(uint32_t stream, uint64_t size)
{
    void *block = NULL;
    assert_ok(bly_pool_alloc(pool, size, blyi_sim_stream(stream), &block));
    return block;
}

static void end(void)
{
    assert_ok(bly_pool_destroy(pool));
}

/* The row of the table that is documented. */
static void row_of(const struct blyi_profile *profile, char row[256])
{
    snprintf(row, 256,
             "| %s | %" PRIu32 ".%02" PRIu32 " %% | %" PRIu32 ".%02" PRIu32 " %% | 1/%" PRIu32
             " | 1/%" PRIu32 " | %" PRIu32 " MiB |\n",
             profile->name, profile->slack / 100, profile->slack % 100, profile->reserve / 100,
             profile->reserve % 100, profile->share, profile->share_far, 2 * profile->ahead);
}

static void test_documented_as_they_are(void **state)
{
    (void)state;
    static char text[65536];
    FILE *page = fopen(POOL_PAGE, "r");
    assert_non_null(page);
    size_t n = fread(text, 1, sizeof text - 1, page);
    assert_true(n > 0 && n < sizeof text - 1);
    fclose(page);
    for (unsigned i = 0; i < BLY_POOL_PROFILES; i++) {
        char row[256];
        row_of(&blyi_profiles[i], row);
        if (strstr(text, row) == NULL)
            fail_msg("docs/pool.md does not have the row %s", row);
    }
}

static void test_values_reach_the_pool(void **state)
{
    (void)state;
    static const uint64_t reserves[] = {0, 50 * MiB, 50 * MiB, 50 * MiB};
    for (unsigned i = 0; i < BLY_POOL_PROFILES; i++) {
        begin(1000 * MiB, (bly_pool_profile)i, 0);
        assert_int_equal(info().reserve, reserves[i]);
        assert_int_equal(pool->policy.slack, blyi_profiles[i].slack);
        assert_int_equal(pool->policy.share, blyi_profiles[i].share);
        assert_int_equal(pool->policy.share_far, blyi_profiles[i].share_far);
        assert_int_equal(pool->policy.ahead, blyi_profiles[i].ahead);
        end();
    }
    begin(1000 * MiB, BLY_POOL_TRAINING, UINT64_MAX);
    assert_int_equal(info().reserve, 0);
    end();
    begin(1000 * MiB, BLY_POOL_BALANCED, 100 * MiB);
    assert_int_equal(info().reserve, 100 * MiB);
    end();
}

/* What is idle goes first; then the last attempt takes of the reserve what it needs. */
static void test_the_reserve_is_last(void **state)
{
    (void)state;
    void *none = NULL;
    begin(1000 * MiB, BLY_POOL_TIGHT, 0);
    void *most = take(0, 840 * MiB), *idle = take(1, 100 * MiB);
    assert_int_equal(info().reserved, 940 * MiB);
    assert_ok(bly_pool_free(idle));
    blyi_sim_complete(sim, blyi_sim_stream(1));
    void *other = take(0, 104 * MiB); /* 100 of it were idle */
    assert_int_equal(info().reserved, 944 * MiB);
    assert_int_equal(info().reserve_used, 0);
    void *last = take(0, 30 * MiB); /* 6 MiB are beside the reserve */
    assert_int_equal(info().reserved, 974 * MiB);
    assert_int_equal(info().reserve_used, 24 * MiB);
    assert_int_equal(bly_pool_alloc(pool, 28 * MiB, blyi_sim_stream(0), &none), BLY_E_NO_MEMORY);
    assert_int_equal(info().reserved, 974 * MiB); /* nothing was kept in vain */
    assert_int_equal(info().reserve_used, 24 * MiB);
    assert_ok(bly_pool_free(last));
    assert_ok(bly_pool_free(other));
    assert_ok(bly_pool_free(most));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_as_they_are),
        cmocka_unit_test(test_values_reach_the_pool),
        cmocka_unit_test(test_the_reserve_is_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
