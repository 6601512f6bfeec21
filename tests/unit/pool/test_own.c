/* SPDX-License-Identifier: Apache-2.0
 *
 * test_own.c - export-ready blocks over a simulated card: a handle each, reuse, moving, leaving.
 */
#include "../npu/mem_test.h"

#include "backend/sim.h"
#include "pool/opts.h"
#include "pool/pages.h"
#include "pool/pool.h"

static struct blyi_sim *sim;
static bly_pool *pool;

static void begin(uint64_t total, uint32_t flags)
{
    bly_pool_opts opts = bly_pool_opts_default(), read;
    opts.profile = BLY_POOL_TIGHT; /* exactly what is needed */
    opts.flags = flags;
    assert_ok(blyi_opts_read(&opts, &read));
    assert_ok(blyi_sim_create(total, BLYI_SIM_HELD, &sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(sim), &read, &pool));
}

static struct blyi_sim_figures card(void)
{
    struct blyi_sim_figures figures;
    blyi_sim_figures(sim, &figures);
    return figures;
}

static bly_pool_info info(void)
{
    bly_pool_info all = {.struct_size = sizeof all};
    assert_ok(bly_pool_get_info(pool, &all));
    assert_int_equal(all.live + all.idle + all.waiting + all.parked, all.reserved);
    assert_int_equal(all.reserved, card().held);
    assert_ok(bly_pool_audit(pool));
    return all;
}

static void end(void)
{
    assert_ok(bly_pool_audit(pool));
    assert_ok(bly_pool_destroy(pool)); /* the card looks whether all came back */
}

static bly_status try_take(uint64_t size, uint32_t flags, uint32_t stream, void **block)
{
    bly_pool_request request = {.struct_size = sizeof request, .size = size, .flags = flags};
    return bly_pool_alloc_with(pool, &request, blyi_sim_stream(stream), block);
}

static char *take_on(uint32_t stream, uint64_t size, uint32_t flags)
{
    void *block = NULL;
    assert_ok(try_take(size, flags, stream, &block));
    (void)blyi_sim_use(sim, blyi_sim_stream(stream), block, size);
    return block;
}

static char *take(uint64_t size)
{
    return take_on(0, size, BLY_POOL_EXPORTABLE);
}

static void give(void *block)
{
    assert_ok(bly_pool_free(block));
}

/* Of the block's granules, all in one handle in which nothing else lies. */
static void check_own(const char *block, uint64_t size)
{
    const struct blyi_span *span = blyi_pages_find((uintptr_t)block);
    assert_int_equal(span->size, size);
    assert_int_equal(span->address, (uintptr_t)block);
    assert_int_equal(span->address % pool->granule, 0);
    const struct blyi_chunk *chunk = span->extent->chunks[0];
    assert_int_equal(chunk->count * pool->granule, size);
    assert_int_equal(span->extent->n, chunk->count);
}

static void test_a_handle_for_each(void **state)
{
    (void)state;
    begin(GiB, 0);
    char *small = take(1000), *a = take(3 * MiB + 1), *b = take(300 * MiB);
    check_own(small, 2 * MiB);
    check_own(a, 4 * MiB);
    check_own(b, 300 * MiB);
    assert_int_equal(card().creates, 3);
    assert_int_equal(card().maps, 3);
    char *shared = take_on(0, MiB, 0);
    assert_int_equal(info().reserved, (2 + 4 + 300 + 2) * MiB);
    assert_int_equal(info().asked, 1000 + 3 * MiB + 1 + 300 * MiB + MiB);
    give(small);
    give(a);
    give(b);
    give(shared);
    assert_int_equal(info().idle, 308 * MiB);
    end();
}

static void test_one_size_again(void **state)
{
    (void)state;
    begin(GiB, 0);
    char *a = take(64 * MiB), *b = take(6 * MiB), *c = take(64 * MiB);
    uint64_t maps = card().maps;
    give(a);
    give(b);
    give(c);
    assert_ptr_equal(take(64 * MiB), c); /* freed last, if joined or not */
    assert_ptr_equal(take(64 * MiB), a);
    assert_ptr_equal(take(6 * MiB - 100), b);
    assert_int_equal(card().maps, maps);
    assert_int_equal(info().reserved, 134 * MiB);
    end();
}

static void test_idle_ones_serve_others(void **state)
{
    (void)state;
    begin(512 * MiB, 0);
    give(take(300 * MiB));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    char *b = take_on(1, 302 * MiB, BLY_POOL_EXPORTABLE); /* another size, another stream */
    check_own(b, 302 * MiB);
    assert_int_equal(info().reserved, 302 * MiB);
    give(b);
    blyi_sim_complete(sim, blyi_sim_stream(1));
    char *c = take_on(0, 400 * MiB, 0); /* no block of its own */
    assert_int_equal(info().reserved, 400 * MiB);
    give(c);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    char *d = take_on(0, 90 * MiB, BLY_POOL_EXPORTABLE), *e = take_on(0, 400 * MiB, 0);
    check_own(d, 90 * MiB);
    assert_int_equal(info().live, 490 * MiB);
    give(d);
    give(e);
    uint64_t released = 0;
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_ok(bly_pool_trim(pool, 0, &released));
    assert_int_equal(info().reserved, 0);
    end();
}

/* Sizes that never come again: neither memory nor addresses add up. */
static void test_sizes_that_grow(void **state)
{
    (void)state;
    begin(GiB, 0);
    for (uint64_t n = 1; n <= 200; n++) {
        char *block = take(n * 2 * MiB);
        check_own(block, n * 2 * MiB);
        give(block);
        blyi_sim_complete(sim, blyi_sim_stream(0));
    }
    assert_int_equal(info().reserved, 400 * MiB);
    assert_true(card().reserved <= 2 * 400 * MiB);
    end();
}

static void test_alignment(void **state)
{
    (void)state;
    void *block = NULL;
    begin(GiB, 0);
    bly_pool_request request = {.struct_size = sizeof request,
                                .size = 5 * MiB,
                                .align = 64 * MiB,
                                .flags = BLY_POOL_EXPORTABLE};
    assert_ok(bly_pool_alloc_with(pool, &request, blyi_sim_stream(0), &block));
    assert_int_equal((uintptr_t)block % (64 * MiB), 0);
    check_own(block, 6 * MiB);
    give(block);
    assert_int_equal(info().reserved, 6 * MiB);
    end();
}

/* A pool whose blocks are all export-ready: small ones are not. */
static void test_all_blocks_of_a_pool(void **state)
{
    (void)state;
    void *a = NULL, *b = NULL, *small = NULL, *again = NULL;
    begin(GiB, BLY_POOL_EXPORTABLE);
    assert_ok(bly_pool_alloc(pool, 1000, blyi_sim_stream(0), &small));
    assert_ok(bly_pool_alloc(pool, MiB, blyi_sim_stream(0), &a));
    assert_ok(bly_pool_alloc(pool, 2 * MiB + 512, blyi_sim_stream(0), &b));
    check_own(a, 2 * MiB);
    check_own(b, 4 * MiB);
    assert_int_equal(info().reserved, (2 + 2 + 4) * MiB);
    assert_int_equal(bly_pool_export(small, NULL), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "it lies in memory that serves many blocks"));
    assert_ok(bly_pool_export(a, NULL));
    give(a);
    give(b);
    assert_ok(bly_pool_alloc(pool, 2 * MiB + 512, blyi_sim_stream(0), &again));
    assert_ptr_equal(again, b);
    give(again);
    give(small);
    end();
}

static void test_what_was_exported_leaves(void **state)
{
    (void)state;
    void *handle = NULL;
    begin(GiB, 0);
    char *a = take(64 * MiB), *kept = take(64 * MiB);
    assert_ok(bly_pool_export(a, &handle));
    assert_int_equal((uintptr_t)handle, blyi_pages_find((uintptr_t)a)->extent->chunks[0]->handle);
    assert_ok(bly_pool_export(a, NULL)); /* twice is fine */
    give(a);
    assert_int_equal(info().waiting, 64 * MiB); /* the work on it has not ended */
    assert_int_equal(info().live, 64 * MiB);
    assert_int_equal(bly_pool_free(a), BLY_E_INVALID);
    char *other = take(64 * MiB);
    assert_ptr_not_equal(other, a);
    assert_int_equal(info().reserved, 192 * MiB);
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info().reserved, 128 * MiB); /* not idle: gone */
    assert_int_equal(info().idle, 0);
    assert_int_equal(bly_pool_free(a), BLY_E_INVALID);
    give(kept);
    give(other);
    assert_int_equal(info().idle, 128 * MiB);
    end();
}

static void test_uses_of_other_streams_are_waited_for(void **state)
{
    (void)state;
    begin(GiB, 0);
    char *a = take(8 * MiB);
    assert_ok(bly_pool_export(a, NULL));
    (void)blyi_sim_use(sim, blyi_sim_stream(1), a, 8 * MiB);
    assert_ok(bly_pool_free_on(a, blyi_sim_stream(1)));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info().waiting, 8 * MiB);
    blyi_sim_complete(sim, blyi_sim_stream(1));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info().reserved, 0);

    a = take(8 * MiB); /* and nothing is waited for that has passed */
    blyi_sim_complete(sim, blyi_sim_stream(0));
    assert_ok(bly_pool_export(a, NULL));
    give(a);
    assert_int_equal(info().reserved, 0);
    a = take(8 * MiB); /* the pool ends with it */
    assert_ok(bly_pool_export(a, NULL));
    blyi_sim_complete(sim, blyi_sim_stream(0));
    end();
}

static void test_refused(void **state)
{
    (void)state;
    char text[64];
    begin(GiB, 0);
    char *a = take_on(0, MiB, 0), *own = take(4 * MiB);
    assert_int_equal(bly_pool_export(a, NULL), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "BLY_POOL_EXPORTABLE of the request or of the pool"));
    char *b = take_on(0, MiB, 0); /* behind it, in the same granule */
    assert_ptr_equal(b, a + MiB);
    assert_int_equal(bly_pool_export(b, NULL), BLY_E_INVALID);
    snprintf(text, sizeof text, "1048576 B behind the begin of one and 1048576 B before the next");
    assert_non_null(strstr(bly_last_error(), text));
    assert_int_equal(bly_pool_export(own + 2 * MiB, NULL), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "2097152 bytes into the block"));
    assert_int_equal(bly_pool_export(text, NULL), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "not memory of a pool"));
    give(own);
    assert_int_equal(bly_pool_export(own, NULL), BLY_E_INVALID);
    assert_non_null(strstr(bly_last_error(), "freed already"));
    give(a);
    give(b);
    end();
}

static void test_a_pool_takes_no_unknown_flags(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default(), read;
    void *block = NULL;
    opts.flags = 2;
    assert_int_equal(blyi_opts_read(&opts, &read), BLY_E_INVALID);
    opts.struct_size = offsetof(bly_pool_opts, flags); /* who was built before them */
    assert_ok(blyi_opts_read(&opts, &read));
    assert_int_equal(read.flags, 0);
    begin(GiB, 0);
    assert_int_equal(try_take(MiB, BLYI_POOL_WHOLE, 0, &block), BLY_E_INVALID);
    end();
}

/* Each call of the device fails once, at each place. */
static void test_failures(void **state)
{
    (void)state;
    static const enum blyi_sim_op ops[] = {BLYI_SIM_CREATE, BLYI_SIM_RESERVE, BLYI_SIM_MAP};
    for (unsigned op = 0; op < BLYI_COUNT(ops); op++) {
        bool failed = true;
        for (uint64_t nth = 1; failed; nth++) {
            void *block = NULL;
            begin(512 * MiB, 0);
            char *idle = take(200 * MiB);
            give(idle);
            blyi_sim_complete(sim, blyi_sim_stream(0));
            blyi_sim_fail(sim, ops[op], nth);
            bly_status status = try_take(400 * MiB, BLY_POOL_EXPORTABLE, 0, &block);
            failed = blyi_sim_failed(sim);
            blyi_sim_fail(sim, ops[op], 0);
            (void)info();
            if (status != BLY_OK)
                assert_ok(try_take(400 * MiB, BLY_POOL_EXPORTABLE, 0, &block));
            check_own(block, 400 * MiB);
            end();
        }
    }
}

/* Some blocks on some streams, of both kinds; now and then one is exported. */
static void test_churn(void **state)
{
    enum { N = 40, STEPS = 6000 };
    (void)state;
    static char *blocks[N];
    static uint64_t seed = 12345;
    begin(256 * MiB, 0);
    for (int i = 0; i < STEPS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t roll = seed >> 33, at = roll % N, stream = roll / N % 3;
        uint64_t size = (1 + roll / 1000 % 12) * (MiB - 4096);
        if (blocks[at] != NULL) {
            if (roll % 5 == 0)
                (void)bly_pool_export(blocks[at], NULL); /* refused where it is not ready */
            give(blocks[at]);
            blocks[at] = NULL;
        } else {
            void *block = NULL;
            bly_status status = try_take(size, roll / 7 % 2, (uint32_t)stream, &block);
            if (status == BLY_OK) {
                blocks[at] = block;
                (void)blyi_sim_use(sim, blyi_sim_stream((uint32_t)stream), block, size);
            } else {
                assert_int_equal(status, BLY_E_NO_MEMORY);
            }
        }
        if (roll % 11 == 0)
            blyi_sim_complete(sim, blyi_sim_stream((uint32_t)stream));
        if (i % 50 == 0)
            (void)info();
    }
    for (unsigned i = 0; i < N; i++)
        if (blocks[i] != NULL)
            give(blocks[i]);
    for (uint32_t i = 0; i < 3; i++)
        blyi_sim_complete(sim, blyi_sim_stream(i));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info().live + info().waiting, 0);
    assert_true(card().reserved < 64 * GiB);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_handle_for_each),
        cmocka_unit_test(test_one_size_again),
        cmocka_unit_test(test_idle_ones_serve_others),
        cmocka_unit_test(test_sizes_that_grow),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_all_blocks_of_a_pool),
        cmocka_unit_test(test_what_was_exported_leaves),
        cmocka_unit_test(test_uses_of_other_streams_are_waited_for),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_a_pool_takes_no_unknown_flags),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_churn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
