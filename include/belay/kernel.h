/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/kernel.h - software kernels: C functions that run on an engine of a card, in stream order.
 *
 *     struct add { const float *a, *b; float *sum; uint32_t n; };
 *
 *     void add(const void *args, uint32_t block, uint32_t n_blocks)
 *     {
 *         const struct add *p = args;
 *         for (uint32_t i = block; i < p->n; i += n_blocks)
 *             p->sum[i] = p->a[i] + p->b[i];
 *     }
 *
 * A kernel may read and write card memory and pinned host memory. It must not call malloc, stdio
 * or anything else that takes a lock, nor AscendCL or Belay: a kernel that faults is left where
 * it stands, with what it holds. Its task then fails (see below), the process goes on.
 *
 * The same functions in a shared object are a kernel binary for aclrtBinaryLoadFromFile; every
 * exported function is a kernel of its own name. Build one with `cc -shared -fPIC`.
 *
 * The argument block. Launched natively, it is a copy of the caller's. Assembled by
 * aclrtKernelArgsAppend, each parameter follows the one before at its natural alignment: the
 * largest power of two, up to 8, that divides its size. A C structure with one member for each
 * parameter in that order has the same layout. A placeholder is a pointer to a copy of its
 * buffer, which lies behind the parameters, 8-aligned. Every block starts at a multiple of 64
 * and lives until the task has ended.
 *
 * A kernel binary may say what parameters a kernel has, by a variable of its name with _params
 * behind it, which holds the bytes of each: `const uint32_t add_params[] = {8, 8, 8, 4};`. Calls
 * that take one pointer for each parameter, or ask for them, need it (aclrtFunctionGetParamInfo,
 * aclrtLaunchKernelWithArgsArray).
 *
 * Memory that is not declared. Ranges are checked before the kernel starts: each page must be
 * live and allow the access, and the host backs it then, so that touching it cannot fail. A
 * launch through AscendCL declares, in effect, every live block that some 8-byte word of the
 * argument block points into. Other card memory may be touched too: a page nobody used before
 * is taken from the host in 4 KiB pieces, without the check whether the host can afford it.
 *
 * Threads  [any]   safe from any thread at any time
 */
#ifndef BLY_KERNEL_H
#define BLY_KERNEL_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called once for each block 0 .. n_blocks - 1, one after another, in no promised order. */
typedef void (*bly_kernel)(const void *args, uint32_t block, uint32_t n_blocks);

/* Where a kernel runs. Engines work at the same time and see the same addresses; only events
 * and notifies put tasks of different streams in an order. */
typedef enum bly_engine {
    BLY_ENGINE_VECTOR, /* AI Core, vector part; a fault is 507035 to AscendCL */
    BLY_ENGINE_CUBE,   /* AI Core, cube part: 507015 */
    BLY_ENGINE_AICPU,  /* AI CPU: 507018 */
    BLY_ENGINE_DVPP,   /* pre-processing: 507013 */
    BLY_ENGINE_COPY,   /* copy engine: 507013 */
} bly_engine;

#define BLY_READ  1u
#define BLY_WRITE 2u

typedef struct bly_range {
    const void *address; /* card memory or pinned host memory */
    uint64_t size;       /* 0: ignored */
    uint32_t access;     /* BLY_READ, BLY_WRITE or both */
} bly_range;

#define BLY_KERNEL_ARGS_MAX   65536u /* bytes of an argument block */
#define BLY_KERNEL_RANGES_MAX 1024u
#define BLY_KERNEL_BLOCKS_MAX 65535u

/* Start from bly_kernel_opts_default(). New fields are only ever appended. */
typedef struct bly_kernel_opts {
    uint32_t struct_size; /* bytes, set by bly_kernel_opts_default() */
    bly_engine engine;
    uint32_t n_blocks;       /* 1 .. BLY_KERNEL_BLOCKS_MAX */
    uint32_t n_ranges;       /* at most BLY_KERNEL_RANGES_MAX */
    const bly_range *ranges; /* n_ranges ranges, copied */
    const char *name;        /* for sentences, copied up to 63 bytes; NULL: the function's symbol */
} bly_kernel_opts;

static inline bly_kernel_opts bly_kernel_opts_default(void)
{
    bly_kernel_opts opts = {0, BLY_ENGINE_VECTOR, 1, 0, NULL, NULL};
    opts.struct_size = (uint32_t)sizeof(opts);
    return opts;
}

/* Queue fn on a stream (NULL: the default stream of the current context). [any]
 * args  args_size bytes, copied; NULL for none
 * opts  NULL: defaults
 * E_INVALID         fn NULL, sizes or counts beyond their limits, a range in pageable host memory
 * E_NO_CONTEXT, E_HANDLE, E_STREAM_CONTEXT, E_HOST_MEMORY, E_SYSTEM
 * Failures of the task stick to the stream and are returned by the next call that waits for it:
 * E_KERNEL_VECTOR, E_KERNEL_CUBE, E_KERNEL_AICPU, E_FAULT (other engines): it faulted, or a
 * declared range is not live; the sentence names kernel, block, address and the nearest
 * allocation. E_HOST_MEMORY: the host cannot back a declared range. */
BLY_API bly_status bly_kernel_launch(bly_kernel fn, const void *args, size_t args_size,
                                     const bly_kernel_opts *opts, void *stream);

#ifdef __cplusplus
}
#endif
#endif
