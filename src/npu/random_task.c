/* SPDX-License-Identifier: Apache-2.0
 *
 * random_task.c - random numbers as a task of a stream: a kernel of ours.
 */
#include <inttypes.h>
#include <string.h>
#include "base/compiler.h"
#include "base/fail.h"
#include "npu/card.h"
#include "npu/guard.h"
#include "npu/kernel.h"
#include "npu/memory.h"
#include "npu/queue.h"
#include "npu/random_inside.h"

static const uint8_t sizes[] = {
    [BLYI_RANDOM_INT32] = 4,  [BLYI_RANDOM_INT64] = 8, [BLYI_RANDOM_UINT32] = 4,
    [BLYI_RANDOM_UINT64] = 8, [BLYI_RANDOM_BF16] = 2,  [BLYI_RANDOM_FP16] = 2,
    [BLYI_RANDOM_FP32] = 4,
};

uint32_t blyi_random_size(enum blyi_random_type type)
{
    return sizes[type];
}

/* ── On the engine ────────────────────────────────────────────────────────────────────────── */

static void fetch(struct blyi_random_param *param, uint32_t size)
{
    if (!param->is_address)
        return;
    const void *address = (const void *)(uintptr_t)param->word;
    param->word = 0;
    memcpy(&param->word, address, size);
}

/* Numbers that cannot be: the task fails as other bad work of an engine does, and is named. */
static void refuse(void)
{
    __builtin_trap();
}

/* Compared as numbers. Neither infinity nor NaN is a bound: no number can be drawn below it. */
static bool are_bounds(enum blyi_random_type type, uint64_t low, uint64_t high)
{
    switch (type) {
    case BLYI_RANDOM_INT32:
        return (int32_t)low <= (int32_t)high;
    case BLYI_RANDOM_INT64:
        return (int64_t)low <= (int64_t)high;
    case BLYI_RANDOM_UINT32:
        return (uint32_t)low <= (uint32_t)high;
    case BLYI_RANDOM_UINT64:
        return low <= high;
    default:
        return blyi_random_real(type, high) - blyi_random_real(type, low) >= 0 &&
               blyi_random_real(type, high) - blyi_random_real(type, low) < 1e300;
    }
}

static void random_numbers(const void *args, uint32_t block, uint32_t n_blocks)
{
    struct blyi_random random;
    struct blyi_draw draw = {0};
    (void)block;
    (void)n_blocks;
    memcpy(&random, args, sizeof(random));
    uint32_t size = sizes[random.type];
    fetch(&random.first, size);
    fetch(&random.second, size);
    fetch(&random.seed, sizeof(uint64_t));
    fetch(&random.n, sizeof(uint64_t));
    if (random.kind == BLYI_RANDOM_UNIFORM &&
        !are_bounds(random.type, random.first.word, random.second.word))
        refuse();
    draw.seed = random.seed.word;
    memcpy(draw.counter, random.counter, sizeof(draw.counter));
    unsigned char *to = random.result;
    if (random.kind == BLYI_RANDOM_MASK) {
        double ratio = blyi_random_real(random.type, random.first.word);
        for (uint64_t left = random.n.word; left > 0; to++) {
            unsigned n_bits = left < 8 ? (unsigned)left : 8;
            *to = blyi_random_mask(&draw, ratio, n_bits);
            left -= n_bits;
        }
        return;
    }
    for (uint64_t i = 0; i < random.n.word; i++, to += size) {
        uint64_t word = blyi_random_next(&draw, &random);
        memcpy(to, &word, size);
    }
}

/* ── Launching ────────────────────────────────────────────────────────────────────────────── */

static bly_status result_bytes(const struct blyi_random *random, uint64_t *bytes)
{
    uint64_t n = random->n.word;
    if (random->kind == BLYI_RANDOM_MASK) {
        *bytes = n / 8 + (n % 8 != 0);
        return BLY_OK;
    }
    if (__builtin_mul_overflow(n, sizes[random->type], bytes))
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " numbers of %u bytes go beyond 64 bits", n,
                         sizes[random->type]);
    return BLY_OK;
}

static bly_status check(const struct blyi_random *random, int card)
{
    const void *const addresses[] = {
        random->result,
        random->counter,
        random->first.is_address ? (const void *)(uintptr_t)random->first.word : random->result,
        random->second.is_address ? (const void *)(uintptr_t)random->second.word : random->result,
        random->seed.is_address ? (const void *)(uintptr_t)random->seed.word : random->result,
        random->n.is_address ? (const void *)(uintptr_t)random->n.word : random->result,
    };
    for (size_t i = 0; i < BLYI_COUNT(addresses); i++) {
        int on;
        if (blyi_place_of(addresses[i], &on) != BLYI_PLACE_CARD || on != card)
            return blyi_fail(BLY_E_INVALID, "%p is no memory of card %d", addresses[i], card);
    }
    if (random->kind == BLYI_RANDOM_UNIFORM && !random->first.is_address &&
        !random->second.is_address &&
        !are_bounds(random->type, random->first.word, random->second.word))
        return blyi_fail(BLY_E_INVALID,
                         "the upper bound is below the lower one, or one of them is not finite");
    return BLY_OK;
}

bly_status blyi_random_async(const struct blyi_random *random, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    uint64_t bytes = 0;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    status = check(random, stream->card->id);
    if (status == BLY_OK && !random->n.is_address)
        status = result_bytes(random, &bytes);
    void *own = stream->handle;
    blyi_stream_unpin(stream);
    if (status != BLY_OK)
        return status;
    const bly_range ranges[] = {
        {random->result, bytes, BLY_WRITE},
        {random->counter, 16, BLY_READ},
    };
    struct blyi_kernel_call call = {
        .fn = random_numbers,
        .args = random,
        .args_size = sizeof(*random),
        .engine = BLY_ENGINE_COPY,
        .n_blocks = 1,
        .ranges = ranges,
        .n_ranges = BLYI_COUNT(ranges),
        .scan = true, /* parameters on the card; numbers whose count lies there */
        .name = "random numbers",
        .site = site,
    };
    return blyi_kernel_launch(&call, own);
}
