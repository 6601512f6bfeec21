/* SPDX-License-Identifier: Apache-2.0
 *
 * told.h - work, as sinks of probes hear of it: from the record that a stream gets.
 *
 * A task is told between the moment that it has its number and the moment that it can run, so that
 * its submission comes before its end in every sink.
 */
#ifndef BLYI_TOLD_H
#define BLYI_TOLD_H

#include <stdbool.h>
#include "base/probe.h"

struct blyi_stream;
struct blyi_task;

#define BLYI_TOLD_KINDS                                                                            \
    (BLYI_KIND(COPY) | BLYI_KIND(SET) | BLYI_KIND(RECORD) | BLYI_KIND(WAIT) |                      \
     BLYI_KIND(EVENT_RESET) | BLYI_KIND(CALLBACK) | BLYI_KIND(NOTIFY_RECORD) |                     \
     BLYI_KIND(NOTIFY_WAIT) | BLYI_KIND(KERNEL) | BLYI_KIND(KERNEL_RANGE) |                        \
     BLYI_KIND(VALUE_WRITE) | BLYI_KIND(VALUE_WAIT) | BLYI_KIND(INDIRECT))

/* Whether any sink wants to hear of submissions. */
static inline bool blyi_told_wanted(void)
{
    return blyi_probe_any_on(BLYI_TOLD_KINDS);
}

/* The record of `position`, filled and not yet published. */
void blyi_task_tell(const struct blyi_stream *stream, const struct blyi_task *task,
                    uint64_t position);
/* Owner only: the head, a graph's task, does not run, as the memory at `at` was freed. */
void blyi_task_tell_stale(const struct blyi_stream *stream, const struct blyi_task *task,
                          const void *at);
/* Owner only, before the head changes what others wait for. */
void blyi_task_tell_signal(const struct blyi_stream *stream);
/* Before user code of the stream runs; `held`: the stream waits for it, and it is the head. */
void blyi_task_tell_callback(const struct blyi_stream *stream, bool held);

/* Before a line begins (by: whose head has it begin) or when it has ended, of which nobody knows.
 */
struct blyi_line;
void blyi_line_tell_begin(const struct blyi_line *line, const struct blyi_stream *by);
void blyi_line_tell_end(const struct blyi_line *line, const struct blyi_stream *runner);

/* Work of the calling thread. stream NULL: of none; else behind all work of that stream. */
void blyi_copy_tell(const struct blyi_stream *stream, const void *dst, const void *src,
                    uint64_t size, uint32_t site);
void blyi_set_tell(const struct blyi_stream *stream, const void *dst, uint64_t size, uint32_t site);
struct blyi_rows;
void blyi_rows_tell(const struct blyi_stream *stream, const struct blyi_rows *rows, uint32_t site);

#endif
