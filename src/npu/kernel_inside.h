/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_inside.h - what the files of kernels share: launching (kernel.c), running
 * (kernel_run.c), telling what one died of (kernel_fault.c), and the table of engines.
 */
#ifndef BLYI_KERNEL_INSIDE_H
#define BLYI_KERNEL_INSIDE_H

#include "npu/kernel.h"

/* Bits of a range's `access` that the program does not see. */
#define BLYI_RANGE_ACCESS (BLY_READ | BLY_WRITE)
#define BLYI_RANGE_HELD   0x100u /* pinned memory, held until the task has ended */
#define BLYI_RANGE_DEAD   0x200u /* pinned memory that was freed before the launch */

/* The thread's number as the kernel of the host knows it. */
int32_t blyi_own_tid(void);

enum blyi_engine_kind blyi_kernel_engine_kind(bly_engine engine);
const char *blyi_kernel_engine_name(bly_engine engine); /* "a vector core" */
/* Status of a kernel that faulted there, and of one that ran too long. */
bly_status blyi_kernel_engine_status(bly_engine engine);
bly_status blyi_kernel_engine_timeout(bly_engine engine);

/* E_INVALID: the call is not within its contract. */
bly_status blyi_kernel_check(const struct blyi_kernel_call *call);
/* A launch in memory of its own; `keeps`: it holds no pinned memory. NULL: no host memory. */
struct blyi_launch *blyi_launch_make(const struct blyi_kernel_call *call, bool keeps);
void blyi_launch_free(struct blyi_launch *launch);

/* The kernel's name, found out at first need. Engine only. */
const char *blyi_kernel_name(struct blyi_launch *launch);
/* Adds stream and launch site to the sentence. */
void blyi_kernel_tell_launch(const struct blyi_stream *stream, const struct blyi_task *task);

#endif
