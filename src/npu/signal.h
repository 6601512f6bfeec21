/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.h - events and notifies that several processes see: a record in the ledger, and this
 * process's hold on it. docs/design/service.md.
 *
 * A record lives until the last of its holders has let go of it or died. Whoever changes it rings
 * the bells of the others (service.h), whose threads let waiting streams look again; nobody polls.
 *
 * An event's records are told apart by *lanes*: one for each (process, stream) that has some under
 * way. In a lane they end in order, so a wait needs to know its lane and a position:
 *
 *     lane 0   process 3, stream 7     done ....... 12        a wait for 13 is not over
 *     lane 1   process 5, stream 2     done .... 4            died: 5 and later are lost
 */
#ifndef BLYI_SIGNAL_H
#define BLYI_SIGNAL_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/list.h"

struct blyi_stream;
struct blyi_task;

#define BLYI_SIGNAL_LANES  8u
#define BLYI_SIGNAL_PIDS   64u
#define BLYI_SIGNAL_KEY    65u /* printable, with its NUL */
#define BLYI_SIGNAL_HANDLE 64u

enum blyi_signal_kind { BLYI_SIGNAL_EVENT = 1, BLYI_SIGNAL_NOTIFY };

struct blyi_signal_record;
struct blyi_signal { /* one for each record in a process, however often it was opened */
    struct blyi_list link;
    struct blyi_signal_record *record;
    uint32_t index, generation;
    uint32_t refs;
    uint32_t seen; /* turn of the record at the last look */
    bool is_maker;
    struct blyi_list watchers; /* block.c: streams of this process that wait */
};

/* A new record of ours. E_NO_EVENT or E_NO_NOTIFY (all records are in use), E_IO. [any] */
bly_status blyi_signal_create(enum blyi_signal_kind kind, int card, struct blyi_signal **out);
/* Lets go of one reference. */
void blyi_signal_unref(struct blyi_signal *signal);
int blyi_signal_card(const struct blyi_signal *signal);

/* Handles of events, keys of notifies: both name the record and its secret. */
void blyi_signal_handle(const struct blyi_signal *signal, unsigned char handle[BLYI_SIGNAL_HANDLE]);
void blyi_signal_key(const struct blyi_signal *signal, char key[BLYI_SIGNAL_KEY]);
/* E_INVALID, each with a sentence: no such thing, no longer there, made by this very process;
 * E_PERMISSION: not on its list. */
bly_status blyi_signal_open_handle(const unsigned char handle[BLYI_SIGNAL_HANDLE],
                                   struct blyi_signal **out);
bly_status blyi_signal_open_key(const char *key, struct blyi_signal **out);
/* Who may open it: everybody from now on; these as well. E_INVALID: too many. Maker only. */
void blyi_signal_allow_all(struct blyi_signal *signal);
bly_status blyi_signal_allow(struct blyi_signal *signal, const int32_t *pids, size_t n);

/* ── Events ── */

/* What a wait waits for. */
struct blyi_signal_point {
    uint32_t lane, generation; /* lane BLYI_SIGNAL_LANES: nothing */
    uint64_t position;
};
enum blyi_signal_state { BLYI_SIGNAL_DONE, BLYI_SIGNAL_PENDING, BLYI_SIGNAL_LOST };

/* A record will be queued on a stream: it has its lane from here until it is done. E_NO_EVENT. */
bly_status blyi_signal_begin(struct blyi_signal *signal, uint32_t stream, uint32_t *lane);
/* It will not be queued after all. */
void blyi_signal_cancel(struct blyi_signal *signal, uint32_t lane);
/* It has this position, and is the event's last one; and then: it has run, or never will. */
void blyi_signal_issue(struct blyi_signal *signal, uint32_t lane, uint64_t position);
void blyi_signal_done(struct blyi_signal *signal, uint32_t lane, uint64_t position);

void blyi_signal_last(const struct blyi_signal *signal, struct blyi_signal_point *point);
enum blyi_signal_state blyi_signal_state(const struct blyi_signal *signal,
                                         const struct blyi_signal_point *point);
/* E_PEER_ENDED, with a sentence. */
bly_status blyi_signal_lost(const struct blyi_signal *signal,
                            const struct blyi_signal_point *point);
/* The host waits. E_TIMEOUT without a sentence, E_PEER_ENDED. timeout_ns 0: no limit. */
bly_status blyi_signal_await(struct blyi_signal *signal, const struct blyi_signal_point *point,
                             uint64_t timeout_ns);
/* What may still end the wait: for blyi_block_at(). */
const uint32_t *blyi_signal_pending(const struct blyi_signal *signal, uint32_t lane);

/* ── Notifies ── */

void blyi_signal_set(struct blyi_signal *signal, uint32_t value);
/* The value it has before others know of it. */
void blyi_signal_begin_value(struct blyi_signal *signal, uint32_t value);
/* 1 becomes 0; false: it was not 1. */
bool blyi_signal_take(struct blyi_signal *signal);
/* Another holder died and no other is left: nobody will ever set it. */
bool blyi_signal_is_alone(const struct blyi_signal *signal);
bly_status blyi_signal_left_alone(const struct blyi_signal *signal);

/* ── Inside ── */

/* Lets streams of this process look at what other processes changed. */
void blyi_signal_look(void);
/* Under the ledger's lock: what a dead slot held. */
void blyi_signal_reap_locked(uint32_t slot);
/* Every record is free, or has a holder that exists. NULL, or what is wrong. */
const char *blyi_signal_audit_locked(void);
/* In the child of a fork. */
void blyi_signal_forget(void);

#endif
