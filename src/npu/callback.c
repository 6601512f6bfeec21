/* SPDX-License-Identifier: Apache-2.0
 *
 * callback.c - host functions: user code in stream order on the context's own thread.
 */
#include "npu/callback.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/probe.h"
#include "base/sys.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/host_thread.h"
#include "npu/queue.h"

/* Referenced by its context and by its thread. */
struct blyi_host_thread {
    uint32_t refs;
    struct blyi_context *context; /* may be gone, and used again, before the thread has begun */
    uint64_t generation;
    struct blyi_lock lock; /* rank CONTEXT: what follows */
    struct blyi_stream *first, *last;
    bool stop;
    uint32_t word; /* futex: moves when the queue or `stop` changes */
};

static _Thread_local const struct blyi_stream *inside;

bool blyi_callback_is_inside(const struct blyi_stream *stream)
{
    return inside == stream;
}

const struct blyi_stream *blyi_callback_enter(const struct blyi_stream *stream)
{
    const struct blyi_stream *before = inside;
    inside = stream;
    return before;
}

void blyi_callback_leave(const struct blyi_stream *before)
{
    inside = before;
}

static void thread_unref(struct blyi_host_thread *thread)
{
    if (__atomic_sub_fetch(&thread->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    blyi_lock_fini(&thread->lock);
    blyi_host_free(thread);
}

static void poke(struct blyi_host_thread *thread)
{
    __atomic_fetch_add(&thread->word, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&thread->word, 1);
}

/* The next stream whose head is a host function; NULL: stop. */
static struct blyi_stream *next_stream(struct blyi_host_thread *thread)
{
    for (;;) {
        uint32_t word = __atomic_load_n(&thread->word, __ATOMIC_ACQUIRE);
        blyi_lock_take(&thread->lock);
        struct blyi_stream *stream = thread->first;
        if (stream != NULL)
            thread->first = stream->next;
        bool stop = thread->stop;
        blyi_lock_drop(&thread->lock);
        if (stream != NULL || stop)
            return stream;
        blyi_sys_futex_wait(&thread->word, word, 0);
    }
}

static void *thread_main(void *arg)
{
    struct blyi_host_thread *thread = arg;
    struct blyi_stream *stream;
    /* User code may ask for its context, as the thread that queued it would. */
    blyi_thread_state.explicit_context = thread->context;
    blyi_thread_state.explicit_generation = thread->generation;
    while ((stream = next_stream(thread)) != NULL) {
        struct blyi_task *task = blyi_queue_head(stream);
        if ((blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
            const struct blyi_stream *before = blyi_callback_enter(stream);
            task->u.host.fn(task->u.host.arg);
            blyi_callback_leave(before);
        }
        blyi_queue_complete(stream, BLY_OK);
        blyi_engine_push(stream);
    }
    thread_unref(thread);
    return NULL;
}

static bly_status start_locked(struct blyi_context *context)
{
    struct blyi_host_thread *thread = blyi_host_calloc(1, sizeof(*thread));
    if (thread == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the thread of host functions");
    thread->refs = 2;
    thread->context = context;
    thread->generation = __atomic_load_n(&context->generation, __ATOMIC_RELAXED);
    blyi_lock_init(&thread->lock, BLYI_RANK_CONTEXT);
    pthread_t id;
    int error = blyi_sys_thread_create(&id, "bly-host-func", thread_main, thread);
    if (error != 0) {
        blyi_lock_fini(&thread->lock);
        blyi_host_free(thread);
        return blyi_fail(BLY_E_SYSTEM, "the thread of host functions cannot be made: %s",
                         strerror(error));
    }
    pthread_detach(id);
    __atomic_store_n(&context->host_thread, thread, __ATOMIC_RELEASE);
    return BLY_OK;
}

bly_status blyi_host_thread_need(struct blyi_context *context)
{
    if (likely(__atomic_load_n(&context->host_thread, __ATOMIC_ACQUIRE) != NULL))
        return BLY_OK;
    bly_status status = BLY_OK;
    blyi_lock_take(&context->lock);
    if (context->host_thread == NULL)
        status = start_locked(context);
    blyi_lock_drop(&context->lock);
    return status;
}

/* The context's thread, referenced; NULL: torn down. */
static struct blyi_host_thread *thread_of(struct blyi_context *context)
{
    blyi_lock_take(&context->lock);
    struct blyi_host_thread *thread = context->host_thread;
    if (thread != NULL)
        __atomic_fetch_add(&thread->refs, 1, __ATOMIC_RELAXED);
    blyi_lock_drop(&context->lock);
    return thread;
}

bool blyi_host_thread_push(struct blyi_stream *stream)
{
    struct blyi_host_thread *thread = thread_of(stream->context);
    if (thread == NULL)
        return false;
    blyi_lock_take(&thread->lock);
    bool serves = !thread->stop;
    if (serves) {
        stream->next = NULL;
        if (thread->first == NULL)
            thread->first = stream;
        else
            thread->last->next = stream;
        thread->last = stream;
    }
    blyi_lock_drop(&thread->lock);
    if (serves)
        poke(thread);
    thread_unref(thread);
    return serves;
}

void blyi_host_thread_stop(struct blyi_context *context)
{
    blyi_lock_take(&context->lock);
    struct blyi_host_thread *thread = context->host_thread;
    __atomic_store_n(&context->host_thread, NULL, __ATOMIC_RELAXED);
    blyi_lock_drop(&context->lock);
    if (thread == NULL)
        return;
    blyi_lock_take(&thread->lock);
    thread->stop = true;
    blyi_lock_drop(&thread->lock);
    poke(thread);
    thread_unref(thread);
}

/* A stream belongs to one of the two mechanisms for ever. */
static bool claim(struct blyi_stream *stream)
{
    uint32_t mode = BLYI_CALLBACK_NONE;
    return __atomic_compare_exchange_n(&stream->callback_mode, &mode, BLYI_CALLBACK_HOST_FUNC,
                                       false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
           mode == BLYI_CALLBACK_HOST_FUNC;
}

bly_status blyi_callback_host_func(void *handle, void (*fn)(void *), void *arg, uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (fn == NULL)
        status = blyi_fail(BLY_E_INVALID, "the host function is NULL");
    if (status == BLY_OK)
        status = blyi_host_thread_need(stream->context);
    if (status == BLY_OK)
        status = blyi_queue_ready(stream);
    if (status == BLY_OK && !claim(stream))
        status = blyi_fail(BLY_E_SUBSCRIBED,
                           "stream %" PRIu32 " is served by a report thread: it takes no host "
                           "functions",
                           stream->id);
    if (status == BLY_OK) {
        struct blyi_task task = {.kind = BLYI_TASK_HOST_FUNC, .site = site};
        task.u.host.fn = fn;
        task.u.host.arg = arg;
        BLYI_PROBE(CALLBACK, .card = stream->card->id, .stream = stream->id, .site = site);
        blyi_queue_put(stream, &task);
    }
    blyi_stream_unpin(stream);
    return status;
}
