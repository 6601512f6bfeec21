/* SPDX-License-Identifier: Apache-2.0
 *
 * notify.c - counters that order streams. Lock: rank STREAM, the list of all.
 */
#include "npu/notify.h"

#include <inttypes.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/probe.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/signal.h"
#include "npu/snapshot.h"
#include "npu/tally.h"

#define SECOND_NS 1000000000u

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_STREAM);
static struct blyi_list all = BLYI_LIST_INIT(all);
static uint32_t last_id;

void blyi_notify_unref(struct blyi_notify *notify)
{
    if (!blyi_ref_drop(&notify->refs))
        return;
    bly_assert(blyi_list_empty(&notify->watchers));
    blyi_lock_take(&lock);
    blyi_list_remove(&notify->link);
    blyi_lock_drop(&lock);
    if (notify->counted)
        blyi_card_give_notify(notify->card);
    if (notify->signal != NULL)
        blyi_signal_unref(notify->signal);
    blyi_host_free(notify);
}

static void handle_gone(void *object)
{
    blyi_notify_unref(object);
}

static enum blyi_handle_kind kind_of(bool counting)
{
    return counting ? BLYI_HANDLE_COUNT_NOTIFY : BLYI_HANDLE_NOTIFY;
}

bly_status blyi_notify_make(struct blyi_card *card, bool counting, uint32_t site,
                            struct blyi_signal *signal, void **handle)
{
    struct blyi_notify *notify = blyi_host_calloc(1, sizeof(*notify));
    if (notify == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a notify (%zu bytes)",
                         sizeof(*notify));
    notify->card = card;
    notify->site = site;
    notify->counting = counting;
    notify->refs = 1;
    notify->id = __atomic_fetch_add(&last_id, 1, __ATOMIC_RELAXED);
    blyi_list_init(&notify->watchers);
    blyi_list_init(&notify->link);
    bly_status status = blyi_handle_create(kind_of(counting), notify, handle_gone, &notify->handle);
    if (status != BLY_OK) {
        blyi_host_free(notify);
        return status;
    }
    notify->counted = signal == NULL;
    notify->signal = signal;
    void *made = notify->handle;
    uint32_t id = notify->id;
    blyi_lock_take(&lock);
    blyi_list_push_back(&all, &notify->link);
    blyi_lock_drop(&lock);
    BLYI_PROBE(NOTIFY_CREATE, .card = card->id, .event = id, .site = site);
    *handle = made;
    return BLY_OK;
}

bly_status blyi_notify_create(bool counting, uint32_t site, void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, site);
    if (status != BLY_OK)
        return status;
    struct blyi_card *card = here.card;
    if (!blyi_card_take_notify(card)) {
        blyi_fail(BLY_E_NO_NOTIFY, "card %d: all %" PRIu64 " notifies are in use", card->id,
                  card->model.notifies);
        blyi_tally_append_counts(card->id, BLYI_LIMIT_NOTIFIES);
        return BLY_E_NO_NOTIFY;
    }
    status = blyi_notify_make(card, counting, site, NULL, handle);
    if (status != BLY_OK)
        blyi_card_give_notify(card);
    return status;
}

bly_status blyi_notify_pin(void *handle, bool counting, struct blyi_notify **out)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    *out = blyi_handle_get(kind_of(counting), handle);
    return *out != NULL ? BLY_OK : BLY_E_HANDLE;
}

bly_status blyi_notify_destroy(void *handle, bool counting)
{
    struct blyi_notify *notify;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_notify_pin(handle, counting, &notify);
    if (status != BLY_OK)
        return status;
    status = blyi_handle_remove(kind_of(counting), handle);
    if (status == BLY_OK)
        BLYI_PROBE(NOTIFY_DESTROY, .card = notify->card->id, .event = notify->id);
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_notify_id(void *handle, bool counting, uint32_t *id)
{
    struct blyi_notify *notify;
    bly_status status = blyi_notify_pin(handle, counting, &notify);
    if (status != BLY_OK)
        return status;
    *id = notify->id;
    blyi_handle_put(handle);
    return BLY_OK;
}

/* Notify and stream of a call that queues work; the notify is referenced for the task. */
static bly_status pin_both(void *handle, bool counting, void *stream_handle,
                           enum blyi_task_kind kind, struct blyi_notify **notify,
                           struct blyi_stream **stream)
{
    bly_status status = blyi_notify_pin(handle, counting, notify);
    if (status != BLY_OK)
        return status;
    status = blyi_stream_pin(stream_handle, stream);
    if (status == BLY_OK) {
        status = blyi_queue_ready(*stream, kind);
        if (status == BLY_OK)
            __atomic_add_fetch(&(*notify)->refs, 1, __ATOMIC_RELAXED);
        else
            blyi_stream_unpin(*stream);
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_notify_record(void *handle, bool counting, enum blyi_notify_change change,
                              uint32_t value, void *stream_handle, uint32_t site)
{
    struct blyi_notify *notify;
    struct blyi_stream *stream;
    bly_status status =
        pin_both(handle, counting, stream_handle, BLYI_TASK_NOTIFY_RECORD, &notify, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_task task = {
        .kind = BLYI_TASK_NOTIFY_RECORD, .value = (uint8_t)change, .site = site};
    task.u.notify.notify = notify;
    task.u.notify.value = value;
    __atomic_add_fetch(&notify->n_records, 1, __ATOMIC_RELAXED);
    blyi_queue_put(stream, &task);
    blyi_stream_unpin(stream);
    return BLY_OK;
}

bly_status blyi_notify_wait(void *handle, bool counting, enum blyi_notify_condition condition,
                            uint32_t value, bool clear, uint32_t timeout_s, void *stream_handle,
                            uint32_t site)
{
    struct blyi_notify *notify;
    struct blyi_stream *stream;
    bly_status status = blyi_runtime_enter(); /* before a thread is made in the child of a fork */
    if (status != BLY_OK)
        return status;
    if (timeout_s != 0 && blyi_block_need_timer() != 0)
        return blyi_fail(BLY_E_SYSTEM, "the thread that ends waits in time cannot be made");
    status = pin_both(handle, counting, stream_handle, BLYI_TASK_NOTIFY_WAIT, &notify, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_task task = {
        .kind = BLYI_TASK_NOTIFY_WAIT, .value = (uint8_t)condition, .site = site};
    task.u.notify.notify = notify;
    task.u.notify.value = value;
    task.u.notify.clear = clear;
    task.u.notify.timeout_ns = (uint64_t)timeout_s * SECOND_NS;
    blyi_queue_put(stream, &task);
    blyi_stream_unpin(stream);
    return BLY_OK;
}

static struct blyi_notify *take_one(const struct blyi_card *card)
{
    struct blyi_notify *found = NULL;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &all)
    {
        struct blyi_notify *notify = BLYI_CONTAINER(node, struct blyi_notify, link);
        if (notify->card == card && __atomic_load_n(&notify->refs, __ATOMIC_ACQUIRE) != 0) {
            found = notify;
            __atomic_add_fetch(&found->refs, 1, __ATOMIC_RELAXED);
            blyi_list_remove(&found->link); /* so that it is not found again */
            blyi_list_init(&found->link);
            break;
        }
    }
    blyi_lock_drop(&lock);
    return found;
}

void blyi_notify_end_all(const struct blyi_card *card)
{
    struct blyi_notify *notify;
    while ((notify = take_one(card)) != NULL) {
        if (blyi_handle_remove(kind_of(notify->counting), notify->handle) != BLY_OK)
            blyi_fail_clear(); /* destroyed by its owner meanwhile */
        else
            BLYI_PROBE(NOTIFY_DESTROY, .card = card->id, .event = notify->id, .aux = 1);
        blyi_notify_unref(notify);
    }
}
