/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_inside.h - the side of copy.c that engines see.
 */
#ifndef BLYI_COPY_INSIDE_H
#define BLYI_COPY_INSIDE_H

#include <belay/base.h>

struct blyi_stream;
struct blyi_task;

/* Runs a COPY, COPY2D or SET task; the sentence names stream and site. */
bly_status blyi_copy_task(const struct blyi_stream *stream, const struct blyi_task *task);

/* Copies in the calling thread, checked; issuer: the card that makes the copy, -1: the thread's. */
bly_status blyi_copy_range(void *dst, const void *src, uint64_t size, int issuer);

/* memset, also where a sanitizer would look at memory that is not there. */
void blyi_set_bytes(void *dst, uint8_t value, size_t size);

#endif
