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
#include "base/order.h"

struct blyi_card;
struct blyi_context;
struct blyi_context_here;
struct blyi_graph;
struct blyi_node;
struct blyi_signal;
struct blyi_stream;
struct blyi_task;

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
    uint32_t n_records; /* so far, at most 2 */
    uint64_t time_ns;   /* when the record at timed_position of timed_stream ran */
    uint64_t timed_position;
    const struct blyi_stream *timed_stream; /* compared only */
    struct blyi_graph *graph;               /* the last record was captured there; referenced */
    const struct blyi_node *captured;       /* that record */
    struct blyi_stream *mark;               /* counts external records; NULL: there was none */
    struct blyi_marker {
        uint32_t graph, stream; /* ids */
        int32_t thread;
    } marker; /* who put the last record there */

    /* Whether records and waits are the external kind: 0 not known yet, 1 no, 2 yes. */
    uint32_t record_kind, wait_kind;

    struct blyi_signal *signal; /* IPC: what several processes see; else NULL */

    uint32_t flag;             /* legacy, block.c: a record has run and no reset since */
    struct blyi_list watchers; /* legacy, block.c: streams that wait for the flag */

    struct blyi_list roll_link; /* roll.c */
};

void blyi_event_unref(struct blyi_event *event);
/* Legacy: the flag stands, and what came before it was set has been seen. */
static inline bool blyi_event_is_flagged(const struct blyi_event *event)
{
    if (__atomic_load_n(&event->flag, __ATOMIC_ACQUIRE) == 0)
        return false;
    blyi_order_acquire(&event->flag);
    return true;
}
/* A queued wait has passed or was dropped. */
void blyi_event_wait_passed(struct blyi_event *event);
/* `position` of `stream` becomes the last record; a later one of another thread stands. */
/* Whose record a wait waits for, as probes tell it: the stream, or what is none. */
uint32_t blyi_event_of(const struct blyi_stream *after);
void blyi_event_set_last(struct blyi_event *event, struct blyi_stream *stream, uint64_t position);
/* Counts the id of a legacy event against the card, once. E_NO_EVENT. */
bly_status blyi_event_take_id(struct blyi_event *event);
/* The record at `position` of `stream` runs now. */
void blyi_event_recorded(struct blyi_event *event, const struct blyi_stream *stream,
                         uint64_t position);
/* The last record has ended, and a legacy event was not reset since. False: never recorded. */
bool blyi_event_is_complete(struct blyi_event *event);
/* A record is queued that has not run. */
bool blyi_event_is_pending(struct blyi_event *event);
/* Events of a context that is torn down become invalid. */
void blyi_event_end_all(struct blyi_context *context);

/* The making of an event once all is checked. It takes the reference of `signal` (may be NULL) when
 * it succeeds. E_NO_CONTEXT, E_HOST_MEMORY. */
bly_status blyi_event_make(const struct blyi_context_here *here, uint32_t flags, bool modern,
                           uint32_t site, struct blyi_signal *signal, void **handle);

/* Shared events (event_share.c): made; what a wait that is queued now waits for; the wait runs
 * (false: the stream is blocked); as blyi_event_sync() and blyi_event_query(). */
bly_status blyi_event_create_shared(const struct blyi_context_here *here, uint32_t site,
                                    void **handle);
void blyi_event_point(const struct blyi_event *event, struct blyi_task *task);
bool blyi_event_run_shared_wait(struct blyi_stream *stream, struct blyi_task *task,
                                bly_status *status);
bly_status blyi_event_sync_shared(struct blyi_event *event, uint64_t timeout_ns);
bly_status blyi_event_query_shared(const struct blyi_event *event, bool *complete);

/* Pins a live event. E_FORKED, E_HANDLE. */
bly_status blyi_event_pin(void *handle, struct blyi_event **out);
void blyi_event_unpin(struct blyi_event *event);
/* Stream and position of the last record; the stream is referenced. False: never recorded. */
bool blyi_event_last(struct blyi_event *event, struct blyi_stream **stream, uint64_t *position);

#endif
