/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c - streams as handles: making, destroying, attributes.
 */
#include "npu/stream.h"

#include <inttypes.h>
#include "base/ended.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/log.h"
#include "base/probe.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/kernel.h"
#include "npu/queue.h"
#include "npu/report.h"
#include "npu/roll.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"

#define FLAGS_KNOWN     0x3fu
#define PRIORITY_LOWEST 7u

static uint32_t last_id;
static blyi_stream_fn listener;

void blyi_stream_listen(blyi_stream_fn fn)
{
    __atomic_store_n(&listener, fn, __ATOMIC_RELEASE);
}

static void tell(uint32_t flags, void *handle, bool ends)
{
    if (flags & BLYI_STREAM_INSIDE)
        return;
    blyi_stream_fn fn = __atomic_load_n(&listener, __ATOMIC_ACQUIRE);
    if (unlikely(fn != NULL))
        fn(handle, ends);
}

static void handle_gone(void *object)
{
    blyi_queue_unref(object);
}

/* Adds the stream to its context, unless that is ending or has ended. From here on others can end
 * it; so it is told here, before anybody can tell its end. */
static bly_status join(const struct blyi_context_here *here, struct blyi_stream *stream)
{
    struct blyi_context *context = here->context;
    bool is_inside = (stream->flags & BLYI_STREAM_INSIDE) != 0;
    blyi_lock_take(&context->lock);
    bly_status status = stream->is_default ? BLY_OK : blyi_context_still_locked(here);
    if (status == BLY_OK) {
        /* Under the lock, so that the list is in the order of ids. */
        stream->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
        blyi_list_push_back(&context->streams, &stream->context_link);
        if (context->failed != BLY_OK)
            __atomic_fetch_or(&stream->control, BLYI_CONTROL_FAILED, __ATOMIC_RELEASE);
        BLYI_PROBE(STREAM_CREATE, .card = here->card->id, .stream = stream->id,
                   .site = stream->site,
                   .aux = stream->is_default ? 1
                          : is_inside        ? 2
                                             : 0);
    }
    blyi_lock_drop(&context->lock);
    return status;
}

bly_status blyi_stream_make(const struct blyi_context_here *here, uint32_t priority, uint32_t flags,
                            uint32_t site, bool is_default, struct blyi_stream **out, void **handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_queue_create(here->context, here->card, &stream);
    if (status != BLY_OK)
        return status;
    stream->priority = priority;
    stream->flags = flags;
    stream->site = site;
    stream->is_default = is_default;
    blyi_queue_ref(stream); /* the handle's */
    status = blyi_handle_create(BLYI_HANDLE_STREAM, stream, handle_gone, &stream->handle);
    if (status != BLY_OK) {
        blyi_queue_unref(stream);
        blyi_queue_unref(stream);
        return status;
    }
    void *made = stream->handle;
    blyi_roll_add_stream(stream);
    status = join(here, stream); /* then the stream belongs to whoever ends it first */
    if (status != BLY_OK) {
        blyi_roll_remove_stream(stream);
        blyi_queue_retire(stream);
        blyi_handle_remove(BLYI_HANDLE_STREAM, made);
        return status;
    }
    tell(flags, made, false);
    *handle = made;
    *out = stream;
    return BLY_OK;
}

bly_status blyi_stream_create(uint32_t priority, uint32_t flags, uint32_t site, void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, site);
    if (status != BLY_OK)
        return status;
    if (!blyi_card_take_stream(here.card))
        return blyi_roll_no_stream(here.card);
    struct blyi_stream *stream; /* may be gone already */
    status = blyi_stream_make(&here, priority < PRIORITY_LOWEST ? priority : PRIORITY_LOWEST,
                              flags & FLAGS_KNOWN, site, false, &stream, handle);
    if (status != BLY_OK)
        blyi_card_give_stream(here.card);
    return status;
}

bly_status blyi_stream_pin_any(void *handle, struct blyi_stream **out)
{
    bly_status status;
    if (handle == NULL) {
        struct blyi_context_here here;
        status = blyi_context_look(&here, 0);
        if (status == BLY_OK)
            handle = here.default_handle;
    } else {
        status = blyi_runtime_enter();
    }
    if (unlikely(status != BLY_OK))
        return status;
    struct blyi_stream *stream = blyi_handle_get(BLYI_HANDLE_STREAM, handle);
    if (unlikely(stream == NULL))
        return BLY_E_HANDLE;
    *out = stream;
    return BLY_OK;
}

static bly_status other_context(const struct blyi_stream *stream,
                                const struct blyi_context_here *here)
{
    return blyi_fail(BLY_E_STREAM_CONTEXT,
                     "stream %" PRIu32 " belongs to another context (card %d) than the current one "
                     "(card %d)",
                     stream->id, stream->card->id, here->card->id);
}

bly_status blyi_stream_pin(void *handle, struct blyi_stream **out)
{
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_stream_pin_own(handle, out);
    if (likely(status == BLY_OK)) {
        status = blyi_context_failure((*out)->context);
        if (unlikely(status != BLY_OK))
            blyi_stream_unpin(*out);
    }
    return status;
}

bly_status blyi_stream_pin_own(void *handle, struct blyi_stream **out)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (unlikely(status != BLY_OK))
        return status;
    struct blyi_stream *stream =
        blyi_handle_get(BLYI_HANDLE_STREAM, handle != NULL ? handle : here.default_handle);
    if (unlikely(stream == NULL))
        return BLY_E_HANDLE;
    if (unlikely(stream->context != here.context)) {
        status = other_context(stream, &here);
        blyi_stream_unpin(stream);
        return status;
    }
    *out = stream;
    return BLY_OK;
}

void blyi_stream_unpin(struct blyi_stream *stream)
{
    blyi_handle_put(stream->handle);
}

void blyi_stream_settle(struct blyi_stream *stream)
{
    if (blyi_queue_await(stream, blyi_queue_issued(stream), 0) != BLY_OK)
        blyi_fail_clear();
}

void blyi_stream_end(struct blyi_stream *stream, bool force, bool by_reset)
{
    tell(stream->flags, stream->handle, true);
    if (force) {
        blyi_stream_drop_begin(stream); /* without an end */
        blyi_block_control(stream, 0, BLYI_CONTROL_PAUSED);
        blyi_kernel_stop(stream);
    }
    blyi_report_withdraw(stream);
    if (blyi_handle_remove(BLYI_HANDLE_STREAM, stream->handle) != BLY_OK)
        blyi_fail_clear();
    blyi_ended_add();
    blyi_queue_retire(stream);
    if (force)
        blyi_stream_drop_wait(stream);
    /* Work that runs ends first; user code that destroys its own stream is part of that work. */
    blyi_stream_settle(stream);
    /* Now only: a teardown beside us waits for the work of the streams that it finds. */
    blyi_context_forget(stream->context, stream);
    if (__atomic_load_n(&stream->failed, __ATOMIC_ACQUIRE)) {
        blyi_queue_take_failure(stream);
        blyi_log(BLYI_LOG_WARN, "stream %" PRIu32 " was destroyed before its error was read: %s",
                 stream->id, blyi_fail_text());
        blyi_fail_clear();
    }
    blyi_roll_remove_stream(stream);
    if (!stream->is_default)
        blyi_card_give_stream(stream->card);
    BLYI_PROBE(STREAM_DESTROY, .card = stream->card->id, .stream = stream->id, .site = stream->site,
               .aux = by_reset);
}

bly_status blyi_stream_destroy(void *handle, bool force)
{
    struct blyi_context_here here;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    struct blyi_stream *stream = blyi_handle_get(BLYI_HANDLE_STREAM, handle);
    if (stream == NULL)
        return BLY_E_HANDLE;
    if (stream->context != here.context)
        status = other_context(stream, &here);
    else if (stream->is_default)
        status = blyi_fail(
            BLY_E_INVALID,
            "stream %" PRIu32 " is the default stream of its context and ends with it", stream->id);
    else if (blyi_queue_divert(stream) != NULL && blyi_divert_refuse_end(stream) != BLY_OK)
        status = blyi_fail_code();
    else if (__atomic_exchange_n(&stream->closing, 1, __ATOMIC_ACQ_REL) != 0)
        status = blyi_fail(BLY_E_HANDLE, "stream %" PRIu32 " is being destroyed", stream->id);
    if (status == BLY_OK) {
        if (!force)
            blyi_stream_settle(stream);
        blyi_stream_end(stream, force, false);
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_stream_with(void *handle, bly_status (*fn)(struct blyi_stream *stream, void *arg),
                            void *arg)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    status = fn(stream, arg);
    blyi_stream_unpin(stream);
    return status;
}

static bly_status read_id(struct blyi_stream *stream, void *id)
{
    *(int32_t *)id = (int32_t)stream->id;
    return BLY_OK;
}

bly_status blyi_stream_check(void *handle, int *card)
{
    struct blyi_stream *stream;
    if (handle == NULL)
        return blyi_fail(BLY_E_HANDLE, "stream is NULL, which is no stream here");
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    *card = stream->card->id;
    blyi_stream_unpin(stream);
    return BLY_OK;
}

bly_status blyi_stream_id(void *handle, int32_t *id)
{
    return blyi_stream_with(handle, read_id, id);
}

static bly_status read_priority(struct blyi_stream *stream, void *priority)
{
    *(uint32_t *)priority = stream->priority;
    return BLY_OK;
}

bly_status blyi_stream_priority(void *handle, uint32_t *priority)
{
    return blyi_stream_with(handle, read_priority, priority);
}

static bly_status read_flags(struct blyi_stream *stream, void *flags)
{
    *(uint32_t *)flags = stream->flags & ~BLYI_STREAM_INSIDE;
    return BLY_OK;
}

bly_status blyi_stream_flags(void *handle, uint32_t *flags)
{
    return blyi_stream_with(handle, read_flags, flags);
}

bly_status blyi_stream_nop(void *handle)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_task task = {.kind = BLYI_TASK_NOP};
    status = blyi_queue_submit(stream, &task);
    blyi_stream_unpin(stream);
    return status;
}

static bly_status set_paused(struct blyi_stream *stream, void *arg)
{
    (void)arg;
    blyi_block_control(stream, BLYI_CONTROL_PAUSED, 0);
    return BLY_OK;
}

bly_status blyi_stream_pause(void *handle)
{
    return blyi_stream_with(handle, set_paused, NULL);
}

static bly_status clear_paused(struct blyi_stream *stream, void *arg)
{
    (void)arg;
    blyi_block_control(stream, 0, BLYI_CONTROL_PAUSED);
    return BLY_OK;
}

bly_status blyi_stream_resume(void *handle)
{
    return blyi_stream_with(handle, clear_paused, NULL);
}
