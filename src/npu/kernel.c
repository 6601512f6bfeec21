/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.c - launching kernels, running them on an engine, and telling what one died of.
 *
 * A launch lies beside its record in the ring (kernel.h), so that launching allocates nothing and
 * frees nothing in another thread, which cost 800 ns. Nothing is locked while a kernel runs. Who
 * wants it to end reads `kernel_tid` and `kernel_position` of its stream and sends that thread a
 * signal which names the run; a run that is over ignores it (fault.c).
 */
#include "npu/kernel.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/symtab.h"
#include "base/sys.h"
#include "npu/binary.h"
#include "npu/card.h"
#include "npu/gate.h"
#include "npu/guard.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/queue.h"
#include "npu/watch.h"

#define ARGS_ALIGN 64u

/* Bits of a range's `access` that the program does not see. */
#define RANGE_ACCESS (BLY_READ | BLY_WRITE)
#define RANGE_HELD   0x100u /* pinned memory, held until the task has ended */
#define RANGE_DEAD   0x200u /* pinned memory that was freed before the launch */

/* What the host backs beforehand behind each pointer among the arguments. */
#define SCAN_BYTES ((uint64_t)64 << 20)
/* How long a stop waits before it sends its signal again. */
#define STOP_AGAIN_NS 2000000u

static int32_t own_tid(void)
{
    static _Thread_local int32_t tid;
    if (unlikely(tid == 0))
        tid = (int32_t)syscall(SYS_gettid);
    return tid;
}

static enum blyi_engine_kind kind_of(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_AICPU:
        return BLYI_ENGINE_AICPU;
    case BLY_ENGINE_DVPP:
        return BLYI_ENGINE_DVPP;
    case BLY_ENGINE_COPY:
        return BLYI_ENGINE_COPY;
    case BLY_ENGINE_VECTOR:
    case BLY_ENGINE_CUBE:
        break;
    }
    return BLYI_ENGINE_AICORE;
}

static const char *name_of_engine(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_CUBE:
        return "a cube core";
    case BLY_ENGINE_AICPU:
        return "an AI CPU";
    case BLY_ENGINE_DVPP:
        return "DVPP";
    case BLY_ENGINE_COPY:
        return "a copy engine";
    case BLY_ENGINE_VECTOR:
        break;
    }
    return "a vector core";
}

static bly_status status_of_engine(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_VECTOR:
        return BLY_E_KERNEL_VECTOR;
    case BLY_ENGINE_CUBE:
        return BLY_E_KERNEL_CUBE;
    case BLY_ENGINE_AICPU:
        return BLY_E_KERNEL_AICPU;
    case BLY_ENGINE_DVPP:
    case BLY_ENGINE_COPY:
        break;
    }
    return BLY_E_FAULT;
}

static bly_status timeout_of_engine(bly_engine engine)
{
    switch (engine) {
    case BLY_ENGINE_CUBE:
        return BLY_E_TIMEOUT_CUBE;
    case BLY_ENGINE_AICPU:
        return BLY_E_TIMEOUT_AICPU;
    case BLY_ENGINE_VECTOR:
        return BLY_E_TIMEOUT_VECTOR;
    case BLY_ENGINE_DVPP:
    case BLY_ENGINE_COPY:
        break;
    }
    return BLY_E_FAULT;
}

enum blyi_engine_kind blyi_kernel_engine(const struct blyi_task *task)
{
    return kind_of((bly_engine)task->u.kernel.launch->engine);
}

/* ── Launch ───────────────────────────────────────────────────────────────────────────────── */

static bly_status check_call(const struct blyi_kernel_call *call)
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

/* Pinned memory stays until the task has run, whoever frees it meanwhile. */
static void hold_ranges(struct blyi_launch *launch)
{
    for (int i = 0; i < launch->n_ranges; i++) {
        bly_range *range = &launch->ranges[i];
        if (range->size == 0 || blyi_place_of(range->address, NULL) != BLYI_PLACE_PINNED)
            continue;
        if (!blyi_pinned_hold(range->address, range->size))
            range->access |= RANGE_DEAD;
        else
            range->access |= RANGE_HELD;
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

static void release(struct blyi_launch *launch)
{
    void *memory;
    size_t size = blyi_align_up(launch->args_at + (size_t)launch->args_size, sizeof(void *));
    memcpy(&memory, (char *)launch + size, sizeof(memory));
    blyi_host_free(memory);
}

static void fill(struct blyi_launch *launch, const struct blyi_kernel_call *call, bool allocated)
{
    size_t at = args_offset(call);
    char *args = (char *)launch + at;
    launch->fn = call->fn;
    launch->binary = call->binary;
    launch->function = call->function;
    launch->card_args = call->args_on_card ? call->args : NULL;
    launch->timeout_us = call->timeout_us != 0 ? call->timeout_us : blyi_watch_default_us();
    launch->tid = (uint32_t)own_tid();
    launch->n_blocks = call->n_blocks;
    launch->args_size = (uint32_t)call->args_size;
    launch->n_ranges = (uint16_t)call->n_ranges;
    launch->args_at = (uint16_t)at;
    launch->engine = (uint8_t)call->engine;
    launch->scan = call->scan;
    launch->allocated = allocated;
    launch->expired = false;
    launch->name[0] = '\0';
    if (call->name != NULL) {
        size_t length = strnlen(call->name, sizeof(launch->name) - 1);
        memcpy(launch->name, call->name, length);
        launch->name[length] = '\0';
    }
    if (call->n_ranges != 0) {
        memcpy(launch->ranges, call->ranges, call->n_ranges * sizeof(bly_range));
        hold_ranges(launch);
    }
    if (call->args_size != 0 && !call->args_on_card)
        memcpy(args, call->args, call->args_size);
    for (size_t i = 0; i < call->n_patches; i++) {
        uintptr_t address = (uintptr_t)args + call->patches[i].data_at;
        memcpy(args + call->patches[i].pointer_at, &address, sizeof(address));
    }
}

static bly_status prepare(struct blyi_stream *stream, const struct blyi_kernel_call *call)
{
    bly_status status = check_call(call);
    if (status == BLY_OK)
        status = blyi_fault_install_kernel();
    if (status == BLY_OK)
        status = blyi_queue_ready(stream);
    if (status == BLY_OK)
        status = blyi_engine_need_spare(stream->card->id, kind_of(call->engine));
    if (status == BLY_OK && (call->timeout_us != 0 || blyi_watch_default_us() != 0))
        status = blyi_watch_need();
    if (status == BLY_OK)
        status = need_slots(stream);
    return status;
}

static bly_status queue(struct blyi_stream *stream, const struct blyi_kernel_call *call)
{
    size_t size = args_offset(call) + call->args_size;
    struct blyi_launch *launch = NULL;
    uint64_t position;
    if (size > BLYI_LAUNCH_SLOT) {
        launch = allocate(size);
        if (launch == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a kernel launch (%zu bytes)",
                             size);
        fill(launch, call, true);
    }
    if (call->binary != NULL)
        blyi_binary_ref(call->binary);
    BLYI_PROBE(KERNEL, .card = stream->card->id, .stream = stream->id, .site = call->site,
               .address = (uintptr_t)call->fn, .size = call->args_size,
               .aux = (int64_t)call->engine);
    struct blyi_task *task = blyi_queue_reserve(stream, &position);
    if (launch == NULL) {
        /* Free as long as the record is: its last launch was discarded before that completed. */
        launch = slot_of(stream, position);
        fill(launch, call, false);
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
    for (int i = 0; i < launch->n_ranges; i++)
        if (launch->ranges[i].access & RANGE_HELD)
            blyi_pinned_release(launch->ranges[i].address);
    if (launch->binary != NULL)
        blyi_binary_unref(launch->binary);
    if (launch->allocated)
        release(launch);
}

/* ── Run ──────────────────────────────────────────────────────────────────────────────────── */

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
        if (unlikely(range->access & RANGE_DEAD))
            return blyi_fail(BLY_E_FAULT, "range %d at %p is no live pinned memory", i,
                             range->address);
        bly_status status = blyi_mem_use(range->address, range->size,
                                         (enum blyi_access)(range->access & RANGE_ACCESS));
        if (unlikely(status != BLY_OK))
            return status;
    }
    return BLY_OK;
}

static const char *name_of(struct blyi_launch *launch)
{
    uint64_t offset;
    char name[BLYI_SYMTAB_NAME];
    if (launch->name[0] == '\0') {
        const void *pc;
        memcpy(&pc, &launch->fn, sizeof(pc));
        if (blyi_symtab_find(pc, name, &offset))
            snprintf(launch->name, sizeof(launch->name), "%.63s", name);
        else
            snprintf(launch->name, sizeof(launch->name), "%p", pc);
    }
    return launch->name;
}

static void append_launch(const struct blyi_stream *stream, const struct blyi_task *task)
{
    char site[BLYI_SITE_TEXT];
    blyi_fail_append("; on stream %" PRIu32 " of card %d, launched at %s", stream->id,
                     stream->card->id, blyi_site_text(task->site, site));
}

/* What the kernel asked for beforehand is not there: its fault, though it did not run. */
static bly_status refuse(const struct blyi_stream *stream, struct blyi_task *task,
                         bly_status status)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    char why[BLYI_FAIL_MAX];
    if (status == BLY_E_FAULT)
        status = status_of_engine((bly_engine)launch->engine);
    snprintf(why, sizeof(why), "%s", blyi_fail_text());
    (void)blyi_fail(status, "kernel %s did not run on %s: %s", name_of(launch),
                    name_of_engine((bly_engine)launch->engine), why);
    append_launch(stream, task);
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
    blyi_watch_begin(&watch, launch->timeout_us, own_tid(), launch->fault.token);
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
    __atomic_store_n(&stream->kernel_tid, own_tid(), __ATOMIC_SEQ_CST);
    /* An abort that came before could not see us: we see it. */
    bool done = true;
    if (likely((blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0))
        done = launch->timeout_us == 0 ? blyi_fault_run(run_blocks, launch, &launch->fault)
                                       : run_watched(launch);
    __atomic_store_n(&stream->kernel_tid, 0, __ATOMIC_RELEASE);
    return done;
}

bool blyi_kernel_run(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    uint32_t gate = blyi_gate_enter(); /* no frame moves from the check to the last block */
    bool done = run_inside(stream, task, status);
    blyi_gate_leave(gate);
    return done;
}

static const char *name_of_signal(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    }
    return "SIGTRAP";
}

/* What the address is to the card: a sentence begun with "; " or nothing. */
static void describe(const struct blyi_fault_kernel *fault, char *text, size_t size)
{
    text[0] = '\0';
    if (!fault->has_address)
        return;
    switch (blyi_place_of((const void *)fault->address, NULL)) {
    case BLYI_PLACE_CARD:
        if (blyi_mem_use((const void *)fault->address, 1, BLYI_READ | BLYI_WRITE) != BLY_OK)
            snprintf(text, size, "; %s", blyi_fail_text());
        break;
    case BLYI_PLACE_PINNED:
        snprintf(text, size, "; no live pinned memory is there");
        break;
    case BLYI_PLACE_HOST:
        snprintf(text, size, "; the address is no memory of the card");
        break;
    }
}

bly_status blyi_kernel_failed(struct blyi_stream *stream, struct blyi_task *task)
{
    struct blyi_launch *launch = task->u.kernel.launch;
    const struct blyi_fault_kernel *fault = &launch->fault;
    bly_status status = status_of_engine((bly_engine)launch->engine);
    if (fault->stopped && launch->expired)
        status = timeout_of_engine((bly_engine)launch->engine);
    else if (fault->stopped && (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0)
        status = BLY_E_CANCELLED;
    if (fault->stopped && launch->expired) {
        (void)blyi_fail(
            status,
            "kernel %s ran longer than %" PRIu64 " us on %s, in block %" PRIu32 " of %" PRIu32,
            name_of(launch), launch->timeout_us, name_of_engine((bly_engine)launch->engine),
            launch->block, launch->n_blocks);
    } else if (fault->stopped) {
        (void)blyi_fail(status, "kernel %s was stopped on %s in block %" PRIu32 " of %" PRIu32,
                        name_of(launch), name_of_engine((bly_engine)launch->engine), launch->block,
                        launch->n_blocks);
    } else {
        char why[BLYI_FAIL_MAX], place[64] = "", function[BLYI_SYMTAB_NAME];
        uint64_t offset;
        describe(fault, why, sizeof(why));
        if (fault->has_address)
            snprintf(place, sizeof(place), " at 0x%" PRIxPTR, fault->address);
        if (!blyi_symtab_find((const void *)fault->instruction, function, &offset)) {
            snprintf(function, sizeof(function), "0x%" PRIxPTR, fault->instruction);
            offset = 0;
        }
        (void)blyi_fail(status,
                        "kernel %s faulted on %s in block %" PRIu32 " of %" PRIu32
                        ": %s%s by the code at %s+0x%" PRIx64 "%s",
                        name_of(launch), name_of_engine((bly_engine)launch->engine), launch->block,
                        launch->n_blocks, name_of_signal(fault->signal), place, function, offset,
                        why);
    }
    append_launch(stream, task);
    return status;
}

bool blyi_kernel_stop(struct blyi_stream *stream)
{
    int32_t tid = __atomic_load_n(&stream->kernel_tid, __ATOMIC_SEQ_CST);
    if (tid == 0)
        return false;
    uint64_t position = __atomic_load_n(&stream->kernel_position, __ATOMIC_RELAXED);
    if (blyi_queue_completed(stream) > position)
        return false; /* it ended meanwhile, or the next one is about to begin */
    do
        blyi_fault_stop(tid, token_of(stream, position));
    while (blyi_queue_await_real(stream, position + 1, STOP_AGAIN_NS) != BLY_OK);
    return true;
}
