/* SPDX-License-Identifier: Apache-2.0
 *
 * belay/frame.h - where a program stands that an interpreter runs.
 *
 * Belay names the place of a call by its return address. That of a script is always the same place
 * in its interpreter, so whoever calls for a script says which lines it stands in:
 *
 *     uint32_t lines[] = {bly_frame("step", "train.py", 12), bly_frame("main", "train.py", 40)};
 *     bly_frames at = {2, 0, lines};
 *     const bly_frames *outer = bly_frames_set(&at);
 *     aclrtMalloc(...);
 *     bly_frames_set(outer);
 *
 * The innermost line is then the place of the call in every report, sentence and recording; where
 * stacks are recorded all lines come first and the frames of the machine behind them. The module
 * `acl` does this for Python.
 *
 * Threads  [any] for all functions here; what is set holds for the calling thread.
 */
#ifndef BLY_FRAME_H
#define BLY_FRAME_H

#include <belay/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of a line, the same for the same three; for the life of the process. A text is cut
 * behind 1023 bytes, and what is not UTF-8 or not printable in it becomes '?'. A process keeps at
 * most a million places, those of the machine among them.
 * 0: NULL, no host memory, or one of too many; such a frame is left out. */
BLY_API uint32_t bly_frame(const char *function, const char *file, uint32_t line);

/* How many frames anybody looks at, innermost first: 1, or the depth of the stacks that are being
 * recorded. */
BLY_API uint32_t bly_frames_wanted(void);

typedef struct bly_frames {
    uint32_t n;
    uint32_t reserved;     /* 0 */
    const uint32_t *lines; /* n numbers of bly_frame(), innermost first */
} bly_frames;

/* Where the thread stands from here on; NULL, or n 0: in machine code alone. What it points to must
 * stay until the next call. Returns what held before. */
BLY_API const bly_frames *bly_frames_set(const bly_frames *frames);

/* Frames of the machine in the executable or shared object around `code` are left out of stacks
 * that begin with lines: an interpreter's own say nothing, and change from call to call.
 * E_INVALID  there is no module
 * E_STATE    8 modules are left out already */
BLY_API bly_status bly_frames_hide(const void *code);

#ifdef __cplusplus
}
#endif
#endif
