/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - threads that process callbacks: subscribing, launching, processing.
 */
#include "npu/report.h"

#include <inttypes.h>
#include <pthread.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/probe.h"
#include "base/sys.h"
#include "npu/callback.h"
#include "npu/card.h"
#include "npu/engine.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/wait.h"

#define REPORTERS_MAX 1024

/* One callback, from its launch until it has run. */
struct blyi_report {
    struct blyi_list link; /* in `ready` of its reporter */
    struct blyi_stream *stream;
    void (*fn)(void *);
    void *arg;
    bool block; /* the stream waits, and is ours from delivery to return */
};

/* A thread that serves streams, all of one card. */
struct blyi_reporter {
    struct blyi_list link;
    uint64_t thread;
    uint32_t n_streams;
    uint32_t n_users; /* the thread waits in blyi_callback_process(): keeps the structure */
    int card;
    struct blyi_list ready;
    uint32_t word; /* futex: moves when `ready` grows or a stream leaves */
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_SUBSCRIBE);
static struct blyi_list reporters = BLYI_LIST_INIT(reporters);
static uint32_t n_reporters;

static struct blyi_reporter *find_locked(uint64_t thread)
{
    BLYI_LIST_FOR(node, &reporters)
    {
        struct blyi_reporter *reporter = BLYI_CONTAINER(node, struct blyi_reporter, link);
        if (reporter->thread == thread)
            return reporter;
    }
    return NULL;
}

static struct blyi_reporter *make_locked(uint64_t thread, int card)
{
    struct blyi_reporter *reporter = blyi_host_calloc(1, sizeof(*reporter));
    if (reporter == NULL)
        return NULL;
    reporter->thread = thread;
    reporter->card = card;
    blyi_list_init(&reporter->ready);
    blyi_list_push_back(&reporters, &reporter->link);
    n_reporters++;
    return reporter;
}

static void free_unused_locked(struct blyi_reporter *reporter)
{
    if (reporter->n_streams > 0 || reporter->n_users > 0)
        return;
    blyi_list_remove(&reporter->link);
    n_reporters--;
    blyi_host_free(reporter);
}

static void poke(struct blyi_reporter *reporter)
{
    __atomic_fetch_add(&reporter->word, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&reporter->word, INT32_MAX);
}

static bly_status subscribe_locked(uint64_t thread, struct blyi_stream *stream)
{
    if (stream->reporter != NULL)
        return blyi_fail(BLY_E_SUBSCRIBED, "stream %" PRIu32 " is served by a thread already",
                         stream->id);
    struct blyi_reporter *reporter = find_locked(thread);
    if (reporter != NULL && reporter->card != stream->card->id)
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "the thread serves streams of card %d, stream %" PRIu32 " is of card %d",
                         reporter->card, stream->id, stream->card->id);
    if (reporter == NULL && n_reporters == REPORTERS_MAX)
        return blyi_fail(BLY_E_INVALID, "%d threads serve callbacks, that is all there can be",
                         REPORTERS_MAX);
    uint32_t mode = BLYI_CALLBACK_NONE;
    if (!__atomic_compare_exchange_n(&stream->callback_mode, &mode, BLYI_CALLBACK_REPORT, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
        mode != BLYI_CALLBACK_REPORT)
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "stream %" PRIu32 " has host functions: it takes no report thread",
                         stream->id);
    if (reporter == NULL)
        reporter = make_locked(thread, stream->card->id);
    if (reporter == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a report thread");
    reporter->n_streams++;
    stream->reporter = reporter;
    return BLY_OK;
}

/* The stream must be named: NULL is no stream here. */
static bly_status pin(void *handle, struct blyi_stream **stream)
{
    if (handle != NULL)
        return blyi_stream_pin_any(handle, stream);
    return blyi_fail(BLY_E_HANDLE, "the stream is NULL; a subscription names one");
}

bly_status blyi_callback_subscribe(uint64_t thread_id, void *handle)
{
    struct blyi_stream *stream;
    bly_status status = pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&lock);
    status = subscribe_locked(thread_id, stream);
    blyi_lock_drop(&lock);
    blyi_stream_unpin(stream);
    return status;
}

/* Takes the stream's callbacks out of `ready`; the caller ends them without the lock. */
static void leave_locked(struct blyi_stream *stream, struct blyi_list *dropped)
{
    struct blyi_reporter *reporter = stream->reporter;
    stream->reporter = NULL;
    BLYI_LIST_FOR_SAFE(node, &reporter->ready)
    {
        if (BLYI_CONTAINER(node, struct blyi_report, link)->stream == stream) {
            blyi_list_remove(node);
            blyi_list_push_back(dropped, node);
        }
    }
    reporter->n_streams--;
    poke(reporter);
    free_unused_locked(reporter);
}

/* A delivered callback is over: a stream that waited for it goes on. */
static void finish(struct blyi_report *report)
{
    struct blyi_stream *stream = report->stream;
    if (report->block) {
        blyi_queue_complete(stream, BLY_OK);
        blyi_engine_push(stream);
    }
    blyi_queue_unref(stream);
    blyi_host_free(report);
}

static void finish_all(struct blyi_list *dropped)
{
    BLYI_LIST_FOR_SAFE(node, dropped)
    {
        blyi_list_remove(node);
        finish(BLYI_CONTAINER(node, struct blyi_report, link));
    }
}

void blyi_report_withdraw(struct blyi_stream *stream)
{
    struct blyi_list dropped = BLYI_LIST_INIT(dropped);
    blyi_lock_take(&lock);
    if (stream->reporter != NULL)
        leave_locked(stream, &dropped);
    blyi_lock_drop(&lock);
    finish_all(&dropped);
}

bly_status blyi_callback_unsubscribe(uint64_t thread_id, void *handle)
{
    struct blyi_stream *stream;
    bly_status status = pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_list dropped = BLYI_LIST_INIT(dropped);
    blyi_lock_take(&lock);
    if (stream->reporter == NULL || stream->reporter->thread != thread_id)
        status =
            blyi_fail(BLY_E_NOT_SUBSCRIBED, "stream %" PRIu32 " is not served by thread %" PRIu64,
                      stream->id, thread_id);
    else
        leave_locked(stream, &dropped);
    blyi_lock_drop(&lock);
    finish_all(&dropped);
    blyi_stream_unpin(stream);
    return status;
}

static bly_status check_served(struct blyi_stream *stream)
{
    if (__atomic_load_n(&stream->callback_mode, __ATOMIC_RELAXED) == BLYI_CALLBACK_HOST_FUNC)
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "stream %" PRIu32 " has host functions: it takes no callbacks",
                         stream->id);
    blyi_lock_take(&lock);
    bool served = stream->reporter != NULL;
    blyi_lock_drop(&lock);
    if (!served)
        return blyi_fail(BLY_E_NOT_SUBSCRIBED, "no thread serves the callbacks of stream %" PRIu32,
                         stream->id);
    return BLY_OK;
}

bly_status blyi_callback_launch(void (*fn)(void *), void *arg, bool block, void *handle,
                                uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_report *report = NULL;
    if (fn == NULL)
        status = blyi_fail(BLY_E_INVALID, "the callback is NULL");
    if (status == BLY_OK)
        status = check_served(stream);
    if (status == BLY_OK)
        status = blyi_queue_ready(stream);
    if (status == BLY_OK && (report = blyi_host_calloc(1, sizeof(*report))) == NULL)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a callback");
    if (status == BLY_OK) {
        report->stream = stream;
        report->fn = fn;
        report->arg = arg;
        report->block = block;
        blyi_list_init(&report->link);
        struct blyi_task task = {.kind = BLYI_TASK_CALLBACK, .site = site};
        task.u.callback.report = report;
        BLYI_PROBE(CALLBACK, .card = stream->card->id, .stream = stream->id, .site = site);
        blyi_queue_put(stream, &task);
    }
    blyi_stream_unpin(stream);
    return status;
}

bool blyi_report_deliver(struct blyi_stream *stream, struct blyi_task *task)
{
    struct blyi_report *report = task->u.callback.report;
    bool blocks = false;
    blyi_lock_take(&lock);
    if (stream->reporter != NULL) { /* else the task frees it */
        task->u.callback.report = NULL;
        blocks = report->block;
        blyi_queue_ref(stream);
        blyi_list_push_back(&stream->reporter->ready, &report->link);
        poke(stream->reporter);
    }
    blyi_lock_drop(&lock);
    return blocks;
}

void blyi_report_free(struct blyi_report *report)
{
    blyi_host_free(report);
}

/* Waits for a ready callback of this thread's. */
static bly_status take(uint64_t deadline, struct blyi_report **out)
{
    bly_status status = BLY_OK;
    struct blyi_report *report = NULL;
    blyi_lock_take(&lock);
    struct blyi_reporter *reporter = find_locked((uint64_t)pthread_self());
    if (reporter != NULL)
        reporter->n_users++;
    while (reporter != NULL && status == BLY_OK && report == NULL && reporter->n_streams > 0) {
        if (!blyi_list_empty(&reporter->ready)) {
            report = BLYI_CONTAINER(reporter->ready.next, struct blyi_report, link);
            blyi_list_remove(&report->link);
            break;
        }
        uint32_t word = __atomic_load_n(&reporter->word, __ATOMIC_ACQUIRE);
        blyi_lock_drop(&lock);
        if (!blyi_wait_on(&reporter->word, word, deadline))
            status = BLY_E_TIMEOUT;
        blyi_lock_take(&lock);
    }
    if (reporter != NULL) {
        reporter->n_users--;
        free_unused_locked(reporter);
    }
    blyi_lock_drop(&lock);
    if (status == BLY_OK && report == NULL)
        status = BLY_E_NOT_SUBSCRIBED;
    *out = report;
    return status;
}

bly_status blyi_callback_process(uint64_t timeout_ns)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_report *report;
    status = take(blyi_wait_deadline(timeout_ns), &report);
    if (status == BLY_E_TIMEOUT)
        return blyi_fail(status, "no callback became ready within %" PRIu64 " ms",
                         timeout_ns / 1000000);
    if (status != BLY_OK)
        return blyi_fail(status, "this thread serves no stream");
    const struct blyi_stream *before = blyi_callback_enter(report->stream);
    report->fn(report->arg);
    blyi_callback_leave(before);
    finish(report);
    return BLY_OK;
}
