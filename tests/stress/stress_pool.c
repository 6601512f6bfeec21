/* SPDX-License-Identifier: Apache-2.0
 *
 * stress_pool.c - random programs over a simulated card whose streams stand still as long as they
 * like, beside a model that knows who may still use what. The card itself stops the process when
 * memory is unmapped that a stream may use.
 */
#include "../unit/npu/mem_test.h"

#include <stdio.h>
#include <stdlib.h>
#include "backend/sim.h"
#include "pool/front.h"
#include "pool/opts.h"
#include "pool/pool.h"

#define STREAMS 5u
#define BLOCKS  400u
#define PENDING 4096u
#define STEPS   20000u
#define ENDED   UINT32_MAX /* a block's stream: it has ended */

struct block {
    uintptr_t address;
    uint64_t size;
    uint32_t stream, others; /* others: bit set of streams that were named */
};

/* What a stream may still do behind a free. */
struct pending {
    uintptr_t address;
    uint64_t size;
    uint32_t stream;
    blyi_mark mark;
};

static struct {
    struct blyi_sim *sim;
    bly_pool *pool;
    struct block blocks[BLOCKS];
    unsigned n_blocks;
    struct pending pending[PENDING];
    unsigned n_pending;
    uint64_t random, live, refused;
    bool faults; /* calls of the card fail now and then */
} it;

static uint32_t roll(uint32_t n)
{
    it.random ^= it.random << 13;
    it.random ^= it.random >> 7;
    it.random ^= it.random << 17;
    return (uint32_t)(it.random >> 11) % n;
}

static void prune(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < it.n_pending; i++)
        if (!blyi_sim_passed(it.sim, blyi_sim_stream(it.pending[i].stream), it.pending[i].mark))
            it.pending[n++] = it.pending[i];
    it.n_pending = n;
}

static void add_pending(const struct block *block, uint32_t stream)
{
    blyi_mark mark =
        blyi_sim_use(it.sim, blyi_sim_stream(stream), (void *)block->address, block->size);
    if (it.n_pending == PENDING) {
        for (uint32_t s = 0; s < STREAMS; s++)
            blyi_sim_complete(it.sim, blyi_sim_stream(s));
        prune();
    } else {
        it.pending[it.n_pending++] = (struct pending){block->address, block->size, stream, mark};
    }
}

static bool overlaps(uintptr_t a, uint64_t n, uintptr_t b, uint64_t m)
{
    return a < b + m && b < a + n;
}

static uint64_t some_size(void)
{
    switch (roll(8)) {
    case 0:
        return 1 + roll(4096);
    case 1:
    case 2:
        return 1 + roll(600 * 1024);
    case 3:
        return (1 + roll(24)) * MiB;
    case 4:
        return (1 + roll(8)) * 2 * MiB;
    case 5:
        return 1 + roll(64u << 20);
    default:
        return 512 * 1024 + roll(3u << 20);
    }
}

static void allocate(void)
{
    uint64_t size = some_size();
    uint32_t stream = roll(STREAMS);
    void *at = NULL;
    if (it.n_blocks == BLOCKS)
        return;
    bly_status status;
    if (roll(16) == 0) {
        bly_pool_request request = {.struct_size = sizeof request,
                                    .region = (bly_pool_region)roll(BLY_POOL_REGIONS),
                                    .size = size,
                                    .align = UINT64_C(512) << roll(15),
                                    .flags = roll(2) ? BLY_POOL_EXPORTABLE : 0};
        status = bly_pool_alloc_with(it.pool, &request, blyi_sim_stream(stream), &at);
        if (status == BLY_OK)
            assert_int_equal((uintptr_t)at % request.align, 0);
    } else {
        status = bly_pool_alloc(it.pool, size, blyi_sim_stream(stream), &at);
    }
    if (it.faults && status != BLY_OK) {
        assert_string_not_equal(blyi_fail_text(), "");
        it.refused++;
        return;
    }
    if (status == BLY_E_NO_MEMORY) {
        assert_non_null(strstr(blyi_fail_text(), "no room for"));
        it.refused++;
        return;
    }
    assert_ok(status);
    struct block block = {(uintptr_t)at, size, stream, 0};
    for (unsigned i = 0; i < it.n_blocks; i++)
        if (overlaps(block.address, size, it.blocks[i].address, it.blocks[i].size))
            fail_msg("0x%zx is handed out twice", (size_t)block.address);
    prune();
    for (unsigned i = 0; i < it.n_pending; i++)
        if (it.pending[i].stream != stream &&
            overlaps(block.address, size, it.pending[i].address, it.pending[i].size))
            fail_msg("0x%zx for stream %u, and stream %u may still use it", (size_t)block.address,
                     stream, it.pending[i].stream);
    (void)blyi_sim_use(it.sim, blyi_sim_stream(stream), at, size);
    it.blocks[it.n_blocks++] = block;
    it.live += size;
}

static void release(void)
{
    if (it.n_blocks == 0)
        return;
    unsigned i = roll(it.n_blocks);
    struct block block = it.blocks[i];
    it.blocks[i] = it.blocks[--it.n_blocks];
    it.live -= block.size;
    if (block.stream != ENDED)
        add_pending(&block, block.stream);
    for (uint32_t s = 0; s < STREAMS; s++)
        if (block.others >> s & 1) {
            add_pending(&block, s);
            assert_ok(bly_pool_use((void *)block.address, blyi_sim_stream(s)));
        }
    if (roll(8) == 0) {
        uint32_t last = roll(STREAMS);
        add_pending(&block, last);
        assert_ok(bly_pool_free_on((void *)block.address, blyi_sim_stream(last)));
    } else {
        assert_ok(bly_pool_free((void *)block.address));
    }
}

/* A stream ends, and the next one has its name. Blocks that live on it, or name it, stay. */
static void end_stream(uint32_t stream)
{
    blyi_sim_stick(it.sim, blyi_sim_stream(stream), false);
    blyi_sim_complete(it.sim, blyi_sim_stream(stream));
    prune();
    for (unsigned i = 0; i < it.n_blocks; i++) {
        it.blocks[i].others &= ~(1u << stream);
        if (it.blocks[i].stream == stream)
            it.blocks[i].stream = ENDED;
    }
    blyi_sim_end(it.sim, blyi_sim_stream(stream));
}

/* All or none; with a size that cannot be had none. */
static void take_batch(void)
{
    uint64_t sizes[8] = {0};
    void *blocks[8] = {NULL};
    for (unsigned i = 0; i < 8; i++)
        sizes[i] = some_size();
    if (roll(2))
        sizes[roll(8)] = UINT64_C(1) << 40;
    bly_status status = bly_pool_alloc_batch(it.pool, 8, sizes, blyi_sim_stream(0), blocks);
    if (status == BLY_OK)
        assert_ok(bly_pool_free_batch(8, blocks));
    else
        assert_null(blocks[0]);
}

/* The nth call of some kind fails: at worst a request is refused. */
static void inject(void)
{
    blyi_sim_fail(it.sim, (enum blyi_sim_op)roll(BLYI_SIM_HOLD), 1 + roll(6));
}

static void use_elsewhere(void)
{
    if (it.n_blocks == 0)
        return;
    struct block *block = &it.blocks[roll(it.n_blocks)];
    uint32_t stream = roll(STREAMS);
    if (stream != block->stream)
        block->others |= 1u << stream;
}

static void step(void)
{
    uint32_t what = roll(100), stream = roll(STREAMS);
    if (what < 48)
        allocate();
    else if (what < 88)
        release();
    else if (what < 93)
        use_elsewhere();
    else if (what < 97)
        blyi_sim_complete(it.sim, blyi_sim_stream(stream));
    else if (what == 97)
        assert_ok(bly_pool_poll(it.pool));
    else if (what == 98 && roll(4) == 0)
        assert_ok(bly_pool_trim(it.pool, roll(1u << 30), NULL));
    else if (what == 99 && roll(8) == 0)
        blyi_sim_stick(it.sim, blyi_sim_stream(stream), roll(2));
    else if (what == 98 && roll(8) == 0)
        end_stream(stream);
    else if (what == 99 && roll(4) == 0)
        take_batch();
    else if (it.faults && roll(4) == 0)
        inject();
}

static void check(void)
{
    bly_pool_info info = {.struct_size = sizeof info};
    struct blyi_sim_figures is;
    assert_ok(bly_pool_audit(it.pool));
    assert_ok(blyi_front_audit(it.pool->front));
    assert_ok(bly_pool_get_info(it.pool, &info));
    blyi_sim_figures(it.sim, &is);
    assert_int_equal(info.reserved, is.held);
    assert_int_equal(info.live + info.parked + info.idle + info.waiting, info.reserved);
    assert_int_equal(info.blocks, it.n_blocks);
    assert_int_equal(info.asked, it.live);
}

static void run(uint64_t total, bly_pool_profile profile, uint64_t limit, uint32_t reuse)
{
    bly_pool_opts opts, asked = bly_pool_opts_default();
    asked.profile = profile;
    asked.limit = limit;
    asked.reuse = reuse;
    assert_ok(blyi_opts_read(&asked, &opts));
    assert_ok(blyi_sim_create(total, BLYI_SIM_HELD, &it.sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(it.sim), &opts, &it.pool));
    it.n_blocks = it.n_pending = 0;
    it.live = it.refused = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        step();
        if (i % 64 == 0)
            check();
    }
    check();
    blyi_sim_fail(it.sim, BLYI_SIM_CREATE, 0);
    while (it.n_blocks > 0)
        release();
    for (uint32_t s = 0; s < STREAMS; s++)
        blyi_sim_complete(it.sim, blyi_sim_stream(s));
    assert_ok(bly_pool_trim(it.pool, 0, NULL));
    bly_pool_info info = {.struct_size = sizeof info};
    assert_ok(bly_pool_get_info(it.pool, &info));
    assert_int_equal(info.reserved, 0);
    assert_ok(bly_pool_destroy(it.pool));
}

static void test_roomy(void **state)
{
    (void)state;
    run(64 * GiB, BLY_POOL_BALANCED, 0, 0);
    assert_int_equal(it.refused, 0);
}

static void test_full_card(void **state)
{
    (void)state;
    run(512 * MiB, BLY_POOL_BALANCED, 0, 0);
    assert_true(it.refused > 0);
}

static void test_limited(void **state)
{
    (void)state;
    run(64 * GiB, BLY_POOL_TIGHT, 700 * MiB, 0);
    assert_true(it.refused > 0);
}

static void test_lent(void **state)
{
    (void)state;
    run(GiB, BLY_POOL_BALANCED, 0, BLY_POOL_REUSE_OPPORTUNISTIC);
}

static void test_faults(void **state)
{
    (void)state;
    it.faults = true;
    run(GiB, BLY_POOL_BALANCED, 0, 0);
    run(GiB, BLY_POOL_TIGHT, 0, BLY_POOL_REUSE_OPPORTUNISTIC);
    it.faults = false;
    assert_true(it.refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roomy),   cmocka_unit_test(test_full_card),
        cmocka_unit_test(test_limited), cmocka_unit_test(test_lent),
        cmocka_unit_test(test_faults),
    };
    const char *seed = getenv("TEST_SEED");
    it.random = seed ? strtoull(seed, NULL, 0) : 88172645463325252u;
    printf("TEST_SEED=%llu\n", (unsigned long long)it.random);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
