/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h - was the pinned source of a queued copy left alone until the copy had run? A copy of it
 * is kept from submission to the end of the task, while somebody listens for SOURCE_CHANGED.
 */
#ifndef BLYI_SOURCE_H
#define BLYI_SOURCE_H

#include <stdint.h>

struct blyi_stream;
struct blyi_task;

/* Submitter, of a COPY that holds its source, in the ring and told but not yet published. Beyond
 * 128 MiB in flight, or without host memory, nothing is kept and nothing will be compared. */
void blyi_source_keep(struct blyi_task *task);
/* Owner only, behind the run: tells what differs. */
void blyi_source_compare(const struct blyi_stream *stream, const struct blyi_task *task);
/* Frees what was kept, if anything was. */
void blyi_source_forget(struct blyi_task *task);

/* The bytes themselves, in the same bounds, for who has a task later (graph_source.c). NULL: not
 * kept. */
void *blyi_source_copy(const void *source, uint64_t size);
void blyi_source_free(void *bytes); /* NULL is allowed */

#endif
