/* SPDX-License-Identifier: Apache-2.0
 *
 * test_timeline.c - what a report tells of idle memory: how long it has been idle, on which stream,
 * and when it moved or went back.
 */
#include "pool_test.h"

#include "base/pool_rows.h"
#include "pool/trim.h"

#define MS UINT64_C(1000000)

static bly_pool *pool;
static struct blyi_pool_row row;

/* Exactly what is needed, on a clock that stands still. */
static void start(uint64_t threshold)
{
    bly_pool_opts opts = bly_pool_opts_default();
    blyi_clock_set_virtual(true);
    opts.profile = BLY_POOL_TIGHT;
    opts.reserve = UINT64_MAX;
    opts.threshold = threshold;
    assert_ok(bly_pool_create(&opts, &pool));
}

/* Of the pool now. */
static void look(void)
{
    static struct blyi_pool_row rows[32];
    size_t n = blyi_pool_rows(rows, BLYI_COUNT(rows), false), i = 0;
    while (i < n && rows[i].number != pool->number)
        i++;
    assert_true(i < n && !rows[i].has_ended);
    row = rows[i];
}

static uint64_t card_free(void)
{
    struct blyi_backend_info info;
    pool->backend->ops->describe(pool->backend, &info);
    return info.free;
}

static void give(void *block)
{
    assert_ok(bly_pool_free(block));
}

/* As the program's wait for a stream does. */
static void wait_for(void *stream)
{
    assert_ok(blyi_stream_sync(stream, 0));
    blyi_pools_synced_slow();
}

/* O-01: idle memory has an age, stream by stream. */
static void idle_memory_has_an_age(void **state)
{
    (void)state;
    void *one = new_stream(), *two = new_stream();
    start(UINT64_MAX);
    void *a = take(pool, 20 * MiB, one), *b = take(pool, 6 * MiB, one),
         *c = take(pool, 8 * MiB, two);
    void *kept = take(pool, 2 * MiB, one), *d = take(pool, 10 * MiB, one);
    blyi_clock_advance(100 * MS);
    give(a);
    wait_for(one);
    look();
    assert_int_equal(row.n_idle_by, 1);
    assert_int_equal(row.idle_by[0].oldest_ns, 0);
    blyi_clock_advance(250 * MS);
    give(d);
    blyi_clock_advance(30 * MS);
    give(c);
    wait_for(two);
    blyi_clock_advance(5 * MS);
    look();
    assert_int_equal(row.pieces, 3);
    assert_int_equal(row.n_idle_by, 2);
    assert_int_equal(row.idle_by[0].bytes, 30 * MiB);
    assert_int_equal(row.idle_by[0].pieces, 2);
    assert_int_equal(row.idle_by[0].oldest_ns, 285 * MS);
    assert_int_equal(row.idle_by[1].bytes, 8 * MiB);
    assert_int_equal(row.idle_by[1].oldest_ns, 5 * MS);
    assert_true(row.idle_by[0].stream > 0 && row.idle_by[1].stream > 0);
    assert_int_not_equal(row.idle_by[0].stream, row.idle_by[1].stream);
    give(take(pool, 4 * MiB, one)); /* a part of a piece is used: the rest is as old as it was */
    void *part = take(pool, 4 * MiB, one);
    look();
    assert_int_equal(row.idle_by[0].bytes + row.idle_by[1].bytes, 34 * MiB);
    give(part);
    give(b);
    give(kept);
    end_pool(pool);
}

/* O-24: six pieces of 100 MiB that are no neighbours, then 700 MiB. */
static void a_request_that_was_short(void **state)
{
    (void)state;
    void *stream = new_stream(), *pieces[6], *between[6], *none = NULL;
    start(UINT64_MAX);
    for (int i = 0; i < 6; i++) {
        pieces[i] = take(pool, 100 * MiB, stream);
        between[i] = take(pool, 2 * MiB, stream);
    }
    for (int i = 0; i < 6; i++)
        give(pieces[i]);
    look();
    assert_int_equal(row.n_flushes_seen, 0);
    assert_int_equal(row.idle, 600 * MiB);
    uint64_t free = card_free();
    blyi_clock_advance(40 * MS);
    void *large = take(pool, 700 * MiB, stream);
    assert_int_equal(blyi_fail_code(), BLY_OK);
    look();
    assert_int_equal(row.n_flushes_seen, 1);
    const struct blyi_flush *flush = &row.flushes_seen[0];
    assert_int_equal(flush->kind, BLYI_FLUSH_REQUEST);
    assert_int_equal(flush->at_ns, 40 * MS);
    assert_int_equal(flush->asked, 700 * MiB);
    assert_int_equal(flush->card_free, free);
    assert_int_equal(flush->bytes, 600 * MiB);
    assert_int_equal(flush->pieces, 6);
    assert_int_equal(flush->times, 1);
    assert_false(flush->failed);

    free = card_free();
    assert_status(bly_pool_alloc(pool, 600 * MiB, stream, &none), BLY_E_NO_MEMORY);
    look();
    assert_int_equal(row.n_flushes_seen, 2);
    assert_int_equal(row.flushes_seen[1].asked, 600 * MiB);
    assert_int_equal(row.flushes_seen[1].card_free, free);
    assert_true(row.flushes_seen[1].failed);
    give(large);
    for (int i = 0; i < 6; i++)
        give(between[i]);
    end_pool(pool);
}

/* What only moves to keep within the budget is not told: nothing was short. */
static void moves_without_shortage(void **state)
{
    (void)state;
    void *one = new_stream(), *two = new_stream();
    start(UINT64_MAX);
    for (int i = 0; i < 50; i++) {
        give(take(pool, 64 * MiB, i % 2 == 0 ? one : two));
        assert_ok(blyi_stream_sync(i % 2 == 0 ? one : two, 0));
    }
    look();
    assert_int_equal(row.unmaps, 49);
    assert_int_equal(row.n_flushes_seen, 0);
    end_pool(pool);
}

static void all_kinds(void **state)
{
    (void)state;
    void *stream = new_stream();
    struct blyi_flush *seen = row.flushes_seen;
    start(64 * MiB);
    for (int i = 0; i < 3; i++) { /* in a row: one entry */
        void *a = take(pool, 100 * MiB, stream);
        blyi_clock_advance(MS);
        give(a);
        wait_for(stream);
    }
    look();
    assert_int_equal(row.n_flushes_seen, 1);
    assert_int_equal(seen[0].kind, BLYI_FLUSH_THRESHOLD);
    assert_int_equal(seen[0].times, 3);
    assert_int_equal(seen[0].at_ns, 3 * MS);
    assert_int_equal(seen[0].bytes, 3 * 36 * MiB);
    blyi_clock_advance(MS);
    assert_ok(bly_pool_trim(pool, 40 * MiB, NULL));
    assert_ok(bly_pool_trim(pool, 40 * MiB, NULL)); /* nothing went */
    look();
    assert_int_equal(row.n_flushes_seen, 2);
    assert_int_equal(seen[1].kind, BLYI_FLUSH_TRIM);
    assert_int_equal(seen[1].at_ns, 4 * MS);
    assert_int_equal(seen[1].bytes, 24 * MiB);
    assert_int_equal(seen[1].times, 1);
    assert_int_equal(blyi_trim_reclaim(pool, pool->device, 10 * MiB), 10 * MiB);
    for (int i = 0; i < 3; i++)
        blyi_trim_tick(pool);
    look();
    assert_int_equal(row.n_flushes_seen, 4);
    assert_int_equal(seen[2].kind, BLYI_FLUSH_RECLAIM);
    assert_int_equal(seen[2].bytes, 10 * MiB);
    assert_int_equal(seen[3].kind, BLYI_FLUSH_AGE);
    assert_int_equal(seen[3].bytes, 30 * MiB);
    assert_int_equal(row.held, 0);
    end_pool(pool);
}

/* The last ones stay, oldest first. */
static void a_ring(void **state)
{
    (void)state;
    void *stream = new_stream();
    start(UINT64_MAX);
    for (uint64_t i = 1; i <= 20; i++) {
        give(take(pool, 2 * i * MiB, stream));
        blyi_clock_advance(MS);
        if (i % 2 == 0)
            assert_ok(bly_pool_trim(pool, 0, NULL));
        else
            assert_int_equal(blyi_trim_reclaim(pool, pool->device, GiB), 2 * i * MiB);
    }
    look();
    assert_int_equal(row.n_flushes_seen, BLYI_FLUSHES);
    for (uint64_t i = 0; i < BLYI_FLUSHES; i++) {
        assert_int_equal(row.flushes_seen[i].at_ns, (5 + i) * MS);
        assert_int_equal(row.flushes_seen[i].bytes, 2 * (5 + i) * MiB);
    }
    end_pool(pool);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(idle_memory_has_an_age),
        order_test(a_request_that_was_short),
        order_test(moves_without_shortage),
        order_test(all_kinds),
        order_test(a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
