/* SPDX-License-Identifier: Apache-2.0
 * The heap of the simulated caching allocators beside a map of units. */
#include "replay/heap.h"
#include "../base/base_test.h"

#define UNITS 256
#define UNIT  512u

/* What each unit of the one range is. */
static enum blyi_heap_state model[UNITS];
static struct blyi_heap_block *busy[UNITS]; /* by first unit */

static size_t run_length(size_t at)
{
    size_t n = 1;
    while (at + n < UNITS && model[at + n] == model[at])
        n++;
    return n;
}

/* The smallest idle run of at least n units, lowest first; UNITS: none. */
static size_t best_run(size_t n)
{
    size_t best = UNITS, best_n = UNITS + 1;
    for (size_t at = 0; at < UNITS;) {
        if (model[at] != BLYI_HEAP_IDLE) {
            at++;
            continue;
        }
        size_t length = run_length(at);
        if (length >= n && length < best_n) {
            best = at;
            best_n = length;
        }
        at += length;
    }
    return best;
}

static void set(size_t at, size_t n, enum blyi_heap_state state)
{
    for (size_t i = at; i < at + n; i++)
        model[i] = state;
}

static void take(struct blyi_heap *heap, struct blyi_heap_pool *pool, size_t n)
{
    struct blyi_heap_block *block = blyi_heap_best(pool, n * UNIT);
    size_t want = best_run(n);
    if (want == UNITS) {
        assert_null(block);
        return;
    }
    assert_non_null(block);
    assert_int_equal(block->address, want * UNIT);
    assert_int_equal(block->size, run_length(want) * UNIT);
    blyi_heap_remove(block);
    if (block->size > n * UNIT)
        assert_int_equal(blyi_heap_cut(heap, block, n * UNIT, BLYI_HEAP_IDLE), BLY_OK);
    set(want, n, BLYI_HEAP_BUSY);
    busy[want] = block;
}

static void give(struct blyi_heap *heap, size_t at, enum blyi_heap_state state)
{
    size_t n = busy[at]->size / UNIT;
    struct blyi_heap_block *block = blyi_heap_insert(heap, busy[at], state);
    busy[at] = NULL;
    set(at, n, state);
    while (at > 0 && model[at - 1] == state)
        at--;
    assert_int_equal(block->address, at * UNIT);
    assert_int_equal(block->size, run_length(at) * UNIT);
}

static void random_steps(void **state)
{
    struct rng rng = rng_start();
    struct blyi_placer_card card = {.capacity = UINT64_MAX};
    struct blyi_heap heap;
    (void)state;
    assert_true(blyi_heap_init(&heap, &card, 1));
    struct blyi_heap_pool *pool = blyi_heap_pool(&heap, 3, UNIT);
    assert_ptr_equal(blyi_heap_pool(&heap, 3, MiB), pool);
    assert_ptr_not_equal(blyi_heap_pool(&heap, 3, MiB + 1), pool);
    assert_ptr_not_equal(blyi_heap_pool(&heap, 4, UNIT), pool);
    blyi_heap_insert(&heap, blyi_heap_new(&heap, pool, 0, UNITS * UNIT), BLYI_HEAP_IDLE);
    set(0, UNITS, BLYI_HEAP_IDLE);
    for (int step = 0; step < 20000; step++) {
        size_t at = rng_below(&rng, UNITS);
        if (busy[at] != NULL)
            give(&heap, at, BLYI_HEAP_IDLE);
        else
            take(&heap, pool, 1 + rng_below(&rng, 12));
        assert_true(blyi_heap_audit(&heap));
    }
    blyi_heap_fini(&heap);
}

static void audit_sees_what_is_wrong(void **state)
{
    struct blyi_placer_card card = {.capacity = UINT64_MAX};
    struct blyi_heap heap;
    (void)state;
    assert_true(blyi_heap_init(&heap, &card, 1));
    struct blyi_heap_pool *pool = blyi_heap_pool(&heap, 0, UNIT);
    struct blyi_heap_block *block = blyi_heap_new(&heap, pool, 0, 4 * UNIT);
    assert_int_equal(blyi_heap_cut(&heap, block, UNIT, BLYI_HEAP_IDLE), BLY_OK);
    assert_true(blyi_heap_audit(&heap));
    block->next->size++;
    assert_false(blyi_heap_audit(&heap));
    block->next->size--;
    block->state = BLYI_HEAP_IDLE; /* should have joined */
    assert_false(blyi_heap_audit(&heap));
    blyi_heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps),
        cmocka_unit_test(audit_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
