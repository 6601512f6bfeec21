/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c - the threads behind a card.
 */
#include "npu/engine.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/order.h"
#include "base/stat.h"
#include "base/sys.h"
#include "npu/card.h"
#include "npu/fault.h"
#include "npu/guard.h"
#include "npu/queue.h"
#include "npu/snapshot.h"
#include "npu/wait.h"

#define PRIORITIES      8
#define LOOKS_PER_CLOCK 16 /* about 2 us, as in await.c */
/* Between two looks. Each look takes the next record's line from the submitter who is about to
 * write it: fewer looks let it get ahead. 1, 2, 4, 8 pauses gave 160, 130, 115, 110 ns for a
 * pipelined task and 120, 130, 160, 200 ns for one awaited alone, where a bare ring takes 110. */
#define PAUSES 4

struct ready {
    struct blyi_stream *first, *last;
};

/* The second thread of an engine that runs kernels. */
enum spare { SPARE_NONE, SPARE_WAITS, SPARE_TAKES, SPARE_ENDS };

struct engine {
    int card;
    enum blyi_engine_kind kind;
    struct ready ready[PRIORITIES]; /* the thread's own */
    uint32_t stop;                  /* asked to end once there is nothing to do */
    uint32_t running;               /* futex; 1: a thread owns the structure, see serve() */
    uint32_t spare;                 /* futex: enum spare */
    struct blyi_stream *lost;       /* handed over to the spare thread */

    /* Those who push write here, the engine looks. */
    alignas(BLYI_CACHE_LINE) struct blyi_stream *inbox; /* newest first */
    uint32_t asleep;                                    /* futex: 1 while the engine sleeps */
    char pad[BLYI_CACHE_LINE - sizeof(void *) - sizeof(uint32_t)];
};

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_ENGINE); /* structures and threads */
/* Never freed: who pushed the last stream may still look at the engine when all has ended. */
static struct engine *engines[BLYI_CARD_MAX][BLYI_ENGINE_COUNT];

static void ready_push(struct engine *engine, struct blyi_stream *stream)
{
    struct ready *ready = &engine->ready[stream->priority % PRIORITIES];
    stream->next = NULL;
    if (ready->first == NULL)
        ready->first = stream;
    else
        ready->last->next = stream;
    ready->last = stream;
}

static struct blyi_stream *ready_pop(struct engine *engine)
{
    for (int i = 0; i < PRIORITIES; i++) {
        struct blyi_stream *stream = engine->ready[i].first;
        if (stream != NULL) {
            engine->ready[i].first = stream->next;
            return stream;
        }
    }
    return NULL;
}

/* Moves the inbox to the ready lists, in the order of arrival. */
static void collect(struct engine *engine)
{
    if (__atomic_load_n(&engine->inbox, __ATOMIC_RELAXED) == NULL)
        return;
    /* Acquire: what the last owner of each stream did. */
    struct blyi_stream *newest = __atomic_exchange_n(&engine->inbox, NULL, __ATOMIC_ACQUIRE);
    struct blyi_stream *oldest = NULL;
    while (newest != NULL) {
        struct blyi_stream *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct blyi_stream *next = oldest->next;
        blyi_order_acquire(&oldest->state);
        ready_push(engine, oldest);
        oldest = next;
    }
}

static void engine_sleep(struct engine *engine)
{
    /* Sequentially consistent against blyi_engine_push(): it sees that we sleep, or we see what
     * it pushed. */
    __atomic_exchange_n(&engine->asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&engine->inbox, __ATOMIC_SEQ_CST) == NULL &&
        !__atomic_load_n(&engine->stop, __ATOMIC_SEQ_CST))
        blyi_sys_futex_wait(&engine->asleep, 1, 0);
    __atomic_store_n(&engine->asleep, 0, __ATOMIC_RELAXED);
}

static void wake(struct engine *engine)
{
    if (__atomic_load_n(&engine->asleep, __ATOMIC_SEQ_CST) == 0)
        return;
    if (__atomic_exchange_n(&engine->asleep, 0, __ATOMIC_SEQ_CST) == 0)
        return; /* somebody else wakes it */
    blyi_stat_add(BLYI_STAT_engine_wakes, 1);
    blyi_sys_futex_wake(&engine->asleep, 1);
}

/* Until there is a stream to run, or NULL to stop. `held` is drained but still ours. */
static struct blyi_stream *next_stream(struct engine *engine, struct blyi_stream *held)
{
    uint64_t idle_since = 0, spin = blyi_wait_spin_ns();
    for (uint32_t looks = 1;; looks++) {
        collect(engine);
        struct blyi_stream *stream = ready_pop(engine);
        if (stream != NULL) {
            if (held != NULL && blyi_queue_let_go(held))
                ready_push(engine, held);
            return stream;
        }
        if (held != NULL && blyi_queue_head(held) != NULL)
            return held;
        if (spin != 0 && looks % LOOKS_PER_CLOCK != 0) {
            for (int i = 0; i < PAUSES; i++)
                blyi_spin_pause();
            continue;
        }
        uint64_t now = blyi_wait_real_ns();
        if (idle_since == 0)
            idle_since = now;
        if (now - idle_since < spin &&
            (now - idle_since <= BLYI_WAIT_ALONE_NS || blyi_wait_yield()))
            continue;
        if (held != NULL && blyi_queue_let_go(held))
            return held;
        held = NULL;
        if (__atomic_load_n(&engine->stop, __ATOMIC_ACQUIRE))
            return NULL;
        engine_sleep(engine);
        idle_since = 0;
    }
}

/* Whoever turns `running` from 0 to 1 is, or starts, the one thread. */
static bool claim(struct engine *engine)
{
    uint32_t expected = 0;
    return __atomic_compare_exchange_n(&engine->running, &expected, 1, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

/* Moves the spare thread on from waiting; false: none waits. */
static bool move_spare(struct engine *engine, enum spare to)
{
    uint32_t waits = SPARE_WAITS;
    if (!__atomic_compare_exchange_n(&engine->spare, &waits, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return false;
    blyi_sys_futex_wake(&engine->spare, 1);
    return true;
}

/* False: a kernel was left in the middle; the spare thread has the engine now, and this one may
 * do nothing that takes a lock. */
static bool run_streams(struct engine *engine)
{
    struct blyi_stream *held = NULL, *stream;
    blyi_snapshot_serve();
    while ((stream = next_stream(engine, held)) != NULL) {
        held = NULL;
        switch (blyi_stream_run(stream, engine->kind)) {
        case BLYI_RUN_DRAINED:
            held = stream;
            break;
        case BLYI_RUN_AGAIN:
            ready_push(engine, stream);
            break;
        case BLYI_RUN_GONE:
            break;
        case BLYI_RUN_LOST:
            engine->lost = stream;
            blyi_order_release(&stream->state);
            if (move_spare(engine, SPARE_TAKES))
                return false;
            engine->lost = NULL; /* the host gave no second thread: make do with this one */
            blyi_stream_lost(stream);
            ready_push(engine, stream);
            break;
        }
    }
    return true;
}

static void serve(struct engine *engine)
{
    blyi_guard_hold();
    do {
        if (!run_streams(engine))
            return;
        move_spare(engine, SPARE_ENDS);
        __atomic_store_n(&engine->stop, 0, __ATOMIC_RELAXED);
        /* Sequentially consistent against blyi_engine_push(): it sees that nobody runs, or we
         * see what it pushed, and go on unless it was quicker to start another thread. */
        __atomic_exchange_n(&engine->running, 0, __ATOMIC_SEQ_CST);
        blyi_sys_futex_wake(&engine->running, INT32_MAX);
    } while (__atomic_load_n(&engine->inbox, __ATOMIC_SEQ_CST) != NULL && claim(engine));
}

static void *engine_main(void *arg)
{
    serve(arg);
    blyi_fault_thread_end();
    return NULL;
}

static bly_status need_spare(struct engine *engine);

static void *spare_main(void *arg)
{
    struct engine *engine = arg;
    uint32_t now;
    while ((now = __atomic_load_n(&engine->spare, __ATOMIC_ACQUIRE)) == SPARE_WAITS)
        blyi_sys_futex_wait(&engine->spare, SPARE_WAITS, 0);
    if (now == SPARE_ENDS) { /* the engine is another thread's, or nobody's */
        __atomic_store_n(&engine->spare, SPARE_NONE, __ATOMIC_RELEASE);
        return NULL;
    }
    struct blyi_stream *stream = engine->lost;
    engine->lost = NULL;
    blyi_order_acquire(&stream->state);
    __atomic_store_n(&engine->spare, SPARE_NONE, __ATOMIC_RELEASE);
    if (need_spare(engine) != BLY_OK)
        blyi_fail_clear(); /* the next launch tries again */
    blyi_stat_add(BLYI_STAT_engines_lost, 1);
    blyi_stream_lost(stream);
    ready_push(engine, stream);
    return engine_main(engine);
}

static const char *thread_name(enum blyi_engine_kind kind)
{
    static const char *const names[] = {
#define ENGINE_NAME(name, text) text,
        BLYI_ENGINES(ENGINE_NAME)
#undef ENGINE_NAME
    };
    return names[kind];
}

static bly_status make_thread(struct engine *engine, void *(*fn)(void *))
{
    pthread_t thread;
    int error = blyi_sys_thread_create(&thread, thread_name(engine->kind), fn, engine);
    if (error != 0)
        return blyi_fail(BLY_E_SYSTEM, "card %d: the thread of engine %s cannot be made: %s",
                         engine->card, thread_name(engine->kind), strerror(error));
    pthread_detach(thread);
    return BLY_OK;
}

/* One that is about to take over or to end is as good as one that waits. */
static bly_status need_spare(struct engine *engine)
{
    uint32_t none = SPARE_NONE;
    if (!__atomic_compare_exchange_n(&engine->spare, &none, SPARE_WAITS, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return BLY_OK;
    bly_status status = make_thread(engine, spare_main);
    if (status != BLY_OK)
        __atomic_store_n(&engine->spare, SPARE_NONE, __ATOMIC_RELEASE);
    return status;
}

/* Aligned by hand: host.h gives what malloc aligns. */
static struct engine *make_structure(int card, enum blyi_engine_kind kind)
{
    void *memory = blyi_host_calloc(1, sizeof(struct engine) + BLYI_CACHE_LINE);
    if (memory == NULL)
        return NULL;
    struct engine *engine = (struct engine *)blyi_align_up((uintptr_t)memory, BLYI_CACHE_LINE);
    engine->card = card;
    engine->kind = kind;
    return engine;
}

static bly_status start_locked(int card, enum blyi_engine_kind kind)
{
    struct engine *engine = engines[card][kind];
    if (engine == NULL) {
        engine = make_structure(card, kind);
        if (engine == NULL)
            return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for an engine", card);
        __atomic_store_n(&engines[card][kind], engine, __ATOMIC_RELEASE);
    }
    if (!claim(engine))
        return BLY_OK;
    bly_status status = make_thread(engine, engine_main);
    if (status != BLY_OK)
        __atomic_store_n(&engine->running, 0, __ATOMIC_SEQ_CST);
    return status;
}

static bool is_running(const struct engine *engine)
{
    return engine != NULL && __atomic_load_n(&engine->running, __ATOMIC_SEQ_CST) != 0;
}

bly_status blyi_engine_need(int card, enum blyi_engine_kind kind)
{
    if (likely(is_running(__atomic_load_n(&engines[card][kind], __ATOMIC_ACQUIRE))))
        return BLY_OK;
    blyi_lock_take(&lock);
    bly_status status = start_locked(card, kind);
    blyi_lock_drop(&lock);
    return status;
}

bly_status blyi_engine_need_spare(int card, enum blyi_engine_kind kind)
{
    bly_status status = blyi_engine_need(card, kind);
    if (status != BLY_OK)
        return status;
    struct engine *engine = __atomic_load_n(&engines[card][kind], __ATOMIC_ACQUIRE);
    if (likely(__atomic_load_n(&engine->spare, __ATOMIC_ACQUIRE) != SPARE_NONE))
        return BLY_OK;
    return need_spare(engine);
}

void blyi_engine_push(struct blyi_stream *stream)
{
    int card = stream->card->id;
    uint32_t kind = stream->engine;
    struct engine *engine = __atomic_load_n(&engines[card][kind], __ATOMIC_ACQUIRE);
    struct blyi_stream *newest = __atomic_load_n(&engine->inbox, __ATOMIC_RELAXED);
    /* Release: the engine sees all that we did to the stream; sequentially consistent against
     * engine_sleep() and engine_main(). The stream is not ours from here on. */
    blyi_order_release(&stream->state);
    do
        stream->next = newest;
    while (!__atomic_compare_exchange_n(&engine->inbox, &newest, stream, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED));
    /* It ends only at finalise; work that comes all the same starts it again. If that fails, the
     * stream waits in the inbox for the next submission. */
    if (unlikely(!is_running(engine)) &&
        blyi_engine_need(card, (enum blyi_engine_kind)kind) != BLY_OK)
        blyi_fail_clear();
    wake(engine);
}

bool blyi_engine_is_asleep(int card, enum blyi_engine_kind kind)
{
    struct engine *engine = __atomic_load_n(&engines[card][kind], __ATOMIC_ACQUIRE);
    return !is_running(engine) || __atomic_load_n(&engine->asleep, __ATOMIC_ACQUIRE) != 0;
}

static void stop(struct engine *engine)
{
    __atomic_store_n(&engine->stop, 1, __ATOMIC_SEQ_CST);
    wake(engine);
    /* `stop` falls when it has ended, whether or not it was started again since. */
    while (is_running(engine) && __atomic_load_n(&engine->stop, __ATOMIC_ACQUIRE))
        blyi_sys_futex_wait(&engine->running, 1, 0);
}

void blyi_engine_stop_all(void)
{
    for (int card = 0; card < BLYI_CARD_MAX; card++)
        for (int kind = 0; kind < BLYI_ENGINE_COUNT; kind++) {
            struct engine *engine = __atomic_load_n(&engines[card][kind], __ATOMIC_ACQUIRE);
            if (is_running(engine))
                stop(engine);
        }
}
