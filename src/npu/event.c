/* SPDX-License-Identifier: Apache-2.0
 *
 * event.c - marks in streams: making, recording, waiting in stream order.
 */
#include "npu/event.h"

#include <inttypes.h>
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/probe.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/queue.h"
#include "npu/roll.h"
#include "npu/runtime.h"
#include "npu/signal.h"
#include "npu/snapshot.h"
#include "npu/wait.h"

#define COMBINED (BLYI_EVENT_SYNC | BLYI_EVENT_CAPTURE_PROGRESS | BLYI_EVENT_TIME_LINE)
/* How long a first record waits for ids of destroyed events whose work is about to end. */
#define GRACE_NS 20000000u

static uint32_t last_id;

static bly_status check_flags(uint32_t flags, bool modern)
{
    uint32_t alone = BLYI_EVENT_DEVICE_USE_ONLY | BLYI_EVENT_EXTERNAL;
    if (modern)
        alone |= BLYI_EVENT_IPC;
    if (flags == 0 || (flags & ~(COMBINED | alone)) != 0)
        return blyi_fail(BLY_E_INVALID, "event flags 0x%" PRIx32 " are not a combination of the %s",
                         flags, modern ? "flags of a modern event" : "flags of a legacy event");
    if ((flags & alone) != 0 && !blyi_is_pow2(flags))
        return blyi_fail(BLY_E_INVALID, "event flags 0x%" PRIx32 ": 0x%" PRIx32 " must stand alone",
                         flags, flags & alone);
    return BLY_OK;
}

static void handle_gone(void *object)
{
    blyi_event_unref(object);
}

/* Adds the event to the roll from which the end of its context takes it, unless that is ending
 * or has ended. */
static bly_status join(const struct blyi_context_here *here, struct blyi_event *event)
{
    blyi_lock_take(&here->context->lock);
    bly_status status = blyi_context_still_locked(here);
    if (status == BLY_OK)
        blyi_roll_add_event(event);
    blyi_lock_drop(&here->context->lock);
    return status;
}

bly_status blyi_event_make(const struct blyi_context_here *here, uint32_t flags, bool modern,
                           uint32_t site, struct blyi_signal *signal, void **handle)
{
    bly_status status;
    struct blyi_event *event = blyi_host_calloc(1, sizeof(*event));
    if (event == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for an event (%zu bytes)",
                         sizeof(*event));
    event->card = here->card;
    event->context = here->context;
    event->flags = flags;
    event->modern = modern;
    event->site = site;
    event->born_ns = blyi_clock_ns();
    event->refs = 1;
    uint32_t id = event->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    blyi_lock_init(&event->lock, BLYI_RANK_EVENT);
    blyi_list_init(&event->watchers);
    blyi_list_init(&event->roll_link);
    status = blyi_handle_create(BLYI_HANDLE_EVENT, event, handle_gone, &event->handle);
    if (status != BLY_OK) {
        blyi_lock_fini(&event->lock);
        blyi_host_free(event);
        return status;
    }
    void *made = event->handle;
    event->signal = signal;
    status = join(here, event);
    if (status != BLY_OK) {
        event->signal = NULL;
        blyi_handle_remove(BLYI_HANDLE_EVENT, made);
        return status;
    }
    /* In the roll, it may end with its context at any moment. */
    BLYI_PROBE(EVENT_CREATE, .card = here->card->id, .event = id, .site = site);
    *handle = made;
    return BLY_OK;
}

bly_status blyi_event_create(uint32_t flags, bool modern, uint32_t site, void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, 0);
    if (status == BLY_OK)
        status = check_flags(flags, modern);
    if (status != BLY_OK)
        return status;
    if (flags == BLYI_EVENT_IPC)
        return blyi_event_create_shared(&here, site, handle);
    return blyi_event_make(&here, flags, modern, site, NULL, handle);
}

void blyi_event_unref(struct blyi_event *event)
{
    if (!blyi_ref_drop(&event->refs))
        return;
    bly_assert(blyi_list_empty(&event->watchers));
    blyi_roll_remove_event(event);
    blyi_event_forget_capture(event);
    if (event->mark != NULL)
        blyi_queue_unref(event->mark);
    if (event->counted)
        blyi_card_give_event(event->card);
    if (event->stream != NULL)
        blyi_queue_unref(event->stream);
    if (event->signal != NULL)
        blyi_signal_unref(event->signal);
    blyi_lock_fini(&event->lock);
    blyi_host_free(event);
}

bly_status blyi_event_pin(void *handle, struct blyi_event **out)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    *out = blyi_handle_get(BLYI_HANDLE_EVENT, handle);
    return *out != NULL ? BLY_OK : BLY_E_HANDLE;
}

void blyi_event_unpin(struct blyi_event *event)
{
    blyi_handle_put(event->handle);
}

static bly_status end(struct blyi_event *event, bool by_reset)
{
    int card = event->card->id;
    uint32_t id = event->id, site = event->site;
    bly_status status = blyi_handle_remove(BLYI_HANDLE_EVENT, event->handle);
    if (status == BLY_OK)
        BLYI_PROBE(EVENT_DESTROY, .card = card, .event = id, .site = site, .aux = by_reset);
    return status;
}

bly_status blyi_event_destroy(void *handle)
{
    struct blyi_event *event;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_event_pin(handle, &event);
    if (status != BLY_OK)
        return status;
    status = end(event, false);
    blyi_handle_put(handle);
    return status;
}

void blyi_event_end_all(struct blyi_context *context)
{
    struct blyi_event *event;
    while ((event = blyi_roll_take_event(context)) != NULL) {
        if (end(event, true) != BLY_OK)
            blyi_fail_clear(); /* destroyed by its owner meanwhile */
        blyi_event_unref(event);
    }
}

bly_status blyi_event_take_id(struct blyi_event *event)
{
    if (event->modern || likely(__atomic_load_n(&event->counted, __ATOMIC_RELAXED)))
        return BLY_OK;
    uint64_t give_up = 0;
    while (!blyi_card_take_event(event->card)) {
        uint64_t now = blyi_wait_real_ns();
        if (give_up == 0)
            give_up = now + GRACE_NS;
        if (now >= give_up || blyi_roll_pending_events(event->card) == 0) {
            /* Once more: the last pending one may have just given its id back. */
            if (blyi_card_take_event(event->card))
                break;
            return blyi_roll_no_event(event->card);
        }
    }
    if (__atomic_exchange_n(&event->counted, 1, __ATOMIC_RELAXED) != 0)
        blyi_card_give_event(event->card); /* another thread was quicker */
    return BLY_OK;
}
