/* SPDX-License-Identifier: Apache-2.0
 *
 * reduce.h - element-wise dst = dst op src on the copy engine, in stream order.
 */
#ifndef BLYI_REDUCE_H
#define BLYI_REDUCE_H

#include <belay/base.h>

struct blyi_stream;
struct blyi_task;

enum blyi_reduce_kind { BLYI_REDUCE_SUM, BLYI_REDUCE_MAX, BLYI_REDUCE_MIN, BLYI_REDUCE_EQUAL };

/* Integers wrap around; half precision is computed in float and rounded to nearest even. */
enum blyi_reduce_type {
    BLYI_REDUCE_INT8,
    BLYI_REDUCE_INT16,
    BLYI_REDUCE_INT32,
    BLYI_REDUCE_FP16,
    BLYI_REDUCE_BF16,
    BLYI_REDUCE_FP32,
};

/* size in bytes, a multiple of the element's; both on the stream's card. EQUAL: dst = src.
 * E_INVALID. Ranges are checked when the task runs. stream NULL: default. [any] */
bly_status blyi_reduce_async(void *dst, const void *src, uint64_t size, enum blyi_reduce_kind kind,
                             enum blyi_reduce_type type, void *stream, uint32_t site);
bly_status blyi_reduce_task(const struct blyi_stream *stream, const struct blyi_task *task);

#endif
