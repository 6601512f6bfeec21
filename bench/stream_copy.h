/* SPDX-License-Identifier: Apache-2.0
 *
 * stream_copy.h - the benchmark's own copy that writes around the caches, a bound for large
 * sizes. Independent of the library's.
 */
#ifndef BENCH_STREAM_COPY_H
#define BENCH_STREAM_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this CPU has it (x86-64 with AVX2). */
bool stream_copy_available(void);
void stream_copy(void *dst, const void *src, size_t size);

#endif
