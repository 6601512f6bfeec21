/* SPDX-License-Identifier: Apache-2.0
 *
 * recorded.h - recorded programs (TSV, by zstdcat) for benchmarks of the pool.
 */
#ifndef BLYI_BENCH_RECORDED_H
#define BLYI_BENCH_RECORDED_H

#include <stddef.h>
#include <stdint.h>

#define RECORDED_ALL 256u /* stream of a synchronisation: every one */

/* op: a (alloc), f (free), u (used by `stream` too), d (that use has ended), s (synchronised). */
struct recorded_event {
    char op;
    uint32_t stream;
    uint64_t id, bytes;
};

struct recorded {
    struct recorded_event *events; /* the caller frees it */
    size_t n;
    uint64_t allocs, peak; /* peak: of live bytes */
};

/* n 0: there is none, or no zstdcat. */
struct recorded recorded_read(const char *path);

#endif
