/* SPDX-License-Identifier: Apache-2.0
 *
 * notify_task.c - notifies when their tasks run: changing, comparing, and becoming shared.
 */
#include "npu/notify.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/handle.h"
#include "npu/block.h"
#include "npu/queue.h"
#include "npu/runtime.h"
#include "npu/signal.h"

#define SECOND_NS 1000000000u

/* A task looks at a notify that may be shared at the same moment: under the lock of block.c it is
 * the one or the other. */
struct access {
    const struct blyi_task *task;
    struct blyi_notify *notify;
    struct blyi_signal *signal; /* what it was when we came; then, what it is */
    bool moved, alone;
};

static struct blyi_signal *signal_of(const struct blyi_notify *notify)
{
    return __atomic_load_n(&notify->signal, __ATOMIC_ACQUIRE);
}

static void change(void *arg)
{
    struct access *access = arg;
    struct blyi_notify *notify = access->notify;
    uint32_t value = access->task->u.notify.value;
    access->signal = signal_of(notify);
    if (access->signal != NULL)
        return;
    switch ((enum blyi_notify_change)access->task->value) {
    case BLYI_NOTIFY_SET:
        notify->value = value;
        break;
    case BLYI_NOTIFY_ADD:
        notify->value += value;
        break;
    case BLYI_NOTIFY_OR:
        notify->value |= value;
        break;
    case BLYI_NOTIFY_AND:
        notify->value &= value;
        break;
    }
}

void blyi_notify_run_record(struct blyi_task *task)
{
    struct access access = {.task = task, .notify = task->u.notify.notify};
    access.signal = signal_of(access.notify);
    if (access.signal == NULL)
        blyi_block_change(&access.notify->watchers, change, &access);
    if (access.signal != NULL)
        blyi_signal_set(access.signal, task->u.notify.value);
}

static bool take_shared(struct access *access)
{
    if (blyi_signal_take(access->signal))
        return true;
    access->alone = __atomic_load_n(&access->notify->n_records, __ATOMIC_RELAXED) == 0 &&
                    blyi_signal_is_alone(access->signal);
    return access->alone;
}

static bool take(void *arg)
{
    struct access *access = arg;
    const struct blyi_task *task = access->task;
    struct blyi_notify *notify = access->notify;
    if (access->signal != NULL)
        return take_shared(access);
    access->moved = signal_of(notify) != NULL;
    if (access->moved)
        return true;
    uint32_t now = notify->value, value = task->u.notify.value;
    bool passed = false;
    switch ((enum blyi_notify_condition)task->value) {
    case BLYI_NOTIFY_LESS:
        passed = now < value;
        break;
    case BLYI_NOTIFY_EQUAL:
        passed = now == value;
        break;
    case BLYI_NOTIFY_GREATER:
        passed = now > value;
        break;
    case BLYI_NOTIFY_GREATER_EQUAL:
        passed = now >= value;
        break;
    case BLYI_NOTIFY_MASKED:
        passed = (now & value) == value;
        break;
    }
    if (passed && task->u.notify.clear)
        notify->value = 0;
    return passed;
}

bool blyi_notify_run_wait(struct blyi_stream *stream, struct blyi_task *task, bly_status *status)
{
    struct blyi_notify *notify = task->u.notify.notify;
    struct access access = {.task = task, .notify = notify};
    enum blyi_block_result result;
    uint64_t deadline;
    bool in_time = blyi_block_deadline(stream, task->u.notify.timeout_ns, &deadline);
    do {
        access.signal = signal_of(notify);
        access.moved = false;
        result = blyi_block_at(stream,
                               access.signal != NULL ? &access.signal->watchers : &notify->watchers,
                               take, &access, in_time ? deadline : 1, &notify->n_records);
    } while (access.moved);
    if (result == BLYI_BLOCK_BLOCKED)
        return false;
    if (result == BLYI_BLOCK_LATE)
        *status =
            blyi_fail(BLY_E_ABORTED, "stream %" PRIu32 " waited %" PRIu64 " s for notify %" PRIu32,
                      stream->id, task->u.notify.timeout_ns / SECOND_NS, notify->id);
    else if (access.alone)
        *status = blyi_signal_left_alone(access.signal);
    stream->began_ns = 0;
    return true;
}

static void clear(void *arg)
{
    struct access *access = arg;
    access->signal = signal_of(access->notify);
    if (access->signal == NULL)
        access->notify->value = 0;
}

bly_status blyi_notify_reset_now(void *const handles[], size_t n)
{
    bly_status status = blyi_runtime_enter();
    /* Looked at first, so that a bad one changes nothing. */
    for (size_t i = 0; status == BLY_OK && i < n; i++) {
        if (blyi_handle_get(BLYI_HANDLE_NOTIFY, handles[i]) != NULL)
            blyi_handle_put(handles[i]);
        else
            status = BLY_E_HANDLE;
    }
    for (size_t i = 0; status == BLY_OK && i < n; i++) {
        struct blyi_notify *notify = blyi_handle_get(BLYI_HANDLE_NOTIFY, handles[i]);
        if (notify == NULL) {
            blyi_fail_clear(); /* destroyed meanwhile: as good as reset */
            continue;
        }
        struct access access = {.notify = notify};
        blyi_block_change(&notify->watchers, clear, &access);
        if (access.signal != NULL)
            blyi_signal_set(access.signal, 0);
        blyi_handle_put(handles[i]);
    }
    return status;
}

/* Under the lock of block.c. */
static void move(void *arg)
{
    struct access *access = arg;
    access->moved = access->notify->signal == NULL;
    if (!access->moved)
        return;
    blyi_signal_begin_value(access->signal, access->notify->value);
    __atomic_store_n(&access->notify->signal, access->signal, __ATOMIC_RELEASE);
}

bool blyi_notify_share(struct blyi_notify *notify, struct blyi_signal *signal)
{
    struct access access = {.notify = notify, .signal = signal};
    blyi_block_change(&notify->watchers, move, &access); /* who waited looks again, at the signal */
    return access.moved;
}
