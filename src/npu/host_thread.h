/* SPDX-License-Identifier: Apache-2.0
 *
 * host_thread.h - the thread of a context that runs its host functions, one after another.
 *
 * A stream whose head is a host function is owned by this thread until the function has
 * returned. No lock is held while it runs.
 */
#ifndef BLYI_HOST_THREAD_H
#define BLYI_HOST_THREAD_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_context;
struct blyi_stream;

/* Starts the context's thread when it is not there. E_SYSTEM, E_HOST_MEMORY. */
bly_status blyi_host_thread_need(struct blyi_context *context);
/* Owner only: hands the stream over; it comes back to an engine by itself. False: the context
 * was torn down and its thread ends, so the host function does not run; the caller owns the
 * stream still. Only a stream that its own host function destroyed outlives its context. */
bool blyi_host_thread_push(struct blyi_stream *stream);
/* Tells the thread of a torn-down context to end; it does so by itself. */
void blyi_host_thread_stop(struct blyi_context *context);
/* The stream's tasks are being dropped: its host function that has not begun goes back to an
 * engine, which drops it. Takes rank CONTEXT. */
void blyi_host_thread_withdraw(struct blyi_stream *stream);
/* A host function of the stream, or of a graph that it runs, that began before `before_ns` (real
 * clock) and has not returned: the stream goes on without it, other streams have another thread,
 * and what it does from then on is nobody's. False: there is none. Takes rank CONTEXT. */
bool blyi_host_thread_leave(struct blyi_stream *stream, uint64_t before_ns);
/* The calling thread is the one that the stream's next host function waits for. */
bool blyi_host_thread_is_needed(const struct blyi_stream *stream);

/* True while the calling thread runs user code for `stream`. */
bool blyi_callback_is_inside(const struct blyi_stream *stream);
/* Put around user code by those who run it, who own the frame. */
struct blyi_callback_frame {
    const struct blyi_stream *stream;
    const struct blyi_callback_frame *outer;
};
void blyi_callback_enter(struct blyi_callback_frame *frame, const struct blyi_stream *stream);
void blyi_callback_leave(const struct blyi_callback_frame *frame);
/* Those of the calling thread, the innermost first. */
const struct blyi_callback_frame *blyi_callback_frames(void);
/* The calling thread has run user code in stream order: streams may wait for it. */
bool blyi_callback_serves(void);

/* The stream cannot go on before the calling thread returns from the user code that it runs, or
 * processes reports: waiting for it would never end. Whether that is so behind a wait for a notify
 * cannot be told: then the answer is `in_doubt`. Only for a stream whose work has not ended. */
bool blyi_callback_needs_caller(struct blyi_stream *stream, bool in_doubt);

#endif
