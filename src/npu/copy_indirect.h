/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_indirect.h - copies whose addresses lie on the card and are read when the copy runs: work
 * that is queued before may still change them.
 *
 * Both sides are memory of the stream's card; else, and where an address leads nowhere, the task
 * fails (E_FAULT, E_HOST_MEMORY). Sinks of probes are not told of such a copy: its ranges are not
 * known when it is queued.
 */
#ifndef BLYI_COPY_INDIRECT_H
#define BLYI_COPY_INDIRECT_H

#include <belay/base.h>

struct blyi_stream;
struct blyi_task;

#define BLYI_COPY_DESC_SIZE  32u
#define BLYI_COPY_DESC_ALIGN 64u

/* Writes source, destination and size to `desc`, which is card memory and 64-aligned, at once.
 * E_INVALID: it is not, or the two are not memory of one card; E_ALIGN, E_FAULT. [any] */
bly_status blyi_copy_desc_set(void *desc, const void *src, void *dst, uint64_t size);
/* stream NULL: default. E_INVALID: desc is no memory of the stream's card; E_ALIGN. [any] */
bly_status blyi_copy_desc_async(const void *desc, void *stream, uint32_t site);

/* *dst_word + dst_offset = *src_word + src_offset, size bytes. The words are memory of the
 * stream's card, 8-aligned: E_INVALID, E_ALIGN. [any] */
bly_status blyi_copy_words_async(const void *dst_word, uint64_t dst_offset, const void *src_word,
                                 uint64_t src_offset, uint64_t size, void *stream, uint32_t site);

bly_status blyi_copy_indirect_task(const struct blyi_stream *stream, const struct blyi_task *task);

#endif
