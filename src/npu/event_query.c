/* SPDX-License-Identifier: Apache-2.0
 *
 * event_query.c - what the host can learn of an event: done or not, when, waiting for it.
 */
#include <inttypes.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/probe.h"
#include "npu/block.h"
#include "npu/abort.h"
#include "npu/card.h"
#include "npu/event.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/queue.h"

void blyi_event_wait_passed(struct blyi_event *event)
{
    blyi_order_release(&event->n_waits);
    /* Release: who reads zero sees that the stream went on. */
    __atomic_fetch_sub(&event->n_waits, 1, __ATOMIC_RELEASE);
}

void blyi_event_recorded(struct blyi_event *event, const struct blyi_stream *stream,
                         uint64_t position)
{
    if (event->flags & BLYI_EVENT_TIME_LINE) {
        blyi_lock_take(&event->lock);
        event->time_ns = blyi_clock_ns();
        event->timed_stream = stream;
        event->timed_position = position;
        blyi_lock_drop(&event->lock);
    }
    if (!event->modern)
        blyi_block_flag(event, true);
}

bool blyi_event_last(struct blyi_event *event, struct blyi_stream **stream, uint64_t *position)
{
    blyi_lock_take(&event->lock);
    *stream = event->stream;
    *position = event->position;
    if (*stream != NULL)
        blyi_queue_ref(*stream);
    blyi_lock_drop(&event->lock);
    return *stream != NULL;
}

/* `position` of `stream` is the last record of the event, and has ended. */
static void tell_sync(const struct blyi_event *event, const struct blyi_stream *stream,
                      uint64_t position, int how)
{
    BLYI_PROBE(EVENT_SYNC, .card = event->card->id, .event = event->id, .other = stream->id,
               .asked = position + 1, .size = position + 1, .aux = how);
}

bool blyi_event_is_pending(struct blyi_event *event)
{
    blyi_lock_take(&event->lock);
    bool pending = event->stream != NULL && !blyi_queue_passed(event->stream, event->position);
    blyi_lock_drop(&event->lock);
    return pending;
}

bool blyi_event_is_complete(struct blyi_event *event)
{
    blyi_lock_take(&event->lock);
    bool complete = event->stream != NULL && blyi_queue_passed(event->stream, event->position);
    blyi_lock_drop(&event->lock);
    return complete && (event->modern || blyi_event_is_flagged(event));
}

/* Events that take part only in captured graphs tell the host nothing. */
static bly_status need_host(struct blyi_event *event)
{
    if (unlikely(blyi_event_is_capturing(event)))
        return blyi_fail(
            BLY_E_EVENT_CAPTURED,
            "the last record of event %" PRIu32 " is in a graph that is being captured", event->id);
    if ((event->flags & BLYI_EVENT_EXTERNAL) == 0)
        return BLY_OK;
    return blyi_fail(BLY_E_UNSUPPORTED, "event %" PRIu32 " was created EXTERNAL", event->id);
}

bly_status blyi_event_sync(void *handle, uint64_t timeout_ns)
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    status = need_host(event);
    struct blyi_stream *stream;
    uint64_t position;
    if (status == BLY_OK && event->signal != NULL) {
        status = blyi_event_sync_shared(event, timeout_ns);
        if (status == BLY_OK)
            BLYI_PROBE(EVENT_SYNC, .card = event->card->id, .event = event->id, .aux = 2);
    } else if (status == BLY_OK && blyi_event_last(event, &stream, &position)) {
        struct blyi_abort_mark mark = blyi_abort_mark(stream);
        bool waits = !blyi_queue_passed(stream, position);
        status = blyi_queue_await(stream, position + 1, timeout_ns);
        if (status == BLY_OK && waits)
            status = blyi_abort_since(stream, mark);
        else if (status == BLY_E_TIMEOUT)
            blyi_fail(status,
                      "event %" PRIu32 " of card %d: the record on stream %" PRIu32
                      " has not run within %" PRIu64 " ms; %" PRIu64 " tasks are before it",
                      event->id, event->card->id, stream->id, timeout_ns / 1000000,
                      position - blyi_queue_completed(stream));
        if (status == BLY_OK)
            tell_sync(event, stream, position, 0);
        blyi_queue_unref(stream);
    }
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_query(void *handle, bool *complete)
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    status = need_host(event);
    struct blyi_stream *stream;
    uint64_t position;
    /* The record first: a later one, of another thread, is not what is told to be complete. */
    bool recorded = status == BLY_OK && event->signal == NULL &&
                    blyi_probe_on(BLYI_PROBE_EVENT_SYNC) &&
                    blyi_event_last(event, &stream, &position);
    if (status == BLY_OK && event->signal != NULL) {
        status = blyi_event_query_shared(event, complete);
        if (status == BLY_OK && *complete)
            BLYI_PROBE(EVENT_SYNC, .card = event->card->id, .event = event->id, .aux = 2);
    } else if (status == BLY_OK)
        *complete =
            blyi_event_is_complete(event) || (event->modern && !blyi_event_is_pending(event));
    if (recorded) {
        if (*complete)
            tell_sync(event, stream, position, 1);
        blyi_queue_unref(stream);
    }
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_query_wait(void *handle, bool *complete)
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    if (blyi_event_is_capturing(event))
        status = need_host(event);
    else if (event->modern)
        status = blyi_fail(BLY_E_UNSUPPORTED,
                           "event %" PRIu32 " was created by ExWithFlag: its waits have no status",
                           event->id);
    else
        *complete = __atomic_load_n(&event->n_waits, __ATOMIC_ACQUIRE) == 0;
    if (status == BLY_OK && *complete) {
        blyi_order_acquire(&event->n_waits);
        BLYI_PROBE(EVENT_SYNC, .card = event->card->id, .event = event->id, .aux = 2);
    }
    blyi_event_unpin(event);
    return status;
}

static bly_status time_of(struct blyi_event *event, uint64_t *ns)
{
    bly_status status = need_host(event);
    if (status != BLY_OK)
        return status;
    if ((event->flags & BLYI_EVENT_TIME_LINE) == 0)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "event %" PRIu32 " was created without TIME_LINE (flags 0x%" PRIx32
                         "): it has no time",
                         event->id, event->flags);
    blyi_lock_take(&event->lock);
    if (event->stream == NULL)
        status = BLY_E_NOT_RECORDED;
    else if (!blyi_queue_passed(event->stream, event->position))
        status = BLY_E_NOT_COMPLETE;
    else if (event->timed_stream != event->stream || event->timed_position != event->position)
        status = BLY_E_ABORTED; /* dropped with its stream */
    else {
        *ns = event->time_ns;
        tell_sync(event, event->stream, event->position, 1);
    }
    blyi_lock_drop(&event->lock);
    if (status != BLY_OK)
        return blyi_fail(status, "event %" PRIu32 " has no time: %s", event->id,
                         status == BLY_E_NOT_RECORDED   ? "it was never recorded"
                         : status == BLY_E_NOT_COMPLETE ? "its last record has not run"
                                                        : "its last record was dropped");
    return BLY_OK;
}

bly_status blyi_event_elapsed(void *start, void *end, int64_t *ns)
{
    struct blyi_event *first, *second;
    uint64_t from, to;
    bly_status status = blyi_event_pin(start, &first);
    if (status != BLY_OK)
        return status;
    status = blyi_event_pin(end, &second);
    if (status == BLY_OK) {
        status = time_of(first, &from);
        if (status == BLY_OK)
            status = time_of(second, &to);
        if (status == BLY_OK)
            *ns = (int64_t)(to - from);
        blyi_event_unpin(second);
    }
    blyi_event_unpin(first);
    return status;
}

bly_status blyi_event_timestamp(void *handle, uint64_t *ns)
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    uint64_t time_ns;
    status = time_of(event, &time_ns);
    if (status == BLY_OK)
        *ns = time_ns;
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_id(void *handle, uint32_t *id)
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    if (event->signal != NULL)
        status = blyi_fail(BLY_E_UNSUPPORTED, "event %" PRIu32 " was created IPC: it has no id",
                           event->id);
    else
        *id = event->id;
    blyi_event_unpin(event);
    return status;
}
