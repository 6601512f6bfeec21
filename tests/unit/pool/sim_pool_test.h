/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_pool_test.h - a pool on a simulated card, where all figures are exact.
 */
#ifndef SIM_POOL_TEST_H
#define SIM_POOL_TEST_H

#include "../base/base_test.h"

#include "backend/sim.h"
#include "base/fail.h"
#include "pool/budget.h"
#include "pool/front_inside.h"
#include "pool/opts.h"
#include "pool/pool.h"

static struct blyi_sim *sim;
static bly_pool *pool;

static inline void begin(uint64_t total, uint64_t lag)
{
    bly_pool_opts opts;
    assert_ok(blyi_opts_read(NULL, &opts));
    assert_ok(blyi_sim_create(total, lag, &sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(sim), &opts, &pool));
}

static inline void end(void)
{
    assert_ok(bly_pool_audit(pool));
    assert_ok(bly_pool_destroy(pool)); /* the card looks whether all came back */
}

static inline bly_pool_info info(void)
{
    bly_pool_info all = {.struct_size = sizeof all};
    assert_ok(bly_pool_get_info(pool, &all));
    assert_int_equal(all.live + all.idle + all.waiting + all.parked, all.reserved);
    return all;
}

static inline void *take(uint32_t stream, uint64_t size)
{
    void *block = NULL;
    blyi_sim_tick(sim);
    assert_ok(bly_pool_alloc(pool, size, blyi_sim_stream(stream), &block));
    return block;
}

static inline void give(uint32_t stream, void *block, uint64_t size)
{
    blyi_sim_tick(sim);
    (void)blyi_sim_use(sim, blyi_sim_stream(stream), block, size);
    assert_ok(bly_pool_free(block));
}

#endif
