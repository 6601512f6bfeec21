/* SPDX-License-Identifier: Apache-2.0
 *
 * event_order.c - events in stream order: records, waits, resets.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/event.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/known.h"
#include "npu/queue.h"
#include "npu/signal.h"
#include "npu/stream.h"
#include "npu/told.h"

#define SECOND_NS 1000000000u

static uint32_t default_timeout_s;

/* Event and stream of a call that queues work. */
static bly_status pin_both(void *handle, void *stream_handle, enum blyi_task_kind kind,
                           struct blyi_event **event, struct blyi_stream **stream)
{
    bly_status status = blyi_event_pin(handle, event);
    if (status != BLY_OK)
        return status;
    status = blyi_stream_pin(stream_handle, stream);
    if (status == BLY_OK) {
        status = blyi_queue_ready(*stream, kind);
        if (status != BLY_OK)
            blyi_stream_unpin(*stream);
    }
    if (status != BLY_OK)
        blyi_event_unpin(*event);
    return status;
}

/* Queues a task that names the event. */
static void submit(struct blyi_stream *stream, struct blyi_event *event, enum blyi_task_kind kind,
                   uint32_t site)
{
    struct blyi_task task = {.kind = (uint8_t)kind, .site = site, .u.event.event = event};
    __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED);
    blyi_queue_put(stream, &task);
}

void blyi_event_set_last(struct blyi_event *event, struct blyi_stream *stream, uint64_t position)
{
    struct blyi_stream *old = NULL;
    if (unlikely(__atomic_load_n(&event->graph, __ATOMIC_RELAXED) != NULL))
        blyi_event_forget_capture(event);
    blyi_lock_take(&event->lock);
    event->n_records += event->n_records < 2;
    if (event->stream != stream) {
        old = event->stream;
        blyi_queue_ref(stream);
        event->stream = stream;
        event->position = position;
    } else if (position > event->position) {
        event->position = position;
    }
    blyi_lock_drop(&event->lock);
    if (old != NULL)
        blyi_queue_unref(old);
}

/* Records, and waits, of an event are all of one kind; the first call says which. */
static bly_status keep_kind(const struct blyi_event *event, uint32_t *kind, bool external,
                            const char *what)
{
    uint32_t before = 0, want = external ? 2 : 1;
    if (likely(__atomic_load_n(kind, __ATOMIC_RELAXED) == want) ||
        __atomic_compare_exchange_n(kind, &before, want, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) ||
        before == want)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID, "event %" PRIu32 " has been %s with flag %d, not with flag %d",
                     event->id, what, external ? 0 : 1, external ? 1 : 0);
}

/* The record goes into the ring; `lane` is a shared event's. */
static bly_status put_record(struct blyi_event *event, struct blyi_stream *stream, uint32_t lane,
                             uint32_t site)
{
    uint64_t position;
    struct blyi_task *task;
    bool taken = false;
    while (unlikely((task = blyi_queue_reserve(stream, &position)) == NULL)) {
        bly_status status = blyi_capture_record(event, stream, site, &taken);
        if (taken || status != BLY_OK)
            return status;
    }
    task->u.event.position = position;
    task->u.event.lane = lane;
    __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED);
    task->kind = BLYI_TASK_RECORD;
    task->flags = 0;
    task->site = site;
    task->u.event.event = event;
    /* Told before another thread can wait for it: a wait's probe comes behind. */
    if (blyi_told_wanted())
        blyi_task_tell(stream, task, position);
    /* Known as the last record before it can run, so that it stamps its time. */
    if (event->signal != NULL)
        blyi_signal_issue(event->signal, lane, position);
    else
        blyi_event_set_last(event, stream, position);
    blyi_queue_publish_told(stream, task, position);
    return BLY_OK;
}

static bly_status put_shared_record(struct blyi_event *event, struct blyi_stream *stream,
                                    uint32_t site)
{
    uint32_t lane;
    bly_status status = blyi_signal_begin(event->signal, stream->id, &lane);
    if (status != BLY_OK)
        return status;
    status = put_record(event, stream, lane, site);
    if (status != BLY_OK)
        blyi_signal_cancel(event->signal, lane);
    return status;
}

bly_status blyi_event_record(void *handle, void *stream_handle, uint32_t site)
{
    struct blyi_event *event;
    struct blyi_stream *stream;
    bly_status status = pin_both(handle, stream_handle, BLYI_TASK_RECORD, &event, &stream);
    if (status != BLY_OK)
        return status;
    status = keep_kind(event, &event->record_kind, false, "recorded");
    if (status == BLY_OK)
        status = blyi_event_take_id(event);
    if (status == BLY_OK)
        status = event->signal != NULL ? put_shared_record(event, stream, site)
                                       : put_record(event, stream, 0, site);
    blyi_stream_unpin(stream);
    blyi_event_unpin(event);
    return status;
}

static bly_status need_sync(const struct blyi_event *event, const char *what)
{
    if (event->flags & (BLYI_EVENT_SYNC | BLYI_EVENT_EXTERNAL | BLYI_EVENT_IPC))
        return BLY_OK;
    return blyi_fail(BLY_E_UNSUPPORTED,
                     "event %" PRIu32 " was created without SYNC (flags 0x%" PRIx32
                     "): it cannot be %s",
                     event->id, event->flags, what);
}

uint32_t blyi_event_of(const struct blyi_stream *after)
{
    return after->flags & BLYI_STREAM_MARK ? UINT32_MAX : after->id;
}

static bly_status put_wait(struct blyi_event *event, struct blyi_stream *stream,
                           uint64_t timeout_ns, uint32_t site)
{
    bool taken = false;
    if (unlikely(blyi_queue_divert(stream) != NULL || blyi_event_is_capturing(event))) {
        bly_status status = blyi_capture_wait(event, stream, timeout_ns, site, &taken);
        if (taken || status != BLY_OK)
            return status;
    }
    struct blyi_task task = {.kind = BLYI_TASK_WAIT, .site = site};
    task.u.event.event = event;
    task.u.event.timeout_ns = timeout_ns;
    if (event->signal != NULL) {
        blyi_event_point(event, &task);
    } else if (event->modern &&
               blyi_event_last(event, &task.u.event.after, &task.u.event.position)) {
        task.u.event.of = blyi_event_of(task.u.event.after);
        if (task.u.event.after == stream ||
            blyi_queue_passed(task.u.event.after, task.u.event.position)) {
            /* In order, or past, already. */
            blyi_queue_unref(task.u.event.after);
            task.u.event.after = NULL;
        }
    }
    __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&event->n_waits, 1, __ATOMIC_RELAXED);
    blyi_queue_put(stream, &task);
    blyi_known_waits(stream, event);
    return BLY_OK;
}

bly_status blyi_event_wait(void *handle, void *stream_handle, uint32_t timeout_s, uint32_t site)
{
    struct blyi_event *event;
    struct blyi_stream *stream;
    bly_status status = pin_both(handle, stream_handle, BLYI_TASK_WAIT, &event, &stream);
    if (status != BLY_OK)
        return status;
    if (timeout_s == 0)
        timeout_s = __atomic_load_n(&default_timeout_s, __ATOMIC_RELAXED);
    status = need_sync(event, "waited for");
    if (status == BLY_OK)
        status = keep_kind(event, &event->wait_kind, false, "waited for");
    if (status == BLY_OK && timeout_s != 0 && blyi_block_need_timer() != 0)
        status = blyi_fail(BLY_E_SYSTEM, "the thread that ends waits in time cannot be made");
    if (status == BLY_OK)
        status = put_wait(event, stream, (uint64_t)timeout_s * SECOND_NS, site);
    blyi_stream_unpin(stream);
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_reset(void *handle, void *stream_handle, uint32_t site)
{
    struct blyi_event *event;
    struct blyi_stream *stream;
    bly_status status = pin_both(handle, stream_handle, BLYI_TASK_RESET, &event, &stream);
    if (status != BLY_OK)
        return status;
    if (event->modern)
        status =
            blyi_fail(BLY_E_UNSUPPORTED,
                      "event %" PRIu32 " needs no reset: it was created by ExWithFlag", event->id);
    else
        status = need_sync(event, "reset");
    bool taken = false;
    if (status == BLY_OK && unlikely(blyi_queue_divert(stream) != NULL))
        status = blyi_capture_reset(event, stream, site, &taken);
    if (status == BLY_OK && !taken)
        submit(stream, event, BLYI_TASK_RESET, site);
    blyi_stream_unpin(stream);
    blyi_event_unpin(event);
    return status;
}

static bly_status external(void *handle, void *stream_handle, bool wait, uint32_t site)
{
    struct blyi_event *event;
    struct blyi_stream *stream;
    bly_status status =
        pin_both(handle, stream_handle, wait ? BLYI_TASK_WAIT : BLYI_TASK_RECORD, &event, &stream);
    if (status != BLY_OK)
        return status;
    if (!event->modern || event->flags != BLYI_EVENT_SYNC)
        status = blyi_fail(BLY_E_UNSUPPORTED,
                           "event %" PRIu32 " (flags 0x%" PRIx32 ") was not created by ExWithFlag "
                           "with SYNC alone: it does not cross the border of a graph",
                           event->id, event->flags);
    if (status == BLY_OK)
        status = keep_kind(event, wait ? &event->wait_kind : &event->record_kind, true,
                           wait ? "waited for" : "recorded");
    if (status == BLY_OK)
        status = blyi_capture_external(event, stream, wait, site);
    blyi_stream_unpin(stream);
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_record_external(void *handle, void *stream, uint32_t site)
{
    return external(handle, stream, false, site);
}

bly_status blyi_event_wait_external(void *handle, void *stream, uint32_t site)
{
    return external(handle, stream, true, site);
}

void blyi_event_set_wait_timeout(uint32_t seconds)
{
    __atomic_store_n(&default_timeout_s, seconds, __ATOMIC_RELAXED);
}
