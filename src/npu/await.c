/* SPDX-License-Identifier: Apache-2.0
 *
 * await.c - threads of the host that wait for a stream.
 */
#include <inttypes.h>
#include "base/clock.h"
#include "base/fail.h"
#include "base/probe.h"
#include "base/sys.h"
#include "npu/abort.h"
#include "npu/card.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/queue.h"
#include "npu/stream.h"
#include "npu/wait.h"

#define LOOKS_PER_CLOCK 64 /* the clock is read once in so many looks: about 2 us */

#define MOST_PAUSES 32

#define OUTSIDE_LOOK_NS 5000000u

#define NOT_WAITED_FOR                                                                             \
    (BLYI_STREAM_PERSISTENT | BLYI_STREAM_CPU_SCHEDULE | BLYI_STREAM_DEVICE_USE_ONLY |             \
     BLYI_STREAM_INSIDE)

bool blyi_stream_is_waited_for(const struct blyi_stream *stream)
{
    return (stream->flags & NOT_WAITED_FOR) == 0;
}

static bool reached(const struct blyi_stream *stream, uint64_t target)
{
    return target == 0 || blyi_queue_passed(stream, target - 1);
}

/* Pauses between two looks: each look takes the line of `completed` away from the owner, so who
 * waits for many tasks looks less often. */
static void spin_pause(uint64_t n_tasks)
{
    for (uint64_t n = n_tasks < MOST_PAUSES ? n_tasks : MOST_PAUSES; n > 0; n--)
        blyi_spin_pause();
}

bool blyi_queue_spin(const struct blyi_stream *stream, uint64_t target)
{
    uint64_t limit = blyi_wait_spin_ns();
    if (limit == 0)
        return reached(stream, target);
    uint64_t start = 0;
    for (uint32_t looks = 1;; looks++) {
        uint64_t completed = blyi_queue_completed(stream);
        if (completed >= target)
            return reached(stream, target);
        if (looks % LOOKS_PER_CLOCK == 0) {
            uint64_t now = blyi_wait_real_ns();
            if (start == 0)
                start = now;
            else if (now - start > limit ||
                     (now - start > BLYI_WAIT_ALONE_NS && !blyi_wait_yield()))
                return reached(stream, target);
        }
        spin_pause(target - completed);
    }
}

typedef bool sleep_fn(const uint32_t *word, uint32_t expected, uint64_t until);

static bool sleep_real(const uint32_t *word, uint32_t expected, uint64_t until)
{
    uint64_t left = 0; /* for ever */
    if (until != UINT64_MAX) {
        uint64_t now = blyi_wait_real_ns();
        if (now >= until)
            return false;
        left = until - now;
    }
    blyi_sys_futex_wait(word, expected, left);
    return true;
}

static bly_status sleep_until(struct blyi_stream *stream, uint64_t target, sleep_fn *sleep,
                              uint64_t until)
{
    bly_status status = BLY_OK;
    __atomic_fetch_add(&stream->sleepers, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t turn = __atomic_load_n(&stream->turn, __ATOMIC_SEQ_CST);
        blyi_queue_watch(stream, target);
        /* After watch(), sequentially consistent: see queue.h. */
        if (__atomic_load_n(&stream->completed, __ATOMIC_SEQ_CST) >= target) {
            reached(stream, target);
            break;
        }
        if (!sleep(&stream->turn, turn, until)) {
            status = BLY_E_TIMEOUT;
            break;
        }
    }
    __atomic_fetch_sub(&stream->sleepers, 1, __ATOMIC_RELAXED);
    return status;
}

/* Of a thread that runs user code in stream order: looks now and then whether the work waits for
 * this very code to return. */
static bly_status await_outside(struct blyi_stream *stream, uint64_t target, uint64_t deadline)
{
    for (;;) {
        if (blyi_callback_needs_caller(stream, false) && !reached(stream, target))
            return blyi_fail(BLY_E_STATE,
                             "stream %" PRIu32
                             " of card %d waits for the host function or callback "
                             "that waits for it; it has %" PRIu64 " tasks left",
                             stream->id, stream->card->id, target - blyi_queue_completed(stream));
        if (sleep_until(stream, target, sleep_real, blyi_wait_real_ns() + OUTSIDE_LOOK_NS) ==
            BLY_OK)
            return BLY_OK;
        if (blyi_clock_ns() >= deadline)
            return BLY_E_TIMEOUT;
    }
}

bly_status blyi_queue_await_until(struct blyi_stream *stream, uint64_t target, uint64_t deadline)
{
    if (reached(stream, target) || blyi_queue_spin(stream, target))
        return BLY_OK;
    if (unlikely(blyi_callback_serves()))
        return await_outside(stream, target, deadline);
    return sleep_until(stream, target, blyi_wait_on, deadline);
}

bly_status blyi_queue_await(struct blyi_stream *stream, uint64_t target, uint64_t timeout_ns)
{
    if (reached(stream, target))
        return BLY_OK;
    return blyi_queue_await_until(stream, target, blyi_wait_deadline(timeout_ns));
}

bly_status blyi_queue_await_real(struct blyi_stream *stream, uint64_t target, uint64_t limit_ns)
{
    if (reached(stream, target) || blyi_queue_spin(stream, target))
        return BLY_OK;
    return blyi_queue_sleep(stream, target, limit_ns);
}

bly_status blyi_queue_sleep(struct blyi_stream *stream, uint64_t target, uint64_t limit_ns)
{
    uint64_t until = limit_ns != 0 ? blyi_wait_real_ns() + limit_ns : UINT64_MAX;
    return sleep_until(stream, target, sleep_real, until);
}

static void tell_unfinished(bly_status status, struct blyi_stream *stream, uint64_t target,
                            uint64_t timeout_ns)
{
    uint64_t left = target - blyi_queue_completed(stream);
    blyi_fail(
        status, "stream %" PRIu32 " of card %d: %" PRIu64 " task%s not ended within %" PRIu64 " ms",
        stream->id, stream->card->id, left, left == 1 ? " has" : "s have", timeout_ns / 1000000);
}

bly_status blyi_stream_sync(void *handle, uint64_t timeout_ns)
{
    struct blyi_stream *stream;
    bly_status status = blyi_stream_pin_any(handle, &stream);
    if (status != BLY_OK)
        return status;
    status = blyi_capture_refuse(stream, "waited for");
    if (unlikely(status != BLY_OK)) {
        blyi_stream_unpin(stream);
        return status;
    }
    if (unlikely(__atomic_exchange_n(&stream->stopped, 0, __ATOMIC_ACQ_REL) != 0)) {
        status = blyi_queue_take_failure(stream);
        if (status == BLY_OK)
            status = blyi_fail(BLY_E_CANCELLED, "stream %" PRIu32 " of card %d was stopped",
                               stream->id, stream->card->id);
    } else if (blyi_stream_is_waited_for(stream)) {
        struct blyi_abort_mark mark = blyi_abort_mark(stream);
        uint64_t target = blyi_queue_issued(stream);
        status = blyi_queue_await(stream, target, timeout_ns);
        if (status == BLY_OK)
            status = blyi_abort_since(stream, mark);
        else if (status == BLY_E_TIMEOUT)
            tell_unfinished(status, stream, target, timeout_ns);
        if (status == BLY_OK)
            status = blyi_queue_take_failure(stream);
        if (status == BLY_OK)
            status = blyi_context_failure(stream->context);
    }
    if (status != BLY_E_TIMEOUT && blyi_stream_is_waited_for(stream))
        BLYI_PROBE(STREAM_SYNC, .card = stream->card->id, .stream = stream->id);
    blyi_stream_unpin(stream);
    return status;
}

static bly_status read_complete(struct blyi_stream *stream, void *complete)
{
    bly_status status = blyi_capture_refuse(stream, "asked");
    if (status == BLY_OK)
        *(bool *)complete =
            !blyi_stream_is_waited_for(stream) || reached(stream, blyi_queue_issued(stream));
    if (status == BLY_OK && *(bool *)complete && blyi_stream_is_waited_for(stream))
        BLYI_PROBE(STREAM_SYNC, .card = stream->card->id, .stream = stream->id, .aux = 1);
    return status;
}

bly_status blyi_stream_query(void *handle, bool *complete)
{
    return blyi_stream_with(handle, read_complete, complete);
}

static bly_status read_pending(struct blyi_stream *stream, void *n_tasks)
{
    /* `completed` first: it never overtakes `issued`. */
    uint64_t completed = blyi_queue_completed(stream);
    *(uint64_t *)n_tasks = blyi_queue_issued(stream) - completed;
    return BLY_OK;
}

bly_status blyi_stream_pending(void *handle, uint64_t *n_tasks)
{
    return blyi_stream_with(handle, read_pending, n_tasks);
}
