/* SPDX-License-Identifier: Apache-2.0
 *
 * test_split.c - blocks that are not divided, over a simulated card: which idle one serves, who was
 * refused, what is taken when the card is full.
 */
#include "../npu/mem_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/sim.h"
#include "base/pool_rows.h"
#include "observe/report_pools.h"
#include "pool/opts.h"
#include "pool/pool.h"

static struct blyi_sim *sim;
static bly_pool *pool;

static void begin(uint64_t total, uint64_t split)
{
    bly_pool_opts opts = bly_pool_opts_default(), read;
    opts.split = split;
    assert_ok(blyi_opts_read(&opts, &read));
    assert_ok(blyi_sim_create(total, BLYI_SIM_HELD, &sim));
    assert_ok(blyi_pool_make(blyi_sim_backend(sim), &read, &pool));
}

static bly_pool_info info(void)
{
    struct blyi_sim_figures card;
    bly_pool_info all = {.struct_size = sizeof all};
    assert_ok(bly_pool_get_info(pool, &all));
    blyi_sim_figures(sim, &card);
    assert_int_equal(all.live + all.idle + all.waiting + all.parked, all.reserved);
    assert_int_equal(all.reserved, card.held);
    assert_ok(bly_pool_audit(pool));
    return all;
}

static void end(void)
{
    assert_ok(bly_pool_audit(pool));
    assert_ok(bly_pool_destroy(pool));
}

static char *take(uint64_t size)
{
    void *block = NULL;
    assert_ok(bly_pool_alloc(pool, size, blyi_sim_stream(0), &block));
    (void)blyi_sim_use(sim, blyi_sim_stream(0), block, size);
    return block;
}

static void give(void *block)
{
    assert_ok(bly_pool_free(block));
}

/* One block of 2 MiB stays; 200, 100, 120, 140, 160 MiB come and go. */
static void steps(void)
{
    static const uint64_t sizes[] = {200, 100, 120, 140, 160};
    for (unsigned i = 0; i < 5; i++)
        give(take(sizes[i] * MiB));
}

/* What the text of reports says of the pool. */
static void check_text(const char *words)
{
    char *text = NULL;
    size_t length = 0;
    struct blyi_pool_row rows[4];
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    blyi_report_pools_text(rows, blyi_pool_rows(rows, 4, false), out);
    assert_int_equal(fclose(out), 0);
    if (strstr(text, words) == NULL)
        fail_msg("\"%s\" is not in:\n%s", words, text);
    free(text);
}

static void test_who_was_refused(void **state)
{
    (void)state;
    begin(GiB, 64 * MiB);
    char *kept = take(2 * MiB);
    steps();
    bly_pool_info is = info();
    assert_int_equal(is.reserved, 722 * MiB);
    assert_int_equal(is.live_peak, 202 * MiB);
    assert_int_equal(is.idle, 720 * MiB);
    assert_int_equal(is.split, 64 * MiB);
    assert_int_equal(is.split_refused, 4);
    assert_int_equal(is.split_refused_bytes, 520 * MiB);
    assert_int_equal(is.split_idle_least, 200 * MiB);
    assert_int_equal(is.split_idle_most, 200 * MiB);
    assert_int_equal(is.split_without, 202 * MiB);
    check_text("4 requests (545259520 B (520 MiB)) were refused reuse of an idle 209715200 B (200 "
               "MiB) block by the split rule");
    check_text("without the rule 211812352 B (202 MiB) would be held, rather than 757071872 B (722 "
               "MiB)");
    give(kept);
    end();
}

static void test_without_a_limit(void **state)
{
    (void)state;
    begin(GiB, 0);
    char *kept = take(2 * MiB);
    steps();
    bly_pool_info is = info();
    assert_in_range(is.reserved, 202 * MiB, 206 * MiB); /* its slack */
    assert_int_equal(is.split_refused, 0);
    assert_int_equal(is.split_without, 0);
    give(kept);
    end();
}

/* Less than 20 MiB may be left over; what is not above the limit divides what it likes, but none of
 * these. */
static void test_whose_rest_is_small(void **state)
{
    (void)state;
    begin(GiB, 64 * MiB);
    char *a = take(200 * MiB), *b = take(80 * MiB);
    give(a);
    give(b);
    assert_ptr_equal(take(64 * MiB + 1), b); /* the smallest that fits */
    assert_int_equal(info().live, 80 * MiB); /* whole */
    assert_int_equal(info().asked, 64 * MiB + 1);
    give(b);
    char *c = take(180 * MiB); /* 20 MiB would be left over */
    assert_ptr_not_equal(c, a);
    assert_int_equal(info().split_refused, 1);
    give(c);
    assert_ptr_equal(take(180 * MiB + 1), a);
    give(a);
    assert_int_equal(info().reserved, 460 * MiB);
    char *d = take(64 * MiB); /* at the limit: it may be divided, and these may not */
    assert_int_equal(info().reserved, 524 * MiB);
    give(d);
    assert_ptr_equal(take(32 * MiB), d);
    assert_ptr_equal(take(32 * MiB), d + 32 * MiB);
    assert_int_equal(info().reserved, 524 * MiB);
    end();
}

/* Before there is no room what is idle goes, and no error is seen. */
static void test_a_full_card(void **state)
{
    (void)state;
    begin(512 * MiB, 64 * MiB);
    char *kept = take(2 * MiB);
    steps();
    bly_pool_info is = info();
    assert_int_equal(is.split_refused, 3); /* the block of 200 MiB went for the one of 140 */
    assert_int_equal(is.split_refused_bytes, 360 * MiB);
    assert_true(is.reserved <= 512 * MiB);
    char *all = take(510 * MiB);
    assert_int_equal(info().live, 512 * MiB);
    give(all);
    give(kept);
    end();
}

/* Without a limit of the pool nothing wraps where what may be held is all there is. */
static void test_small_blocks_beside(void **state)
{
    (void)state;
    enum { N = 200 };
    static char *blocks[N];
    begin(GiB, 2 * MiB);
    for (uint64_t round = 0; round < 8; round++) {
        for (uint64_t i = 0; i < N; i++)
            blocks[i] = take(1 + (i * 7919 + round * 104729) % (4 * MiB));
        for (uint64_t i = 0; i < N; i++)
            give(blocks[i]);
        blyi_sim_complete(sim, blyi_sim_stream(0));
    }
    (void)info();
    assert_ok(bly_pool_trim(pool, 0, NULL));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_was_refused),     cmocka_unit_test(test_without_a_limit),
        cmocka_unit_test(test_whose_rest_is_small), cmocka_unit_test(test_a_full_card),
        cmocka_unit_test(test_small_blocks_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
