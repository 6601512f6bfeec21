/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.h - copies and sets between host and card memory, at once or in stream order.
 *
 * A range in a card's window is checked against the page table (memory.h); a range of the host
 * that is not there ends the copy with E_FAULT and a sentence, not with a signal.
 */
#ifndef BLYI_COPY_H
#define BLYI_COPY_H

#include <belay/base.h>
#include <stdbool.h>

/* At once, in the caller's thread; waits for no stream. Overlapping ranges have undefined
 * content, as on the card. E_FAULT, E_HOST_MEMORY; E_CAPTURE_MODE: a capture forbids it. [any] */
bly_status blyi_copy_now(void *dst, const void *src, uint64_t size);
bly_status blyi_set_now(void *dst, uint8_t value, uint64_t size);
/* The same as a part of other calls, which captures do not forbid. */
bly_status blyi_copy_own(void *dst, const void *src, uint64_t size);
bly_status blyi_set_own(void *dst, uint8_t value, uint64_t size);
/* The same on behalf of a line of the program, for probes; 0: of ours. */
bly_status blyi_copy_now_at(void *dst, const void *src, uint64_t size, uint32_t site);
bly_status blyi_set_now_at(void *dst, uint8_t value, uint64_t size, uint32_t site);

/* In the order of `stream` (NULL: default). Ranges are checked when the task runs; an error
 * sticks to the stream. Pageable host memory on either side: waits for the stream, then copies
 * in the caller's thread. E_HANDLE, E_STREAM_CONTEXT, E_NO_CONTEXT. */
bly_status blyi_copy_async(void *dst, const void *src, uint64_t size, void *stream, uint32_t site);
/* Host memory: pinned in stream order; pageable like a copy. */
bly_status blyi_set_async(void *dst, uint8_t value, uint64_t size, void *stream, uint32_t site);

/* Rows of `width` bytes; pitches at least width. */
bly_status blyi_copy2d_now(void *dst, uint64_t dpitch, const void *src, uint64_t spitch,
                           uint64_t width, uint64_t height);
struct blyi_rows {
    void *dst;
    uint64_t dpitch;
    const void *src;
    uint64_t spitch, width, height;
};
bly_status blyi_copy2d_now_at(const struct blyi_rows *rows, uint32_t site);
bly_status blyi_copy2d_async(void *dst, uint64_t dpitch, const void *src, uint64_t spitch,
                             uint64_t width, uint64_t height, void *stream, uint32_t site);

/* The bare engine of a copy: the faster of cached and non-temporal by size and CPU. */
void blyi_copy_bytes(void *dst, const void *src, size_t size);

#endif
