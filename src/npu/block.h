/* SPDX-License-Identifier: Apache-2.0
 *
 * block.h - streams that cannot go on: they wait for another stream's record, for a legacy
 * event's flag, or are paused; with or without a deadline.
 *
 * One lock (rank EVENT) guards all of it, so that the three who can end a block (what is waited
 * for, time, force) need no order among streams. It is taken only where a stream really stops
 * or starts again. A blocked stream has no owner but its block; who ends the block pushes it to
 * an engine, and the task at its head is looked at afresh.
 */
#ifndef BLYI_BLOCK_H
#define BLYI_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct blyi_event;
struct blyi_list;
struct blyi_stream;

/* Owner only; true: the stream is blocked and the caller may not touch it any more. False: no
 * reason to block any more; look again. deadline 0: none. */
bool blyi_block_on_stream(struct blyi_stream *stream, struct blyi_stream *after, uint64_t position,
                          uint64_t deadline);
bool blyi_block_on_event(struct blyi_stream *stream, struct blyi_event *event, uint64_t deadline);
bool blyi_block_paused(struct blyi_stream *stream);

/* The deadline of a wait that began when its task first ran; 0: no limit. False: it is over. */
bool blyi_block_deadline(struct blyi_stream *stream, uint64_t timeout_ns, uint64_t *deadline);

/* A condition that streams wait for, looked at and taken under the lock: take() returns whether
 * it holds. deadline 0: none, 1: it is over. *n_pending counts what may still make it hold. */
enum blyi_block_result { BLYI_BLOCK_TAKEN, BLYI_BLOCK_BLOCKED, BLYI_BLOCK_LATE };
enum blyi_block_result blyi_block_at(struct blyi_stream *stream, struct blyi_list *watchers,
                                     bool (*take)(void *arg), void *arg, uint64_t deadline,
                                     const uint32_t *n_pending);
/* Changes what the condition looks at and lets all that wait look again. */
void blyi_block_change(struct blyi_list *watchers, void (*change)(void *arg), void *arg);

/* Streams that wait for memory: blocked until somebody says that it may have changed since
 * `turn`, or some time is over. False: look again. The timer must run. */
uint32_t blyi_block_looks(void);
bool blyi_block_to_look(struct blyi_stream *stream, uint32_t turn);
void blyi_block_look_again(void);

/* `after` has made progress; called by its owner. */
void blyi_block_progress(struct blyi_stream *after);
/* Sets or clears a legacy event's flag; setting it frees those who wait for it. */
void blyi_block_flag(struct blyi_event *event, bool set);
/* Sets and clears control bits, and wakes the stream if it is blocked. */
void blyi_block_control(struct blyi_stream *stream, uint32_t set, uint32_t clear);
bool blyi_block_is_blocked(struct blyi_stream *stream);
/* Nothing that is queued now will ever end the block: paused, or waiting for a legacy event
 * that no queued task records. */
bool blyi_block_is_stuck(struct blyi_stream *stream);
/* The stream that a blocked one waits for, referenced; NULL: none. *unknown: it waits for a
 * condition without a deadline, and who brings that about cannot be told. */
struct blyi_stream *blyi_block_waits_for(struct blyi_stream *stream, bool *unknown);

/* Starts the thread that ends blocks at their deadline, once for the process. 0, or an errno:
 * the thread cannot be made. */
int blyi_block_need_timer(void);

#endif
