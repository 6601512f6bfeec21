/* SPDX-License-Identifier: Apache-2.0
 *
 * overflow.c - the overflow status of a context, read and cleared by kernels of ours.
 */
#include "npu/overflow.h"

#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "npu/context_inside.h"
#include "npu/kernel.h"
#include "npu/queue.h"

struct args {
    uint32_t *status; /* of the stream's context, which lives as long as the task */
    void *out;        /* NULL: clear */
    uint64_t size;
};

static void run(const void *block, uint32_t index, uint32_t n)
{
    const struct args *args = block;
    (void)index;
    (void)n;
    if (args->out == NULL) {
        __atomic_store_n(args->status, 0, __ATOMIC_RELAXED);
        return;
    }
    uint32_t status = __atomic_load_n(args->status, __ATOMIC_RELAXED);
    memset(args->out, 0, args->size);
    memcpy(args->out, &status, sizeof(status));
}

static bly_status launch(void *out, uint64_t size, void *handle, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct args args = {&stream->context->overflow, out, size};
    const bly_range range = {out, size, BLY_WRITE};
    struct blyi_kernel_call call = {
        .fn = run,
        .args = &args,
        .args_size = sizeof(args),
        .engine = BLY_ENGINE_COPY,
        .n_blocks = 1,
        .ranges = &range,
        .n_ranges = out != NULL ? 1 : 0,
        .name = "overflow status",
        .site = site,
    };
    void *own = stream->handle;
    blyi_stream_unpin(stream);
    return blyi_kernel_launch(&call, own);
}

bly_status blyi_overflow_read_async(void *out, uint64_t size, void *stream, uint32_t site)
{
    if (out == NULL || size < sizeof(uint32_t))
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes at %p: a status has at least 4", size,
                         out);
    return launch(out, size, stream, site);
}

bly_status blyi_overflow_clear_async(void *stream, uint32_t site)
{
    return launch(NULL, 0, stream, site);
}
