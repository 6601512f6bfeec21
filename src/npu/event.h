/* SPDX-License-Identifier: Apache-2.0
 *
 * event.h - marks in streams: order between streams, waiting by the host, timing.
 *
 *                     legacy (aclrtCreateEvent, WithFlag)    modern (ExWithFlag)
 *   id                taken at the first record              none, unlimited
 *   a wait waits for  the event's flag when the wait runs    the last record issued before it
 *   never recorded    query: not ready; a wait waits         query: complete; a wait passes
 *   reset             puts the flag back, in stream order    refused
 */
#ifndef BLYI_EVENT_H
#define BLYI_EVENT_H

#include <belay/base.h>
#include <stdbool.h>

/* Flag bits as AscendCL numbers them. */
#define BLYI_EVENT_SYNC             0x01u
#define BLYI_EVENT_CAPTURE_PROGRESS 0x02u
#define BLYI_EVENT_TIME_LINE        0x08u
#define BLYI_EVENT_DEVICE_USE_ONLY  0x10u
#define BLYI_EVENT_EXTERNAL         0x20u
#define BLYI_EVENT_IPC              0x40u

/* E_INVALID: flags outside reference rules; E_NO_EVENT: IPC, all shared records are in use;
 * E_NO_CONTEXT, E_HOST_MEMORY. [any] */
bly_status blyi_event_create(uint32_t flags, bool modern, uint32_t site, void **handle);
/* Never blocks; work that uses the event keeps it until it ends. */
bly_status blyi_event_destroy(void *handle);
/* stream NULL: default. E_NO_EVENT (first record of a legacy event; sentence: used / limit,
 * how many are complete, by site), E_HANDLE, E_STREAM_CONTEXT. */
bly_status blyi_event_record(void *handle, void *stream, uint32_t site);
/* The stream waits, never the host. timeout_s 0: no limit; expiry is an error of the stream.
 * E_UNSUPPORTED: an event without SYNC. */
bly_status blyi_event_wait(void *handle, void *stream, uint32_t timeout_s, uint32_t site);
/* The same across the border of a graph that is captured from `stream`: the record is for those
 * outside, the wait for one of theirs. E_UNSUPPORTED: the stream is not captured, or the event is
 * not a modern one with SYNC alone. An event's records, and its waits, are all of one kind:
 * E_INVALID. */
bly_status blyi_event_record_external(void *handle, void *stream, uint32_t site);
bly_status blyi_event_wait_external(void *handle, void *stream, uint32_t site);
bly_status blyi_event_reset(void *handle, void *stream, uint32_t site);
/* Blocks the host until the last record has run; an unrecorded event returns at once. */
bly_status blyi_event_sync(void *handle, uint64_t timeout_ns);
bly_status blyi_event_query(void *handle, bool *complete);
/* Whether all waits queued for the event have passed (legacy only: else E_UNSUPPORTED). */
bly_status blyi_event_query_wait(void *handle, bool *complete);
/* Time from start to end, negative when end came first. E_NOT_RECORDED, E_NOT_COMPLETE,
 * E_UNSUPPORTED (no TIME_LINE). */
bly_status blyi_event_elapsed(void *start, void *end, int64_t *ns);
bly_status blyi_event_timestamp(void *handle, uint64_t *ns);
bly_status blyi_event_id(void *handle, uint32_t *id);

/* For events with the flag IPC: 64 opaque bytes that another process of the same state opens as an
 * event of its own. Each destroys its own; a wait here for a record there ends with it, and with
 * an error when its process ends first. E_UNSUPPORTED: not an IPC event; E_INVALID: bytes that name
 * no live event, or one of this very process. */
#define BLYI_EVENT_HANDLE_BYTES 64
bly_status blyi_event_export(void *handle, unsigned char bytes[BLYI_EVENT_HANDLE_BYTES]);
bly_status blyi_event_import(const unsigned char bytes[BLYI_EVENT_HANDLE_BYTES], uint32_t site,
                             void **handle);

/* Default timeout of waits, process wide; 0: none. */
void blyi_event_set_wait_timeout(uint32_t seconds);

#endif
