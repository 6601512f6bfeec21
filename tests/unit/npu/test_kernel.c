/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by the native call: engines, ranges, arguments, faults, faults of the host. */
#include <belay/kernel.h>

#include <errno.h>

#include "npu/abort.h"
#include "npu/engine.h"
#include "npu/kernel.h"
#include "npu/notify.h"
#include "npu/registered.h"
#include "order_test.h"

struct sum {
    uint32_t *to;
    uint32_t add;
};

/* What these do wrong is the test. A fault inside the runtime of the thread sanitizer would leave
 * its locks taken, so they do not call it. */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define WRONG __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef WRONG
#define WRONG __attribute__((no_sanitize("undefined")))
#endif

WRONG static void add(const void *args, uint32_t block, uint32_t n_blocks)
{
    const struct sum *p = args;
    (void)block, (void)n_blocks;
    *p->to += p->add;
}

WRONG static void overflow_stack(const void *args, uint32_t block, uint32_t n_blocks)
{
    volatile char page[4096];
    page[0] = 1;
    if (n_blocks == 0) /* never */
        return;
    overflow_stack((const void *)((uintptr_t)args + (uintptr_t)page[0]), block + 1, n_blocks);
    page[1] = 2; /* no tail call */
}

WRONG static void divide(const void *args, uint32_t block, uint32_t n_blocks)
{
    volatile uint32_t zero = block - block;
    (void)args;
    *(volatile uint32_t *)&zero = n_blocks / zero;
}

static bly_kernel_opts on(bly_engine engine, const bly_range *ranges, uint32_t n)
{
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.engine = engine;
    opts.ranges = ranges;
    opts.n_ranges = n;
    return opts;
}

static uint32_t value_of(const void *address)
{
    uint32_t value;
    assert_ok(blyi_copy_now(&value, address, sizeof(value)));
    return value;
}

static void every_engine_runs_kernels(void **state)
{
    (void)state;
    void *stream = new_stream();
    uint32_t *memory = card_alloc(4096);
    const bly_range range = {memory, 4096, BLY_READ | BLY_WRITE};
    struct sum args = {memory, 1};
    assert_ok(blyi_set_now(memory, 0, 4096));
    for (int engine = BLY_ENGINE_VECTOR; engine <= BLY_ENGINE_COPY; engine++) {
        bly_kernel_opts opts = on((bly_engine)engine, &range, 1);
        for (int i = 0; i < 100; i++)
            assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    }
    args.add = 1000; /* the launches have copies */
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), 500);
}

static void ranges_are_checked_and_backed(void **state)
{
    (void)state;
    void *stream = new_stream();
    char *memory = card_alloc(4 << 20);
    uint32_t *dead = card_alloc(4096);
    char pageable[16];
    struct sum args = {(uint32_t *)memory, 7};
    bly_range ranges[2] = {{memory, 4 << 20, BLY_READ | BLY_WRITE}, {dead, 16, BLY_READ}};
    bly_kernel_opts opts = on(BLY_ENGINE_VECTOR, ranges, 1);
    assert_ok(blyi_set_now(memory, 0, 4));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), 7);
    /* One that is freed: the kernel does not run, whatever else it would have done. */
    opts.n_ranges = 2;
    assert_ok(blyi_mem_free(dead, 0));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_KERNEL_VECTOR);
    assert_sentence("did not run");
    assert_int_equal(value_of(memory), 7);
    ranges[1] = (bly_range){pageable, 16, BLY_READ};
    assert_status(bly_kernel_launch(add, &args, sizeof(args), &opts, stream), BLY_E_INVALID);
    ranges[1].size = 0;
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    ranges[0].access = 4;
    assert_status(bly_kernel_launch(add, &args, sizeof(args), &opts, stream), BLY_E_INVALID);
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), 14);
}

static void pinned_ranges_outlive_their_free(void **state)
{
    (void)state;
    void *stream = new_stream();
    uint32_t *pinned = pinned_alloc(4096);
    const bly_range range = {pinned, 4096, BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = on(BLY_ENGINE_AICPU, &range, 1);
    struct sum args = {pinned, 3};
    *pinned = 1;
    assert_ok(blyi_stream_pause(stream));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    assert_ok(blyi_pinned_free(pinned, 0));
    /* One that was free before is no range at all. */
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    assert_ok(blyi_stream_resume(stream));
    bly_status status = blyi_stream_sync(stream, 0);
    assert_true(status == BLY_OK || status == BLY_E_KERNEL_AICPU);
    assert_true(blyi_pinned_audit());
}

static void registered_memory_is_a_range(void **state)
{
    (void)state;
    static _Alignas(4096) uint32_t words[1024];
    void *stream = new_stream();
    const bly_range range = {words, sizeof(words), BLY_READ | BLY_WRITE};
    bly_kernel_opts opts = on(BLY_ENGINE_VECTOR, &range, 1);
    struct sum args = {words, 3};
    words[0] = 1;
    assert_status(bly_kernel_launch(add, &args, sizeof(args), &opts, stream), BLY_E_INVALID);
    assert_ok(blyi_registered_add(words, sizeof(words), BLYI_REGISTER_MAPPED, 0));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &opts, stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(words[0], 4);
    assert_ok(blyi_registered_remove(words, 0));
}

/* A frame that nobody used before: the kernel finds zeros there, what it writes stays, and the
 * frame is like any other afterwards. */
static void undeclared_memory_can_be_touched(void **state)
{
    (void)state;
    void *stream = new_stream();
    char *memory = card_alloc(8 << 20);
    struct sum args = {(uint32_t *)(memory + (5 << 20)), 9};
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), NULL, stream));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), NULL, stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(args.to), 18); /* commits the frame: the content stays */
    assert_int_equal(value_of(args.to + 1), 0);
    assert_true(blyi_card_audit(blyi_card_get(0)));
    assert_ok(blyi_mem_free(memory, 0));
    assert_true(blyi_card_audit(blyi_card_get(0)));
}

static void faults_of_every_kind(void **state)
{
    (void)state;
    keep_fault_handler();
    void *stream = new_stream();
    uint32_t *memory = card_alloc(4096);
    struct sum args = {memory, 1};
    assert_ok(blyi_set_now(memory, 0, 4));
    bly_kernel_opts cube = on(BLY_ENGINE_CUBE, NULL, 0), dvpp = on(BLY_ENGINE_DVPP, NULL, 0);
    assert_ok(bly_kernel_launch(overflow_stack, NULL, 0, &cube, stream));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_KERNEL_CUBE);
    assert_sentence("overflow_stack");
    assert_ok(bly_kernel_launch(divide, NULL, 0, &dvpp, stream));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_FAULT);
    assert_sentence("SIGFPE");
    args.to = NULL;
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), NULL, stream));
    assert_status(blyi_stream_sync(stream, 0), BLY_E_KERNEL_VECTOR);
    assert_sentence("launched at");
    args.to = memory;
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &cube, stream));
    assert_ok(bly_kernel_launch(add, &args, sizeof(args), &dvpp, stream));
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), 2);
}

static void arguments_up_to_64_kib(void **state)
{
    (void)state;
    static char big[BLY_KERNEL_ARGS_MAX + 1];
    void *stream = new_stream();
    uint32_t *memory = card_alloc(4096);
    struct sum args = {memory, 5};
    assert_ok(blyi_set_now(memory, 0, 4));
    memcpy(big, &args, sizeof(args));
    for (size_t size = sizeof(args); size <= BLY_KERNEL_ARGS_MAX; size *= 2)
        assert_ok(bly_kernel_launch(add, big, size, NULL, stream));
    assert_status(bly_kernel_launch(add, big, sizeof(big), NULL, stream), BLY_E_INVALID);
    assert_status(bly_kernel_launch(NULL, big, 8, NULL, stream), BLY_E_INVALID);
    assert_status(bly_kernel_launch(add, NULL, 8, NULL, stream), BLY_E_INVALID);
    bly_kernel_opts opts = bly_kernel_opts_default();
    opts.n_blocks = 0;
    assert_status(bly_kernel_launch(add, big, 16, &opts, stream), BLY_E_INVALID);
    opts.struct_size = 3;
    assert_status(bly_kernel_launch(add, big, 16, &opts, stream), BLY_E_INVALID);
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), 5 * 13);
}

static void a_failing_host(void **state)
{
    (void)state;
    static char big[4096];
    void *stream = new_stream();
    uint32_t *memory = card_alloc(4096);
    struct sum args = {memory, 1};
    uint32_t launched = 0;
    assert_ok(blyi_set_now(memory, 0, 4));
    memcpy(big, &args, sizeof(args));
    for (int n = 1; n < 12; n++) {
        blyi_host_fail_nth((uint64_t)n);
        blyi_sys_fail_nth((uint64_t)n, ENOMEM);
        bly_status status = bly_kernel_launch(add, big, sizeof(big), NULL, stream);
        blyi_host_fail_nth(0);
        blyi_sys_fail_nth(0, 0);
        launched += status == BLY_OK;
        assert_true(status == BLY_OK || status == BLY_E_HOST_MEMORY || status == BLY_E_SYSTEM);
    }
    assert_true(launched > 0);
    assert_ok(blyi_stream_sync(stream, 0));
    assert_int_equal(value_of(memory), launched);
}

static void a_fault_without_a_thread_in_reserve(void **state)
{
    (void)state;
    keep_fault_handler();
    void *stream = new_stream();
    uint32_t *memory = card_alloc(4096);
    struct sum args = {NULL, 1};
    assert_ok(blyi_set_now(memory, 0, 4));
    for (int i = 0; i < 20; i++) {
        args.to = NULL;
        assert_ok(bly_kernel_launch(add, &args, sizeof(args), NULL, stream));
        if (i % 2 == 0)
            blyi_sys_fail_nth(1, EAGAIN); /* may meet the making of the next reserve */
        args.to = memory;
        assert_status(blyi_stream_sync(stream, 0), BLY_E_KERNEL_VECTOR);
        blyi_sys_fail_nth(0, 0);
        assert_ok(bly_kernel_launch(add, &args, sizeof(args), NULL, stream));
        assert_ok(blyi_stream_sync(stream, 0));
    }
    assert_int_equal(value_of(memory), 20);
}

int main(void)
{
    keep_fault_handler();
    setenv("BELAY_HBM", "256MiB", 1);
    const struct CMUnitTest tests[] = {
        order_test(every_engine_runs_kernels),
        order_test(ranges_are_checked_and_backed),
        order_test(pinned_ranges_outlive_their_free),
        order_test(registered_memory_is_a_range),
        order_test(undeclared_memory_can_be_touched),
        order_test(faults_of_every_kind),
        order_test(arguments_up_to_64_kib),
        order_test(a_failing_host),
        order_test(a_fault_without_a_thread_in_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
