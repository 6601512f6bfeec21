/* SPDX-License-Identifier: Apache-2.0
 *
 * event_share.c - events that several processes see (flag IPC). Where their records stand is
 * signal.h's; here they are an event's.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/event.h"
#include "npu/event_inside.h"
#include "npu/queue.h"
#include "npu/signal.h"
#include "npu/snapshot.h"

_Static_assert(BLYI_EVENT_HANDLE_BYTES == BLYI_SIGNAL_HANDLE, "one size of handles");

/* The event takes the reference, or it is given back. */
static bly_status wrap(const struct blyi_context_here *here, uint32_t site,
                       struct blyi_signal *signal, void **handle)
{
    bly_status status = blyi_event_make(here, BLYI_EVENT_IPC, true, site, signal, handle);
    if (status != BLY_OK)
        blyi_signal_unref(signal);
    return status;
}

bly_status blyi_event_create_shared(const struct blyi_context_here *here, uint32_t site,
                                    void **handle)
{
    struct blyi_signal *signal;
    bly_status status = blyi_signal_create(BLYI_SIGNAL_EVENT, here->card->id, &signal);
    return status == BLY_OK ? wrap(here, site, signal, handle) : status;
}

bly_status blyi_event_export(void *handle, unsigned char bytes[BLYI_EVENT_HANDLE_BYTES])
{
    struct blyi_event *event;
    bly_status status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    if (event->signal == NULL)
        status = blyi_fail(BLY_E_UNSUPPORTED,
                           "event %" PRIu32 " was created without IPC (flags 0x%" PRIx32
                           "): other processes cannot open it",
                           event->id, event->flags);
    else
        blyi_signal_handle(event->signal, bytes);
    blyi_event_unpin(event);
    return status;
}

bly_status blyi_event_import(const unsigned char bytes[BLYI_EVENT_HANDLE_BYTES], uint32_t site,
                             void **handle)
{
    struct blyi_context_here here;
    struct blyi_signal *signal;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, site);
    if (status == BLY_OK)
        status = blyi_signal_open_handle(bytes, &signal);
    return status == BLY_OK ? wrap(&here, site, signal, handle) : status;
}

void blyi_event_point(const struct blyi_event *event, struct blyi_task *task)
{
    struct blyi_signal_point point;
    blyi_signal_last(event->signal, &point);
    if (blyi_signal_state(event->signal, &point) == BLYI_SIGNAL_DONE)
        point.lane = BLYI_SIGNAL_LANES;
    task->u.event.lane = point.lane;
    task->u.event.generation = point.generation;
    task->u.event.position = point.position;
}

struct wait {
    const struct blyi_signal *signal;
    struct blyi_signal_point point;
};

static bool is_over(void *arg)
{
    const struct wait *wait = arg;
    return blyi_signal_state(wait->signal, &wait->point) != BLYI_SIGNAL_PENDING;
}

bool blyi_event_run_shared_wait(struct blyi_stream *stream, struct blyi_task *task,
                                bly_status *status)
{
    const struct blyi_event *event = task->u.event.event;
    struct wait wait = {event->signal,
                        {task->u.event.lane, task->u.event.generation, task->u.event.position}};
    uint64_t deadline;
    bool in_time = blyi_block_deadline(stream, task->u.event.timeout_ns, &deadline);
    switch (blyi_block_at(stream, &event->signal->watchers, is_over, &wait, in_time ? deadline : 1,
                          blyi_signal_pending(event->signal, wait.point.lane))) {
    case BLYI_BLOCK_TAKEN:
        if (blyi_signal_state(event->signal, &wait.point) == BLYI_SIGNAL_LOST) {
            *status = blyi_signal_lost(event->signal, &wait.point);
            blyi_fail_append("; stream %" PRIu32 " waited for it", stream->id);
        }
        break;
    case BLYI_BLOCK_BLOCKED:
        return false;
    case BLYI_BLOCK_LATE:
        *status = blyi_fail(BLY_E_ABORTED,
                            "stream %" PRIu32 " waited %" PRIu64 " s for shared event %" PRIu32,
                            stream->id, task->u.event.timeout_ns / 1000000000u, event->id);
        break;
    }
    stream->began_ns = 0;
    return true;
}

bly_status blyi_event_sync_shared(struct blyi_event *event, uint64_t timeout_ns)
{
    struct blyi_signal_point point;
    blyi_signal_last(event->signal, &point);
    bly_status status = blyi_signal_await(event->signal, &point, timeout_ns);
    if (status == BLY_E_TIMEOUT)
        return blyi_fail(status,
                         "shared event %" PRIu32 " of card %d: its last record has not run within "
                         "%" PRIu64 " ms",
                         event->id, event->card->id, timeout_ns / 1000000);
    return status;
}

bly_status blyi_event_query_shared(const struct blyi_event *event, bool *complete)
{
    struct blyi_signal_point point;
    blyi_signal_last(event->signal, &point);
    enum blyi_signal_state state = blyi_signal_state(event->signal, &point);
    if (state == BLYI_SIGNAL_LOST)
        return blyi_signal_lost(event->signal, &point);
    *complete = state == BLYI_SIGNAL_DONE;
    return BLY_OK;
}
