/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - launching kernels.
 *
 * A launch lies beside its record in the ring (kernel.h), so that launching allocates nothing and
 * frees nothing in another thread, which cost 800 ns.
 */
#include "npu/kernel_inside.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/sys.h"
#include "npu/binary.h"
#include "npu/card.h"
#include "npu/graph_inside.h"
#include "npu/guard.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/queue.h"
#include "npu/watch.h"
#include "npu/window.h"

#define ARGS_ALIGN 64u

int32_t blyi_own_tid(void)
{
    static _Thread_local int32_t tid;
    if (unlikely(tid == 0))
        tid = (int32_t)syscall(SYS_gettid);
    return tid;
}

bly_status blyi_kernel_check(const struct blyi_kernel_call *call)
{
    if (call->fn == NULL)
        return blyi_fail(BLY_E_INVALID, "the kernel function is NULL");
    if ((unsigned)call->engine > BLY_ENGINE_COPY)
        return blyi_fail(BLY_E_INVALID, "there is no engine %d", (int)call->engine);
    if (call->n_blocks == 0 || call->n_blocks > BLY_KERNEL_BLOCKS_MAX)
        return blyi_fail(BLY_E_INVALID, "%" PRIu32 " blocks: a kernel has 1 to %u", call->n_blocks,
                         BLY_KERNEL_BLOCKS_MAX);
    if (call->args_size > BLY_KERNEL_ARGS_MAX)
        return blyi_fail(BLY_E_INVALID, "an argument block of %zu bytes: at most %u are allowed",
                         call->args_size, BLY_KERNEL_ARGS_MAX);
    if (call->args == NULL && call->args_size != 0)
        return blyi_fail(BLY_E_INVALID, "the argument block of %zu bytes is NULL", call->args_size);
    if (call->n_ranges > BLY_KERNEL_RANGES_MAX || (call->ranges == NULL && call->n_ranges != 0))
        return blyi_fail(BLY_E_INVALID, "%zu ranges: at most %u can be declared, and not NULL",
                         call->n_ranges, BLY_KERNEL_RANGES_MAX);
    for (size_t i = 0; i < call->n_ranges; i++) {
        const bly_range *range = &call->ranges[i];
        uint32_t access = range->access;
        if (range->size == 0)
            continue;
        if (access == 0 || (access & ~(BLY_READ | BLY_WRITE)) != 0)
            return blyi_fail(BLY_E_INVALID,
                             "range %zu: access 0x%" PRIx32 " is not READ, WRITE or both", i,
                             access);
        if (range->size - 1 > UINTPTR_MAX - (uintptr_t)range->address)
            return blyi_fail(BLY_E_INVALID, "range %zu goes beyond the end of memory", i);
        if (blyi_place_of(range->address, NULL) == BLYI_PLACE_HOST)
            return blyi_fail(BLY_E_INVALID,
                             "range %zu at %p is pageable host memory, which kernels do not reach",
                             i, range->address);
    }
    return BLY_OK;
}

/* Of registered memory and of what the host has behind reserved addresses nothing can be held. */
static bool is_in_a_block(const void *address)
{
    const struct blyi_window *window = blyi_window_find((uintptr_t)address);
    return window != NULL && window->owner == BLYI_WINDOW_PINNED;
}

/* Pinned memory stays until the task has run, whoever frees it meanwhile. */
static void hold_ranges(struct blyi_launch *launch)
{
    for (int i = 0; i < launch->n_ranges; i++) {
        bly_range *range = &launch->ranges[i];
        if (range->size == 0 || !is_in_a_block(range->address))
            continue;
        if (!blyi_pinned_hold(range->address, range->size))
            range->access |= BLYI_RANGE_DEAD;
        else
            range->access |= BLYI_RANGE_HELD;
    }
}

#define SLOTS_BYTES ((size_t)BLYI_RING_TASKS * BLYI_LAUNCH_SLOT)

/* The stream's slots, mapped at its first launch. */
static bly_status need_slots(struct blyi_stream *stream)
{
    bly_status status = BLY_OK;
    if (likely(__atomic_load_n(&stream->launches, __ATOMIC_ACQUIRE) != NULL))
        return BLY_OK;
    blyi_lock_take(&stream->lock);
    if (stream->launches == NULL) {
        void *slots = blyi_sys_mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (slots != MAP_FAILED)
            __atomic_store_n(&stream->launches, slots, __ATOMIC_RELEASE);
        else
            status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for kernel launches (%zu bytes)",
                               SLOTS_BYTES);
    }
    blyi_lock_drop(&stream->lock);
    return status;
}

void blyi_launch_slots_free(struct blyi_launch *slots)
{
    if (slots != NULL)
        blyi_sys_munmap(slots, SLOTS_BYTES);
}

static struct blyi_launch *slot_of(const struct blyi_stream *stream, uint64_t position)
{
    return (struct blyi_launch *)(void *)((char *)stream->launches +
                                          (position & (BLYI_RING_TASKS - 1)) * BLYI_LAUNCH_SLOT);
}

static size_t args_offset(const struct blyi_kernel_call *call)
{
    return blyi_align_up(sizeof(struct blyi_launch) + call->n_ranges * sizeof(bly_range),
                         ARGS_ALIGN);
}

/* The launch's own memory when a slot is too small; aligned by hand, the address that free wants
 * lies behind the block. */
static struct blyi_launch *allocate(size_t size)
{
    size = blyi_align_up(size, sizeof(void *));
    char *memory = blyi_host_alloc(ARGS_ALIGN + size + sizeof(void *));
    if (memory == NULL)
        return NULL;
    char *launch = (char *)blyi_align_up((uintptr_t)memory, ARGS_ALIGN);
    memcpy(launch + size, &memory, sizeof(memory));
    return (struct blyi_launch *)(void *)launch;
}

void blyi_launch_free(struct blyi_launch *launch)
{
    void *memory;
    size_t size = blyi_align_up(launch->args_at + (size_t)launch->args_size, sizeof(void *));
    memcpy(&memory, (char *)launch + size, sizeof(memory));
    blyi_host_free(memory);
}

static void fill(struct blyi_launch *launch, const struct blyi_kernel_call *call, bool allocated,
                 bool keeps)
{
    size_t at = args_offset(call);
    char *args = (char *)launch + at;
    launch->fn = call->fn;
    launch->binary = call->binary;
    launch->function = call->function;
    launch->card_args = call->args_on_card ? call->args : NULL;
    launch->timeout_us = call->timeout_us != 0 ? call->timeout_us : blyi_watch_default_us();
    launch->tid = (uint32_t)blyi_own_tid();
    launch->n_blocks = call->n_blocks;
    launch->args_size = (uint32_t)call->args_size;
    launch->n_ranges = (uint16_t)call->n_ranges;
    launch->args_at = (uint16_t)at;
    launch->engine = (uint8_t)call->engine;
    launch->scan = call->scan;
    launch->allocated = allocated;
    launch->expired = false;
    launch->tell_overflow = call->tell_overflow;
    launch->is_kept = keeps;
    launch->name[0] = '\0';
    if (call->name != NULL) {
        size_t length = strnlen(call->name, sizeof(launch->name) - 1);
        memcpy(launch->name, call->name, length);
        launch->name[length] = '\0';
    }
    if (call->n_ranges != 0) {
        memcpy(launch->ranges, call->ranges, call->n_ranges * sizeof(bly_range));
        if (!keeps)
            hold_ranges(launch);
    }
    if (call->args_size != 0 && !call->args_on_card)
        memcpy(args, call->args, call->args_size);
    for (size_t i = 0; i < call->n_patches; i++) {
        uintptr_t address = (uintptr_t)args + call->patches[i].data_at;
        memcpy(args + call->patches[i].pointer_at, &address, sizeof(address));
    }
}

struct blyi_launch *blyi_launch_make(const struct blyi_kernel_call *call, bool keeps)
{
    struct blyi_launch *launch = allocate(args_offset(call) + call->args_size);
    if (launch == NULL)
        return NULL;
    fill(launch, call, true, keeps);
    if (call->binary != NULL)
        blyi_binary_ref(call->binary);
    return launch;
}

static bly_status prepare(struct blyi_stream *stream, const struct blyi_kernel_call *call)
{
    bly_status status = blyi_kernel_check(call);
    if (status == BLY_OK)
        status = blyi_fault_install_kernel();
    if (status == BLY_OK)
        status = blyi_queue_ready(stream, BLYI_TASK_KERNEL);
    if (status == BLY_OK)
        status = blyi_engine_need_spare(stream->card->id, blyi_kernel_engine_kind(call->engine));
    if (status == BLY_OK && (call->timeout_us != 0 || blyi_watch_default_us() != 0))
        status = blyi_watch_need();
    if (status == BLY_OK)
        status = need_slots(stream);
    return status;
}

static void drop(struct blyi_launch *launch)
{
    for (int i = 0; i < launch->n_ranges; i++)
        if (launch->ranges[i].access & BLYI_RANGE_HELD)
            blyi_pinned_release(launch->ranges[i].address);
    if (launch->binary != NULL)
        blyi_binary_unref(launch->binary);
    if (launch->allocated)
        blyi_launch_free(launch);
}

/* The stream is captured: the graph keeps the launch. */
static bly_status divert(struct blyi_stream *stream, const struct blyi_kernel_call *call,
                         bool *taken)
{
    struct blyi_kept *kept;
    bly_status status = blyi_kernel_keep(call, &kept);
    if (status == BLY_OK) {
        status = blyi_graph_divert_kernel(stream, kept, call->site, taken);
        blyi_kept_unref(kept);
    }
    return status;
}

static bly_status queue(struct blyi_stream *stream, const struct blyi_kernel_call *call)
{
    size_t size = args_offset(call) + call->args_size;
    struct blyi_launch *launch = NULL;
    struct blyi_task *task;
    uint64_t position;
    if (size > BLYI_LAUNCH_SLOT) {
        launch = blyi_launch_make(call, false);
        if (launch == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a kernel launch (%zu bytes)",
                             size);
    } else if (call->binary != NULL) {
        blyi_binary_ref(call->binary);
    }
    while (unlikely((task = blyi_queue_reserve(stream, &position)) == NULL)) {
        bool taken = false;
        bly_status status = divert(stream, call, &taken);
        if (taken || status != BLY_OK) {
            if (launch != NULL)
                drop(launch);
            else if (call->binary != NULL)
                blyi_binary_unref(call->binary);
            return status;
        }
    }
    if (launch == NULL) {
        /* Free as long as the record is: its last launch was discarded before that completed. */
        launch = slot_of(stream, position);
        fill(launch, call, false, false);
    }
    task->kind = BLYI_TASK_KERNEL;
    task->flags = 0;
    task->site = call->site;
    task->u.kernel.launch = launch;
    blyi_queue_publish(stream, task, position);
    return BLY_OK;
}

bly_status blyi_kernel_launch(const struct blyi_kernel_call *call, void *handle)
{
    blyi_guard_open();
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    status = prepare(stream, call);
    if (status == BLY_OK)
        status = queue(stream, call);
    blyi_stream_unpin(stream);
    return status;
}

bly_status bly_kernel_launch(bly_kernel fn, const void *args, size_t args_size,
                             const bly_kernel_opts *opts, void *stream)
{
    struct blyi_kernel_call call = {
        .fn = fn, .args = args, .args_size = args_size, .n_blocks = 1, .site = BLYI_SITE_HERE()};
    if (opts != NULL) {
        if (opts->struct_size != sizeof(*opts))
            return blyi_fail(BLY_E_INVALID,
                             "struct_size of the options is %" PRIu32 ", not the %zu that "
                             "bly_kernel_opts_default() sets",
                             opts->struct_size, sizeof(*opts));
        call.engine = opts->engine;
        call.n_blocks = opts->n_blocks;
        call.ranges = opts->ranges;
        call.n_ranges = opts->n_ranges;
        call.name = opts->name;
    }
    return blyi_kernel_launch(&call, stream);
}

void blyi_kernel_discard(struct blyi_task *task)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    if (unlikely(launch->is_kept))
        blyi_kept_unref(launch->kept);
    else
        drop(launch);
}
