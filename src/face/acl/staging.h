/* SPDX-License-Identifier: Apache-2.0
 *
 * staging.h - copies out of a buffer of ours, for the calls that AscendCL defines so: a source
 * that may be changed at once, and fills with 32-bit words (the card sets bytes only).
 *
 * The buffer is pinned host memory that is freed right after submission and stays readable
 * until the queued copies have ended (npu/pinned.h); it counts as pinned until then. A graph that
 * captures them keeps it as long as it lives.
 */
#ifndef BLYI_ACL_STAGING_H
#define BLYI_ACL_STAGING_H

#include <belay/base.h>

/* As blyi_copy_async(), from a copy of `src` made before it returns. E_PIN_LIMIT and
 * E_HOST_MEMORY: the buffer. */
bly_status blyi_staging_copy(void *dst, const void *src, size_t size, void *stream, uint32_t site);
/* Fills `n_words` words on the card in stream order. */
bly_status blyi_staging_set32(void *dst, uint32_t value, size_t n_words, void *stream,
                              uint32_t site);
/* At once, card or host memory. */
bly_status blyi_staging_set32_now(void *dst, uint32_t value, size_t n_words);

#endif
