/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.h - queues of tasks that run in order. Handles are checked in every call; NULL is the
 * default stream of the current context where a comment says so.
 *
 * Errors of tasks stick to the stream: the next call that waits for it returns the first of
 * them once, with its sentence.
 */
#ifndef BLYI_STREAM_H
#define BLYI_STREAM_H

#include <belay/base.h>
#include <stdbool.h>

/* Flag bits as AscendCL numbers them (acl_rt.h); unknown ones are dropped. */
#define BLYI_STREAM_PERSISTENT      0x04u
#define BLYI_STREAM_CPU_SCHEDULE    0x10u
#define BLYI_STREAM_DEVICE_USE_ONLY 0x20u
/* Ours: a stream that executes a graph's tasks. */
#define BLYI_STREAM_INSIDE 0x10000u
#define BLYI_STREAM_MARK   0x20000u /* counts records that graphs make; nothing runs on it */

/* In the current context. priority is clamped to 0 (highest) .. 7. E_NO_STREAM: sentence with
 * used / limit and who made them, by site; E_NO_CONTEXT, E_HOST_MEMORY. [any] */
bly_status blyi_stream_create(uint32_t priority, uint32_t flags, uint32_t site, void **handle);
/* Waits for queued work, unless `force` (queued work is dropped, running work ends first).
 * E_HANDLE; E_STREAM_CONTEXT: not in the current context; E_INVALID: a default stream. */
bly_status blyi_stream_destroy(void *handle, bool force);
/* Waits until all work queued before the call has ended. NULL allowed; any context. timeout_ns
 * 0: no limit. E_TIMEOUT (work is left as it is), E_HANDLE, or a pending error. */
bly_status blyi_stream_sync(void *handle, uint64_t timeout_ns);
/* Whether all queued work has ended; never blocks. NULL allowed. */
bly_status blyi_stream_query(void *handle, bool *complete);

bly_status blyi_stream_id(void *handle, int32_t *id);              /* NULL allowed */
bly_status blyi_stream_priority(void *handle, uint32_t *priority); /* NULL allowed */
bly_status blyi_stream_flags(void *handle, uint32_t *flags);       /* NULL allowed */

/* The card of a stream that new work may be given to. NULL is no stream. E_STREAM_CONTEXT: not in
 * the current context; E_HANDLE, E_NO_CONTEXT. */
bly_status blyi_stream_check(void *handle, int *card);

/* One listener hears of each stream (default ones too) behind its making and before its end,
 * without a lock held; NULL: none. */
typedef void (*blyi_stream_fn)(void *stream, bool ends);
void blyi_stream_listen(blyi_stream_fn fn);

/* Queues a task that does nothing (measurements, tests). NULL allowed. */
bly_status blyi_stream_nop(void *handle);

/* Tests: the stream's tasks are held until resumed; the task that runs now ends first. */
bly_status blyi_stream_pause(void *handle);
bly_status blyi_stream_resume(void *handle);
/* Tasks queued and not ended. */
bly_status blyi_stream_pending(void *handle, uint64_t *n_tasks);

#endif
