/* SPDX-License-Identifier: Apache-2.0
 * Random messages through random routes beside arrays of numbers. */
#include "../unit/npu/mem_test.h"
#include "npu/host_room.h"
#include "npu/mbuf.h"
#include "npu/mem_queue.h"

#define QUEUES 5
#define DEPTH  6u
#define STEPS  40000

static struct {
    uint32_t id;
    uint64_t messages[DEPTH];
    uint32_t n;
} model[QUEUES];
static bool routed[QUEUES][QUEUES];

static struct blyi_queue_ref ref_of(size_t i)
{
    return (struct blyi_queue_ref){0, model[i].id, false};
}

static void model_push(size_t i, uint64_t number)
{
    assert_true(model[i].n < DEPTH);
    model[i].messages[model[i].n++] = number;
}

static uint64_t model_pop(size_t i)
{
    uint64_t first = model[i].messages[0];
    memmove(model[i].messages, model[i].messages + 1, --model[i].n * sizeof(first));
    return first;
}

static bool is_source(size_t i)
{
    for (size_t to = 0; to < QUEUES; to++) {
        if (routed[i][to])
            return true;
    }
    return false;
}

static bool is_destination(size_t i)
{
    for (size_t from = 0; from < QUEUES; from++) {
        if (routed[from][i])
            return true;
    }
    return false;
}

static bool can_move(size_t from)
{
    for (size_t to = 0; to < QUEUES; to++) {
        if (routed[from][to] && model[to].n == DEPTH)
            return false;
    }
    return is_source(from) && model[from].n > 0;
}

static void model_drain(size_t from)
{
    while (can_move(from)) {
        uint64_t number = model_pop(from);
        for (size_t to = 0; to < QUEUES; to++) {
            if (routed[from][to])
                model_push(to, number);
        }
    }
}

/* Which source goes first is not promised: steps make room for one message at most, and only one
 * source may be waiting for it. */
static void model_feed(size_t to)
{
    for (size_t from = 0; from < QUEUES; from++) {
        if (routed[from][to])
            model_drain(from);
    }
}

static size_t n_waiting_sources(size_t to)
{
    size_t n = 0;
    for (size_t from = 0; from < QUEUES; from++)
        n += routed[from][to] && model[from].n > 0;
    return n;
}

static void step_put(struct rng *rng, size_t i, uint64_t number)
{
    bool full = model[i].n == DEPTH;
    bly_status status;
    if (rng_below(rng, 2) == 0) {
        status = blyi_mem_queue_put_data(ref_of(i), &number, sizeof(number), NULL, 0, 0);
    } else {
        void *buffer, *data;
        uint64_t size;
        assert_ok(blyi_mbuf_alloc(sizeof(number), &buffer));
        assert_ok(blyi_mbuf_data(buffer, &data, &size));
        memcpy(data, &number, sizeof(number));
        assert_ok(blyi_mbuf_set_length(buffer, sizeof(number)));
        status = blyi_mem_queue_put_buffer(ref_of(i), buffer, 0);
        if (status != BLY_OK)
            assert_ok(blyi_mbuf_free(buffer));
    }
    assert_int_equal(status, full ? BLY_E_QUEUE_FULL : BLY_OK);
    if (!full) {
        model_push(i, number);
        model_drain(i);
    }
}

static void step_take(struct rng *rng, size_t i)
{
    uint64_t number = 0, size = 0;
    bool empty = model[i].n == 0;
    bly_status status;
    if (n_waiting_sources(i) > 1)
        return;
    if (rng_below(rng, 2) == 0) {
        status = blyi_mem_queue_take_data(ref_of(i), &number, sizeof(number), &size, NULL, 0, 0);
    } else {
        void *buffer = NULL, *data;
        status = blyi_mem_queue_take_buffer(ref_of(i), &buffer, 0);
        if (status == BLY_OK) {
            assert_ok(blyi_mbuf_data(buffer, &data, &size));
            memcpy(&number, data, sizeof(number));
            assert_ok(blyi_mbuf_free(buffer));
        }
    }
    assert_int_equal(status, empty ? BLY_E_QUEUE_EMPTY : BLY_OK);
    if (!empty) {
        assert_int_equal(size, sizeof(number));
        assert_int_equal(number, model_pop(i));
        model_feed(i);
    }
}

static void step_route(struct rng *rng, size_t from, size_t to)
{
    if (rng_below(rng, 3) == 0) {
        assert_ok(blyi_queue_route_unbind(0, model[from].id, model[to].id));
        if (routed[from][to]) {
            routed[from][to] = false;
            model_drain(from);
        }
        return;
    }
    bool possible = routed[from][to] || (from != to && !is_destination(from) && !is_source(to));
    assert_int_equal(blyi_queue_route_bind(0, model[from].id, model[to].id),
                     possible ? BLY_OK : BLY_E_INVALID);
    if (possible) {
        routed[from][to] = true;
        model_drain(from);
    }
}

static void check_sizes(void)
{
    for (size_t i = 0; i < QUEUES; i++) {
        uint32_t n;
        assert_ok(blyi_mem_queue_size(ref_of(i), &n));
        assert_int_equal(n, model[i].n);
    }
}

static void random_steps(void **state)
{
    (void)state;
    struct rng rng = rng_start();
    uint64_t held = blyi_host_room_held();
    for (size_t i = 0; i < QUEUES; i++)
        assert_ok(blyi_mem_queue_create(0, NULL, DEPTH, false, 0, &model[i].id));
    for (uint64_t i = 0; i < STEPS; i++) {
        size_t queue = rng_below(&rng, QUEUES), kind = rng_below(&rng, 100);
        if (kind < 48)
            step_put(&rng, queue, i);
        else if (kind < 97)
            step_take(&rng, queue);
        else
            step_route(&rng, queue, rng_below(&rng, QUEUES));
        check_sizes();
    }
    for (size_t i = 0; i < QUEUES; i++) {
        for (size_t to = 0; to < QUEUES; to++)
            assert_ok(blyi_queue_route_unbind(0, model[i].id, model[to].id));
    }
    for (size_t i = 0; i < QUEUES; i++)
        assert_ok(blyi_mem_queue_destroy(ref_of(i)));
    assert_int_equal(blyi_host_room_held(), held); /* no message is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
