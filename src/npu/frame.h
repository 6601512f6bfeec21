/* SPDX-License-Identifier: Apache-2.0
 *
 * frame.h - which 2 MiB frames of a card are free: a buddy allocator with orders 0 (2 MiB)
 * to 9 (1 GiB). A pure structure of indexes in memory that the caller provides; it knows no
 * address, no file and no lock, and never fails for lack of host memory.
 */
#ifndef BLYI_FRAME_H
#define BLYI_FRAME_H

#include <belay/base.h>
#include <stdbool.h>

#define BLYI_FRAME_SIZE   ((uint64_t)2 << 20)
#define BLYI_FRAME_ORDERS 10
#define BLYI_GIANT_FRAMES 512u
#define BLYI_FRAME_NONE   UINT32_MAX

struct blyi_frames; /* in the caller's memory, 64-byte aligned */

size_t blyi_frames_footprint(uint32_t n_frames);
/* All frames free. `memory` has blyi_frames_footprint(n) zeroed bytes. */
struct blyi_frames *blyi_frames_init(void *memory, uint32_t n_frames);

/* The same with no frame free. */
struct blyi_frames *blyi_frames_init_taken(void *memory, uint32_t n_frames);

/* Takes one run of at most `want` frames: the smallest free block that holds them all, else the
 * largest there is (so that callers map few runs); whole GiB come in a row where they can.
 * Returns the run's length, 0 when nothing is free. Among blocks of the right size it prefers
 * one whose first frame has its bit in `prefer` (resident frames; read without a lock, a hint;
 * NULL: lowest index). */
uint32_t blyi_frames_take(struct blyi_frames *frames, uint32_t want, const uint64_t *prefer,
                          uint32_t *first);
/* Takes exactly `count` contiguous frames whose first is a multiple of `align` (power of two).
 * False when there is no such run. */
bool blyi_frames_take_run(struct blyi_frames *frames, uint32_t count, uint32_t align,
                          uint32_t *first);
/* Same, inside [0, below). */
bool blyi_frames_take_below(struct blyi_frames *frames, uint32_t count, uint32_t below,
                            uint32_t *first);
/* Takes exactly these frames; false when not all are free. */
bool blyi_frames_take_at(struct blyi_frames *frames, uint32_t first, uint32_t count);
/* Every frame of the run must be taken (checked: a double give stops the process). */
void blyi_frames_give(struct blyi_frames *frames, uint32_t first, uint32_t count);

uint32_t blyi_frames_free(const struct blyi_frames *frames);
uint32_t blyi_frames_total(const struct blyi_frames *frames);
/* Longest contiguous run of free frames, whatever its alignment. */
uint32_t blyi_frames_longest(const struct blyi_frames *frames);
/* Free aligned blocks of 1 GiB. */
uint32_t blyi_frames_giants(const struct blyi_frames *frames);
bool blyi_frames_is_free(const struct blyi_frames *frames, uint32_t frame);
bool blyi_frames_audit(const struct blyi_frames *frames);

#endif
