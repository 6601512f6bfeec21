/* SPDX-License-Identifier: Apache-2.0
 *
 * mbuf.h - shared buffers: data that is handed on by reference through queues (mem_queue.h).
 *
 * A buffer has a data area, a length of what is valid in it (0 at first) and 96 bytes that travel
 * beside the data. Several buffers may refer to one data area; it ends with the last of them.
 * Buffers can form a chain; only its head is freed, appended and queued, and the chain with it.
 * A buffer lies in host memory, where program and engines reach it.
 *
 * Programs hold handles; a buffer inside a queue has none, and those it had are stale.
 */
#ifndef BLYI_MBUF_H
#define BLYI_MBUF_H

#include <belay/base.h>

#define BLYI_MBUF_USER_SIZE 96u
#define BLYI_MBUF_CHAIN_MAX 128u
#define BLYI_MBUF_SIZE_MAX  ((uint64_t)4 << 30)

/* All: E_HANDLE, E_FORKED. [any] */

/* E_INVALID: size 0 or above 4 GiB; E_HOST_MEMORY. The data is zeroed. */
bly_status blyi_mbuf_alloc(uint64_t size, void **handle);
/* With the whole chain. E_INVALID: not the head of its chain. */
bly_status blyi_mbuf_free(void *handle);
/* Valid while the buffer, or another one of the same data, lives. */
bly_status blyi_mbuf_data(void *handle, void **data, uint64_t *size);
/* E_INVALID: above the size of the data area. */
bly_status blyi_mbuf_set_length(void *handle, uint64_t length);
bly_status blyi_mbuf_get_length(void *handle, uint64_t *length);
/* Host memory to and from the 96 bytes. E_INVALID: beyond them; E_FAULT. */
bly_status blyi_mbuf_set_user(void *handle, const void *from, uint64_t size, uint64_t offset);
bly_status blyi_mbuf_get_user(void *handle, void *to, uint64_t size, uint64_t offset);
/* A new buffer of the same data, with a copy of length and the 96 bytes; no chain. */
bly_status blyi_mbuf_copy_ref(void *handle, void **copy);
/* Puts a chain behind another. E_INVALID: not heads, one and the same, or above 128 buffers. */
bly_status blyi_mbuf_append(void *head, void *chain);
bly_status blyi_mbuf_count(void *head, uint32_t *n);
/* E_INVALID: index is not below the count. */
bly_status blyi_mbuf_at(void *head, uint32_t index, void **handle);

#endif
