/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.c - the ring of a stream: submission by many threads, progress told by the one owner.
 */
#include "npu/queue.h"

#include <string.h>
#include <sys/mman.h>
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/stat.h"
#include "base/sys.h"
#include "npu/abort.h"
#include "npu/block.h"
#include "npu/card.h"
#include "npu/engine.h"
#include "npu/event_inside.h"
#include "npu/graph_inside.h"
#include "npu/kernel.h"
#include "npu/notify.h"
#include "npu/pinned.h"
#include "npu/report.h"
#include "npu/signal.h"
#include "npu/source.h"
#include "npu/told.h"

/* The stream lies in front of its ring in one mapping, so that it is aligned and its lifetime
 * needs no second allocation. */
#define HEAD_BYTES 4096u
#define MAP_BYTES  (HEAD_BYTES + BLYI_RING_TASKS * sizeof(struct blyi_task))

#define PREFETCH_TASKS 8
#define ROOM_WAIT_NS   1000000u

_Static_assert(sizeof(struct blyi_stream) <= HEAD_BYTES, "a stream fits in front of its ring");
_Static_assert((BLYI_RING_TASKS & (BLYI_RING_TASKS - 1)) == 0, "positions wrap by masking");

struct blyi_failure {
    char text[BLYI_FAIL_MAX];
};

static struct blyi_task *slot_of(const struct blyi_stream *stream, uint64_t position)
{
    return &stream->ring[position & (BLYI_RING_TASKS - 1)];
}

/* The builtin asks for a readable line where the compiler may not assume prefetchw; every 64-bit
 * x86 executes it, the oldest as nothing. */
static void prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1);
#endif
}

bly_status blyi_queue_create(struct blyi_context *context, struct blyi_card *card,
                             struct blyi_stream **out)
{
    void *mapping = blyi_sys_mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for a stream (%zu bytes)",
                         card->id, (size_t)MAP_BYTES);
    struct blyi_stream *stream = mapping;
    stream->ring = (struct blyi_task *)(void *)((char *)mapping + HEAD_BYTES);
    stream->card = card;
    stream->context = context;
    stream->born_ns = blyi_clock_ns();
    stream->wake_at = BLYI_WAKE_NEVER;
    stream->engine = BLYI_ENGINE_COPY;
    stream->refs = 1;
    blyi_lock_init(&stream->lock, BLYI_RANK_STREAM);
    blyi_list_init(&stream->watchers);
    blyi_list_init(&stream->block.link);
    blyi_list_init(&stream->block.timer);
    blyi_list_init(&stream->context_link);
    blyi_list_init(&stream->roll_link);
    *out = stream;
    return BLY_OK;
}

void blyi_queue_ref(struct blyi_stream *stream)
{
    /* Relaxed: the caller has a reference already, nothing is published by this. */
    __atomic_fetch_add(&stream->refs, 1, __ATOMIC_RELAXED);
}

void blyi_queue_unref(struct blyi_stream *stream)
{
    if (!blyi_ref_drop(&stream->refs))
        return;
    bly_assert(blyi_list_empty(&stream->watchers));
    blyi_host_free(stream->failure);
    blyi_launch_slots_free(stream->launches);
    blyi_lock_fini(&stream->lock);
    blyi_sys_munmap(stream, MAP_BYTES);
}

bly_status blyi_queue_ready(struct blyi_stream *stream, enum blyi_task_kind kind)
{
    if (unlikely(blyi_queue_divert(stream) != NULL)) {
        bly_status status = blyi_divert_check(stream, kind);
        if (status != BLY_OK)
            return status;
    }
    return blyi_engine_need(stream->card->id, BLYI_ENGINE_COPY);
}

/* The ring was full: waits for room for the record of `position`, and for a moment for half a
 * ring more, so that submitter and owner do not meet at every task. Nothing says that so much
 * room will come, so then the one slot must do. Asleep at once: half a ring is far more work than
 * a wake, and where threads outnumber the CPUs, who stays awake takes the owner's. Returns
 * `completed`. */
static uint64_t wait_for_room(struct blyi_stream *stream, uint64_t position)
{
    uint64_t one = position - BLYI_RING_TASKS + 1;
    blyi_stat_add(BLYI_STAT_submit_waits, 1);
    if (blyi_queue_sleep(stream, one + BLYI_RING_TASKS / 2, ROOM_WAIT_NS) != BLY_OK)
        blyi_queue_sleep(stream, one, 0);
    return blyi_queue_completed(stream);
}

/* Whether a position has no slot yet. One that others have passed meanwhile counts as having one:
 * it cannot be taken any more, and must not be waited for. */
static bool is_beyond(uint64_t position, uint64_t completed)
{
    return (int64_t)(position - completed) >= BLYI_RING_TASKS;
}

static struct blyi_task *reserve(struct blyi_stream *stream, uint64_t *position)
{
    uint64_t mine = __atomic_load_n(&stream->issued, __ATOMIC_RELAXED);
    for (;;) {
        if (unlikely(is_beyond(mine, __atomic_load_n(&stream->seen, __ATOMIC_ACQUIRE)))) {
            uint64_t completed = blyi_queue_completed(stream);
            if (is_beyond(mine, completed))
                completed = wait_for_room(stream, mine);
            __atomic_store_n(&stream->seen, completed, __ATOMIC_RELEASE);
            mine = __atomic_load_n(&stream->issued, __ATOMIC_RELAXED);
            continue; /* others may have been quicker */
        }
        /* Relaxed is enough: the ticket publishes the record, `issued` only numbers it.
         * Acquire of `completed`, or of `seen` from who acquired that, orders our writes behind the
         * last reader's reads. */
        if (__atomic_compare_exchange_n(&stream->issued, &mine, mine + 1, true, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            break;
    }
    /* Records that the owner has read must come back before they can be written; asked for early,
     * that costs nothing. */
    prefetch_to_write(slot_of(stream, mine + PREFETCH_TASKS));
    blyi_order_acquire(blyi_queue_end_mark(stream, mine)); /* of the slot's last task */
    *position = mine;
    return slot_of(stream, mine);
}

struct blyi_task *blyi_queue_reserve(struct blyi_stream *stream, uint64_t *position)
{
    /* The one branch by which a captured stream differs; it lies on a line that is needed here. */
    if (unlikely(blyi_queue_divert(stream) != NULL))
        return NULL;
    return reserve(stream, position);
}

/* A retired stream has no engine; what is still put on it ends at once, in the submitter. */
static void drop_all(struct blyi_stream *stream)
{
    do {
        struct blyi_task *task;
        while ((task = blyi_queue_head(stream)) != NULL) {
            blyi_queue_tell_done(stream, BLY_OK, false);
            blyi_queue_discard(task);
            blyi_queue_complete(stream, BLY_OK);
        }
    } while (blyi_queue_let_go(stream));
}

static _Thread_local uint32_t last_task;

uint32_t blyi_queue_last_task(void)
{
    return last_task;
}

void blyi_queue_publish(struct blyi_stream *stream, struct blyi_task *task, uint64_t position)
{
    if (blyi_told_wanted()) {
        blyi_task_tell(stream, task, position);
        /* Behind the telling: what changed before is not what is looked for. */
        if (task->kind == BLYI_TASK_COPY && (task->flags & BLYI_TASK_HOLDS_SRC) != 0)
            blyi_source_keep(task);
        else if (unlikely(task->kind == BLYI_TASK_GRAPH))
            blyi_graph_keep_sources(task);
    }
    blyi_queue_publish_told(stream, task, position);
}

void blyi_queue_publish_told(struct blyi_stream *stream, struct blyi_task *task, uint64_t position)
{
    blyi_stat_add(BLYI_STAT_tasks_submitted, 1);
    last_task = (uint32_t)position + 1;
    blyi_order_release(blyi_queue_put_mark(stream, position));
    /* Sequentially consistent against let_go(): either we see IDLE, or it sees our ticket. */
    __atomic_exchange_n(&task->ticket, position + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&stream->state, __ATOMIC_SEQ_CST) != BLYI_QUEUE_IDLE)
        return;
    /* Acquire: as the new owner we see all that the last one did. */
    if (__atomic_exchange_n(&stream->state, BLYI_QUEUE_SCHEDULED, __ATOMIC_SEQ_CST) !=
        BLYI_QUEUE_IDLE)
        return;
    blyi_order_acquire(&stream->state);
    if (unlikely(blyi_queue_control(stream) & BLYI_CONTROL_DEAD))
        drop_all(stream);
    else
        blyi_engine_push(stream);
}

bly_status blyi_queue_submit(struct blyi_stream *stream, const struct blyi_task *task)
{
    bly_status status = blyi_queue_ready(stream, (enum blyi_task_kind)task->kind);
    if (likely(status == BLY_OK))
        blyi_queue_put(stream, task);
    return status;
}

static void fill(struct blyi_stream *stream, struct blyi_task *slot, const struct blyi_task *task,
                 uint64_t position)
{
    memcpy((char *)slot + sizeof(slot->ticket), (const char *)task + sizeof(task->ticket),
           sizeof(*task) - sizeof(task->ticket));
    blyi_queue_publish(stream, slot, position);
}

void blyi_queue_put(struct blyi_stream *stream, const struct blyi_task *task)
{
    uint64_t position;
    struct blyi_task *slot;
    while (unlikely((slot = blyi_queue_reserve(stream, &position)) == NULL))
        if (blyi_graph_divert(stream, task))
            return; /* else the capture has ended meanwhile */
    fill(stream, slot, task, position);
}

void blyi_queue_put_own(struct blyi_stream *stream, const struct blyi_task *task)
{
    uint64_t position;
    struct blyi_task *slot = reserve(stream, &position);
    fill(stream, slot, task, position);
}

struct blyi_task *blyi_queue_head(struct blyi_stream *stream)
{
    /* Relaxed: `completed` is ours. Acquire: the record is read after its ticket. */
    uint64_t position = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED);
    struct blyi_task *task = slot_of(stream, position);
    /* Each record is a line that another core has just written, and completion is a barrier:
     * without this every task would wait for its line. */
    __builtin_prefetch(slot_of(stream, position + PREFETCH_TASKS));
    if (__atomic_load_n(&task->ticket, __ATOMIC_ACQUIRE) != position + 1)
        return NULL;
    blyi_order_acquire(blyi_queue_put_mark(stream, position));
    return task;
}

bool blyi_queue_let_go(struct blyi_stream *stream)
{
    uint64_t position = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED);
    /* Once IDLE, others may own it, retire it and free it while we look once more. */
    blyi_queue_ref(stream);
    blyi_order_release(&stream->state);
    __atomic_exchange_n(&stream->state, BLYI_QUEUE_IDLE, __ATOMIC_SEQ_CST);
    bool again =
        __atomic_load_n(&slot_of(stream, position)->ticket, __ATOMIC_SEQ_CST) == position + 1 &&
        __atomic_exchange_n(&stream->state, BLYI_QUEUE_SCHEDULED, __ATOMIC_SEQ_CST) ==
            BLYI_QUEUE_IDLE;
    if (again)
        blyi_order_acquire(&stream->state);
    blyi_queue_unref(stream);
    return again;
}

static void wake(struct blyi_stream *stream)
{
    /* Cleared before `turn` moves: who lowers it later reads the new turn or is woken by it. */
    __atomic_exchange_n(&stream->wake_at, BLYI_WAKE_NEVER, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&stream->turn, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&stream->sleepers, __ATOMIC_SEQ_CST) > 0)
        blyi_sys_futex_wake(&stream->turn, INT32_MAX);
    blyi_block_progress(stream);
}

/* Keeps the first failure with its sentence; without host memory, the status alone. */
static void keep_failure(struct blyi_stream *stream, bly_status status)
{
    blyi_lock_take(&stream->lock);
    if (!stream->failed) {
        if (stream->failure == NULL)
            stream->failure = blyi_host_alloc(sizeof(*stream->failure));
        if (stream->failure != NULL) {
            const char *text = blyi_fail_text();
            size_t length = strnlen(text, BLYI_FAIL_MAX - 1);
            memcpy(stream->failure->text, text, length);
            stream->failure->text[length] = '\0';
        }
        stream->failure_status = status;
        __atomic_store_n(&stream->failed, 1, __ATOMIC_RELEASE);
    }
    blyi_lock_drop(&stream->lock);
}

void blyi_queue_tell_done(const struct blyi_stream *stream, bly_status status, bool has_run)
{
    uint64_t task = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED) + 1;
    BLYI_PROBE(TASK_DONE, .card = stream->card->id, .stream = stream->id, .task = task,
               .aux = status, .page_kind = !has_run);
}

void blyi_queue_complete(struct blyi_stream *stream, bly_status status)
{
    if (unlikely(status != BLY_OK)) {
        keep_failure(stream, status);
        blyi_context_task_failed(stream, status);
    }
    uint64_t completed = __atomic_load_n(&stream->completed, __ATOMIC_RELAXED) + 1;
    blyi_order_release(blyi_queue_end_mark(stream, completed - 1));
    /* Sequentially consistent against blyi_queue_watch(): either it sees our progress, or we see
     * that it waits. Release: what the task did comes before. */
    __atomic_exchange_n(&stream->completed, completed, __ATOMIC_SEQ_CST);
    if (unlikely(completed >= __atomic_load_n(&stream->wake_at, __ATOMIC_SEQ_CST)))
        wake(stream);
}

void blyi_queue_watch(struct blyi_stream *stream, uint64_t position)
{
    uint64_t now = __atomic_load_n(&stream->wake_at, __ATOMIC_SEQ_CST);
    while (position < now && !__atomic_compare_exchange_n(&stream->wake_at, &now, position, false,
                                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

bly_status blyi_queue_take_failure(struct blyi_stream *stream)
{
    if (likely(!__atomic_load_n(&stream->failed, __ATOMIC_ACQUIRE)))
        return BLY_OK;
    bly_status status = BLY_OK;
    blyi_lock_take(&stream->lock);
    if (stream->failed) {
        status = stream->failure_status;
        if (stream->failure != NULL)
            blyi_fail(status, "%s", stream->failure->text);
        else
            blyi_fail(status, "stream %u: %s", stream->id, bly_status_text(status));
        __atomic_store_n(&stream->failed, 0, __ATOMIC_RELEASE);
    }
    blyi_lock_drop(&stream->lock);
    return status;
}

void blyi_queue_discard(struct blyi_task *task)
{
    switch ((enum blyi_task_kind)task->kind) {
    case BLYI_TASK_COPY:
        blyi_source_forget(task);
        __attribute__((fallthrough));
    case BLYI_TASK_COPY2D: /* dst and src lie at the same place in both */
    case BLYI_TASK_SET:
        if (task->flags & BLYI_TASK_HOLDS_DST)
            blyi_pinned_release(task->u.copy.dst);
        if (task->flags & BLYI_TASK_HOLDS_SRC)
            blyi_pinned_release(task->u.copy.src);
        break;
    case BLYI_TASK_WAIT:
        if (task->u.event.after != NULL)
            blyi_queue_unref(task->u.event.after);
        blyi_event_wait_passed(task->u.event.event);
        blyi_event_unref(task->u.event.event);
        break;
    case BLYI_TASK_RECORD:
        if (unlikely(task->u.event.event->signal != NULL)) /* also when it was dropped */
            blyi_signal_done(task->u.event.event->signal, task->u.event.lane,
                             task->u.event.position);
        blyi_event_unref(task->u.event.event);
        break;
    case BLYI_TASK_RESET:
        blyi_event_unref(task->u.event.event);
        break;
    case BLYI_TASK_CALLBACK:
        blyi_report_free(task->u.callback.report);
        break;
    case BLYI_TASK_KERNEL:
        blyi_kernel_discard(task);
        break;
    case BLYI_TASK_NOTIFY_RECORD:
        __atomic_sub_fetch(&task->u.notify.notify->n_records, 1, __ATOMIC_RELAXED);
        blyi_notify_unref(task->u.notify.notify);
        break;
    case BLYI_TASK_NOTIFY_WAIT:
        blyi_notify_unref(task->u.notify.notify);
        break;
    case BLYI_TASK_NOP:
    case BLYI_TASK_COPY_INDIRECT:
    case BLYI_TASK_HOST_FUNC:
    case BLYI_TASK_VALUE_WRITE:
    case BLYI_TASK_VALUE_WAIT:
    case BLYI_TASK_REDUCE:
    case BLYI_TASK_RETIRE:
        break;
    default:
        blyi_graph_discard(task);
        break;
    }
}

void blyi_queue_end(struct blyi_stream *stream)
{
    /* Who pinned the stream in time still puts records into the ring, and drops them himself
     * (blyi_queue_publish): the ring stays until the last reference. */
    drop_all(stream);
    blyi_queue_unref(stream);
}

void blyi_queue_retire(struct blyi_stream *stream)
{
    /* Nobody owns it: we do the engine's last step ourselves; no engine need exist. */
    if (__atomic_exchange_n(&stream->state, BLYI_QUEUE_SCHEDULED, __ATOMIC_SEQ_CST) ==
        BLYI_QUEUE_IDLE) {
        blyi_order_acquire(&stream->state);
        if (blyi_queue_head(stream) == NULL) {
            __atomic_fetch_or(&stream->control, BLYI_CONTROL_DEAD, __ATOMIC_SEQ_CST);
            blyi_queue_end(stream);
            return;
        }
        blyi_engine_push(stream);
    }
    /* Somebody owns it, so its engine exists and the record will be met. */
    uint64_t position;
    struct blyi_task *task = reserve(stream, &position);
    task->kind = BLYI_TASK_RETIRE;
    task->flags = 0;
    task->site = 0;
    blyi_queue_publish_told(stream, task, position);
}

uint32_t blyi_queue_site(const struct blyi_stream *stream, uint64_t position)
{
    const struct blyi_task *task = &stream->ring[position & (BLYI_RING_TASKS - 1)];
    uint32_t site = 0;
    if (__atomic_load_n(&task->ticket, __ATOMIC_ACQUIRE) == position + 1)
        site = __atomic_load_n(&task->site, __ATOMIC_RELAXED);
    return blyi_queue_completed(stream) <= position ? site : 0; /* else it may be another's */
}

bool blyi_queue_is_diverted(const struct blyi_stream *stream)
{
    return blyi_queue_divert(stream) != NULL;
}
