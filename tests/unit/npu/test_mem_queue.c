/* SPDX-License-Identifier: Apache-2.0
 * Queues and shared buffers when the host has no memory: nothing is lost, nothing is left. */
#include "base/handle.h"
#include "mem_test.h"
#include "npu/host_room.h"
#include "npu/mbuf.h"
#include "npu/mem_queue.h"

static struct blyi_queue_ref src, a, b;

static struct blyi_queue_ref new_queue(void)
{
    struct blyi_queue_ref ref = {0, 0, false};
    assert_ok(blyi_mem_queue_create(0, "q", 4, false, 0, &ref.id));
    return ref;
}

static uint32_t count(struct blyi_queue_ref ref)
{
    uint32_t n;
    assert_ok(blyi_mem_queue_size(ref, &n));
    return n;
}

/* One message through both forms; returns the first failure. */
static bly_status exercise(uint64_t number)
{
    void *buffer = NULL, *copy = NULL;
    bly_status status = blyi_mem_queue_put_data(src, &number, sizeof(number), &number, 8, 0);
    if (status == BLY_OK)
        status = blyi_mem_queue_take_buffer(a, &buffer, 0);
    if (status == BLY_OK)
        status = blyi_mbuf_copy_ref(buffer, &copy);
    if (copy != NULL)
        assert_ok(blyi_mbuf_free(copy));
    if (buffer != NULL)
        assert_ok(blyi_mbuf_free(buffer));
    return status;
}

/* Whatever is still anywhere comes out, whole and in order. */
static uint32_t drain(struct blyi_queue_ref queue, uint64_t expected)
{
    uint64_t number = 0, beside = 0, size;
    uint32_t n = 0;
    while (blyi_mem_queue_take_data(queue, &number, 8, &size, &beside, 8, 0) == BLY_OK) {
        assert_int_equal(number, expected);
        assert_int_equal(beside, expected);
        n++;
    }
    return n;
}

static void a_failing_host_loses_nothing(void **state)
{
    (void)state;
    uint64_t held = blyi_host_room_held();
    src = new_queue();
    a = new_queue();
    b = new_queue();
    assert_ok(blyi_queue_route_bind(0, src.id, a.id));
    assert_ok(blyi_queue_route_bind(0, src.id, b.id));
    for (uint64_t nth = 1;; nth++) {
        blyi_host_fail_nth(nth);
        bly_status status = exercise(nth);
        bool failed = blyi_host_failed();
        blyi_host_fail_nth(0);
        uint32_t from_b = drain(b, nth), from_a = drain(a, nth);
        assert_int_equal(count(src), 0);
        assert_true(from_a <= from_b); /* exercise() took from a */
        assert_int_equal(blyi_host_room_held(), held);
        assert_int_equal(blyi_handle_live(BLYI_HANDLE_MBUF), 0);
        if (!failed) {
            assert_int_equal(status, BLY_OK);
            assert_int_equal(from_b, 1);
            break;
        }
        assert_true(nth < 50);
    }
    assert_ok(blyi_queue_route_unbind(0, src.id, a.id));
    assert_ok(blyi_queue_route_unbind(0, src.id, b.id));
    assert_ok(blyi_mem_queue_destroy(src));
    assert_ok(blyi_mem_queue_destroy(a));
    assert_ok(blyi_mem_queue_destroy(b));
}

/* What could not be handed on for want of memory moves when somebody asks for it, or is told why
 * it does not. */
static void a_message_that_could_not_move_is_told_to_who_waits(void **state)
{
    (void)state;
    uint64_t number = 7, size = 0;
    src = new_queue();
    a = new_queue();
    b = new_queue();
    assert_ok(blyi_mem_queue_put_data(src, &number, 8, &number, 8, 0));
    assert_ok(blyi_queue_route_bind(0, src.id, a.id));
    assert_ok(blyi_mem_queue_take_data(a, &number, 8, &size, NULL, 0, 0));
    assert_ok(blyi_queue_route_bind(0, src.id, b.id));
    blyi_host_fail_nth(3); /* area and buffer of the message, then the second buffer */
    assert_ok(blyi_mem_queue_put_data(src, &number, 8, &number, 8, 0));
    assert_true(blyi_host_failed());
    assert_int_equal(count(src), 1);
    blyi_host_fail_nth(1);
    assert_fails(blyi_mem_queue_take_data(a, &number, 8, &size, NULL, 0, UINT64_MAX),
                 BLY_E_HOST_MEMORY, "to hand a message");
    blyi_host_fail_nth(0);
    assert_int_equal(drain(a, 7), 1);
    assert_int_equal(drain(b, 7), 1);
    assert_fails(blyi_mem_queue_destroy(src), BLY_E_STATE, "2 routes");
    assert_ok(blyi_queue_route_unbind(0, src.id, a.id));
    assert_ok(blyi_queue_route_unbind(0, src.id, b.id));
    assert_ok(blyi_mem_queue_destroy(src));
    assert_ok(blyi_mem_queue_destroy(a));
    assert_ok(blyi_mem_queue_destroy(b));
}

static void sentences_name_the_queue(void **state)
{
    (void)state;
    uint64_t number = 1, deadline;
    a = new_queue();
    for (int i = 0; i < 4; i++)
        assert_ok(blyi_mem_queue_put_data(a, &number, 8, NULL, 0, 0));
    assert_fails(blyi_mem_queue_put_data(a, &number, 8, NULL, 0, 0), BLY_E_QUEUE_FULL,
                 "is full: 4 messages");
    assert_false(blyi_mem_queue_deadline(-2, &deadline));
    assert_true(blyi_mem_queue_deadline(-1, &deadline));
    assert_true(deadline == UINT64_MAX);
    struct blyi_queue_ref channel = a;
    channel.channel = true; /* queues and channels do not see each other */
    assert_fails(blyi_mem_queue_clean(channel), BLY_E_INVALID, "card 0 has no channel");
    assert_ok(blyi_mem_queue_clean(a));
    assert_int_equal(count(a), 0);
    assert_ok(blyi_mem_queue_destroy(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_host_loses_nothing),
        cmocka_unit_test(a_message_that_could_not_move_is_told_to_who_waits),
        cmocka_unit_test(sentences_name_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
