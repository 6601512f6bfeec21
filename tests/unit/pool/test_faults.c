/* SPDX-License-Identifier: Apache-2.0
 *
 * test_faults.c - one call of the card fails, or one host allocation: each in turn. Nothing is
 * lost, no figure is wrong, and the pool goes on.
 */
#include "../npu/mem_test.h"

#include "backend/sim.h"
#include "pool/front.h"
#include "pool/opts.h"
#include "pool/pool.h"

#define TOTAL  (256 * MiB)
#define BLOCKS 64u

struct run {
    struct blyi_sim *sim;
    bly_pool *pool;
    void *blocks[BLOCKS];
    unsigned n, failures;
};

static void check(struct run *run)
{
    bly_pool_info info = {.struct_size = sizeof info};
    struct blyi_sim_figures is;
    assert_ok(bly_pool_audit(run->pool));
    assert_ok(blyi_front_audit(run->pool->front));
    assert_ok(bly_pool_get_info(run->pool, &info));
    blyi_sim_figures(run->sim, &is);
    assert_int_equal(info.reserved, is.held);
    assert_int_equal(info.live + info.parked + info.idle + info.waiting, info.reserved);
    assert_int_equal(info.blocks, run->n);
}

static void failed(struct run *run, bly_status status)
{
    assert_true(status == BLY_E_NO_MEMORY || status == BLY_E_HOST_MEMORY ||
                status == BLY_E_SYSTEM || status == BLY_E_HANDLE);
    assert_string_not_equal(blyi_fail_text(), "");
    run->failures++;
    check(run);
}

static void take(struct run *run, uint32_t stream, uint64_t size)
{
    void *block = NULL;
    bly_status status = bly_pool_alloc(run->pool, size, blyi_sim_stream(stream), &block);
    if (status != BLY_OK) {
        assert_null(block);
        failed(run, status);
        return;
    }
    (void)blyi_sim_use(run->sim, blyi_sim_stream(stream), block, size);
    run->blocks[run->n++] = block;
}

/* With `other`, that stream uses it as well. */
static void give(struct run *run, unsigned at, int other)
{
    if (run->n == 0)
        return;
    at %= run->n;
    bly_status status = BLY_OK;
    if (other >= 0)
        status = bly_pool_use(run->blocks[at], blyi_sim_stream((uint32_t)other));
    if (status == BLY_OK)
        status = bly_pool_free(run->blocks[at]);
    if (status != BLY_OK)
        failed(run, status);
    else
        run->blocks[at] = run->blocks[--run->n];
}

static bool begin(struct run *run)
{
    bly_pool_opts opts;
    *run = (struct run){0};
    assert_ok(blyi_opts_read(NULL, &opts));
    if (blyi_sim_create(TOTAL, BLYI_SIM_HELD, &run->sim) != BLY_OK)
        return false;
    if (blyi_pool_make(blyi_sim_backend(run->sim), &opts, &run->pool) == BLY_OK)
        return true;
    blyi_sim_backend(run->sim)->ops->close(blyi_sim_backend(run->sim));
    return false;
}

static void scenario(struct run *run)
{
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            take(run, i % 3, (i + 1) * 3 * MiB + i * 4096);
            take(run, i % 3, 700 * KiB);
            take(run, (i + 1) % 3, 1000 + i);
        }
        for (unsigned i = 0; i < 14; i++)
            give(run, i * 5, i % 4 == 0 ? (int)(i % 3) : -1);
        if (round == 1)
            blyi_sim_complete(run->sim, blyi_sim_stream(0));
        take(run, 1, 90 * MiB);
        take(run, 2, 60 * MiB);
    }
    while (run->n > 0)
        give(run, 0, -1);
}

static void end(struct run *run)
{
    while (run->n > 0)
        give(run, 0, -1);
    check(run);
    for (uint32_t s = 0; s < 3; s++)
        blyi_sim_complete(run->sim, blyi_sim_stream(s));
    assert_ok(bly_pool_trim(run->pool, 0, NULL));
    bly_pool_info info = {.struct_size = sizeof info};
    assert_ok(bly_pool_get_info(run->pool, &info));
    assert_int_equal(info.reserved, 0);
    assert_ok(bly_pool_destroy(run->pool)); /* the card looks whether something is left */
}

static void test_each_call_of_the_card(void **state)
{
    (void)state;
    for (int op = 0; op < BLYI_SIM_OPS; op++) {
        uint64_t nth = 0;
        bool happened = true;
        while (happened) {
            struct run run;
            assert_true(begin(&run));
            blyi_sim_fail(run.sim, (enum blyi_sim_op)op, ++nth);
            scenario(&run);
            happened = blyi_sim_failed(run.sim);
            blyi_sim_fail(run.sim, (enum blyi_sim_op)op, 0);
            end(&run);
        }
        assert_true(nth > 1);
    }
}

static void test_each_host_allocation(void **state)
{
    (void)state;
    bool happened = true;
    uint64_t n_pools = 0;
    for (uint64_t nth = 1; happened; nth++) {
        struct run run;
        bool made = begin(&run);
        assert_true(made);
        blyi_host_fail_nth(nth);
        scenario(&run);
        happened = blyi_host_failed();
        blyi_host_fail_nth(0);
        end(&run);
        n_pools++;
    }
    assert_true(n_pools > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_of_the_card),
        cmocka_unit_test(test_each_host_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
