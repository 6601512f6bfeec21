/* SPDX-License-Identifier: Apache-2.0
 *
 * check_work.h - what the files of tasks share.
 *
 *   check_task.c     records of tasks
 *   check_range.c    what a task is about to touch, at submission
 *   check_access.c   what it did to memory, at its end
 *   check_work.c     from probes
 */
#ifndef BLYI_CHECK_WORK_H
#define BLYI_CHECK_WORK_H

#include "observe/check_inside.h"

/* An empty record in no queue; NULL: no host memory. */
struct blyi_check_task *blyi_task_take(struct blyi_check *check);
/* The record of the probe's task, made at its first probe. */
struct blyi_check_task *blyi_task_for(struct blyi_check *check, struct blyi_check_stream *stream,
                                      const struct blyi_probe *probe);

uint8_t blyi_work_of(const struct blyi_probe *probe);
/* A kernel says what it touches, or it may write anywhere. */
bool blyi_task_is_unknown(const struct blyi_check_task *task);
/* All of a task but a kernel's ranges, which come before. */
void blyi_task_fill(struct blyi_check *check, const struct blyi_check_stream *stream,
                    struct blyi_check_task *task, const struct blyi_probe *probe,
                    const struct blyi_epoch *who);
void blyi_use_kernel(struct blyi_check *check, struct blyi_check_task *task,
                     const struct blyi_probe *probe, const struct blyi_epoch *who);
/* What of a range is memory that is followed; what is wrong with it is told. i: place in
 * task->range, or a new one behind. False: a fault. */
bool blyi_use_resolve(struct blyi_check *check, struct blyi_check_task *task, uint32_t i,
                      uint64_t address, uint64_t size, uint8_t access,
                      const struct blyi_epoch *who);
bool blyi_use_copy(struct blyi_check *check, struct blyi_check_task *task,
                   const struct blyi_probe *probe, const struct blyi_epoch *who);
/* Adds "copy queued on stream 3 at" and the stream. */
void blyi_found_who(const struct blyi_check *check, struct blyi_finding *finding,
                    const struct blyi_epoch *who);

static inline bool blyi_use_is_live(const struct blyi_use_range *range)
{
    return range->area != NULL && !range->area->is_gone && !range->area->is_freed;
}

/* Queued work of other streams will write there. */
bool blyi_access_is_awaited(const struct blyi_check *check, const struct blyi_use_range *range,
                            const struct blyi_epoch *who);
void blyi_access_all(struct blyi_check *check, struct blyi_check_task *task,
                     const struct blyi_epoch *who, const struct blyi_vc *known);
/* Work that had a fault, failed or was dropped. */
void blyi_access_none(struct blyi_check *check, struct blyi_check_task *task);

#endif
