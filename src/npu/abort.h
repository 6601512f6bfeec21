/* SPDX-License-Identifier: Apache-2.0
 *
 * abort.h - what happens after a failure, and ending work by force.
 *
 *   continue (default)  the task's error sticks to its stream, the next task runs
 *   stop                the context stops: its streams end their tasks without running them,
 *                       refuse new ones, and each wait returns the failure
 *
 *   abort   the running kernel ends, queued tasks and those that come meanwhile are dropped
 *   stop    the running kernel ends, the queue goes on
 */
#ifndef BLYI_ABORT_H
#define BLYI_ABORT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_context;
struct blyi_stream;

/* mode 0 or 1; NULL: the default stream. Setting it again to the same is fine; E_UNSUPPORTED:
 * back from 1 to 0, a DEVICE_USE_ONLY stream, the default stream of a card that is no 910B. */
bly_status blyi_stream_set_failure_mode(void *stream, uint32_t mode);
bly_status blyi_stream_failure_mode(void *stream, uint32_t *mode);

/* Threads that wait for the stream get E_ABORTED. A kernel that was ended leaves its engine's
 * error on the stream. NULL: default. E_STATE: from a host function of that stream. */
bly_status blyi_stream_abort(void *stream);
/* The next wait for the stream returns E_CANCELLED, also for a DEVICE_USE_ONLY stream. */
bly_status blyi_stream_stop(void *stream);
/* Empties a PERSISTENT stream; E_UNSUPPORTED for others. */
bly_status blyi_stream_clean(void *stream);
/* Aborts all streams of all contexts on the card; waiting threads get E_CARD_ABORTED. No error
 * is left and stopped contexts work again. E_TIMEOUT: user code on the host held a stream for
 * longer; it is aborted when that code returns. timeout_ns 0: none. */
bly_status blyi_card_abort(int card, uint64_t timeout_ns);

/* Inside. A task of the stream has failed, with the sentence of the calling thread. */
void blyi_context_task_failed(struct blyi_stream *stream, bly_status status);
/* The failure a context stopped on, with its sentence, each time; else BLY_OK. */
bly_status blyi_context_failure(struct blyi_context *context);
/* Its streams end tasks without running them between begin and the matching end. */
void blyi_stream_drop_begin(struct blyi_stream *stream);
/* Its two steps. The first may be taken with the lock of runs; the second takes rank CONTEXT, and
 * tells those whom the stream waits for: threads of user code, runs of graphs. */
void blyi_stream_drop_mark(struct blyi_stream *stream);
void blyi_stream_drop_rest(struct blyi_stream *stream);
void blyi_stream_drop_end(struct blyi_stream *stream);
/* Between them: waits for what runs, and leaves user code behind that does not return. */
void blyi_stream_drop_wait(struct blyi_stream *stream);
/* User code that the stream waits for, and that has been running since `since_ns` (real clock) and
 * for BELAY_FORCE_WAIT_MS: the stream goes on without it. False: there is none. */
bool blyi_stream_leave_user_code(struct blyi_stream *stream, uint64_t since_ns);

/* For threads that wait: taken before, compared after. */
struct blyi_abort_mark {
    uint32_t aborts, card_aborts, dropping;
};
struct blyi_abort_mark blyi_abort_mark(const struct blyi_stream *stream);
bly_status blyi_abort_since(const struct blyi_stream *stream, struct blyi_abort_mark mark);

#endif
