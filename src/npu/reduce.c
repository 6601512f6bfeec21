/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce.c - sums, maxima and minima of two ranges of card memory.
 */
#include "npu/reduce.h"

#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/probe.h"
#include "base/site.h"
#include "npu/card.h"
#include "npu/fault.h"
#include "npu/gate.h"
#include "npu/guard.h"
#include "npu/half.h"
#include "npu/memory.h"
#include "npu/queue.h"

static uint64_t element_size(enum blyi_reduce_type type)
{
    switch (type) {
    case BLYI_REDUCE_INT8:
        return 1;
    case BLYI_REDUCE_INT16:
    case BLYI_REDUCE_FP16:
    case BLYI_REDUCE_BF16:
        return 2;
    case BLYI_REDUCE_INT32:
    case BLYI_REDUCE_FP32:
        break;
    }
    return 4;
}

static bool is_on(const struct blyi_stream *stream, const void *address)
{
    int card;
    return blyi_place_of(address, &card) == BLYI_PLACE_CARD && card == stream->card->id;
}

bly_status blyi_reduce_async(void *dst, const void *src, uint64_t size, enum blyi_reduce_kind kind,
                             enum blyi_reduce_type type, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    blyi_guard_open();
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (size % element_size(type) != 0)
        status = blyi_fail(BLY_E_INVALID,
                           "%" PRIu64 " bytes are no whole number of elements of %" PRIu64, size,
                           element_size(type));
    else if (!is_on(stream, dst) || !is_on(stream, src))
        status = blyi_fail(BLY_E_INVALID, "%p and %p are not both memory of card %d", dst, src,
                           stream->card->id);
    if (status == BLY_OK) {
        struct blyi_task task = {.kind = BLYI_TASK_REDUCE, .value = (uint8_t)kind, .site = site};
        task.u.reduce.dst = dst;
        task.u.reduce.src = src;
        task.u.reduce.size = size;
        task.u.reduce.type = type;
        status = blyi_queue_submit(stream, &task);
    }
    blyi_stream_unpin(stream);
    return status;
}

/* ── Loops ────────────────────────────────────────────────────────────────────────────────── */

#define LARGER(a, b)  ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))

/* `work` is what a sum is computed in: unsigned, so that it wraps. */
#define LOOPS(name, element, wide, work, load, save)                                               \
    static void name(enum blyi_reduce_kind kind, void *dst, const void *src, uint64_t n)           \
    {                                                                                              \
        element *to = dst;                                                                         \
        const element *from = src;                                                                 \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            wide a = load(to[i]), b = load(from[i]);                                               \
            wide result = kind == BLYI_REDUCE_SUM   ? (wide)((work)a + (work)b)                    \
                          : kind == BLYI_REDUCE_MAX ? LARGER(a, b)                                 \
                                                    : SMALLER(a, b);                               \
            to[i] = (element)save(result);                                                         \
        }                                                                                          \
    }

LOOPS(reduce_int8, int8_t, int8_t, uint8_t, , )
LOOPS(reduce_int16, int16_t, int16_t, uint16_t, , )
LOOPS(reduce_int32, int32_t, int32_t, uint32_t, , )
LOOPS(reduce_fp32, float, float, float, , )
LOOPS(reduce_fp16, uint16_t, float, float, blyi_from_fp16, blyi_to_fp16)
LOOPS(reduce_bf16, uint16_t, float, float, blyi_from_bf16, blyi_to_bf16)

static void run(void *arg)
{
    const struct blyi_task *task = arg;
    enum blyi_reduce_type type = (enum blyi_reduce_type)task->u.reduce.type;
    enum blyi_reduce_kind kind = (enum blyi_reduce_kind)task->value;
    void *dst = task->u.reduce.dst;
    const void *src = task->u.reduce.src;
    uint64_t n = task->u.reduce.size / element_size(type);
    if (kind == BLYI_REDUCE_EQUAL) {
        memmove(dst, src, task->u.reduce.size);
        return;
    }
    switch (type) {
    case BLYI_REDUCE_INT8:
        reduce_int8(kind, dst, src, n);
        break;
    case BLYI_REDUCE_INT16:
        reduce_int16(kind, dst, src, n);
        break;
    case BLYI_REDUCE_INT32:
        reduce_int32(kind, dst, src, n);
        break;
    case BLYI_REDUCE_FP16:
        reduce_fp16(kind, dst, src, n);
        break;
    case BLYI_REDUCE_BF16:
        reduce_bf16(kind, dst, src, n);
        break;
    case BLYI_REDUCE_FP32:
        reduce_fp32(kind, dst, src, n);
        break;
    }
}

bly_status blyi_reduce_task(const struct blyi_stream *stream, const struct blyi_task *task)
{
    uint64_t size = task->u.reduce.size;
    const struct blyi_fault_range ranges[2] = {{(uintptr_t)task->u.reduce.dst, size},
                                               {(uintptr_t)task->u.reduce.src, size}};
    struct blyi_task copy = *task;
    uintptr_t address;
    uint32_t gate = blyi_gate_enter();
    bly_status status = blyi_mem_use(task->u.reduce.src, size, BLYI_READ);
    if (status == BLY_OK)
        status = blyi_mem_use(task->u.reduce.dst, size, BLYI_READ | BLYI_WRITE);
    if (status == BLY_OK && !blyi_fault_try(run, &copy, ranges, &address))
        status = blyi_fail(BLY_E_FAULT, "memory at 0x%" PRIxPTR " was freed during a reduction",
                           address);
    blyi_gate_leave(gate);
    if (status != BLY_OK) {
        char site[BLYI_SITE_TEXT];
        blyi_fail_append("; on stream %" PRIu32 ", queued at %s", stream->id,
                         blyi_site_text(task->site, site));
    }
    return status;
}
