/* SPDX-License-Identifier: Apache-2.0
 *
 * queue.h - the inside of a stream: the ring of tasks, who owns it, and how its progress is told.
 *
 * Many threads submit; exactly one owner runs. `state` says whether there is an owner:
 *
 *      IDLE ── a submitter's exchange ──> SCHEDULED: on an engine, blocked (block.h),
 *       ^                                 or with a thread that runs user code
 *       └── the owner, ring empty, then looks once more
 *
 * `completed` is written by the owner alone. Whoever waits for a position lowers `wake_at` to
 * it, looks at `completed` again, and sleeps on `turn`; the owner raises `completed`, looks at
 * `wake_at`, and wakes. Both sides use sequentially consistent accesses, so one of them sees
 * the other.
 *
 * References: one of the handle, one of the queue itself (until its RETIRE task has run), one
 * for each event whose last record lies here, one for each queued wait for such a record.
 */
#ifndef BLYI_QUEUE_H
#define BLYI_QUEUE_H

#include <belay/base.h>
#include <stdalign.h>
#include <stdbool.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/order.h"
#include "npu/task.h"

struct blyi_card;
struct blyi_context;
struct blyi_context_here;
struct blyi_divert;
struct blyi_graph;
struct blyi_line;

#define BLYI_RING_TASKS 2048u /* 128 KiB of addresses; pages are touched as the ring fills */
#define BLYI_WAKE_NEVER UINT64_MAX

enum blyi_queue_state { BLYI_QUEUE_IDLE, BLYI_QUEUE_SCHEDULED };

/* Bits of `control`, looked at before each task. */
#define BLYI_CONTROL_PAUSED 1u
#define BLYI_CONTROL_DROP   2u /* force-destroyed: end all tasks without running them */
#define BLYI_CONTROL_DEAD   4u /* retired: no engine will ever look again */
#define BLYI_CONTROL_FAILED                                                                        \
    8u /* its context has stopped on a failure: as DROP, until that ends                           \
        */
#define BLYI_CONTROL_SKIP (BLYI_CONTROL_DROP | BLYI_CONTROL_FAILED)

enum blyi_callback_mode { BLYI_CALLBACK_NONE, BLYI_CALLBACK_HOST_FUNC, BLYI_CALLBACK_REPORT };

/* How a stream is blocked; guarded by the lock of block.c. */
struct blyi_block {
    struct blyi_list link;  /* in the watchers of a stream or an event */
    struct blyi_list timer; /* among the blocked ones that have a deadline */
    struct blyi_event *event;
    struct blyi_stream *after; /* whose watchers; the task at the head has a reference */
    uint64_t position;         /* waits until the other stream's `completed` exceeds it */
    uint64_t deadline;
    const uint32_t *n_pending; /* waits for a condition: what may still bring it about */
    bool blocked;
    bool looks;  /* blocked because memory is not yet as it shall be */
    bool paused; /* blocked because it is paused */
};

struct blyi_failure; /* queue.c */

/* Another stream's task that a stream has waited for (known.h). */
struct blyi_known {
    uint32_t stream; /* id; 0: none */
    uint64_t position;
};
#define BLYI_KNOWN_ROWS 8u

struct blyi_stream {
    /* Written at creation. */
    struct blyi_task *ring;
    struct blyi_card *card;
    struct blyi_context *context;
    void *handle;
    uint32_t id;
    uint32_t site;
    uint32_t priority;
    uint32_t flags;
    uint64_t born_ns;
    bool is_default;

    /* Submitters. */
    alignas(BLYI_CACHE_LINE) uint64_t issued; /* positions handed out */
    uint64_t seen; /* a past value of `completed`: spares submitters the owner's line */
    struct blyi_divert *divert; /* where submissions go instead of the ring (graph_inside.h) */

    /* The owner writes, waiters read. */
    alignas(BLYI_CACHE_LINE) uint64_t completed; /* positions below have ended */
    uint64_t wake_at;                            /* lowest `completed` that somebody waits for */
    uint32_t turn;                               /* futex word of waiting host threads */
    uint32_t sleepers;                           /* how many of them */

    /* Ownership. */
    alignas(BLYI_CACHE_LINE) uint32_t state;
    uint32_t control;
    struct blyi_stream *next; /* link in an inbox or a ready list: the owner's */
    uint32_t engine;          /* kind of engine it was last given to */
    uint32_t closing;         /* somebody is destroying it */
    uint64_t began_ns;        /* when the wait at the head first ran; 0: it did not */

    struct blyi_launch *launches; /* slots beside the ring; made at the first kernel */
    int32_t kernel_tid;           /* the thread that runs its kernel; 0: none does */
    uint64_t kernel_position;     /* of that task */

    /* Rare. */
    alignas(BLYI_CACHE_LINE) uint32_t refs;
    uint32_t failed; /* `failure` or `failure_status` is set */
    uint32_t callback_mode;
    uint32_t aborts;          /* how often its work was aborted: waiters compare */
    uint32_t card_aborts;     /* the same, with the whole card's */
    uint32_t dropping;        /* under `lock`: how many want its tasks dropped (abort.c) */
    uint32_t dropped_by_card; /* of those, for the card */
    uint32_t failure_mode;    /* set once; 1: the context stops on its failure */
    uint32_t stopped;         /* by blyi_stream_stop(), not told yet */
    struct blyi_lock lock;    /* rank STREAM: failure */
    bly_status failure_status;
    struct blyi_failure *failure; /* its sentence, allocated at the first failure */
    struct blyi_list watchers;    /* blocked streams that wait for this one (block.c) */
    struct blyi_block block;
    struct blyi_list context_link;            /* under the context's lock */
    struct blyi_list roll_link;               /* roll.c */
    struct blyi_reporter *reporters[2];       /* by blyi_serves; report.c, under its lock */
    struct blyi_line *line;                   /* that it executes, under the lock of graphs */
    struct blyi_known known[BLYI_KNOWN_ROWS]; /* known.c, under its lock */
    uint32_t n_known;
    struct blyi_graph *run_in; /* graph_run.c, under its lock: it runs that, or waits to */
};

/* One reference (the queue's) and no handle. E_HOST_MEMORY. */
bly_status blyi_queue_create(struct blyi_context *context, struct blyi_card *card,
                             struct blyi_stream **out);
void blyi_queue_ref(struct blyi_stream *stream);
void blyi_queue_unref(struct blyi_stream *stream);

/* What is submitted goes into a graph. */
bool blyi_queue_is_diverted(const struct blyi_stream *stream);
/* Where the task at a position was queued, while it has not ended; 0: unknown. For sentences. */
uint32_t blyi_queue_site(const struct blyi_stream *stream, uint64_t position);
/* Puts a copy of *task at the end; its ticket is set here. Waits for room. E_SYSTEM: the engine
 * could not be started; nothing was queued. While the stream is captured, the task goes into the
 * graph instead; errors of blyi_divert_check(). */
bly_status blyi_queue_submit(struct blyi_stream *stream, const struct blyi_task *task);
/* The same behind blyi_queue_ready() for a task of that kind: cannot fail. */
bly_status blyi_queue_ready(struct blyi_stream *stream, enum blyi_task_kind kind);
void blyi_queue_put(struct blyi_stream *stream, const struct blyi_task *task);
/* The same in two steps, for those who must know the position before the task can run. NULL: the
 * stream is captured, and the task is for blyi_graph_divert(). */
struct blyi_task *blyi_queue_reserve(struct blyi_stream *stream, uint64_t *position);
/* Into the ring whatever becomes of submissions: for those who run a graph's tasks. */
void blyi_queue_put_own(struct blyi_stream *stream, const struct blyi_task *task);
void blyi_queue_publish(struct blyi_stream *stream, struct blyi_task *task, uint64_t position);
/* The same, of a task that was told to probes already (told.h). */
void blyi_queue_publish_told(struct blyi_stream *stream, struct blyi_task *task, uint64_t position);
/* Number of the task that this thread queued last, on its stream; 0: none yet. */
uint32_t blyi_queue_last_task(void);
/* Ends the stream's life: nobody submits any more. Takes the queue's reference. */
void blyi_queue_retire(struct blyi_stream *stream);

/* Owner only. The next task, or NULL. */
struct blyi_task *blyi_queue_head(struct blyi_stream *stream);
/* Owner only. Tells probes that the head is about to end; while what it holds is still held. */
void blyi_queue_tell_done(const struct blyi_stream *stream, bly_status status, bool has_run);
/* Owner only. The head has ended; waiters are told. Not BLY_OK: the sentence of the calling
 * thread sticks to the stream. */
void blyi_queue_complete(struct blyi_stream *stream, bly_status status);
/* Owner only. Back to IDLE; true when tasks came meanwhile and the caller owns it again. */
bool blyi_queue_let_go(struct blyi_stream *stream);
/* Owner only, behind RETIRE: lets go for ever and drops the queue's reference. */
void blyi_queue_end(struct blyi_stream *stream);
/* Releases what a task refers to, once it has run or will not. */
void blyi_queue_discard(struct blyi_task *task);

static inline uint64_t blyi_queue_completed(const struct blyi_stream *stream)
{
    return __atomic_load_n(&stream->completed, __ATOMIC_ACQUIRE);
}

/* Where order.h hears of a task's submission and of its end. 64 places in turn: few, as each costs
 * ThreadSanitizer kilobytes, and more than one, as who waits for a task is not ordered behind those
 * that have ended after it. */
static inline const void *blyi_queue_put_mark(const struct blyi_stream *stream, uint64_t position)
{
    return &stream->ring[position % 64].ticket;
}

static inline const void *blyi_queue_end_mark(const struct blyi_stream *stream, uint64_t position)
{
    return &stream->ring[position % 64].u.words[0];
}

/* The task at `position` has ended; what it did comes before what the caller does next. */
static inline bool blyi_queue_passed(const struct blyi_stream *stream, uint64_t position)
{
    if (blyi_queue_completed(stream) <= position)
        return false;
    blyi_order_acquire(blyi_queue_end_mark(stream, position));
    return true;
}

static inline uint64_t blyi_queue_issued(const struct blyi_stream *stream)
{
    return __atomic_load_n(&stream->issued, __ATOMIC_ACQUIRE);
}

static inline uint32_t blyi_queue_control(const struct blyi_stream *stream)
{
    return __atomic_load_n(&stream->control, __ATOMIC_ACQUIRE);
}

/* Lowers `wake_at` to `position`. The caller looks at `completed` afterwards. */
void blyi_queue_watch(struct blyi_stream *stream, uint64_t position);
/* Waits in the calling thread until `completed` reaches `target`. timeout_ns 0: no limit.
 * E_TIMEOUT, without a sentence; E_STATE: user code that the calling thread runs would wait for
 * itself. The caller holds a reference or pin. */
bly_status blyi_queue_await(struct blyi_stream *stream, uint64_t target, uint64_t timeout_ns);
/* Waits awake for a moment (option SPIN_US); false: not there yet. */
bool blyi_queue_spin(const struct blyi_stream *stream, uint64_t target);
/* The same with a deadline of wait.h; and with a limit of real time, whatever the clock is. */
bly_status blyi_queue_await_until(struct blyi_stream *stream, uint64_t target, uint64_t deadline);
bly_status blyi_queue_await_real(struct blyi_stream *stream, uint64_t target, uint64_t limit_ns);
/* The last without being awake first. limit_ns 0: none. */
bly_status blyi_queue_sleep(struct blyi_stream *stream, uint64_t target, uint64_t limit_ns);
/* The stream's failure, handed out once: its status, with its sentence; else BLY_OK. */
bly_status blyi_queue_take_failure(struct blyi_stream *stream);

/* Pins: a stream for new work (of the current context), or of any context. NULL: the default
 * stream of the current context. E_FORKED, E_NO_CONTEXT, E_HANDLE, E_STREAM_CONTEXT. */
bly_status blyi_stream_pin(void *handle, struct blyi_stream **out);
bly_status blyi_stream_pin_any(void *handle, struct blyi_stream **out);
/* As blyi_stream_pin(), also in a context that stopped on a failure (which refuses new work). */
bly_status blyi_stream_pin_own(void *handle, struct blyi_stream **out);
void blyi_stream_unpin(struct blyi_stream *stream);
/* Does something with a pinned stream, of any context, and lets it go. */
bly_status blyi_stream_with(void *handle, bly_status (*fn)(struct blyi_stream *stream, void *arg),
                            void *arg);

/* Makes a stream with a handle and adds it to its context; default streams are not counted, and
 * their context is not alive yet. Nobody is told of a stream that graphs keep (BLYI_STREAM_INSIDE).
 * Another thread may end the context, and with it the stream, before the caller has looked: then
 * *out is gone, and *handle a stale one. E_NO_CONTEXT: it ended meanwhile; E_HOST_MEMORY. */
bly_status blyi_stream_make(const struct blyi_context_here *here, uint32_t priority, uint32_t flags,
                            uint32_t site, bool is_default, struct blyi_stream **out,
                            void **handle);
/* The part of destruction behind the checks. by_reset tells the probe. */
void blyi_stream_end(struct blyi_stream *stream, bool force, bool by_reset);
/* Waits until what was queued so far has ended, unless that needs the calling thread itself. */
void blyi_stream_settle(struct blyi_stream *stream);
/* False for streams whose work belongs to somebody else: syncs pass them by (reference 5.4). */
bool blyi_stream_is_waited_for(const struct blyi_stream *stream);

#endif
