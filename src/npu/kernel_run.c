/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_run.c - running kernels on an engine, and ending one that runs. Nothing is locked while a
 * kernel runs. Who wants it to end reads `kernel_tid` and `kernel_position` of its stream and
 * sends that thread a signal which names the run; a run that is over ignores it (fault.c).
 */
#include "npu/kernel_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "npu/context_inside.h"
#include "npu/gate.h"
#include "npu/graph_inside.h"
#include "npu/memory.h"
#include "npu/overflow.h"
#include "npu/queue.h"
#include "npu/watch.h"

/* What the host backs beforehand behind each pointer among the arguments. */
#define SCAN_BYTES ((uint64_t)64 << 20)
/* How long a stop waits before it sends its signal again. */
#define STOP_AGAIN_NS 2000000u

/* A card block that the arguments point into counts as declared, as far as the host backs it in
 * reasonable time. What is not live is left for the kernel to fault on. */
static bly_status back_block(const void *address)
{
    struct blyi_mem_block block;
    uint64_t size = 1;
    if (blyi_mem_find(address, &block)) {
        uint64_t offset = (uint64_t)((uintptr_t)address - block.address);
        size = block.backed - offset;
        if (size > SCAN_BYTES)
            size = SCAN_BYTES;
    }
    bly_status status = blyi_mem_use(address, size, BLYI_READ);
    if (status != BLY_E_FAULT)
        return status;
    blyi_fail_clear();
    return BLY_OK;
}

static bly_status scan_args(struct blyi_launch *launch)
{
    const char *args = blyi_launch_args(launch);
    for (uint32_t at = 0; at + sizeof(void *) <= launch->args_size; at += sizeof(void *)) {
        const void *word;
        memcpy(&word, args + at, sizeof(word));
        if (blyi_place_of(word, NULL) != BLYI_PLACE_CARD)
            continue;
        bly_status status = back_block(word);
        if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}

static void copy_args(void *arg)
{
    struct blyi_launch *launch = arg;
    memcpy(blyi_launch_args(launch), launch->card_args, launch->args_size);
}

/* The argument block lies on the card (or in host memory that the card sees). */
static bly_status fetch_args(struct blyi_launch *launch)
{
    const struct blyi_fault_range ranges[2] = {{(uintptr_t)launch->card_args, launch->args_size},
                                               {0, 0}};
    uintptr_t address;
    bly_status status = blyi_mem_use(launch->card_args, launch->args_size, BLYI_READ);
    if (status == BLY_OK && !blyi_fault_try(copy_args, launch, ranges, &address))
        status = blyi_fail(BLY_E_FAULT, "the argument block at %p cannot be read at 0x%" PRIxPTR,
                           launch->card_args, address);
    return status;
}

static bly_status check_ranges(const struct blyi_launch *launch)
{
    for (int i = 0; i < launch->n_ranges; i++) {
        const bly_range *range = &launch->ranges[i];
        if (unlikely(range->access & BLYI_RANGE_DEAD))
            return blyi_fail(BLY_E_FAULT, "range %d at %p is no live pinned memory", i,
                             range->address);
        bly_status status = blyi_mem_use(range->address, range->size,
                                         (enum blyi_access)(range->access & BLYI_RANGE_ACCESS));
        if (unlikely(status != BLY_OK))
            return status;
    }
    return BLY_OK;
}

/* What the kernel asked for beforehand is not there: its fault, though it did not run. */
static bly_status refuse(const struct blyi_stream *stream, struct blyi_task *task,
                         bly_status status)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    char why[BLYI_FAIL_MAX];
    if (status == BLY_E_FAULT)
        status = blyi_kernel_engine_status((bly_engine)launch->engine);
    snprintf(why, sizeof(why), "%s", blyi_fail_text());
    (void)blyi_fail(status, "kernel %s did not run on %s: %s", blyi_kernel_name(launch),
                    blyi_kernel_engine_name((bly_engine)launch->engine), why);
    blyi_kernel_tell_launch(stream, task);
    return status;
}

static void run_blocks(void *arg)
{
    struct blyi_launch *launch = arg;
    void *args = blyi_launch_args(launch);
    for (uint32_t block = 0; block < launch->n_blocks; block++) {
        launch->block = block;
        launch->fn(args, block, launch->n_blocks);
    }
}

static uintptr_t token_of(const struct blyi_stream *stream, uint64_t position)
{
    return ((uintptr_t)stream->id << 32) | (uint32_t)position;
}

static bool run_watched(struct blyi_launch *launch)
{
    struct blyi_watch watch;
    blyi_watch_begin(&watch, launch->timeout_us, blyi_own_tid(), launch->fault.token);
    bool done = blyi_fault_run(run_blocks, launch, &launch->fault);
    blyi_watch_end(&watch); /* its lock is ours alone: no kernel can hold it */
    launch->expired = watch.expired;
    return done;
}

static bool run_inside(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    bly_status ready = launch->card_args != NULL ? fetch_args(launch) : BLY_OK;
    if (ready == BLY_OK && launch->n_ranges != 0)
        ready = check_ranges(launch);
    if (ready == BLY_OK && launch->scan)
        ready = scan_args(launch);
    if (unlikely(ready != BLY_OK)) {
        *status = refuse(stream, task, ready);
        return true;
    }
    uint64_t position = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED);
    launch->fault.token = token_of(stream, position);
    /* Release: who reads the thread reads its position. */
    __atomic_store_n(&stream->kernel_position, position, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->kernel_tid, blyi_own_tid(), __ATOMIC_SEQ_CST);
    /* An abort that came before could not see us: we see it. */
    bool done = true;
    if (unlikely(launch->tell_overflow))
        blyi_overflow_forget();
    if (likely((blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0))
        done = launch->timeout_us == 0 ? blyi_fault_run(run_blocks, launch, &launch->fault)
                                       : run_watched(launch);
    __atomic_store_n(&stream->kernel_tid, 0, __ATOMIC_RELEASE);
    if (unlikely(launch->tell_overflow) && done && blyi_overflow_happened())
        __atomic_store_n(&stream->context->overflow, 1, __ATOMIC_RELAXED);
    return done;
}

bool blyi_kernel_run(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    uint32_t gate = blyi_gate_enter(); /* no frame moves from the check to the last block */
    bool done = run_inside(stream, task, status);
    blyi_gate_leave(gate);
    return done;
}

bool blyi_kernel_stop(struct blyi_stream *stream)
{
    int32_t tid = __atomic_load_n(&stream->kernel_tid, __ATOMIC_SEQ_CST);
    if (tid == 0)
        return blyi_graph_stop_kernels(stream);
    uint64_t position = __atomic_load_n(&stream->kernel_position, __ATOMIC_RELAXED);
    if (blyi_queue_completed(stream) > position)
        return false; /* it ended meanwhile, or the next one is about to begin */
    do {              /* not to a thread that has left the kernel: it may be about to end */
        if (__atomic_load_n(&stream->kernel_tid, __ATOMIC_ACQUIRE) == tid)
            blyi_fault_stop(tid, token_of(stream, position));
    } while (blyi_queue_await_real(stream, position + 1, STOP_AGAIN_NS) != BLY_OK);
    return true;
}
