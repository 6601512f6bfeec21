/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - callbacks that wait for the thread that processes them. Guards its own lists
 * (rank SUBSCRIBE); no lock is held while user code runs.
 */
#ifndef BLYI_REPORT_H
#define BLYI_REPORT_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_stream;
struct blyi_task;
struct blyi_report;

/* Owner only: the callback at the head becomes ready. True: the stream belongs to the callback
 * until it has returned; false: the stream goes on (no block, or nobody serves it). */
bool blyi_report_deliver(struct blyi_stream *stream, struct blyi_task *task);
/* A callback that will not be delivered; NULL is allowed. */
void blyi_report_free(struct blyi_report *report);
/* The stream goes away: its subscription and callbacks that have not begun end. */
void blyi_report_withdraw(struct blyi_stream *stream);

#endif
