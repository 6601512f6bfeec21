/* SPDX-License-Identifier: Apache-2.0
 *
 * abort.c - failure modes, and ending work by force.
 */
#include "npu/abort.h"

#include <inttypes.h>
#include <string.h>
#include "base/fail.h"
#include "base/probe.h"
#include "base/handle.h"
#include "base/option.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/kernel.h"
#include "npu/queue.h"
#include "npu/report.h"
#include "npu/runtime.h"
#include "npu/stream.h"
#include "npu/wait.h"

/* How often who waits for an aborted stream looks for a kernel that has just begun. */
#define LOOK_NS 5000000u

/* ── Failure modes ────────────────────────────────────────────────────────────────────────── */

bly_status blyi_stream_set_failure_mode(void *handle, uint32_t mode)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    uint32_t before = __atomic_load_n(&stream->failure_mode, __ATOMIC_RELAXED);
    if (mode > 1)
        status = blyi_fail(BLY_E_INVALID, "failure mode %" PRIu32 " is not 0 or 1", mode);
    else if (stream->flags & BLYI_STREAM_DEVICE_USE_ONLY)
        status =
            blyi_fail(BLY_E_UNSUPPORTED,
                      "stream %" PRIu32 " is DEVICE_USE_ONLY: it has no failure mode", stream->id);
    else if (before == 1 && mode == 0)
        status =
            blyi_fail(BLY_E_UNSUPPORTED,
                      "stream %" PRIu32 " stops on failure: that cannot be taken back", stream->id);
    else if (mode == 1 && stream->is_default && strncmp(stream->card->model.name, "910B", 4) != 0)
        status = blyi_fail(BLY_E_UNSUPPORTED, "a default stream of a %s does not stop on failure",
                           stream->card->model.name);
    if (status == BLY_OK && mode == 1) {
        __atomic_store_n(&stream->failure_mode, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->context->stops, 1, __ATOMIC_RELEASE);
    }
    blyi_stream_unpin(stream);
    return status;
}

static bly_status read_failure_mode(struct blyi_stream *stream, void *mode)
{
    *(uint32_t *)mode = __atomic_load_n(&stream->failure_mode, __ATOMIC_RELAXED);
    return BLY_OK;
}

bly_status blyi_stream_failure_mode(void *handle, uint32_t *mode)
{
    return blyi_stream_with(handle, read_failure_mode, mode);
}

static void control_all(struct blyi_context *context, uint32_t set, uint32_t clear)
{
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL)
        blyi_block_control(stream, set, clear);
}

void blyi_context_task_failed(struct blyi_stream *stream, bly_status status)
{
    struct blyi_context *context = stream->context;
    if (likely(!__atomic_load_n(&context->stops, __ATOMIC_ACQUIRE)) || status == BLY_E_CANCELLED ||
        (blyi_queue_control(stream) & BLYI_CONTROL_DROP))
        return;
    /* Its own next task comes at once: nothing may get in between. */
    blyi_block_control(stream, BLYI_CONTROL_FAILED, 0);
    bool first = false;
    blyi_lock_take(&context->lock);
    if (context->failed == BLY_OK) {
        snprintf(context->failure, sizeof(context->failure), "%s", blyi_fail_text());
        __atomic_store_n(&context->failed, status, __ATOMIC_RELEASE);
        first = true;
    }
    blyi_lock_drop(&context->lock);
    if (first)
        control_all(context, BLYI_CONTROL_FAILED, 0);
}

bly_status blyi_context_failure(struct blyi_context *context)
{
    bly_status status = (bly_status)__atomic_load_n((int *)&context->failed, __ATOMIC_ACQUIRE);
    if (likely(status == BLY_OK))
        return BLY_OK;
    return blyi_fail(status, "the context of card %d stopped on a failure: %s", context->card->id,
                     context->failure);
}

/* ── Abort ────────────────────────────────────────────────────────────────────────────────── */

void blyi_stream_drop_mark(struct blyi_stream *stream)
{
    blyi_lock_take(&stream->lock);
    __atomic_add_fetch(&stream->dropping, 1, __ATOMIC_SEQ_CST);
    blyi_block_control(stream, BLYI_CONTROL_DROP, 0);
    blyi_lock_drop(&stream->lock);
}

void blyi_stream_drop_rest(struct blyi_stream *stream)
{
    /* User code that has not begun need not wait for a thread, which may be the caller's. */
    blyi_host_thread_withdraw(stream);
    blyi_report_drop(stream);
    blyi_graph_drop_run(stream);
}

void blyi_stream_drop_begin(struct blyi_stream *stream)
{
    blyi_stream_drop_mark(stream);
    blyi_stream_drop_rest(stream);
}

void blyi_stream_drop_end(struct blyi_stream *stream)
{
    blyi_lock_take(&stream->lock);
    if (__atomic_sub_fetch(&stream->dropping, 1, __ATOMIC_SEQ_CST) == 0)
        blyi_block_control(stream, 0, BLYI_CONTROL_DROP);
    blyi_lock_drop(&stream->lock);
}

struct blyi_abort_mark blyi_abort_mark(const struct blyi_stream *stream)
{
    struct blyi_abort_mark mark = {
        .card_aborts = __atomic_load_n(&stream->card_aborts, __ATOMIC_ACQUIRE),
        .aborts = __atomic_load_n(&stream->aborts, __ATOMIC_ACQUIRE),
        .dropping = __atomic_load_n(&stream->dropping, __ATOMIC_ACQUIRE),
    };
    return mark;
}

bly_status blyi_abort_since(const struct blyi_stream *stream, struct blyi_abort_mark mark)
{
    if (unlikely(__atomic_load_n(&stream->card_aborts, __ATOMIC_ACQUIRE) != mark.card_aborts))
        return blyi_fail(BLY_E_CARD_ABORTED,
                         "the work of card %d was aborted while stream %" PRIu32 " was waited for",
                         stream->card->id, stream->id);
    if (unlikely(__atomic_load_n(&stream->aborts, __ATOMIC_ACQUIRE) != mark.aborts ||
                 mark.dropping != 0))
        return blyi_fail(BLY_E_ABORTED,
                         "stream %" PRIu32 " of card %d was aborted while it was "
                         "waited for",
                         stream->id, stream->card->id);
    return BLY_OK;
}

bool blyi_stream_leave_user_code(struct blyi_stream *stream, uint64_t since_ns)
{
    uint64_t limit = (uint64_t)blyi_option_int(BLYI_OPT_FORCE_WAIT_MS) * 1000000;
    uint64_t now = blyi_wait_real_ns();
    if (limit == 0 || now - since_ns < limit)
        return false;
    return blyi_host_thread_leave(stream, now - limit) || blyi_report_leave(stream, now - limit);
}

void blyi_stream_drop_wait(struct blyi_stream *stream)
{
    uint64_t since = blyi_wait_real_ns(), target = blyi_queue_issued(stream);
    if (blyi_callback_is_inside(stream))
        return;
    while (blyi_queue_await_real(stream, target, LOOK_NS) != BLY_OK &&
           !blyi_callback_needs_caller(stream, true))
        (void)blyi_stream_leave_user_code(stream, since);
}

/* Waits until what was queued so far has ended; kernels are stopped as they come. */
static bool drain(struct blyi_stream *stream, uint64_t until)
{
    uint64_t since = blyi_wait_real_ns(), target = blyi_queue_issued(stream);
    while (target > 0 && !blyi_queue_passed(stream, target - 1)) {
        blyi_kernel_stop(stream);
        if (blyi_queue_await_real(stream, target, LOOK_NS) == BLY_OK)
            break;
        if (blyi_wait_real_ns() >= until)
            return false;
        (void)blyi_stream_leave_user_code(stream, since);
    }
    BLYI_PROBE(STREAM_SYNC, .card = stream->card->id, .stream = stream->id);
    return true;
}

/* Ends work of a stream of the current context, unless it is that work which asks. */
static bly_status from_outside(void *handle, bly_status (*fn)(struct blyi_stream *stream))
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_own(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (blyi_callback_is_inside(stream))
        status = blyi_fail(BLY_E_STATE,
                           "stream %" PRIu32 " cannot be ended by a host function that it runs",
                           stream->id);
    else
        status = blyi_capture_refuse(stream, "aborted or stopped");
    if (status == BLY_OK)
        status = fn(stream);
    blyi_stream_unpin(stream);
    return status;
}

static void drop_all(struct blyi_stream *stream)
{
    blyi_stream_drop_begin(stream);
    drain(stream, UINT64_MAX);
    blyi_stream_drop_end(stream);
}

static bly_status abort_now(struct blyi_stream *stream)
{
    /* Counted first: whoever waits now learns of it. */
    __atomic_add_fetch(&stream->aborts, 1, __ATOMIC_SEQ_CST);
    drop_all(stream);
    return BLY_OK;
}

bly_status blyi_stream_abort(void *handle)
{
    return from_outside(handle, abort_now);
}

static bly_status stop_now(struct blyi_stream *stream)
{
    if (stream->is_default)
        return blyi_fail(BLY_E_INVALID,
                         "stream %" PRIu32 " is a default stream: it cannot be stopped",
                         stream->id);
    blyi_kernel_stop(stream);
    __atomic_store_n(&stream->stopped, 1, __ATOMIC_RELEASE);
    return BLY_OK;
}

bly_status blyi_stream_stop(void *handle)
{
    return from_outside(handle, stop_now);
}

static bly_status clean_now(struct blyi_stream *stream)
{
    if ((stream->flags & BLYI_STREAM_PERSISTENT) == 0)
        return blyi_fail(BLY_E_UNSUPPORTED, "stream %" PRIu32 " was not created PERSISTENT",
                         stream->id);
    drop_all(stream);
    return BLY_OK;
}

bly_status blyi_stream_clean(void *handle)
{
    return from_outside(handle, clean_now);
}

/* The next live context of a card, pinned; the one before it is let go. A pinned context keeps its
 * place in the list when it is destroyed meanwhile. NULL at the end, with nothing pinned. */
static struct blyi_context *next_on_card(struct blyi_context *context, int card)
{
    struct blyi_context *found = NULL;
    blyi_lock_take(&blyi_contexts_lock);
    struct blyi_list *link = context == NULL ? blyi_contexts.next : context->link.next;
    for (; link != &blyi_contexts && found == NULL; link = link->next) {
        struct blyi_context *here = BLYI_CONTAINER(link, struct blyi_context, link);
        if (here->card->id == card && blyi_context_is_alive(here) &&
            blyi_handle_get(BLYI_HANDLE_CONTEXT, here->handle) != NULL)
            found = here;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (context != NULL)
        blyi_handle_put(context->handle);
    return found;
}

static void forget_failure(struct blyi_stream *stream)
{
    __atomic_store_n(&stream->stopped, 0, __ATOMIC_RELEASE);
    if (blyi_queue_take_failure(stream) != BLY_OK)
        blyi_fail_clear();
}

bly_status blyi_card_abort(int card, uint64_t timeout_ns)
{
    uint64_t until = timeout_ns == 0 ? UINT64_MAX : blyi_wait_real_ns() + timeout_ns;
    bool in_time = true;
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_context *context = NULL;
    struct blyi_stream *stream;
    /* All are told before the first is drained: they may wait for one another. */
    while ((context = next_on_card(context, card)) != NULL) {
        stream = NULL;
        while ((stream = blyi_context_next_stream(context, stream)) != NULL) {
            __atomic_add_fetch(&stream->card_aborts, 1, __ATOMIC_SEQ_CST);
            blyi_stream_drop_begin(stream);
            __atomic_add_fetch(&stream->dropped_by_card, 1, __ATOMIC_RELAXED);
        }
    }
    context = NULL;
    while ((context = next_on_card(context, card)) != NULL) {
        stream = NULL;
        while ((stream = blyi_context_next_stream(context, stream)) != NULL)
            if (!blyi_callback_is_inside(stream))
                in_time = drain(stream, until) && in_time;
        blyi_lock_take(&context->lock);
        __atomic_store_n((int *)&context->failed, BLY_OK, __ATOMIC_RELEASE);
        blyi_lock_drop(&context->lock);
        stream = NULL;
        while ((stream = blyi_context_next_stream(context, stream)) != NULL) {
            /* One that was made meanwhile was never told. */
            uint32_t told = __atomic_load_n(&stream->dropped_by_card, __ATOMIC_RELAXED);
            if (told == 0)
                continue;
            __atomic_sub_fetch(&stream->dropped_by_card, 1, __ATOMIC_RELAXED);
            forget_failure(stream);
            blyi_block_control(stream, 0, BLYI_CONTROL_FAILED);
            blyi_stream_drop_end(stream);
        }
    }
    if (!in_time)
        return blyi_fail(BLY_E_TIMEOUT,
                         "card %d: user code of the host holds a stream for longer than %" PRIu64
                         " ms",
                         card, timeout_ns / 1000000);
    return BLY_OK;
}
