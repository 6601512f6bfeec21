/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h - threads that run the tasks of scheduled streams: one for each card and kind,
 * started at first need.
 *
 * An engine takes streams from its inbox, runs up to a quantum of tasks of the most urgent one,
 * and looks again. A stream whose ring is empty stays with the engine while that is awake
 * (polling it spares submitter and engine the hand-over) and is let go before it sleeps.
 *
 * An engine that runs kernels has a second thread in reserve. A kernel that faults is left in the
 * middle, with whatever locks its libraries held, so its thread does nothing but hand the engine
 * over and end; the reserve thread completes the task and makes the next reserve.
 */
#ifndef BLYI_ENGINE_H
#define BLYI_ENGINE_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_stream;

/* X(name, thread name) */
#define BLYI_ENGINES(X)                                                                            \
    X(AICORE, "bly-aicore")                                                                        \
    X(AICPU, "bly-aicpu")                                                                          \
    X(DVPP, "bly-dvpp")                                                                            \
    X(COPY, "bly-copy")

enum blyi_engine_kind {
#define BLYI_ENGINE_ENUM(name, text) BLYI_ENGINE_##name,
    BLYI_ENGINES(BLYI_ENGINE_ENUM)
#undef BLYI_ENGINE_ENUM
        BLYI_ENGINE_COUNT,
    BLYI_ENGINE_ANY = BLYI_ENGINE_COUNT, /* control tasks: whoever holds the stream */
};

/* Starts the engine when it is not there. E_SYSTEM, E_HOST_MEMORY. */
bly_status blyi_engine_need(int card, enum blyi_engine_kind kind);
/* The same, with a thread in reserve: before a kernel is queued. */
bly_status blyi_engine_need_spare(int card, enum blyi_engine_kind kind);
/* Hands over a scheduled stream to the engine of stream->engine, which was needed once. No lock
 * and no system call while the engine is awake. */
void blyi_engine_push(struct blyi_stream *stream);
/* Ends the threads of all engines once they have nothing to do; a later push or need starts them
 * again. */
void blyi_engine_stop_all(void);
bool blyi_engine_is_asleep(int card, enum blyi_engine_kind kind);

/* What became of a stream that was run for a while (run.c). */
enum blyi_run_result {
    BLYI_RUN_DRAINED, /* no task left; still owned */
    BLYI_RUN_AGAIN,   /* quantum used up; still owned */
    BLYI_RUN_GONE,    /* owned by somebody else now */
    BLYI_RUN_LOST,    /* still owned, but the thread may do nothing more: a kernel faulted */
};
enum blyi_run_result blyi_stream_run(struct blyi_stream *stream, enum blyi_engine_kind kind);
/* Completes the task at which a stream was lost; it is owned by the caller then. */
void blyi_stream_lost(struct blyi_stream *stream);

#endif
