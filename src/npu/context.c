/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c - making, choosing and ending contexts.
 */
#include "npu/context.h"

#include <stdio.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/option.h"
#include "base/probe.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/kernel.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/wait.h"

/* How often teardown looks whether a stream can still end by itself. */
#define STUCK_LOOK_NS 10000000u

struct blyi_lock blyi_contexts_lock = BLYI_LOCK_INIT(BLYI_RANK_RUNTIME);
struct blyi_list blyi_contexts = BLYI_LIST_INIT(blyi_contexts);
static struct blyi_list dead = BLYI_LIST_INIT(dead);
static uint32_t last_id;

/* A dead structure or a new one. It stays DEAD until blyi_context_make() has done its work. */
static struct blyi_context *take_structure(void)
{
    struct blyi_context *context = NULL;
    blyi_lock_take(&blyi_contexts_lock);
    if (!blyi_list_empty(&dead)) {
        context = BLYI_CONTAINER(dead.next, struct blyi_context, link);
        blyi_list_remove(&context->link);
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (context == NULL) {
        context = blyi_host_calloc(1, sizeof(*context));
        if (context == NULL)
            return NULL;
        context->state = BLYI_CONTEXT_DEAD;
        blyi_lock_init(&context->lock, BLYI_RANK_CONTEXT);
        blyi_list_init(&context->streams);
        blyi_list_init(&context->link);
    }
    return context;
}

static void give_structure(void *object)
{
    struct blyi_context *context = object;
    blyi_lock_take(&blyi_contexts_lock);
    blyi_list_remove(&context->link);
    blyi_list_push_back(&dead, &context->link);
    blyi_lock_drop(&blyi_contexts_lock);
}

/* Destructor of the handle, so no pin is left: nobody checks a handle against this structure. */
static void handle_gone(void *object)
{
    give_structure(object);
}

/* The structure becomes another context: first its generation moves, then all else. Release: who
 * reads what is written here or later finds the generation moved. */
static void begin_use(struct blyi_context *context, struct blyi_card *card, bool primary,
                      uint32_t site)
{
    __atomic_add_fetch(&context->generation, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&context->card, card, __ATOMIC_RELEASE);
    context->primary = primary;
    context->site = site;
    context->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    blyi_lock_take(&context->lock);
    context->params_set = 0;
    __atomic_store_n(&context->overflow, 0, __ATOMIC_RELAXED);
    for (int mode = 0; mode < BLYI_CAPTURE_MODES; mode++)
        __atomic_store_n(&context->captures[mode], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&context->stops, 0, __ATOMIC_RELAXED);
    __atomic_store_n((int *)&context->failed, BLY_OK, __ATOMIC_RELAXED);
    blyi_lock_drop(&context->lock);
}

bly_status blyi_context_make(int card_id, bool primary, uint32_t site, struct blyi_context **out)
{
    struct blyi_card *card;
    struct blyi_stream *stream;
    void *handle;
    bly_status status = blyi_card_open(card_id, &card);
    if (status != BLY_OK)
        return status;
    struct blyi_context *context = take_structure();
    if (context == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for a context (%zu bytes)",
                         card_id, sizeof(*context));
    begin_use(context, card, primary, site);

    status = blyi_card_bind(card);
    if (status != BLY_OK)
        goto give;
    const struct blyi_context_here new = {.context = context, .card = card};
    status = blyi_stream_make(&new, 0, 0, site, true, &stream, &handle);
    if (status != BLY_OK)
        goto unbind;
    status = blyi_handle_create(BLYI_HANDLE_CONTEXT, context, handle_gone, &handle);
    if (status != BLY_OK)
        goto end_stream;
    __atomic_store_n(&context->handle, handle, __ATOMIC_RELEASE);
    __atomic_store_n(&context->default_handle, stream->handle, __ATOMIC_RELEASE);
    /* Release: who finds it alive finds all of it. */
    __atomic_store_n(&context->state, BLYI_CONTEXT_ALIVE, __ATOMIC_RELEASE);
    *out = context;
    return BLY_OK;

end_stream:
    blyi_queue_ref(stream);
    blyi_stream_end(stream, false, true);
    blyi_queue_unref(stream);
unbind:
    blyi_card_unbind(card);
give:
    give_structure(context);
    return status;
}

struct blyi_stream *blyi_context_next_stream(struct blyi_context *context,
                                             struct blyi_stream *stream)
{
    blyi_lock_take(&context->lock);
    struct blyi_list *next = context->streams.next;
    if (stream != NULL) {
        if (!blyi_list_empty(&stream->context_link)) {
            next = stream->context_link.next;
        } else { /* left the list meanwhile: go on behind its id */
            while (next != &context->streams &&
                   BLYI_CONTAINER(next, struct blyi_stream, context_link)->id <= stream->id)
                next = next->next;
        }
    }
    struct blyi_stream *found = NULL;
    if (next != &context->streams) {
        found = BLYI_CONTAINER(next, struct blyi_stream, context_link);
        blyi_queue_ref(found);
    }
    blyi_lock_drop(&context->lock);
    if (stream != NULL)
        blyi_queue_unref(stream);
    return found;
}

void blyi_context_forget(struct blyi_context *context, struct blyi_stream *stream)
{
    blyi_lock_take(&context->lock);
    blyi_list_remove(&stream->context_link);
    blyi_lock_drop(&context->lock);
}

/* How long a stream has made no progress; only force cares. */
struct patience {
    uint64_t limit; /* 0: for ever */
    uint64_t completed, since;
};

static struct patience patience_of(const struct blyi_stream *stream, bool force)
{
    uint64_t ms = force ? (uint64_t)blyi_option_int(BLYI_OPT_FORCE_WAIT_MS) : 0;
    return (struct patience){.limit = ms * 1000000,
                             .completed = blyi_queue_completed(stream),
                             .since = blyi_wait_real_ns()};
}

/* False: it waits for others, who have not been ended yet. */
static bool push_on(struct blyi_stream *stream, struct patience *patience)
{
    uint64_t completed = blyi_queue_completed(stream), now = blyi_wait_real_ns();
    bool stands = completed == patience->completed;
    if (patience->limit == 0 || (stands && now - patience->since < patience->limit))
        return true;
    if (stands && !blyi_stream_leave_user_code(stream, patience->since) &&
        !blyi_kernel_stop(stream))
        return false;
    patience->completed = completed;
    patience->since = now;
    return true;
}

/* Waits for the stream's work; gives up on work that nothing queued will ever let run, and on
 * the work that the caller himself is a part of. */
static bool can_drain(struct blyi_stream *stream, bool force)
{
    if (blyi_callback_is_inside(stream))
        return false;
    uint64_t target = blyi_queue_issued(stream);
    struct patience patience = patience_of(stream, force);
    while (blyi_queue_await_real(stream, target, STUCK_LOOK_NS) != BLY_OK)
        if (blyi_block_is_stuck(stream) || blyi_graph_is_stuck(stream) ||
            blyi_callback_needs_caller(stream, true) || !push_on(stream, &patience))
            return false;
    return true;
}

/* Its owner destroys it at the same time, and may wait for work that nothing will ever run. Its
 * host functions need the context's thread: none begins once its tasks are dropped, and those
 * that had begun have ended behind the wait. Its owner then finds it drained. */
static void end_with_owner(struct blyi_stream *stream, bool force)
{
    bool drained = can_drain(stream, force);
    blyi_stream_drop_begin(stream); /* without an end */
    blyi_block_control(stream, 0, BLYI_CONTROL_PAUSED);
    if (!drained)
        blyi_kernel_stop(stream);
    if (!blyi_callback_is_inside(stream))
        blyi_stream_settle(stream);
    blyi_context_forget(stream->context, stream);
}

void blyi_context_teardown(struct blyi_context *context, bool by_reset, bool force)
{
    blyi_capture_cancel(context);
    /* All first, so that streams which wait for one another end in any order. */
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL)
        (void)can_drain(stream, force);
    while ((stream = blyi_context_next_stream(context, NULL)) != NULL) {
        if (__atomic_exchange_n(&stream->closing, 1, __ATOMIC_ACQ_REL) == 0)
            blyi_stream_end(stream, !can_drain(stream, force), by_reset);
        else
            end_with_owner(stream, force);
        blyi_queue_unref(stream);
    }
    blyi_graph_end_all(context, by_reset);
    blyi_event_end_all(context);
    blyi_host_thread_stop(context);
    blyi_card_unbind(context->card);
    if (!context->primary)
        BLYI_PROBE(CONTEXT_DESTROY, .card = context->card->id, .event = context->id,
                   .site = context->site, .aux = by_reset);
    __atomic_store_n(&context->state, BLYI_CONTEXT_DEAD, __ATOMIC_RELEASE);
    blyi_handle_remove(BLYI_HANDLE_CONTEXT, context->handle);
}

bly_status blyi_context_create(int card, uint32_t site, void **handle)
{
    bly_status status = blyi_snapshot_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_context *context;
    status = blyi_context_make(card, false, site, &context);
    if (status != BLY_OK)
        return status;
    BLYI_PROBE(CONTEXT_CREATE, .card = card, .event = context->id, .site = site);
    blyi_lock_take(&blyi_contexts_lock);
    blyi_list_push_back(&blyi_contexts, &context->link);
    blyi_lock_drop(&blyi_contexts_lock);
    blyi_thread_set_explicit(context);
    *handle = context->handle;
    return BLY_OK;
}

/* Pins the context of a handle; any failure is E_NO_CONTEXT, as the calls on contexts want it. */
static bly_status pin(void *handle, struct blyi_context **out)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_context *context = blyi_handle_get(BLYI_HANDLE_CONTEXT, handle);
    if (context == NULL) {
        char text[BLYI_FAIL_MAX];
        snprintf(text, sizeof(text), "%s", blyi_fail_text());
        return blyi_fail(BLY_E_NO_CONTEXT, "%s", text);
    }
    *out = context;
    return BLY_OK;
}

/* ALIVE to DYING, by exactly one caller. */
static bool begin_end(struct blyi_context *context)
{
    uint32_t alive = BLYI_CONTEXT_ALIVE;
    return __atomic_compare_exchange_n(&context->state, &alive, BLYI_CONTEXT_DYING, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bly_status blyi_context_destroy(void *handle)
{
    struct blyi_context *context = NULL;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = pin(handle, &context);
    if (status != BLY_OK)
        return status;
    if (context->primary)
        status = blyi_fail(BLY_E_NO_CONTEXT,
                           "the primary context of card %d ends with aclrtResetDevice, it cannot "
                           "be destroyed",
                           context->card->id);
    else if (!begin_end(context))
        status = blyi_fail(BLY_E_RELEASED, "the context of card %d is being destroyed",
                           context->card->id);
    if (status == BLY_OK) {
        blyi_context_teardown(context, false, false);
        if (blyi_thread_state.explicit_context == context &&
            blyi_thread_state.explicit_generation == blyi_context_generation(context))
            blyi_thread_set_explicit(NULL);
    }
    blyi_handle_put(handle);
    return status;
}

bly_status blyi_context_set(void *handle)
{
    struct blyi_context *context = NULL;
    bly_status status = pin(handle, &context);
    if (status != BLY_OK || context == NULL)
        return status;
    if (blyi_context_is_alive(context)) {
        blyi_thread_set_explicit(context);
        blyi_thread_set_primary(NULL);
    } else {
        status = blyi_fail(BLY_E_NO_CONTEXT, "the context of card %d is being destroyed",
                           context->card->id);
    }
    blyi_handle_put(handle);
    return status;
}

void blyi_context_finalise(void)
{
    for (;;) {
        struct blyi_context *found = NULL;
        blyi_lock_take(&blyi_contexts_lock);
        BLYI_LIST_FOR(node, &blyi_contexts)
        {
            struct blyi_context *context = BLYI_CONTAINER(node, struct blyi_context, link);
            if (!context->primary && begin_end(context)) {
                found = context;
                break;
            }
        }
        blyi_lock_drop(&blyi_contexts_lock);
        if (found == NULL)
            return;
        blyi_context_teardown(found, true, true);
    }
}
