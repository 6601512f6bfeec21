/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of one size: who gets which, and when. */
#include "pool_test.h"

#include <belay/pool_parts.h>

static bly_blocks_info blocks_info(bly_blocks *blocks)
{
    bly_blocks_info info = {.struct_size = sizeof(info)};
    assert_ok(bly_blocks_get_info(blocks, &info));
    assert_int_equal(info.free + info.behind + info.taken, info.n);
    return info;
}

static void *take_block(bly_blocks *blocks, void *stream)
{
    void *block = NULL;
    assert_ok(bly_blocks_take(blocks, stream, 0, &block));
    return block;
}

static void blocks_are_taken_and_given(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *got[4], *none = NULL;
    bly_blocks *blocks;
    assert_ok(bly_blocks_create(pool, 1000, 4, stream, &blocks));
    assert_int_equal(info_of(pool).asked, 4 * 1024);
    for (unsigned i = 0; i < 4; i++) {
        got[i] = take_block(blocks, stream);
        for (unsigned j = 0; j < i; j++)
            assert_ptr_not_equal(got[i], got[j]);
    }
    assert_status(bly_blocks_take(blocks, stream, 0, &none), BLY_E_TIMEOUT);
    assert_sentence("4 of 4 are taken, 0 wait for work of streams");
    assert_status(bly_blocks_destroy(blocks), BLY_E_STATE);
    assert_sentence("4 of 4 blocks of 1024 bytes are taken");
    assert_ok(bly_blocks_give(blocks, got[2]));
    assert_ptr_equal(take_block(blocks, stream), got[2]);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(bly_blocks_give(blocks, got[i]));
    assert_ok(bly_blocks_give(blocks, NULL));
    bly_blocks_info info = blocks_info(blocks);
    assert_int_equal(info.free, 4);
    assert_int_equal(info.taken_peak, 4);
    assert_int_equal(info.takes, 5);
    assert_int_equal(info.waits, 0);
    assert_ok(bly_blocks_destroy(blocks));
    assert_ok(bly_blocks_destroy(NULL));
    end_pool(pool);
}

static void faults_are_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    bly_blocks *blocks = NULL;
    assert_status(bly_blocks_create(pool, 0, 4, stream, &blocks), BLY_E_INVALID);
    assert_status(bly_blocks_create(pool, 4, 0, stream, &blocks), BLY_E_INVALID);
    assert_status(bly_blocks_create(pool, UINT64_MAX, 2, stream, &blocks), BLY_E_INVALID);
    assert_status(bly_blocks_create(pool, (uint64_t)1 << 30, 1u << 20, stream, &blocks),
                  BLY_E_INVALID);
    assert_status(bly_blocks_create(NULL, 4, 4, stream, &blocks), BLY_E_HANDLE);
    assert_status(bly_blocks_create(pool, 4, 4, stream, NULL), BLY_E_INVALID);
    assert_null(blocks);
    assert_ok(bly_blocks_create(pool, 2048, 4, stream, &blocks));
    char *block = take_block(blocks, stream);
    assert_status(bly_blocks_give(blocks, block + 512), BLY_E_INVALID);
    assert_sentence("512 bytes into block");
    assert_status(bly_blocks_give(blocks, block + 4 * 2048), BLY_E_INVALID);
    assert_sentence("not one of 4 blocks");
    assert_status(bly_blocks_give_on(blocks, block, &block), BLY_E_HANDLE);
    assert_ok(bly_blocks_give(blocks, block));
    assert_status(bly_blocks_give(blocks, block), BLY_E_INVALID);
    assert_sentence("it is not taken");
    assert_status(bly_blocks_take(blocks, &block, 0, (void **)&block), BLY_E_HANDLE);
    assert_ok(bly_blocks_destroy(blocks));
    end_pool(pool);
}

/* A stream that is held, with a block given on it. */
static void a_gift_in_order_is_the_streams_own(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *one = new_stream(), *two = new_stream(), *none;
    bly_blocks *blocks;
    assert_ok(bly_blocks_create(pool, 2 * MiB, 2, one, &blocks));
    void *first = take_block(blocks, one), *second = take_block(blocks, one);
    assert_ok(blyi_stream_pause(one));
    assert_ok(blyi_set_async(first, 1, 64, one, 0));
    assert_ok(bly_blocks_give_on(blocks, first, one));
    assert_int_equal(blocks_info(blocks).behind, 1);
    assert_status(bly_blocks_take(blocks, two, 0, &none), BLY_E_TIMEOUT);
    assert_sentence("1 of 2 are taken, 1 wait for work of streams");
    assert_status(bly_blocks_take(blocks, two, 1000, &none), BLY_E_TIMEOUT);
    assert_ptr_equal(take_block(blocks, one), first);
    assert_ok(bly_blocks_give_on(blocks, first, one));
    assert_ok(blyi_stream_resume(one));
    assert_ok(bly_blocks_take(blocks, two, BLY_WAIT_FOREVER, &none));
    assert_ptr_equal(none, first);
    assert_ok(bly_blocks_give_on(blocks, second, NULL));
    assert_int_equal(blocks_info(blocks).free, 1);
    assert_ok(bly_blocks_give(blocks, first));
    assert_ok(bly_blocks_destroy(blocks));
    end_pool(pool);
}

/* New blocks lie in memory that their stream may still use: others wait for it. */
static void new_blocks_are_in_order(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *one = new_stream(), *two = new_stream(), *none;
    bly_blocks *blocks;
    void *before = take(pool, 4 * MiB, one);
    assert_ok(blyi_stream_pause(one));
    assert_ok(blyi_set_async(before, 1, 4 * MiB, one, 0));
    assert_ok(bly_pool_free(before));
    assert_ok(bly_blocks_create(pool, 2 * MiB, 2, one, &blocks));
    void *mine = take_block(blocks, one);
    assert_true((uintptr_t)mine - (uintptr_t)before < 4 * MiB); /* the same memory */
    assert_int_equal(blocks_info(blocks).behind, 1);
    assert_status(bly_blocks_take(blocks, two, 0, &none), BLY_E_TIMEOUT);
    assert_sentence("1 of 2 are taken, 1 wait for work of streams");
    assert_ok(blyi_stream_resume(one));
    assert_ok(bly_blocks_take(blocks, two, BLY_WAIT_FOREVER, &none));
    assert_ok(bly_blocks_give(blocks, mine));
    assert_ok(bly_blocks_give(blocks, none));
    assert_ok(bly_blocks_destroy(blocks));
    end_pool(pool);
}

/* The memory of blocks that are destroyed waits for the streams on which they were given. */
static void destruction_is_in_order(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *one = new_stream(), *two = new_stream();
    bly_blocks *blocks;
    assert_ok(bly_blocks_create(pool, 2 * MiB, 2, one, &blocks));
    void *block = take_block(blocks, two);
    assert_ok(blyi_stream_pause(two));
    assert_ok(blyi_set_async(block, 1, 64, two, 0));
    assert_ok(bly_blocks_give_on(blocks, block, two));
    assert_ok(bly_blocks_destroy(blocks));
    assert_int_equal(info_of(pool).waiting, 4 * MiB);
    assert_ok(blyi_stream_resume(two));
    assert_ok(blyi_stream_sync(two, 0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info_of(pool).waiting, 0);
    end_pool(pool);
}

struct taker {
    bly_blocks *blocks;
    void *stream, *got;
};

static void *take_waiting(void *arg)
{
    struct taker *taker = arg;
    require(bly_blocks_take(taker->blocks, taker->stream, BLY_WAIT_FOREVER, &taker->got) == BLY_OK);
    return NULL;
}

static void who_waits_gets_the_next_gift(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    struct taker taker = {.stream = stream};
    pthread_t thread;
    assert_ok(bly_blocks_create(pool, 512, 1, stream, &taker.blocks));
    void *block = take_block(taker.blocks, stream);
    assert_int_equal(pthread_create(&thread, NULL, take_waiting, &taker), 0);
    while (blocks_info(taker.blocks).waits == 0)
        sched_yield();
    assert_ok(bly_blocks_give(taker.blocks, block));
    pthread_join(thread, NULL);
    assert_ptr_equal(taker.got, block);
    assert_ok(bly_blocks_give(taker.blocks, block));
    assert_ok(bly_blocks_destroy(taker.blocks));
    end_pool(pool);
}

/* More threads than blocks: whoever has one is alone with it. */
enum { USERS = 4, BLOCKS = 2, ROUNDS = 400 };
static struct {
    bly_blocks *blocks;
    uintptr_t base;
    uint32_t users[BLOCKS];
} shared;

static void *use_blocks(void *stream)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *block;
        require(bly_blocks_take(shared.blocks, stream, BLY_WAIT_FOREVER, &block) == BLY_OK);
        uint32_t *users = &shared.users[((uintptr_t)block - shared.base) / 512];
        require(__atomic_fetch_add(users, 1, __ATOMIC_ACQ_REL) == 0);
        require(__atomic_fetch_sub(users, 1, __ATOMIC_ACQ_REL) == 1);
        require((i % 2 == 0 ? bly_blocks_give(shared.blocks, block)
                            : bly_blocks_give_on(shared.blocks, block, stream)) == BLY_OK);
    }
    return NULL;
}

static void many_threads_share_few_blocks(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    pthread_t threads[USERS];
    assert_ok(bly_blocks_create(pool, 512, BLOCKS, NULL, &shared.blocks));
    void *all[BLOCKS];
    shared.base = UINTPTR_MAX;
    for (unsigned i = 0; i < BLOCKS; i++) {
        all[i] = take_block(shared.blocks, NULL);
        shared.base = (uintptr_t)all[i] < shared.base ? (uintptr_t)all[i] : shared.base;
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_ok(bly_blocks_give(shared.blocks, all[i]));
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_blocks, new_stream()), 0);
    for (unsigned i = 0; i < USERS; i++)
        pthread_join(threads[i], NULL);
    bly_blocks_info info = blocks_info(shared.blocks);
    assert_int_equal(info.takes, USERS * ROUNDS + BLOCKS);
    assert_int_equal(info.taken, 0);
    assert_ok(bly_blocks_destroy(shared.blocks));
    end_pool(pool);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    struct blyi_host_stats before, after;
    bly_blocks *blocks;
    assert_ok(bly_blocks_create(pool, 512, 4, stream, &blocks));
    assert_ok(bly_blocks_destroy(blocks));
    blyi_host_stats(&before);
    for (uint64_t nth = 1;; nth++) {
        blyi_host_fail_nth(nth);
        bly_status status = bly_blocks_create(pool, 512, 4, stream, &blocks);
        blyi_host_fail_nth(0);
        if (status == BLY_OK)
            break;
        assert_int_equal(status, BLY_E_HOST_MEMORY);
        blyi_host_stats(&after);
        assert_int_equal(before.live_blocks, after.live_blocks);
    }
    void *block = take_block(blocks, stream);
    blyi_host_fail_nth(1);
    assert_status(bly_blocks_give_on(blocks, block, stream), BLY_E_HOST_MEMORY);
    blyi_host_fail_nth(0);
    assert_int_equal(blocks_info(blocks).taken, 1);
    assert_ok(bly_blocks_give_on(blocks, block, stream));
    assert_ok(bly_blocks_destroy(blocks));
    end_pool(pool);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(blocks_are_taken_and_given),
        order_test(faults_are_told),
        order_test(a_gift_in_order_is_the_streams_own),
        order_test(new_blocks_are_in_order),
        order_test(destruction_is_in_order),
        order_test(who_waits_gets_the_next_gift),
        order_test(many_threads_share_few_blocks),
        order_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
