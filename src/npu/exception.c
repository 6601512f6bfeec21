/* SPDX-License-Identifier: Apache-2.0
 *
 * exception.c - telling of tasks that fail.
 */
#include "npu/exception.h"

#include <stdio.h>
#include "base/fail.h"
#include "npu/card.h"
#include "npu/kernel.h"
#include "npu/queue.h"

static blyi_exception_fn listener;

void blyi_exception_listen(blyi_exception_fn fn)
{
    __atomic_store_n(&listener, fn, __ATOMIC_RELEASE);
}

void blyi_exception_tell(const struct blyi_stream *stream, const struct blyi_task *task,
                         bly_status status)
{
    blyi_exception_fn fn = __atomic_load_n(&listener, __ATOMIC_ACQUIRE);
    if (fn == NULL || status == BLY_E_CANCELLED || (blyi_queue_control(stream) & BLYI_CONTROL_SKIP))
        return;
    struct blyi_exception exception = {
        .card = stream->card->id,
        .stream = stream->id,
        .task = (uint32_t)blyi_queue_completed(stream) + 1,
        .thread = BLYI_EXCEPTION_UNKNOWN,
        .status = status,
    };
    if (task->kind == BLYI_TASK_KERNEL) {
        struct blyi_launch *launch = task->u.kernel.launch;
        exception.thread = launch->tid;
        exception.args = blyi_launch_args(launch);
        exception.args_size = launch->args_size;
        exception.function = launch->function;
    }
    char sentence[BLYI_FAIL_MAX]; /* what the listener calls may leave its own */
    snprintf(sentence, sizeof(sentence), "%s", blyi_fail_text());
    fn(&exception);
    (void)blyi_fail(status, "%s", sentence);
}
