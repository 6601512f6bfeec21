/* SPDX-License-Identifier: Apache-2.0
 *
 * context.c - making, choosing and ending contexts.
 */
#include "npu/context.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/event_inside.h"
#include "npu/host_thread.h"
#include "npu/kernel.h"
#include "npu/queue.h"
#include "npu/runtime.h"

/* How often teardown looks whether a stream can still end by itself. */
#define STUCK_LOOK_NS 10000000u

struct blyi_lock blyi_contexts_lock = BLYI_LOCK_INIT(BLYI_RANK_RUNTIME);
struct blyi_list blyi_contexts = BLYI_LIST_INIT(blyi_contexts);
static struct blyi_list dead = BLYI_LIST_INIT(dead);
_Thread_local struct blyi_thread_state blyi_thread_state;

static uint64_t generation_of(const struct blyi_context *context)
{
    return __atomic_load_n(&context->generation, __ATOMIC_RELAXED);
}

void blyi_thread_set_explicit(struct blyi_context *context)
{
    blyi_thread_state.explicit_context = context;
    blyi_thread_state.explicit_generation = context != NULL ? generation_of(context) : 0;
}

void blyi_thread_set_primary(struct blyi_context *context)
{
    blyi_thread_state.primary_context = context;
    blyi_thread_state.primary_generation = context != NULL ? generation_of(context) : 0;
}

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
    blyi_lock_take(&context->lock);
    context->params_set = 0;
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

/* Waits for the stream's work; gives up on work that nothing queued will ever let run, and on
 * the work that the caller himself is a part of. */
static bool can_drain(struct blyi_stream *stream)
{
    if (blyi_callback_is_inside(stream))
        return false;
    uint64_t target = blyi_queue_issued(stream);
    while (blyi_queue_await_real(stream, target, STUCK_LOOK_NS) != BLY_OK)
        if (blyi_block_is_stuck(stream))
            return false;
    return true;
}

/* Its owner destroys it at the same time, and may wait for work that nothing will ever run. Its
 * host functions need the context's thread: none begins once its tasks are dropped, and those
 * that had begun have ended behind the wait. Its owner then finds it drained. */
static void end_with_owner(struct blyi_stream *stream)
{
    bool drained = can_drain(stream);
    blyi_stream_drop_begin(stream); /* without an end */
    blyi_block_control(stream, 0, BLYI_CONTROL_PAUSED);
    if (!drained)
        blyi_kernel_stop(stream);
    if (!blyi_callback_is_inside(stream))
        blyi_queue_await(stream, blyi_queue_issued(stream), 0);
    blyi_context_forget(stream->context, stream);
}

void blyi_context_teardown(struct blyi_context *context, bool by_reset)
{
    /* All first, so that streams which wait for one another end in any order. */
    struct blyi_stream *stream = NULL;
    while ((stream = blyi_context_next_stream(context, stream)) != NULL)
        can_drain(stream);
    while ((stream = blyi_context_next_stream(context, NULL)) != NULL) {
        if (__atomic_exchange_n(&stream->closing, 1, __ATOMIC_ACQ_REL) == 0)
            blyi_stream_end(stream, !can_drain(stream), by_reset);
        else
            end_with_owner(stream);
        blyi_queue_unref(stream);
    }
    blyi_event_end_all(context);
    blyi_host_thread_stop(context);
    blyi_card_unbind(context->card);
    __atomic_store_n(&context->state, BLYI_CONTEXT_DEAD, __ATOMIC_RELEASE);
    blyi_handle_remove(BLYI_HANDLE_CONTEXT, context->handle);
}

bly_status blyi_context_create(int card, uint32_t site, void **handle)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_context *context;
    status = blyi_context_make(card, false, site, &context);
    if (status != BLY_OK)
        return status;
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
    bly_status status = pin(handle, &context);
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
        blyi_context_teardown(context, false);
        if (blyi_thread_state.explicit_context == context &&
            blyi_thread_state.explicit_generation == generation_of(context))
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

/* "no card", "card 1", "cards 0, 1": where the process has contexts. */
static void name_cards(char *text, size_t size)
{
    uint64_t used = 0;
    blyi_lock_take(&blyi_contexts_lock);
    BLYI_LIST_FOR(node, &blyi_contexts)
    {
        const struct blyi_context *context = BLYI_CONTAINER(node, struct blyi_context, link);
        if (blyi_context_is_alive(context))
            used |= (uint64_t)1 << context->card->id;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (used == 0) {
        snprintf(text, size, "no card");
        return;
    }
    size_t length = (size_t)snprintf(text, size, blyi_is_pow2(used) ? "card" : "cards");
    const char *separator = " ";
    for (int card = 0; card < BLYI_CARD_MAX && length < size; card++)
        if (used >> card & 1) {
            length += (size_t)snprintf(text + length, size - length, "%s%d", separator, card);
            separator = ", ";
        }
}

static bly_status no_context(const struct blyi_context *gone)
{
    long tid = syscall(SYS_gettid);
    if (gone != NULL)
        return blyi_fail(BLY_E_NO_CONTEXT,
                         "the context of this thread (tid %ld) was destroyed or reset", tid);
    char cards[512];
    name_cards(cards, sizeof(cards));
    return blyi_fail(BLY_E_NO_CONTEXT,
                     "no device set on this thread (tid %ld); the process uses %s", tid, cards);
}

bly_status blyi_context_get(void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    void *found = __atomic_load_n(&here.context->handle, __ATOMIC_ACQUIRE);
    if (generation_of(here.context) != here.generation)
        return no_context(here.context);
    *handle = found;
    return BLY_OK;
}

bly_status blyi_context_look(struct blyi_context_here *out, uint32_t site)
{
    bly_status status = blyi_runtime_enter();
    if (unlikely(status != BLY_OK))
        return status;
    const struct blyi_thread_state *here = &blyi_thread_state;
    if (unlikely(here->explicit_context == NULL && here->primary_context == NULL)) {
        int card = blyi_device_default();
        if (card < 0)
            return no_context(NULL);
        status = blyi_device_set_implicit(card, site);
        if (status != BLY_OK)
            return status;
    }
    bool own = here->explicit_context != NULL;
    struct blyi_context *context = own ? here->explicit_context : here->primary_context;
    uint64_t generation = own ? here->explicit_generation : here->primary_generation;
    if (unlikely(context == NULL || !blyi_context_is_alive(context)))
        return no_context(context);
    /* Acquire: what a later use of the structure wrote shows the moved generation (begin_use). */
    struct blyi_card *card = __atomic_load_n(&context->card, __ATOMIC_ACQUIRE);
    void *default_handle = __atomic_load_n(&context->default_handle, __ATOMIC_ACQUIRE);
    if (unlikely(generation_of(context) != generation))
        return no_context(context);
    *out = (struct blyi_context_here){context, card, default_handle, generation};
    return BLY_OK;
}

bly_status blyi_context_still_locked(const struct blyi_context_here *here)
{
    bly_assert(blyi_lock_held(&here->context->lock));
    if (likely(blyi_context_is_alive(here->context) &&
               generation_of(here->context) == here->generation))
        return BLY_OK;
    return no_context(here->context);
}

bly_status blyi_context_here_site(struct blyi_context **out, uint32_t site)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, site);
    if (likely(status == BLY_OK))
        *out = here.context;
    return status;
}

bly_status blyi_context_here_card(struct blyi_card **card)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (likely(status == BLY_OK))
        *card = here.card;
    return status;
}

bly_status blyi_context_here(struct blyi_context **out)
{
    return blyi_context_here_site(out, 0);
}

int blyi_context_card(const struct blyi_context *context)
{
    return blyi_context_card_ptr(context)->id;
}

struct blyi_card *blyi_context_card_ptr(const struct blyi_context *context)
{
    return __atomic_load_n(&context->card, __ATOMIC_ACQUIRE);
}

void *blyi_context_default_stream(const struct blyi_context *context)
{
    return __atomic_load_n(&context->default_handle, __ATOMIC_ACQUIRE);
}

bly_status blyi_context_set_param(int option, int64_t value)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if (option < 0 || option >= BLYI_CONTEXT_PARAMS)
        return blyi_fail(BLY_E_INVALID, "a context has no system parameter %d", option);
    struct blyi_context *context = here.context;
    blyi_lock_take(&context->lock);
    status = blyi_context_still_locked(&here);
    if (status == BLY_OK) {
        context->params[option] = value;
        context->params_set |= 1u << option;
    }
    blyi_lock_drop(&context->lock);
    return status;
}

bly_status blyi_context_get_param(int option, int64_t *value)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if (option < 0 || option >= BLYI_CONTEXT_PARAMS)
        return blyi_fail(BLY_E_INVALID, "a context has no system parameter %d", option);
    struct blyi_context *context = here.context;
    blyi_lock_take(&context->lock);
    status = blyi_context_still_locked(&here);
    bool is_set = context->params_set >> option & 1;
    int64_t found = context->params[option];
    blyi_lock_drop(&context->lock);
    if (status != BLY_OK)
        return status;
    if (!is_set)
        return blyi_fail(BLY_E_STATE, "system parameter %d of the context was never set", option);
    *value = found;
    return BLY_OK;
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
        blyi_context_teardown(found, true);
    }
}
