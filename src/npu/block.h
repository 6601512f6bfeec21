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
struct blyi_stream;

/* Owner only; true: the stream is blocked and the caller may not touch it any more. False: no
 * reason to block any more; look again. deadline 0: none. */
bool blyi_block_on_stream(struct blyi_stream *stream, struct blyi_stream *after, uint64_t position,
                          uint64_t deadline);
bool blyi_block_on_event(struct blyi_stream *stream, struct blyi_event *event, uint64_t deadline);
bool blyi_block_paused(struct blyi_stream *stream);

/* `after` has made progress; called by its owner. */
void blyi_block_progress(struct blyi_stream *after);
/* Sets or clears a legacy event's flag; setting it frees those who wait for it. */
void blyi_block_flag(struct blyi_event *event, bool set);
/* Sets and clears control bits, and wakes the stream if it is blocked. */
void blyi_block_control(struct blyi_stream *stream, uint32_t set, uint32_t clear);
/* Nothing that is queued now will ever end the block: paused, or waiting for a legacy event
 * that no queued task records. */
bool blyi_block_is_stuck(struct blyi_stream *stream);

/* Starts the thread that ends blocks at their deadline. E_SYSTEM. */
int blyi_block_need_timer(void);
/* Stops it, if it runs. */
void blyi_block_stop_timer(void);

#endif
