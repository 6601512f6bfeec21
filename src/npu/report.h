/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - callbacks that wait for the thread that processes them. Guards its own lists
 * (rank SUBSCRIBE); no lock is held while user code runs.
 */
#ifndef BLYI_REPORT_H
#define BLYI_REPORT_H

#include "npu/callback.h"

struct blyi_stream;
struct blyi_task;
struct blyi_report;

/* Owner only: the callback at the head becomes ready. True: the stream belongs to the callback
 * until it has returned; false: the stream goes on (no block, or nobody serves it). */
bool blyi_report_deliver(struct blyi_stream *stream, struct blyi_task *task);
/* Whether a thread serves the stream. */
bool blyi_report_serves(struct blyi_stream *stream, enum blyi_serves what);
/* Queues user code for the thread that serves it when its turn has come; dropped, if none does.
 * E_HOST_MEMORY, E_SYSTEM. */
bly_status blyi_report_queue(struct blyi_stream *stream, void (*fn)(void *), void *arg,
                             enum blyi_serves what, bool block, uint32_t site);
/* The callback stays in a graph, for the thread that serves its stream now. */
void blyi_report_keep(struct blyi_report *report);
/* The same callback once more, for `stream` to run. E_HOST_MEMORY. */
bly_status blyi_report_again(const struct blyi_report *kept, struct blyi_stream *stream,
                             struct blyi_report **out);
/* A callback that will not be delivered; NULL is allowed. */
void blyi_report_free(struct blyi_report *report);
/* The stream's tasks are being dropped: so are its callbacks that have not begun. */
void blyi_report_drop(struct blyi_stream *stream);
/* As blyi_host_thread_leave(), for a callback that the stream waits for. */
bool blyi_report_leave(struct blyi_stream *stream, uint64_t before_ns);
/* The calling thread is the one that the stream's ready callback waits for. */
bool blyi_report_is_needed(const struct blyi_stream *stream);
/* The stream goes away: its subscription and callbacks that have not begun end. */
void blyi_report_withdraw(struct blyi_stream *stream);

#endif
