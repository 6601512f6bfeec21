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
#include "base/log.h"
#include "base/site.h"
#include "base/sys.h"
#include "npu/card.h"
#include "npu/context_inside.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/reach.h"
#include "npu/report.h"
#include "npu/told.h"
#include "npu/wait.h"

/* Referenced by its context and by its thread. */
struct blyi_host_thread {
    uint32_t refs;
    struct blyi_context *context; /* may be gone, and used again, before the thread has begun */
    uint64_t generation;
    struct blyi_lock lock; /* rank CONTEXT: what follows */
    struct blyi_stream *first, *last;
    struct blyi_stream *running; /* user code runs for it; NULL also when that was left behind */
    uint64_t began_ns;           /* real clock: when it began */
    bool stop;
    uint32_t word; /* futex: moves when the queue or `stop` changes */
};

static _Thread_local const struct blyi_callback_frame *inside; /* innermost first */
static _Thread_local struct blyi_host_thread *own;             /* of the calling thread */
static _Thread_local bool serves;

bool blyi_callback_is_inside(const struct blyi_stream *stream)
{
    const struct blyi_callback_frame *frame = inside;
    while (frame != NULL && frame->stream != stream && !blyi_graph_is_inside(frame->stream, stream))
        frame = frame->outer;
    return frame != NULL;
}

const struct blyi_callback_frame *blyi_callback_frames(void)
{
    return inside;
}

void blyi_callback_enter(struct blyi_callback_frame *frame, const struct blyi_stream *stream)
{
    frame->stream = stream;
    frame->outer = inside;
    inside = frame;
    serves = true;
}

void blyi_callback_leave(const struct blyi_callback_frame *frame)
{
    inside = frame->outer;
}

bool blyi_callback_serves(void)
{
    return serves;
}

static void thread_unref(struct blyi_host_thread *thread)
{
    if (!blyi_ref_drop(&thread->refs))
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

/* The stream's tasks go on behind its host function. Only for who owns the stream. */
static void go_on(struct blyi_stream *stream, bool has_run)
{
    blyi_queue_tell_done(stream, BLY_OK, has_run);
    blyi_queue_complete(stream, BLY_OK);
    blyi_engine_push(stream);
}

/* False: the stream did not wait for the end, and is another's. */
static bool run_function(struct blyi_host_thread *thread, struct blyi_stream *stream)
{
    struct blyi_task *task = blyi_queue_head(stream);
    void *arg = task->u.host.arg;
    struct blyi_callback_frame frame;
    struct blyi_reach reach;
    blyi_queue_ref(stream); /* the frame's */
    blyi_lock_take(&thread->lock);
    thread->running = stream;
    thread->began_ns = blyi_wait_real_ns();
    blyi_lock_drop(&thread->lock);
    blyi_reach_begin(&reach, stream, arg);
    blyi_task_tell_callback(stream, true);
    blyi_callback_enter(&frame, stream);
    task->u.host.fn(arg);
    blyi_callback_leave(&frame);
    blyi_reach_end(&reach, stream);
    blyi_lock_take(&thread->lock);
    bool waited = thread->running == stream;
    thread->running = NULL;
    blyi_lock_drop(&thread->lock);
    blyi_queue_unref(stream);
    return waited;
}

static void *thread_main(void *arg)
{
    struct blyi_host_thread *thread = own = arg;
    struct blyi_stream *stream;
    /* User code may ask for its context, as the thread that queued it would. */
    blyi_thread_state.explicit_context = thread->context;
    blyi_thread_state.explicit_generation = thread->generation;
    while ((stream = next_stream(thread)) != NULL) {
        bool runs = (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0;
        if (runs && !run_function(thread, stream))
            break;
        go_on(stream, runs);
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
    /* Looked at under the lock: who drops the tasks finds the stream here, or we see it. */
    bool takes = !thread->stop && (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0;
    if (takes) {
        stream->next = NULL;
        if (thread->first == NULL)
            thread->first = stream;
        else
            thread->last->next = stream;
        thread->last = stream;
    }
    blyi_lock_drop(&thread->lock);
    if (takes)
        poke(thread);
    thread_unref(thread);
    return takes;
}

/* The one before it in the queue; &first's owner is told by NULL. */
static bool find_locked(const struct blyi_host_thread *thread, const struct blyi_stream *stream,
                        struct blyi_stream **before)
{
    *before = NULL;
    for (struct blyi_stream *at = thread->first; at != NULL; *before = at, at = at->next)
        if (at == stream)
            return true;
    return false;
}

void blyi_host_thread_withdraw(struct blyi_stream *stream)
{
    struct blyi_host_thread *thread = thread_of(stream->context);
    if (thread == NULL)
        return;
    struct blyi_stream *before;
    blyi_lock_take(&thread->lock);
    bool found = find_locked(thread, stream, &before);
    if (found) {
        *(before == NULL ? &thread->first : &before->next) = stream->next;
        if (thread->last == stream)
            thread->last = before;
    }
    blyi_lock_drop(&thread->lock);
    if (found)
        blyi_engine_push(stream);
    thread_unref(thread);
}

/* Takes what runs, and what waits behind it, from the thread, which ends when it returns. */
static struct blyi_stream *take_all(struct blyi_host_thread *thread, struct blyi_stream *stream,
                                    uint64_t before_ns, struct blyi_stream **queued)
{
    struct blyi_stream *left = NULL;
    blyi_lock_take(&thread->lock);
    struct blyi_stream *running = thread->running;
    if (running != NULL && thread->began_ns < before_ns &&
        (running == stream || blyi_graph_is_inside(running, stream))) {
        left = running;
        *queued = thread->first;
        thread->running = thread->first = thread->last = NULL;
        thread->stop = true;
    }
    blyi_lock_drop(&thread->lock);
    return left;
}

/* Without a new one the context's host functions do not run. */
static void replace(struct blyi_context *context, struct blyi_host_thread *thread)
{
    blyi_lock_take(&context->lock);
    bool had = context->host_thread == thread;
    if (had) {
        __atomic_store_n(&context->host_thread, NULL, __ATOMIC_RELAXED);
        if (start_locked(context) != BLY_OK) {
            blyi_log(BLYI_LOG_WARN, "%s", blyi_fail_text());
            blyi_fail_clear();
        }
    }
    blyi_lock_drop(&context->lock);
    if (had)
        thread_unref(thread);
}

bool blyi_host_thread_leave(struct blyi_stream *stream, uint64_t before_ns)
{
    struct blyi_host_thread *thread = thread_of(stream->context);
    if (thread == NULL)
        return false;
    struct blyi_stream *queued = NULL;
    struct blyi_stream *left = take_all(thread, stream, before_ns, &queued);
    if (left != NULL) {
        char site[BLYI_SITE_TEXT];
        blyi_log(BLYI_LOG_WARN,
                 "card %d: stream %" PRIu32 " goes on without its host function from %s, which "
                 "has not returned",
                 left->card->id, left->id, blyi_site_text(blyi_queue_head(left)->site, site));
        replace(stream->context, thread);
        go_on(left, true);
    }
    while (queued != NULL) {
        struct blyi_stream *next = queued->next;
        blyi_engine_push(queued);
        queued = next;
    }
    thread_unref(thread);
    return left != NULL;
}

bool blyi_host_thread_is_needed(const struct blyi_stream *stream)
{
    struct blyi_stream *before;
    if (own == NULL)
        return false;
    blyi_lock_take(&own->lock);
    bool found = find_locked(own, stream, &before);
    blyi_lock_drop(&own->lock);
    return found;
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
    if (status == BLY_OK && blyi_report_serves(stream, BLYI_SERVES_HOST_FUNCS)) {
        status = blyi_report_queue(stream, fn, arg, BLYI_SERVES_HOST_FUNCS, true, site);
        blyi_stream_unpin(stream);
        return status;
    }
    if (status == BLY_OK)
        status = blyi_host_thread_need(stream->context);
    if (status == BLY_OK)
        status = blyi_queue_ready(stream, BLYI_TASK_HOST_FUNC);
    if (status == BLY_OK && !claim(stream))
        status = blyi_fail(BLY_E_SUBSCRIBED,
                           "stream %" PRIu32 " is served by a report thread: it takes no host "
                           "functions",
                           stream->id);
    if (status == BLY_OK) {
        struct blyi_task task = {.kind = BLYI_TASK_HOST_FUNC, .site = site};
        task.u.host.fn = fn;
        task.u.host.arg = arg;
        blyi_queue_put(stream, &task);
    }
    blyi_stream_unpin(stream);
    return status;
}
