/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c - what an engine does with the tasks of a stream that it owns.
 */
#include <inttypes.h>
#include "base/fail.h"
#include "npu/block.h"
#include "npu/callback.h"
#include "npu/card.h"
#include "npu/copy_indirect.h"
#include "npu/copy_inside.h"
#include "npu/engine.h"
#include "npu/event_inside.h"
#include "npu/exception.h"
#include "npu/graph_inside.h"
#include "npu/host_thread.h"
#include "npu/kernel.h"
#include "npu/notify.h"
#include "npu/queue.h"
#include "npu/reduce.h"
#include "npu/report.h"
#include "npu/source.h"
#include "npu/told.h"
#include "npu/value.h"

#define QUANTUM 64 /* tasks of one stream before the engine looks for a more urgent one */

enum step { STEP_DONE, STEP_GONE, STEP_LOST };

static enum blyi_engine_kind engine_of(const struct blyi_task *task)
{
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_COPY:
    case BLYI_TASK_COPY2D:
    case BLYI_TASK_COPY_INDIRECT:
    case BLYI_TASK_SET:
    case BLYI_TASK_REDUCE:
        return BLYI_ENGINE_COPY;
    case BLYI_TASK_KERNEL:
        return blyi_kernel_engine(task);
    default:
        return BLYI_ENGINE_ANY;
    }
}

/* A wait may be looked at several times: each time its stream was unblocked. */
static enum step run_wait(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct blyi_event *event = task->u.event.event;
    struct blyi_stream *after = task->u.event.after;
    uint64_t deadline = 0;
    if (unlikely(event->signal != NULL))
        return blyi_event_run_shared_wait(stream, task, status) ? STEP_DONE : STEP_GONE;
    for (;;) {
        bool passed = event->modern
                          ? after == NULL || blyi_queue_passed(after, task->u.event.position)
                          : blyi_event_is_flagged(event);
        if (passed)
            break;
        if (!blyi_block_deadline(stream, task->u.event.timeout_ns, &deadline)) {
            /* Not E_TIMEOUT: who synchronises must tell this from his own timeout. */
            *status = blyi_fail(BLY_E_ABORTED,
                                "stream %" PRIu32 " waited %" PRIu64 " s for event %" PRIu32,
                                stream->id, task->u.event.timeout_ns / 1000000000u, event->id);
            break;
        }
        if (event->modern ? blyi_block_on_stream(stream, after, task->u.event.position, deadline)
                          : blyi_block_on_event(stream, event, deadline))
            return STEP_GONE;
        if (blyi_queue_control(stream) & BLYI_CONTROL_SKIP)
            break;
    }
    stream->began_ns = 0;
    return STEP_DONE;
}

static enum step run_task(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_NOP:
    case BLYI_TASK_RETIRE:
        break;
    case BLYI_TASK_COPY:
    case BLYI_TASK_COPY2D:
    case BLYI_TASK_SET:
        *status = blyi_copy_task(stream, task);
        break;
    case BLYI_TASK_COPY_INDIRECT:
        *status = blyi_copy_indirect_task(stream, task);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
        blyi_task_tell_signal(stream);
        blyi_notify_run_record(task);
        break;
    case BLYI_TASK_NOTIFY_WAIT:
        return blyi_notify_run_wait(stream, task, status) ? STEP_DONE : STEP_GONE;
    case BLYI_TASK_VALUE_WRITE:
        blyi_task_tell_signal(stream);
        blyi_value_run_write(stream, task, status);
        break;
    case BLYI_TASK_VALUE_WAIT:
        return blyi_value_run_wait(stream, task, status) ? STEP_DONE : STEP_GONE;
    case BLYI_TASK_REDUCE:
        *status = blyi_reduce_task(stream, task);
        break;
    case BLYI_TASK_KERNEL:
        return blyi_kernel_run(stream, task, status) ? STEP_DONE : STEP_LOST;
    case BLYI_TASK_RECORD:
        if (!task->u.event.event->modern)
            blyi_task_tell_signal(stream);
        blyi_event_recorded(task->u.event.event, stream,
                            __atomic_load_n(&stream->completed, __ATOMIC_RELAXED));
        break;
    case BLYI_TASK_RESET:
        blyi_block_flag(task->u.event.event, false);
        break;
    case BLYI_TASK_WAIT:
        return run_wait(stream, task, status);
    case BLYI_TASK_HOST_FUNC:
        return blyi_host_thread_push(stream) ? STEP_GONE : STEP_DONE;
    case BLYI_TASK_CALLBACK:
        return blyi_report_deliver(stream, task) ? STEP_GONE : STEP_DONE;
    default:
        return blyi_graph_run(stream, task, status) ? STEP_DONE : STEP_GONE;
    }
    return STEP_DONE;
}

/* The last task: whatever was put behind it (misuse) is dropped by whoever put it there. */
static void retire(struct blyi_stream *stream)
{
    __atomic_fetch_or(&stream->control, BLYI_CONTROL_DEAD | BLYI_CONTROL_DROP, __ATOMIC_SEQ_CST);
    blyi_queue_complete(stream, BLY_OK);
    blyi_queue_end(stream);
}

enum blyi_run_result blyi_stream_run(struct blyi_stream *stream, enum blyi_engine_kind kind)
{
    for (int n = 0; n < QUANTUM; n++) {
        struct blyi_task *task = blyi_queue_head(stream);
        if (task == NULL)
            return BLYI_RUN_DRAINED;

        uint32_t control = blyi_queue_control(stream);
        if (unlikely(control & BLYI_CONTROL_PAUSED) && blyi_block_paused(stream))
            return BLYI_RUN_GONE;
        bly_status status = BLY_OK;
        bool has_run = true;
        if (unlikely(task->kind >= BLYI_TASK_RARE)) {
            if (task->kind == BLYI_TASK_RETIRE) {
                retire(stream);
                return BLYI_RUN_GONE;
            }
            if (task->kind == BLYI_TASK_NODE)
                status = blyi_node_become(stream, task);
        }
        if (likely((blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0)) {
            enum blyi_engine_kind wanted = engine_of(task);
            if (wanted != BLYI_ENGINE_ANY && wanted != kind) {
                stream->engine = wanted;
                blyi_engine_push(stream);
                return BLYI_RUN_GONE;
            }
            enum step step = run_task(stream, task, &status);
            if (step != STEP_DONE)
                return step == STEP_LOST ? BLYI_RUN_LOST : BLYI_RUN_GONE;
            if (unlikely(status != BLY_OK))
                blyi_exception_tell(stream, task, status);
        } else {
            has_run = false;
            stream->began_ns = 0; /* of a wait that was dropped */
            if (unlikely(task->kind > BLYI_TASK_RARE))
                status = blyi_graph_dropped(task);
        }
        if (unlikely(task->kind == BLYI_TASK_COPY && task->u.copy.kept != NULL) && has_run)
            blyi_source_compare(stream, task);
        blyi_queue_tell_done(stream, status, has_run);
        blyi_queue_discard(task);
        blyi_queue_complete(stream, status);
    }
    return BLYI_RUN_AGAIN;
}

void blyi_stream_lost(struct blyi_stream *stream)
{
    struct blyi_task *task = blyi_queue_head(stream);
    bly_status status = blyi_kernel_failed(stream, task);
    blyi_exception_tell(stream, task, status);
    blyi_queue_tell_done(stream, status, true);
    blyi_queue_discard(task);
    blyi_queue_complete(stream, status);
}
