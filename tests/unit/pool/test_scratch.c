/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch memory: in a row, back as a whole, in the order of streams. */
#include "pool_test.h"

#include <belay/pool_parts.h>

static bly_scratch_info scratch_info(bly_scratch *scratch)
{
    bly_scratch_info info = {.struct_size = sizeof(info)};
    assert_ok(bly_scratch_get_info(scratch, &info));
    return info;
}

static char *get(bly_scratch *scratch, uint64_t size)
{
    void *block = NULL;
    assert_ok(bly_scratch_alloc(scratch, size, 0, &block));
    assert_int_equal((uintptr_t)block % 512, 0);
    return block;
}

static void memory_comes_in_a_row(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *block;
    bly_scratch *scratch;
    assert_ok(bly_scratch_create(pool, stream, 0, &scratch));
    assert_int_equal(info_of(pool).blocks, 0);
    char *first = get(scratch, 100), *second = get(scratch, 600);
    assert_ptr_equal(second, first + 512);
    assert_ok(bly_scratch_alloc(scratch, 1, 4096, &block));
    assert_ptr_equal(block, first + 4096);
    assert_ok(bly_scratch_alloc(scratch, 0, 1, &block));
    assert_ptr_equal(block, first + 4097);
    bly_scratch_info info = scratch_info(scratch);
    assert_int_equal(info.chunks, 1);
    assert_int_equal(info.used, 4098);
    assert_int_equal(info.reserved, 2 * MiB);
    assert_ok(bly_scratch_destroy(scratch));
    assert_ok(bly_scratch_destroy(NULL));
    end_pool(pool);
}

static void a_reset_is_in_order(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    bly_scratch *scratch;
    assert_ok(bly_scratch_create(pool, stream, MiB, &scratch));
    assert_ok(blyi_stream_pause(stream));
    char *first = get(scratch, 1000);
    assert_ok(blyi_set_async(first, 1, 1000, stream, 0));
    assert_ok(bly_scratch_reset(scratch));
    assert_ptr_equal(get(scratch, 5000), first);
    assert_int_equal(scratch_info(scratch).used_peak, 5000);
    assert_ok(blyi_stream_resume(stream));
    assert_ok(bly_scratch_destroy(scratch));
    end_pool(pool);
}

/* Memory that another stream uses does not come back before that has passed. */
static void uses_hold_it_back(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *other = new_stream();
    bly_scratch *scratch;
    assert_ok(bly_scratch_create(pool, stream, MiB, &scratch));
    char *first = get(scratch, 1000);
    assert_ok(blyi_stream_pause(other));
    assert_ok(blyi_set_async(first, 1, 1000, other, 0));
    assert_ok(bly_scratch_use(scratch, stream));
    assert_ok(bly_scratch_use(scratch, other));
    assert_ok(bly_scratch_use(scratch, other));
    assert_ok(bly_scratch_reset(scratch));
    assert_int_equal(info_of(pool).waiting, MiB);
    assert_int_equal(scratch_info(scratch).chunks, 0);
    char *second = get(scratch, 1000);
    assert_true(second >= first + MiB || first >= second + MiB);
    assert_ok(blyi_stream_resume(other));
    assert_ok(blyi_stream_sync(other, 0));
    assert_ok(bly_pool_poll(pool));
    assert_int_equal(info_of(pool).waiting, 0);
    /* Uses that have passed hold nothing. */
    assert_ok(bly_scratch_use(scratch, other));
    assert_ok(bly_scratch_reset(scratch));
    assert_ptr_equal(get(scratch, 1000), second);
    assert_ok(bly_scratch_destroy(scratch));
    end_pool(pool);
}

static void marks_take_it_back_in_part(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    bly_scratch *scratch;
    bly_scratch_mark start, mark, far;
    assert_ok(bly_scratch_create(pool, stream, 64 * KiB, &scratch));
    assert_ok(bly_scratch_get_mark(scratch, &start));
    char *first = get(scratch, 512);
    assert_ok(bly_scratch_get_mark(scratch, &mark));
    char *second = get(scratch, 512);
    (void)get(scratch, 60 * KiB);
    (void)get(scratch, 60 * KiB);
    (void)get(scratch, 100 * KiB);
    assert_ok(bly_scratch_get_mark(scratch, &far));
    assert_int_equal(scratch_info(scratch).chunks, 3);
    assert_ok(bly_scratch_rewind(scratch, mark));
    assert_int_equal(scratch_info(scratch).used, 512);
    assert_status(bly_scratch_rewind(scratch, far), BLY_E_INVALID);
    assert_sentence("is not behind us");
    assert_ptr_equal(get(scratch, 512), second);
    assert_ok(bly_scratch_rewind(scratch, start));
    assert_ptr_equal(get(scratch, 512), first);
    assert_ok(bly_scratch_trim(scratch));
    assert_int_equal(scratch_info(scratch).chunks, 1);
    assert_ok(bly_scratch_reset(scratch));
    assert_ok(bly_scratch_trim(scratch));
    assert_int_equal(scratch_info(scratch).reserved, 0);
    assert_int_equal(info_of(pool).blocks, 0);
    assert_ok(bly_scratch_destroy(scratch));
    end_pool(pool);
}

/* What took several chunks comes in one the next time. */
static void chunks_become_one(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream();
    bly_scratch *scratch;
    assert_ok(bly_scratch_create(pool, stream, 64 * KiB, &scratch));
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 10; i++)
            (void)get(scratch, 40 * KiB);
        bly_scratch_info info = scratch_info(scratch);
        assert_int_equal(info.chunks, round == 0 ? 10 : 1);
        assert_int_equal(info.used_peak, 400 * KiB);
        assert_int_equal(info.reserved, round == 0 ? 640 * KiB : 400 * KiB);
        assert_ok(bly_scratch_reset(scratch));
    }
    assert_ok(bly_scratch_destroy(scratch));
    end_pool(pool);
}

static void faults_are_told(void **state)
{
    (void)state;
    bly_pool *pool = new_pool();
    void *stream = new_stream(), *block = NULL;
    bly_scratch *scratch = NULL;
    assert_status(bly_scratch_create(NULL, stream, 0, &scratch), BLY_E_HANDLE);
    assert_status(bly_scratch_create(pool, &pool, 0, &scratch), BLY_E_HANDLE);
    assert_status(bly_scratch_create(pool, stream, UINT64_MAX, &scratch), BLY_E_INVALID);
    assert_status(bly_scratch_create(pool, stream, 0, NULL), BLY_E_INVALID);
    assert_null(scratch);
    assert_ok(bly_scratch_create(pool, stream, 0, &scratch));
    assert_status(bly_scratch_alloc(scratch, 1, 3, &block), BLY_E_INVALID);
    assert_status(bly_scratch_alloc(scratch, 1, 2 * GiB, &block), BLY_E_INVALID);
    assert_status(bly_scratch_alloc(scratch, UINT64_MAX, 0, &block), BLY_E_INVALID);
    assert_status(bly_scratch_alloc(scratch, 2 * GiB, 0, &block), BLY_E_NO_MEMORY);
    assert_status(bly_scratch_use(scratch, &pool), BLY_E_HANDLE);
    assert_null(block);
    assert_int_equal(scratch_info(scratch).used, 0);
    assert_ok(bly_scratch_destroy(scratch));
    end_pool(pool);
}

int main(void)
{
    setenv("BELAY_HBM", "1GiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(memory_comes_in_a_row), order_test(a_reset_is_in_order),
        order_test(uses_hold_it_back),     order_test(marks_take_it_back_in_part),
        order_test(chunks_become_one),     order_test(faults_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
