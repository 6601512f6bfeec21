/* SPDX-License-Identifier: Apache-2.0
 *
 * test_backend.c - what backend.h promises, of every backend.
 */
#include "../npu/order_test.h"

#include "base/compiler.h"
#include "device.h"

static const struct device *device;
static struct blyi_backend *backend;
static const struct blyi_backend_ops *ops;

static int open_device(void **state)
{
    device = *state;
    backend = device->open();
    ops = backend->ops;
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    device->close(backend);
    return 0;
}

static uint64_t free_now(void)
{
    struct blyi_backend_info info;
    ops->describe(backend, &info);
    return info.free;
}

static void test_describes_itself(void **state)
{
    (void)state;
    struct blyi_backend_info info;
    ops->describe(backend, &info);
    assert_string_equal(info.name, device->name);
    assert_int_equal(info.device, 0);
    assert_int_equal(info.granule, 2 * MiB);
    assert_true(info.total >= DEVICE_TOTAL && info.total <= DEVICE_TOTAL + 16 * MiB);
    assert_int_equal(info.free, DEVICE_TOTAL);
    assert_ok(ops->alive(backend));
}

static void test_memory_is_mapped_moved_and_given_back(void **state)
{
    (void)state;
    uint64_t handle = 0;
    uintptr_t at = 0;
    assert_ok(ops->create(backend, 6 * MiB, &handle));
    assert_int_equal(free_now(), DEVICE_TOTAL - 6 * MiB);
    assert_ok(ops->reserve(backend, 64 * MiB, &at));
    assert_int_equal(at % (2 * MiB), 0);
    assert_int_equal(free_now(), DEVICE_TOTAL - 6 * MiB);
    assert_ok(ops->map(backend, at, 6 * MiB, handle));
    ops->unmap(backend, at, 6 * MiB);
    assert_ok(ops->map(backend, at + 40 * MiB, 6 * MiB, handle));
    ops->unmap(backend, at + 40 * MiB, 6 * MiB);
    ops->release(backend, handle);
    ops->unreserve(backend, at, 64 * MiB);
    assert_int_equal(free_now(), DEVICE_TOTAL);
}

static void test_no_more_than_there_is(void **state)
{
    (void)state;
    uint64_t all = 0, more = 0;
    assert_ok(ops->create(backend, DEVICE_TOTAL, &all));
    assert_status(ops->create(backend, 2 * MiB, &more), BLY_E_NO_MEMORY);
    assert_int_equal(more, 0);
    assert_int_equal(free_now(), 0);
    (void)blyi_fail(BLY_E_NO_MEMORY, "no room");
    ops->shortage(backend, 2 * MiB);
    assert_sentence("no room; ");
    ops->release(backend, all);
    assert_int_equal(free_now(), DEVICE_TOTAL);
}

static void test_addresses_are_more_than_memory(void **state)
{
    (void)state;
    uintptr_t a = 0, b = 0;
    assert_ok(ops->reserve(backend, 4 * DEVICE_TOTAL, &a));
    assert_ok(ops->reserve(backend, 2 * MiB, &b));
    assert_true(b + 2 * MiB <= a || b >= a + 4 * DEVICE_TOTAL);
    ops->unreserve(backend, a, 4 * DEVICE_TOTAL);
    ops->unreserve(backend, b, 2 * MiB);
}

/* Something mapped, for work to name. */
struct mapped {
    uint64_t handle;
    uintptr_t at;
};

static struct mapped map_some(void)
{
    struct mapped m;
    assert_ok(ops->create(backend, 2 * MiB, &m.handle));
    assert_ok(ops->reserve(backend, 2 * MiB, &m.at));
    assert_ok(ops->map(backend, m.at, 2 * MiB, m.handle));
    return m;
}

static void unmap_some(struct mapped m)
{
    ops->unmap(backend, m.at, 2 * MiB);
    ops->release(backend, m.handle);
    ops->unreserve(backend, m.at, 2 * MiB);
}

static void test_marks_pass_with_their_work(void **state)
{
    (void)state;
    struct mapped m = map_some();
    void *stream = device->make_stream();
    struct blyi_lane *lane = NULL;
    assert_ok(ops->hold(backend, stream, &lane));
    assert_true(ops->passed(backend, lane, 0));
    blyi_mark before = *ops->marks(backend, lane);
    assert_ok(ops->wait(backend, lane, before, 0)); /* nothing is queued */
    assert_true(ops->passed(backend, lane, before));
    device->hold(stream, m.at);
    blyi_mark behind = *ops->marks(backend, lane);
    assert_true(behind >= before);
    assert_false(ops->passed(backend, lane, behind));
    assert_status(ops->wait(backend, lane, behind, 1000000), BLY_E_TIMEOUT);
    assert_sentence("work");
    assert_true(ops->passed(backend, lane, before));
    assert_false(ops->ended(backend, lane));
    device->go(stream);
    assert_ok(ops->wait(backend, lane, behind, 0));
    assert_true(ops->passed(backend, lane, behind));
    device->end_stream(backend, stream);
    ops->let_go(backend, lane);
    unmap_some(m);
}

static void test_a_lane_outlives_its_stream(void **state)
{
    (void)state;
    struct mapped m = map_some();
    void *stream = device->make_stream();
    struct blyi_lane *lane = NULL;
    assert_ok(ops->hold(backend, stream, &lane));
    device->hold(stream, m.at);
    blyi_mark mark = *ops->marks(backend, lane);
    device->go(stream);
    device->end_stream(backend, stream);
    assert_true(ops->passed(backend, lane, mark));
    assert_ok(ops->wait(backend, lane, mark, 0));
    assert_true(ops->ended(backend, lane));
    ops->let_go(backend, lane);
    unmap_some(m);
}

static void test_host_memory(void **state)
{
    (void)state;
    void *a = NULL;
    assert_ok(ops->pin(backend, 5000, &a));
    memset(a, 1, 5000);
    ops->unpin(backend, a, 5000);
}

#define OF(test, which)                                                                            \
    {                                                                                              \
#test " of " #which, test, open_device, close_device, (void *)&device_##which              \
    }
#define ALL(test) OF(test, sim), OF(test, npu), OF(test, cann)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_describes_itself),
        ALL(test_memory_is_mapped_moved_and_given_back),
        ALL(test_no_more_than_there_is),
        ALL(test_addresses_are_more_than_memory),
        ALL(test_marks_pass_with_their_work),
        ALL(test_a_lane_outlives_its_stream),
        ALL(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
