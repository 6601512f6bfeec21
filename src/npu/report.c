/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - threads that process callbacks: subscribing, launching, processing.
 */
#include "npu/reach.h"
#include "npu/report.h"

#include <inttypes.h>
#include <pthread.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sys.h"
#include "npu/callback.h"
#include "npu/card.h"
#include "npu/engine.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/told.h"
#include "npu/wait.h"

#define REPORTERS_MAX 1024

/* One callback, from its launch until it has run. */
struct blyi_report {
    struct blyi_list link; /* in `ready` of its reporter, or in `running` */
    uint64_t began_ns;     /* real clock: when it began to run */
    struct blyi_stream *stream;
    struct blyi_stream *through; /* of a graph: whose subscription; referenced. NULL: its own */
    void (*fn)(void *);
    void *arg;
    enum blyi_serves what;
    bool block; /* the stream waits, and is ours from delivery to return. Running: locked */
};

/* A thread that serves streams, all of one card. */
struct blyi_reporter {
    struct blyi_list link;
    uint64_t thread;
    enum blyi_serves what; /* a thread that serves both has two of these */
    uint32_t n_streams;
    uint32_t n_users; /* the thread waits in blyi_callback_process(): keeps the structure */
    int card;
    struct blyi_list ready;
    uint32_t word; /* futex: moves when `ready` grows or a stream leaves */
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_SUBSCRIBE);
static struct blyi_list reporters = BLYI_LIST_INIT(reporters);
static struct blyi_list running = BLYI_LIST_INIT(running); /* reports */
static uint32_t n_reporters;

static struct blyi_stream *served(const struct blyi_report *report)
{
    return report->through != NULL ? report->through : report->stream;
}

static struct blyi_stream *runs(const struct blyi_report *report)
{
    return report->stream;
}

static struct blyi_reporter *find_locked(enum blyi_serves what, uint64_t thread)
{
    BLYI_LIST_FOR(node, &reporters)
    {
        struct blyi_reporter *reporter = BLYI_CONTAINER(node, struct blyi_reporter, link);
        if (reporter->thread == thread && reporter->what == what)
            return reporter;
    }
    return NULL;
}

static struct blyi_reporter *make_locked(enum blyi_serves what, uint64_t thread, int card)
{
    struct blyi_reporter *reporter = blyi_host_calloc(1, sizeof(*reporter));
    if (reporter == NULL)
        return NULL;
    reporter->thread = thread;
    reporter->what = what;
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

/* Callbacks and the context's thread exclude each other; a thread for host functions does not
 * care. */
static bool claim(enum blyi_serves what, struct blyi_stream *stream)
{
    uint32_t mode = BLYI_CALLBACK_NONE;
    return what == BLYI_SERVES_HOST_FUNCS ||
           __atomic_compare_exchange_n(&stream->callback_mode, &mode, BLYI_CALLBACK_REPORT, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
           mode == BLYI_CALLBACK_REPORT;
}

static bly_status subscribe_locked(enum blyi_serves what, uint64_t thread,
                                   struct blyi_stream *stream)
{
    if (stream->reporters[what] != NULL)
        return blyi_fail(BLY_E_SUBSCRIBED, "stream %" PRIu32 " is served by a thread already",
                         stream->id);
    struct blyi_reporter *reporter = find_locked(what, thread);
    if (reporter != NULL && reporter->card != stream->card->id)
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "the thread serves streams of card %d, stream %" PRIu32 " is of card %d",
                         reporter->card, stream->id, stream->card->id);
    if (reporter == NULL && n_reporters == REPORTERS_MAX)
        return blyi_fail(BLY_E_INVALID, "%d threads serve callbacks, that is all there can be",
                         REPORTERS_MAX);
    if (!claim(what, stream))
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "stream %" PRIu32 " has host functions: it takes no report thread",
                         stream->id);
    if (reporter == NULL)
        reporter = make_locked(what, thread, stream->card->id);
    if (reporter == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a report thread");
    reporter->n_streams++;
    __atomic_store_n(&stream->reporters[what], reporter, __ATOMIC_RELAXED);
    return BLY_OK;
}

/* The stream must be named: NULL is no stream here. */
static bly_status pin(void *handle, struct blyi_stream **stream)
{
    if (handle != NULL)
        return blyi_stream_pin_any(handle, stream);
    return blyi_fail(BLY_E_HANDLE, "the stream is NULL; a subscription names one");
}

bly_status blyi_callback_subscribe(enum blyi_serves what, uint64_t thread_id, void *handle)
{
    struct blyi_stream *stream;
    bly_status status = pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    blyi_lock_take(&lock);
    status = subscribe_locked(what, thread_id, stream);
    blyi_lock_drop(&lock);
    blyi_stream_unpin(stream);
    return status;
}

/* Takes callbacks out of `ready`: those whose `owner` is the stream. The caller ends them without
 * the lock. */
static void drop_locked(struct blyi_reporter *reporter, struct blyi_stream *stream,
                        struct blyi_stream *(*owner)(const struct blyi_report *report),
                        struct blyi_list *dropped)
{
    BLYI_LIST_FOR_SAFE(node, &reporter->ready)
    {
        if (owner(BLYI_CONTAINER(node, struct blyi_report, link)) == stream) {
            blyi_list_remove(node);
            blyi_list_push_back(dropped, node);
        }
    }
}

static void leave_locked(enum blyi_serves what, struct blyi_stream *stream,
                         struct blyi_list *dropped)
{
    struct blyi_reporter *reporter = stream->reporters[what];
    drop_locked(reporter, stream, served, dropped);
    __atomic_store_n(&stream->reporters[what], NULL, __ATOMIC_RELAXED);
    reporter->n_streams--;
    poke(reporter);
    free_unused_locked(reporter);
}

static void go_on(struct blyi_stream *stream)
{
    blyi_queue_tell_done(stream, BLY_OK, true);
    blyi_queue_complete(stream, BLY_OK);
    blyi_engine_push(stream);
}

/* A delivered callback is over: a stream that waited for it goes on. */
static void finish(struct blyi_report *report)
{
    struct blyi_stream *stream = report->stream;
    if (report->block)
        go_on(stream);
    blyi_queue_unref(stream);
    blyi_report_free(report);
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
    for (int what = 0; what < BLYI_SERVES_COUNT; what++) {
        if (stream->reporters[what] != NULL)
            leave_locked((enum blyi_serves)what, stream, &dropped);
    }
    blyi_lock_drop(&lock);
    finish_all(&dropped);
}

void blyi_report_drop(struct blyi_stream *stream)
{
    struct blyi_list dropped = BLYI_LIST_INIT(dropped);
    blyi_lock_take(&lock);
    /* All of them: those of a graph's stream are with who serves the captured one. */
    BLYI_LIST_FOR(node, &reporters)
    drop_locked(BLYI_CONTAINER(node, struct blyi_reporter, link), stream, runs, &dropped);
    blyi_lock_drop(&lock);
    finish_all(&dropped);
}

bool blyi_report_leave(struct blyi_stream *stream, uint64_t before_ns)
{
    struct blyi_stream *left = NULL;
    blyi_lock_take(&lock);
    BLYI_LIST_FOR(node, &running)
    {
        struct blyi_report *report = BLYI_CONTAINER(node, struct blyi_report, link);
        if (!report->block || report->began_ns >= before_ns ||
            (report->stream != stream && !blyi_graph_is_inside(report->stream, stream)))
            continue;
        report->block = false; /* who runs it has its reference to the stream still */
        left = report->stream;
        break;
    }
    blyi_lock_drop(&lock);
    if (left == NULL)
        return false;
    blyi_log(BLYI_LOG_WARN,
             "card %d: stream %" PRIu32 " goes on without its callback, which has not returned",
             left->card->id, left->id);
    go_on(left);
    return true;
}

static bool is_needed_locked(const struct blyi_reporter *reporter, const struct blyi_stream *stream)
{
    if (reporter == NULL)
        return false;
    BLYI_LIST_FOR(node, &reporter->ready)
    {
        const struct blyi_report *report = BLYI_CONTAINER(node, struct blyi_report, link);
        if (report->stream == stream && report->block)
            return true;
    }
    return false;
}

bool blyi_report_is_needed(const struct blyi_stream *stream)
{
    bool needed = false;
    blyi_lock_take(&lock);
    for (int what = 0; what < BLYI_SERVES_COUNT; what++)
        needed =
            needed ||
            is_needed_locked(find_locked((enum blyi_serves)what, (uint64_t)pthread_self()), stream);
    blyi_lock_drop(&lock);
    return needed;
}

bly_status blyi_callback_unsubscribe(enum blyi_serves what, uint64_t thread_id, void *handle)
{
    struct blyi_stream *stream;
    bly_status status = pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    struct blyi_list dropped = BLYI_LIST_INIT(dropped);
    blyi_lock_take(&lock);
    if (stream->reporters[what] == NULL || stream->reporters[what]->thread != thread_id)
        status =
            blyi_fail(BLY_E_NOT_SUBSCRIBED, "stream %" PRIu32 " is not served by thread %" PRIu64,
                      stream->id, thread_id);
    else
        leave_locked(what, stream, &dropped);
    blyi_lock_drop(&lock);
    finish_all(&dropped);
    blyi_stream_unpin(stream);
    return status;
}

bool blyi_report_serves(struct blyi_stream *stream, enum blyi_serves what)
{
    /* Without the lock: who subscribes meanwhile has no order with this call. */
    return __atomic_load_n(&stream->reporters[what], __ATOMIC_RELAXED) != NULL;
}

static bly_status check_served(struct blyi_stream *stream)
{
    if (__atomic_load_n(&stream->callback_mode, __ATOMIC_RELAXED) == BLYI_CALLBACK_HOST_FUNC)
        return blyi_fail(BLY_E_SUBSCRIBED,
                         "stream %" PRIu32 " has host functions: it takes no callbacks",
                         stream->id);
    if (!blyi_report_serves(stream, BLYI_SERVES_CALLBACKS))
        return blyi_fail(BLY_E_NOT_SUBSCRIBED, "no thread serves the callbacks of stream %" PRIu32,
                         stream->id);
    return BLY_OK;
}

bly_status blyi_report_queue(struct blyi_stream *stream, void (*fn)(void *), void *arg,
                             enum blyi_serves what, bool block, uint32_t site)
{
    bly_status status = blyi_queue_ready(stream, BLYI_TASK_CALLBACK);
    if (status != BLY_OK)
        return status;
    struct blyi_report *report = blyi_host_calloc(1, sizeof(*report));
    if (report == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a callback");
    report->stream = stream;
    report->fn = fn;
    report->arg = arg;
    report->what = what;
    report->block = block;
    blyi_list_init(&report->link);
    struct blyi_task task = {.kind = BLYI_TASK_CALLBACK, .site = site};
    task.u.callback.report = report;
    blyi_queue_put(stream, &task);
    return BLY_OK;
}

bly_status blyi_callback_launch(void (*fn)(void *), void *arg, bool block, void *handle,
                                uint32_t site)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin(handle, &stream);
    if (status != BLY_OK)
        return status;
    if (fn == NULL)
        status = blyi_fail(BLY_E_INVALID, "the callback is NULL");
    if (status == BLY_OK)
        status = check_served(stream);
    if (status == BLY_OK)
        status = blyi_report_queue(stream, fn, arg, BLYI_SERVES_CALLBACKS, block, site);
    blyi_stream_unpin(stream);
    return status;
}

bool blyi_report_deliver(struct blyi_stream *stream, struct blyi_task *task)
{
    struct blyi_report *report = task->u.callback.report;
    bool blocks = false;
    blyi_lock_take(&lock);
    struct blyi_reporter *reporter = served(report)->reporters[report->what];
    /* Else the task frees it. Who drops the tasks finds it in the list, or we see that. */
    if (reporter != NULL && (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
        task->u.callback.report = NULL;
        blocks = report->block;
        blyi_queue_ref(stream);
        blyi_list_push_back(&reporter->ready, &report->link);
        poke(reporter);
    }
    blyi_lock_drop(&lock);
    return blocks;
}

void blyi_report_keep(struct blyi_report *report)
{
    report->through = report->stream;
    blyi_queue_ref(report->through);
}

bly_status blyi_report_again(const struct blyi_report *kept, struct blyi_stream *stream,
                             struct blyi_report **out)
{
    struct blyi_report *report = blyi_host_calloc(1, sizeof(*report));
    if (report == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for a callback");
    *report = *kept;
    report->stream = stream;
    blyi_list_init(&report->link);
    blyi_queue_ref(report->through);
    *out = report;
    return BLY_OK;
}

void blyi_report_free(struct blyi_report *report)
{
    if (report != NULL && report->through != NULL)
        blyi_queue_unref(report->through);
    blyi_host_free(report);
}

/* Waits for a ready callback of this thread's. */
static bly_status take(enum blyi_serves what, uint64_t deadline, struct blyi_report **out)
{
    bly_status status = BLY_OK;
    struct blyi_report *report = NULL;
    blyi_lock_take(&lock);
    struct blyi_reporter *reporter = find_locked(what, (uint64_t)pthread_self());
    if (reporter != NULL)
        reporter->n_users++;
    while (reporter != NULL && status == BLY_OK && report == NULL && reporter->n_streams > 0) {
        if (!blyi_list_empty(&reporter->ready)) {
            report = BLYI_CONTAINER(reporter->ready.next, struct blyi_report, link);
            blyi_list_remove(&report->link);
            blyi_list_push_back(&running, &report->link);
            report->began_ns = blyi_wait_real_ns();
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

bly_status blyi_callback_process(enum blyi_serves what, uint64_t timeout_ns)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    struct blyi_report *report;
    status = take(what, blyi_wait_deadline(timeout_ns), &report);
    if (status == BLY_E_TIMEOUT)
        return blyi_fail(status, "no %s became ready within %" PRIu64 " ms",
                         what == BLYI_SERVES_CALLBACKS ? "callback" : "host function",
                         timeout_ns / 1000000);
    if (status != BLY_OK)
        return blyi_fail(status, "this thread serves no stream");
    struct blyi_callback_frame frame;
    struct blyi_reach reach;
    blyi_reach_begin(&reach, report->stream, report->arg);
    blyi_task_tell_callback(report->stream, report->block);
    blyi_callback_enter(&frame, report->stream);
    report->fn(report->arg);
    blyi_callback_leave(&frame);
    blyi_reach_end(&reach, report->stream);
    blyi_lock_take(&lock);
    blyi_list_remove(&report->link);
    blyi_lock_drop(&lock);
    finish(report);
    return BLY_OK;
}
