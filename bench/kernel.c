/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - what launching a kernel costs over an empty task, pipelined and alone, and what a
 * kernel that faults costs.
 *
 * Caller on the first CPU, engines on the second. The bound is an empty task of the same stream.
 */
#include <belay/kernel.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "bench/bench.h"
#include "npu/context.h"
#include "npu/memory.h"
#include "npu/stream.h"

#define ROW    1000
#define BLOCKS 40
#define FAULTS 100

static void must(bly_status status, const char *what)
{
    if (status != BLY_OK)
        bench_cannot("%s: %s: %s", what, bly_status_name(status), blyi_fail_text());
}

static void nothing(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
}

static void fault(const void *args, uint32_t block, uint32_t n_blocks)
{
    (void)args, (void)block, (void)n_blocks;
    __builtin_trap();
}

struct work {
    void *stream;
    bly_kernel_opts opts; /* n_ranges 0: no kernel at all, an empty task */
    bool kernel;
    uint64_t args[4];
};

static void submit(struct work *work)
{
    if (work->kernel)
        must(bly_kernel_launch(nothing, work->args, sizeof(work->args), &work->opts, work->stream),
             "launch");
    else
        must(blyi_stream_nop(work->stream), "nop");
}

static double row_ns(struct work *work)
{
    struct bench_samples whole = {0};
    for (int block = 0; block <= BLOCKS; block++) {
        uint64_t start = bench_ns();
        for (int i = 0; i < ROW; i++)
            submit(work);
        must(blyi_stream_sync(work->stream, 0), "sync");
        if (block > 0)
            bench_add(&whole, (double)(bench_ns() - start) / ROW);
    }
    return bench_median(&whole);
}

static double trip_ns(struct work *work)
{
    uint64_t start = bench_ns();
    for (int i = 0; i < ROW; i++) {
        submit(work);
        must(blyi_stream_sync(work->stream, 0), "sync");
    }
    return (double)(bench_ns() - start) / ROW;
}

static double fault_us(void *stream)
{
    uint64_t start = bench_ns();
    for (int i = 0; i < FAULTS; i++) {
        must(bly_kernel_launch(fault, NULL, 0, NULL, stream), "launch");
        if (blyi_stream_sync(stream, 0) != BLY_E_KERNEL_VECTOR)
            bench_cannot("a kernel that faults was not told");
    }
    return (double)(bench_ns() - start) / FAULTS / 1e3;
}

int main(int argc, char **argv)
{
    static struct bench_samples row[3], trip[2], faults;
    struct bench bench;
    bench_begin(&bench, "kernel", argc, argv);
    if (bench_cpus() < 2)
        bench_cannot("two CPUs are needed, this process may use one");
    must(blyi_device_set(0, 0), "device");
    struct blyi_card *card;
    must(blyi_context_here_card(&card), "context");
    struct blyi_mem_request request = {
        .asked = 1 << 20, .rounded = 1 << 20, .module = 33, .policy = BLYI_MEM_HUGE_ONLY};
    void *memory;
    must(blyi_mem_alloc(card, &request, &memory), "memory");
    const bly_range ranges[2] = {{memory, 1 << 19, BLY_READ},
                                 {(char *)memory + (1 << 19), 1 << 19, BLY_WRITE}};
    struct work works[3] = {{.kernel = false},
                            {.kernel = true, .opts = bly_kernel_opts_default()},
                            {.kernel = true, .opts = bly_kernel_opts_default()}};
    works[2].opts.ranges = ranges;
    works[2].opts.n_ranges = 2;
    for (int i = 0; i < 3; i++) {
        must(blyi_stream_create(0, 0, 0, &works[i].stream), "stream");
        submit(&works[i]);
        must(blyi_stream_sync(works[i].stream, 0), "sync");
    }
    bench_pin(0);
    bench_pin_others(1);
    for (int rep = 0; rep < (bench.quick ? 5 : 21); rep++) {
        for (int i = 0; i < 3; i++) {
            bench_sleep_ms(1);
            bench_add(&row[i], row_ns(&works[i]));
        }
        bench_add(&trip[0], trip_ns(&works[0]));
        bench_add(&trip[1], trip_ns(&works[1]));
    }
    bench_add(&faults, fault_us(works[1].stream));
    bench_section(&bench,
                  "a kernel that does nothing, 32 bytes of arguments; bound: an empty task");
    bench_row(&bench, &(struct bench_row){"1000 in a row, a launch", "ns", &row[1], &row[0],
                                          BENCH_OVER_AT_MOST, 200});
    bench_row(&bench, &(struct bench_row){"with two declared ranges", "ns", &row[2], &row[0],
                                          BENCH_OVER_AT_MOST, 200});
    bench_row(&bench, &(struct bench_row){"launch, complete", "ns", &trip[1], &trip[0],
                                          BENCH_NO_TARGET, 0});
    bench_section(&bench, "a kernel that faults: its thread ends, another takes over");
    bench_row(&bench, &(struct bench_row){"launch, fault, error told", "us", &faults, NULL,
                                          BENCH_NO_TARGET, 0});
    bench_end(&bench);
    return 0;
}
