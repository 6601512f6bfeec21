/* SPDX-License-Identifier: Apache-2.0
 *
 * event_inside.h - the inside of an event, for those who run its tasks and list it.
 *
 * References: one of the handle, one of each queued task that names the event. A legacy event's
 * id goes back to the card with the last of them.
 */
#ifndef BLYI_EVENT_INSIDE_H
#define BLYI_EVENT_INSIDE_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/list.h"
#include "base/lock.h"

struct blyi_card;
struct blyi_context;
struct blyi_stream;

struct blyi_event {
    /* Written at creation. */
    void *handle;
    struct blyi_card *card;
    struct blyi_context *context;
    uint32_t id;
    uint32_t flags;
    uint32_t site;
    bool modern;
    uint64_t born_ns;

    uint32_t refs;
    uint32_t counted; /* legacy: its id is counted on the card */
    uint32_t n_waits; /* queued waits that have not passed */

    struct blyi_lock lock;      /* rank EVENT: the last record */
    struct blyi_stream *stream; /* referenced; NULL: never recorded */
    uint64_t position;
    uint64_t time_ns; /* when the record at timed_position of timed_stream ran */
    uint64_t timed_position;
    const struct blyi_stream *timed_stream; /* compared only */

    uint32_t flag;             /* legacy, block.c: a record has run and no reset since */
    struct blyi_list watchers; /* legacy, block.c: streams that wait for the flag */

    struct blyi_list roll_link; /* roll.c */
};

void blyi_event_unref(struct blyi_event *event);
/* A queued wait has passed or was dropped. */
void blyi_event_wait_passed(struct blyi_event *event);
/* The record at `position` of `stream` runs now. */
void blyi_event_recorded(struct blyi_event *event, const struct blyi_stream *stream,
                         uint64_t position);
/* The last record has ended, and a legacy event was not reset since. False: never recorded. */
bool blyi_event_is_complete(struct blyi_event *event);
/* A record is queued that has not run. */
bool blyi_event_is_pending(struct blyi_event *event);
/* Events of a context that is torn down become invalid. */
void blyi_event_end_all(struct blyi_context *context);

/* Pins a live event. E_FORKED, E_HANDLE. */
bly_status blyi_event_pin(void *handle, struct blyi_event **out);
void blyi_event_unpin(struct blyi_event *event);
/* Stream and position of the last record; the stream is referenced. False: never recorded. */
bool blyi_event_last(struct blyi_event *event, struct blyi_stream **stream, uint64_t *position);

#endif
