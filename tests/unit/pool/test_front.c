/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks as programs see them: sizes, order, figures, faults. */
#include "pool_test.h"

static void classes_hold_every_size(void **state)
{
    (void)state;
    unsigned last = 0;
    for (uint64_t size = 1; size <= BLYI_SLOT_MAX; size++) {
        unsigned class = blyi_class_of(size);
        uint64_t slot = blyi_class_size(class);
        assert_true(class >= last && class < BLYI_CLASSES);
        assert_true(slot >= size && (slot - size < BLYI_SLOT_MIN || 8 * (slot - size) <= slot));
        last = class;
    }
    assert_int_equal(last, BLYI_CLASSES - 1);
    for (unsigned class = 0; class < BLYI_CLASSES; class ++) {
        uint64_t slab = blyi_class_size(class) * blyi_class_slots(class);
        assert_true(slab >= BLYI_SLAB_MIN && slab <= BLYI_SLAB_MAX && slab % BLYI_QUANTUM == 0);
        assert_in_range(blyi_class_slots(class), 1, BLYI_SLAB_SLOTS);
        slab = blyi_class_size(class) * blyi_class_slots_least(class);
        assert_true(slab >= BLYI_SLAB_MIN && slab % BLYI_QUANTUM == 0);
        assert_in_range(blyi_class_slots_least(class), 1, blyi_class_slots(class));
    }
}

static void every_size_comes_and_goes(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {
        0,      1,      511,       512,           513, 4096,    4097,        65536,   70000,
        131072, 500000, 512 * KiB, 512 * KiB + 1, MiB, 2 * MiB, 3 * MiB + 5, 20 * MiB};
    void *blocks[BLYI_COUNT(sizes)];
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    uint64_t asked = 0;
    for (unsigned i = 0; i < BLYI_COUNT(sizes); i++) {
        uint64_t size = sizes[i] == 0 ? 1 : sizes[i];
        blocks[i] = take(pool, sizes[i], stream);
        asked += size;
        assert_int_equal((uintptr_t)blocks[i] % 512, 0);
        bly_pool_info info = info_of(pool);
        assert_int_equal(info.asked, asked);
        assert_int_equal(info.blocks, i + 1);
        bly_pool_block found = {.struct_size = sizeof(found)};
        assert_ok(bly_pool_find((char *)blocks[i] + size - 1, &found));
        assert_ptr_equal(found.address, blocks[i]);
        assert_ptr_equal(found.pool, pool);
        assert_ptr_equal(found.stream, stream);
        assert_int_equal(found.asked, size);
        assert_true(found.size >= size);
        for (unsigned j = 0; j < i; j++)
            assert_true((char *)blocks[j] + sizes[j] <= (char *)blocks[i] ||
                        (char *)blocks[i] + size <= (char *)blocks[j]);
    }
    for (unsigned i = 0; i < BLYI_COUNT(sizes); i++)
        assert_ok(bly_pool_free(blocks[i]));
    assert_ok(bly_pool_free(NULL));
    bly_pool_info info = info_of(pool);
    assert_int_equal(info.asked_peak, asked);
    end_pool(pool);
}

static void a_stream_reuses_its_own_memory_at_once(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *one = new_stream(), *two = new_stream();
    assert_ok(blyi_stream_pause(one));
    for (uint64_t size = 512; size <= 32 * MiB; size *= 4) {
        void *first = take(pool, size, one);
        assert_ok(bly_pool_free(first));
        void *other = take(pool, size, two);
        assert_ptr_not_equal(first, other);
        assert_ptr_equal(take(pool, size, one), first);
        assert_ok(bly_pool_free(first));
        assert_ok(bly_pool_free(other));
    }
    assert_ok(blyi_stream_resume(one));
    end_pool(pool);
}

static void faulty_frees_are_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    char *small = take(pool, 1000, stream), *large = take(pool, 3 * MiB, stream);
    char text[64];
    int here = 0;
    assert_status(bly_pool_free(small + 8), BLY_E_INVALID);
    assert_sentence("8 bytes into the block");
    snprintf(text, sizeof(text), "%p of 1024 bytes", (void *)small);
    assert_sentence(text);
    assert_status(bly_pool_free(large + 2 * MiB + 4096), BLY_E_INVALID);
    assert_sentence("2101248 bytes into the block");
    assert_status(bly_pool_free(large - 512), BLY_E_INVALID);
    assert_status(bly_pool_free(&here), BLY_E_INVALID);
    assert_sentence("not memory of a pool");
    assert_status(bly_pool_get_info(pool, NULL), BLY_E_INVALID);
    assert_status(bly_pool_free((void *)(uintptr_t)0xfedcba9876543210), BLY_E_INVALID);
    assert_int_equal(info_of(pool).blocks, 2);
    assert_ok(bly_pool_free(small));
    assert_ok(bly_pool_free(large));
    assert_status(bly_pool_free(small), BLY_E_INVALID);
    assert_sentence("freed already");
    assert_status(bly_pool_use(small, new_stream()), BLY_E_INVALID);
    assert_status(bly_pool_free(large), BLY_E_INVALID);
    assert_sentence("freed already");
    bly_pool_block found = {.struct_size = sizeof(found)};
    assert_status(bly_pool_find(small, &found), BLY_E_INVALID);
    assert_status(bly_pool_find(large, &found), BLY_E_INVALID);
    /* The same when a slot is at home and no longer in a cache. */
    char *pair[2] = {take(pool, 1000, stream), take(pool, 1000, stream)};
    assert_ok(bly_pool_free(pair[0]));
    blyi_front_flush(pool->front);
    assert_status(bly_pool_free(pair[0]), BLY_E_INVALID);
    assert_sentence("freed already");
    assert_ok(bly_pool_free(pair[1]));
    end_pool(pool);
    assert_status(bly_pool_free(small), BLY_E_INVALID);
}

static void faulty_requests_are_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *block = &block;
    assert_status(bly_pool_alloc(pool, ((uint64_t)1 << 48) + 1, stream, &block), BLY_E_INVALID);
    assert_status(bly_pool_alloc(pool, 512, stream, NULL), BLY_E_INVALID);
    assert_status(bly_pool_alloc(pool, 512, &block, &block), BLY_E_HANDLE);
    assert_status(bly_pool_alloc((bly_pool *)(void *)&block, 512, stream, &block), BLY_E_HANDLE);
    assert_status(bly_pool_alloc(NULL, 512, stream, &block), BLY_E_HANDLE);
    bly_pool_request request = {.struct_size = sizeof(request), .size = 512, .align = 3};
    assert_status(bly_pool_alloc_with(pool, &request, stream, &block), BLY_E_INVALID);
    assert_sentence("a power of two");
    request.align = 2 * GiB;
    assert_status(bly_pool_alloc_with(pool, &request, stream, &block), BLY_E_INVALID);
    request.align = 0;
    request.region = BLY_POOL_REGIONS;
    assert_status(bly_pool_alloc_with(pool, &request, stream, &block), BLY_E_INVALID);
    request.region = BLY_POOL_ANY;
    request.flags = 2;
    assert_status(bly_pool_alloc_with(pool, &request, stream, &block), BLY_E_INVALID);
    request.flags = 0;
    request.struct_size = 4;
    assert_status(bly_pool_alloc_with(pool, &request, stream, &block), BLY_E_INVALID);
    assert_status(bly_pool_alloc_with(pool, NULL, stream, &block), BLY_E_INVALID);
    assert_ptr_equal(block, &block);
    end_pool(pool);
}

static void requests_are_met(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *blocks[400];
    unsigned n = 0;
    for (int region = 0; region < BLY_POOL_REGIONS; region++)
        for (uint64_t align = 1; align <= 4 * MiB; align *= 4)
            for (uint64_t size = 33; size < 3 * MiB; size *= 11) {
                bly_pool_request request = {.struct_size = sizeof(request),
                                            .region = (bly_pool_region)region,
                                            .size = size,
                                            .align = align};
                assert_ok(bly_pool_alloc_with(pool, &request, stream, &blocks[n]));
                assert_int_equal((uintptr_t)blocks[n] % align, 0);
                bly_pool_block found = {.struct_size = sizeof(found)};
                assert_ok(bly_pool_find(blocks[n], &found));
                assert_int_equal(found.region, region);
                assert_int_equal(found.asked, size);
                n++;
            }
    info_of(pool);
    assert_ok(bly_pool_free_batch(n, blocks));
    end_pool(pool);
}

/* Memory of another stream that is borrowed comes back behind the work of who borrowed it, also by
 * way of the thread that has a cache of the lender at hand. */
static void a_loan_comes_back_in_order(void **state)
{
    (void)state;
    bly_pool *pool;
    bly_pool_opts opts = bly_pool_opts_default();
    void *one = new_stream(), *two = new_stream();
    opts.reuse = BLY_POOL_REUSE_OPPORTUNISTIC;
    assert_ok(bly_pool_create(&opts, &pool));
    void *first = take(pool, 4 * MiB, one);
    assert_ok(bly_pool_free(first));
    void *loan = take(pool, 4 * MiB, two);
    assert_ptr_equal(loan, first);
    assert_ok(bly_pool_free(take(pool, 1, one))); /* the lender's cache is the last one */
    assert_ok(blyi_stream_pause(two));
    assert_ok(blyi_set_async(loan, 1, 64, two, 0));
    assert_ok(bly_pool_free(loan));
    assert_int_equal(info_of(pool).waiting, 4 * MiB);
    void *other = take(pool, 4 * MiB, one);
    assert_ptr_not_equal(other, loan);
    assert_ok(blyi_stream_resume(two));
    assert_ok(blyi_stream_sync(two, 0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info_of(pool).waiting, 0);
    assert_ok(bly_pool_free(other));
    end_pool(pool);
}

/* With dependencies anything goes: work that has ended, and work that the borrower waits for. */
static void a_loan_is_made_to_wait(void **state)
{
    (void)state;
    bly_pool *pool;
    bly_pool_opts opts = bly_pool_opts_default();
    void *one = new_stream(), *two = new_stream();
    opts.reuse = BLY_POOL_REUSE_DEPENDENCIES;
    assert_ok(bly_pool_create(&opts, &pool));
    void *first = take(pool, 4 * MiB, one);
    assert_ok(bly_pool_free(first));
    void *loan = take(pool, 4 * MiB, two);
    assert_ptr_equal(loan, first);
    assert_ok(bly_pool_free(loan));
    assert_ok(bly_pool_poll(pool));
    assert_ptr_equal(take(pool, 4 * MiB, one), first);
    assert_ok(blyi_stream_pause(one));
    assert_ok(blyi_set_async(first, 1, 64, one, 0));
    assert_ok(bly_pool_free(first));
    loan = take(pool, 4 * MiB, two);
    assert_ptr_equal(loan, first);
    assert_status(blyi_stream_sync(two, 1000000), BLY_E_TIMEOUT);
    assert_ok(bly_pool_free(loan));
    assert_int_equal(info_of(pool).waiting, 4 * MiB);
    assert_ok(blyi_stream_resume(one));
    assert_ok(blyi_stream_sync(two, 0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info_of(pool).waiting, 0);
    end_pool(pool);
}

static void a_batch_is_all_or_none(void **state)
{
    (void)state;
    bly_pool_opts opts = bly_pool_opts_default();
    bly_pool *pool;
    opts.limit = 16 * MiB;
    assert_ok(bly_pool_create(&opts, &pool));
    void *stream = new_stream();
    const uint64_t good[] = {1000, 2 * MiB, 100, 64 * KiB}, bad[] = {1000, 12 * MiB, 5 * MiB, 3};
    void *blocks[4] = {0}, *none[4] = {0};
    assert_ok(bly_pool_alloc_batch(pool, 4, good, stream, blocks));
    assert_int_equal(info_of(pool).blocks, 4);
    assert_status(bly_pool_alloc_batch(pool, 4, bad, stream, none), BLY_E_NO_MEMORY);
    assert_int_equal(info_of(pool).blocks, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_null(none[i]);
    assert_ok(bly_pool_alloc_batch(pool, 0, NULL, stream, NULL));
    void *mixed[3] = {blocks[0], blocks[0], blocks[1]};
    assert_status(bly_pool_free_batch(3, mixed), BLY_E_INVALID);
    assert_int_equal(info_of(pool).blocks, 2);
    assert_ok(bly_pool_free_batch(2, blocks + 2));
    end_pool(pool);
}

static void a_use_holds_a_block_back(void **state)
{
    (void)state;
    for (uint64_t size = 1000; size < 8 * MiB; size *= 2000) {
        bly_pool *pool = new_pool();
        void *own = new_stream(), *other = new_stream();
        assert_ok(blyi_stream_pause(other));
        assert_ok(blyi_stream_pause(own));
        void *work = take(pool, 2 * MiB, other), *block = take(pool, size, own);
        assert_ok(blyi_set_async(work, 1, 2 * MiB, other, 0));
        assert_ok(bly_pool_use(block, own));
        assert_ok(bly_pool_use(block, other));
        assert_ok(bly_pool_use(block, other));
        assert_ok(bly_pool_free(block));
        bly_pool_info info = info_of(pool);
        assert_int_equal(info.waiting, blyi_align_up(size, size < 4096 ? 512 : 4096));
        assert_int_equal(info.blocks, 1);
        assert_int_equal(info.asked, 2 * MiB);
        assert_ptr_not_equal(take(pool, size, own), block);
        assert_status(bly_pool_free(block), BLY_E_INVALID);
        assert_sentence("waits for work of other streams");
        assert_ok(bly_pool_poll(pool));
        assert_int_equal(info_of(pool).waiting, info.waiting);
        assert_ok(blyi_stream_resume(other));
        assert_ok(blyi_stream_sync(other, 0));
        assert_ok(bly_pool_poll(pool));
        info = info_of(pool);
        assert_int_equal(info.waiting, 0);
        assert_int_equal(info.blocks, 2);
        assert_ok(blyi_stream_resume(own));
        assert_ok(bly_pool_destroy(pool));
    }
}

static bool worked(bly_status status)
{
    assert_true(status == BLY_OK || status == BLY_E_HOST_MEMORY);
    return status == BLY_OK;
}

/* All kinds of blocks, used by another stream and not; whether nothing failed. What could not be
 * freed lives on, and is freed when there is host memory again. */
static bool use_all_kinds(bly_pool *pool, void *stream, void *other)
{
    static const uint64_t sizes[] = {100, 5000, 300000, 3 * MiB};
    bool good = true;
    for (unsigned i = 0; i < 2 * BLYI_COUNT(sizes); i++) {
        bly_pool_request request = {.struct_size = sizeof(request),
                                    .size = sizes[i / 2],
                                    .region = i % 2 == 0 ? BLY_POOL_ANY : BLY_POOL_WEIGHTS};
        void *block;
        if (!worked(bly_pool_alloc_with(pool, &request, stream, &block))) {
            good = false;
            continue;
        }
        good &= worked(bly_pool_use(block, other));
        if (!worked(bly_pool_free(block))) {
            good = false;
            blyi_host_fail_nth(0);
            assert_ok(bly_pool_free(block));
        }
    }
    return good;
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    bool good = false;
    for (uint64_t nth = 1; !good; nth++) {
        bly_pool *pool = new_pool();
        void *stream = new_stream(), *other = new_stream();
        void *work = take(pool, 2 * MiB, other);
        assert_ok(blyi_stream_pause(other));
        assert_ok(blyi_set_async(work, 1, 64, other, 0));
        blyi_host_fail_nth(nth);
        good = use_all_kinds(pool, stream, other);
        blyi_host_fail_nth(0);
        assert_int_equal(info_of(pool).blocks, 1);
        assert_ok(blyi_stream_resume(other));
        assert_ok(blyi_stream_sync(other, 0));
        assert_ok(bly_pool_poll(pool));
        assert_int_equal(info_of(pool).waiting, 0);
        assert_ok(bly_pool_free(work));
        end_pool(pool);
        assert_ok(blyi_stream_destroy(stream, false));
        assert_ok(blyi_stream_destroy(other, false));
        assert_true(nth < 200);
    }
}

/* Also where the thread has a slot at hand. */
static void what_has_ended_is_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *other = new_stream(), *block, *kept;
    for (uint64_t size = 1000; size < 2 * MiB; size *= 1000) {
        kept = take(pool, size, stream);
        block = take(pool, size, stream);
        assert_ok(bly_pool_free(block));
        assert_ok(blyi_stream_destroy(other, false));
        other = new_stream();
        assert_ptr_equal(take(pool, size, stream), block); /* another stream ended */
        assert_ok(bly_pool_free(block));
        assert_ok(blyi_stream_destroy(stream, false));
        assert_status(bly_pool_alloc(pool, size, stream, &block), BLY_E_HANDLE);
        assert_ok(bly_pool_free(kept));
        stream = new_stream();
    }
    block = take(pool, 1000, stream);
    kept = take(pool, MiB, stream);
    assert_ok(bly_pool_free(block));
    assert_ok(blyi_device_reset(0, false));
    assert_ok(blyi_device_set(0, 0));
    stream = new_stream();
    assert_status(bly_pool_alloc(pool, 1000, stream, &block), BLY_E_STATE);
    assert_sentence("was reset");
    assert_ok(bly_pool_destroy(pool));
    assert_status(bly_pool_free(kept), BLY_E_INVALID);
}

static void a_free_on_another_stream_is_in_its_order(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *own = new_stream(), *other = new_stream();
    void *block = take(pool, 5000, own), *work = take(pool, 2 * MiB, other);
    assert_ok(blyi_stream_pause(other));
    assert_ok(blyi_set_async(work, 1, 2 * MiB, other, 0));
    assert_ok(bly_pool_free_on(block, other));
    assert_int_equal(info_of(pool).waiting, 5120);
    assert_ok(blyi_stream_resume(other));
    assert_ok(blyi_stream_sync(other, 0));
    block = take(pool, 5000, own);
    assert_ok(bly_pool_free_on(block, other)); /* nothing is queued: it is free at once */
    assert_ok(bly_pool_free_on(work, other));
    assert_ok(bly_pool_free_on(NULL, other));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info_of(pool).waiting, 0);
    end_pool(pool);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(classes_hold_every_size),
        order_test(every_size_comes_and_goes),
        order_test(a_stream_reuses_its_own_memory_at_once),
        order_test(faulty_frees_are_told),
        order_test(faulty_requests_are_told),
        order_test(requests_are_met),
        order_test(a_loan_comes_back_in_order),
        order_test(a_loan_is_made_to_wait),
        order_test(a_batch_is_all_or_none),
        order_test(a_use_holds_a_block_back),
        order_test(a_free_on_another_stream_is_in_its_order),
        order_test(what_has_ended_is_told),
        order_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
