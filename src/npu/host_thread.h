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

/* True while the calling thread runs user code for `stream`. */
bool blyi_callback_is_inside(const struct blyi_stream *stream);
/* Called around user code by those who run it; returns what must be given back. */
const struct blyi_stream *blyi_callback_enter(const struct blyi_stream *stream);
void blyi_callback_leave(const struct blyi_stream *before);

#endif
