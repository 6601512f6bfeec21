/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c - ending blocks: by progress, by a flag, by time, by force.
 */
#include "npu/block.h"

#include <pthread.h>
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/sys.h"
#include "npu/engine.h"
#include "npu/event_inside.h"
#include "npu/queue.h"
#include "npu/wait.h"

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_EVENT);

/* The blocked streams with a deadline; their number is small, so the list is searched. */
static struct blyi_list timed = BLYI_LIST_INIT(timed);

/* Streams that wait for memory, and how often they were told to look again. */
#define LOOK_NS 200000u
static struct blyi_list looking = BLYI_LIST_INIT(looking);
static uint32_t n_looking, look_turn;

/* Once made, the thread stays: a wait with a deadline may be queued and not yet blocked, so
 * nothing tells that none needs it any more. It sleeps while there is nothing to watch. */
static bool timer_runs;     /* under `lock` */
static uint32_t timer_word; /* futex: moves when `timed` or `looking` grows */

static void poke_timer(void)
{
    __atomic_fetch_add(&timer_word, 1, __ATOMIC_RELEASE);
    blyi_sys_futex_wake(&timer_word, INT32_MAX);
}

static void block_locked(struct blyi_stream *stream, struct blyi_list *watchers, uint64_t deadline)
{
    bly_assert(!stream->block.blocked);
    stream->block.blocked = true;
    stream->block.deadline = deadline;
    if (watchers != NULL)
        blyi_list_push_back(watchers, &stream->block.link);
    if (deadline != 0) {
        blyi_list_push_back(&timed, &stream->block.timer);
        poke_timer();
    }
}

/* The caller pushes the stream once it has dropped the lock: nobody else will. */
static void unblock_locked(struct blyi_stream *stream)
{
    bly_assert(stream->block.blocked);
    blyi_list_remove(&stream->block.link);
    blyi_list_remove(&stream->block.timer);
    stream->block.blocked = false;
    if (stream->block.looks)
        __atomic_store_n(&n_looking, n_looking - 1, __ATOMIC_RELAXED);
    stream->block.paused = false;
    stream->block.looks = false;
    stream->block.event = NULL;
    stream->block.after = NULL;
    stream->block.n_pending = NULL;
}

/* Streams that were unblocked, linked by `next` (theirs to use for whoever owns them). */
static void push_all(struct blyi_stream *streams)
{
    while (streams != NULL) {
        struct blyi_stream *next = streams->next;
        blyi_engine_push(streams);
        streams = next;
    }
}

bool blyi_block_on_stream(struct blyi_stream *stream, struct blyi_stream *after, uint64_t position,
                          uint64_t deadline)
{
    bool blocked = false;
    blyi_lock_take(&lock);
    /* Told first, looked at second: see queue.h. */
    blyi_queue_watch(after, position + 1);
    if (__atomic_load_n(&after->completed, __ATOMIC_SEQ_CST) <= position &&
        (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
        stream->block.position = position;
        stream->block.after = after;
        block_locked(stream, &after->watchers, deadline);
        blocked = true;
    }
    blyi_lock_drop(&lock);
    return blocked;
}

bool blyi_block_on_event(struct blyi_stream *stream, struct blyi_event *event, uint64_t deadline)
{
    bool blocked = false;
    blyi_lock_take(&lock);
    if (!event->flag && (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
        stream->block.event = event;
        block_locked(stream, &event->watchers, deadline);
        blocked = true;
    }
    blyi_lock_drop(&lock);
    return blocked;
}

bool blyi_block_paused(struct blyi_stream *stream)
{
    bool blocked = false;
    blyi_lock_take(&lock);
    uint32_t control = blyi_queue_control(stream);
    if ((control & BLYI_CONTROL_PAUSED) && (control & BLYI_CONTROL_SKIP) == 0) {
        stream->block.paused = true;
        block_locked(stream, NULL, 0);
        blocked = true;
    }
    blyi_lock_drop(&lock);
    return blocked;
}

bool blyi_block_deadline(struct blyi_stream *stream, uint64_t timeout_ns, uint64_t *deadline)
{
    *deadline = 0;
    if (timeout_ns == 0)
        return true;
    if (stream->began_ns == 0)
        stream->began_ns = blyi_clock_ns();
    if (__builtin_add_overflow(stream->began_ns, timeout_ns, deadline))
        *deadline = 0;
    return *deadline == 0 || blyi_clock_ns() < *deadline;
}

enum blyi_block_result blyi_block_at(struct blyi_stream *stream, struct blyi_list *watchers,
                                     bool (*take)(void *arg), void *arg, uint64_t deadline,
                                     const uint32_t *n_pending)
{
    enum blyi_block_result result = BLYI_BLOCK_TAKEN;
    blyi_lock_take(&lock);
    if (!take(arg)) {
        if (deadline == 1) {
            result = BLYI_BLOCK_LATE;
        } else if ((blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
            stream->block.n_pending = n_pending;
            block_locked(stream, watchers, deadline);
            result = BLYI_BLOCK_BLOCKED;
        }
    }
    blyi_lock_drop(&lock);
    return result;
}

/* Takes all out of a list of watchers; linked by `next`. */
static struct blyi_stream *unblock_all_locked(struct blyi_list *watchers)
{
    struct blyi_stream *first = NULL, **end = &first;
    BLYI_LIST_FOR_SAFE(node, watchers)
    {
        struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, block.link);
        unblock_locked(stream);
        stream->next = NULL;
        *end = stream; /* who came first looks first */
        end = &stream->next;
    }
    return first;
}

void blyi_block_change(struct blyi_list *watchers, void (*change)(void *arg), void *arg)
{
    blyi_lock_take(&lock);
    change(arg);
    struct blyi_stream *freed = unblock_all_locked(watchers);
    blyi_lock_drop(&lock);
    push_all(freed);
}

uint32_t blyi_block_looks(void)
{
    return __atomic_load_n(&look_turn, __ATOMIC_SEQ_CST);
}

bool blyi_block_to_look(struct blyi_stream *stream, uint32_t turn)
{
    bool blocked = false;
    blyi_lock_take(&lock);
    if (__atomic_load_n(&look_turn, __ATOMIC_SEQ_CST) == turn &&
        (blyi_queue_control(stream) & BLYI_CONTROL_SKIP) == 0) {
        stream->block.looks = true;
        block_locked(stream, &looking, 0);
        __atomic_store_n(&n_looking, n_looking + 1, __ATOMIC_RELAXED);
        if (n_looking == 1)
            poke_timer();
        blocked = true;
    }
    blyi_lock_drop(&lock);
    return blocked;
}

void blyi_block_look_again(void)
{
    blyi_lock_take(&lock);
    __atomic_fetch_add(&look_turn, 1, __ATOMIC_SEQ_CST);
    struct blyi_stream *freed = unblock_all_locked(&looking);
    blyi_lock_drop(&lock);
    push_all(freed);
}

void blyi_block_progress(struct blyi_stream *after)
{
    struct blyi_stream *freed = NULL;
    blyi_lock_take(&lock);
    uint64_t completed = blyi_queue_completed(after); /* cannot move: its owner is here */
    BLYI_LIST_FOR_SAFE(node, &after->watchers)
    {
        struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, block.link);
        if (stream->block.position >= completed) {
            blyi_queue_watch(after, stream->block.position + 1);
            continue;
        }
        unblock_locked(stream);
        stream->next = freed;
        freed = stream;
    }
    blyi_lock_drop(&lock);
    push_all(freed);
}

void blyi_block_flag(struct blyi_event *event, bool set)
{
    struct blyi_stream *freed = NULL;
    blyi_lock_take(&lock);
    /* Atomic because queries read it without the lock. */
    if (set)
        blyi_order_release(&event->flag);
    __atomic_store_n(&event->flag, set, __ATOMIC_RELEASE);
    if (set)
        BLYI_LIST_FOR_SAFE(node, &event->watchers)
        {
            struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, block.link);
            unblock_locked(stream);
            stream->next = freed;
            freed = stream;
        }
    blyi_lock_drop(&lock);
    push_all(freed);
}

void blyi_block_control(struct blyi_stream *stream, uint32_t set, uint32_t clear)
{
    bool freed = false;
    blyi_lock_take(&lock);
    __atomic_fetch_or(&stream->control, set, __ATOMIC_ACQ_REL);
    __atomic_fetch_and(&stream->control, ~clear, __ATOMIC_ACQ_REL);
    uint32_t control = blyi_queue_control(stream);
    if (stream->block.blocked && ((control & BLYI_CONTROL_SKIP) ||
                                  (stream->block.paused && !(control & BLYI_CONTROL_PAUSED)))) {
        unblock_locked(stream);
        freed = true;
    }
    blyi_lock_drop(&lock);
    if (freed)
        blyi_engine_push(stream);
}

bool blyi_block_is_blocked(struct blyi_stream *stream)
{
    blyi_lock_take(&lock);
    bool blocked = stream->block.blocked;
    blyi_lock_drop(&lock);
    return blocked;
}

bool blyi_block_is_stuck(struct blyi_stream *stream)
{
    bool stuck = false;
    struct blyi_event *event = NULL;
    blyi_lock_take(&lock);
    if (stream->block.blocked && stream->block.deadline == 0) {
        stuck = stream->block.paused || stream->block.looks ||
                (stream->block.n_pending != NULL &&
                 __atomic_load_n(stream->block.n_pending, __ATOMIC_RELAXED) == 0);
        event = stream->block.event;
        if (event != NULL)
            __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED); /* the wait has one */
    }
    blyi_lock_drop(&lock);
    if (event != NULL) {
        stuck = !blyi_event_is_pending(event);
        blyi_event_unref(event);
    }
    return stuck;
}

struct blyi_stream *blyi_block_waits_for(struct blyi_stream *stream, bool *unknown)
{
    struct blyi_stream *after = NULL;
    struct blyi_event *event = NULL;
    *unknown = false;
    blyi_lock_take(&lock);
    if (stream->block.blocked && stream->block.deadline == 0) {
        after = stream->block.after;
        event = stream->block.event;
        *unknown = stream->block.n_pending != NULL;
        if (after != NULL)
            blyi_queue_ref(after);
        if (event != NULL)
            __atomic_fetch_add(&event->refs, 1, __ATOMIC_RELAXED); /* the wait has one */
    }
    blyi_lock_drop(&lock);
    if (event != NULL) {
        uint64_t position;
        blyi_event_last(event, &after, &position);
        blyi_event_unref(event);
    }
    return after;
}

static uint64_t expire(struct blyi_stream **freed)
{
    uint64_t now = blyi_clock_ns(), nearest = UINT64_MAX;
    BLYI_LIST_FOR_SAFE(node, &timed)
    {
        struct blyi_stream *stream = BLYI_CONTAINER(node, struct blyi_stream, block.timer);
        if (stream->block.deadline > now) {
            if (stream->block.deadline < nearest)
                nearest = stream->block.deadline;
            continue;
        }
        unblock_locked(stream); /* its wait looks at the clock itself and fails */
        stream->next = *freed;
        *freed = stream;
    }
    return nearest;
}

static void *timer_main(void *arg)
{
    (void)arg;
    for (;;) {
        struct blyi_stream *freed = NULL;
        uint32_t word = __atomic_load_n(&timer_word, __ATOMIC_ACQUIRE);
        blyi_lock_take(&lock);
        uint64_t nearest = expire(&freed);
        blyi_lock_drop(&lock);
        push_all(freed);
        if (__atomic_load_n(&n_looking, __ATOMIC_RELAXED) == 0) {
            blyi_wait_on(&timer_word, word, nearest);
            continue;
        }
        /* In real time, whatever the clock is. */
        blyi_sys_futex_wait(&timer_word, word, LOOK_NS);
        blyi_block_look_again();
    }
    return NULL;
}

int blyi_block_need_timer(void)
{
    int error = 0;
    blyi_lock_take(&lock);
    if (!timer_runs) {
        pthread_t thread;
        error = blyi_sys_thread_create(&thread, "bly-timer", timer_main, NULL);
        if (error == 0) {
            pthread_detach(thread);
            timer_runs = true;
        }
    }
    blyi_lock_drop(&lock);
    return error;
}
