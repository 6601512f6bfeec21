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
        BLYI_PROBE(COPY, .card = stream->card->id, .stream = stream->id, .address = (uintptr_t)dst,
                   .other = (uintptr_t)src, .size = size, .site = site);
        status = blyi_queue_submit(stream, &task, NULL);
    }
    blyi_stream_unpin(stream);
    return status;
}

/* ── Half precision ───────────────────────────────────────────────────────────────────────── */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float from_bf16(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

static uint16_t to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* a NaN stays one */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static float from_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00u)
        return float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u)
        return float_of(sign | ((rest << 13) + (112u << 23)));
    float small = (float)rest * 0x1p-24f;
    return sign != 0 ? -small : small;
}

static uint16_t to_fp16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u)
        return (uint16_t)(sign | 0x7c00u); /* rounds to infinity */
    if (rest >= 0x38800000u) {
        rest -= 112u << 23;
        return (uint16_t)(sign | (rest + 0xfffu + (rest >> 13 & 1)) >> 13);
    }
    /* Subnormal: the sum puts the unit of the result at the last bit of a float. */
    return (uint16_t)(sign | (bits_of(float_of(rest) + 0.5f) - bits_of(0.5f)));
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
LOOPS(reduce_fp16, uint16_t, float, float, from_fp16, to_fp16)
LOOPS(reduce_bf16, uint16_t, float, float, from_bf16, to_bf16)

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
