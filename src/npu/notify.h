/* SPDX-License-Identifier: Apache-2.0
 *
 * notify.h - counters of a card that streams set and wait for.
 *
 *   notify            0 or 1: a record sets it; a wait passes at 1 and puts it back to 0
 *   counting notify   32 bits: a record sets, adds, ors or ands; a wait compares, and may clear
 *
 * Waits look and take in one step: of two streams that wait for one record, one passes.
 */
#ifndef BLYI_NOTIFY_H
#define BLYI_NOTIFY_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/list.h"

struct blyi_card;
struct blyi_signal;
struct blyi_stream;
struct blyi_task;

enum blyi_notify_change {
    BLYI_NOTIFY_SET,
    BLYI_NOTIFY_ADD,
    BLYI_NOTIFY_OR,
    BLYI_NOTIFY_AND,
};

enum blyi_notify_condition {
    BLYI_NOTIFY_LESS,
    BLYI_NOTIFY_EQUAL,
    BLYI_NOTIFY_GREATER,
    BLYI_NOTIFY_GREATER_EQUAL,
    BLYI_NOTIFY_MASKED, /* value & mask == mask */
};

/* On the current context's card. E_NO_NOTIFY, E_NO_CONTEXT, E_HOST_MEMORY. [any] */
bly_status blyi_notify_create(bool counting, uint32_t site, void **handle);
/* Never blocks; queued tasks keep it until they end. */
bly_status blyi_notify_destroy(void *handle, bool counting);
bly_status blyi_notify_id(void *handle, bool counting, uint32_t *id);
/* In stream order; stream NULL: default. */
bly_status blyi_notify_record(void *handle, bool counting, enum blyi_notify_change change,
                              uint32_t value, void *stream, uint32_t site);
/* timeout_s 0: none; expiry is an error of the stream. clear: to 0 once it passes. */
bly_status blyi_notify_wait(void *handle, bool counting, enum blyi_notify_condition condition,
                            uint32_t value, bool clear, uint32_t timeout_s, void *stream,
                            uint32_t site);
/* To 0 at once, all or none. E_HANDLE. */
bly_status blyi_notify_reset_now(void *const handles[], size_t n);

/* Notifies that several processes see (notify_share.c). The key is text of 64 characters and names
 * the notify to processes of the same state that are on its list, or to all. Only who made it can
 * export it and add to the list. It may be another card's: E_UNSUPPORTED when the cards have no
 * switch in common; `peer` enables access to that card's memory as well. E_INVALID: imported
 * itself, too many pids, a key that names no live notify, or one of this very process;
 * E_PERMISSION: not on the list; E_NO_NOTIFY. */
#define BLYI_NOTIFY_KEY  65
#define BLYI_NOTIFY_PIDS 64 /* that a list holds */
bly_status blyi_notify_export(void *handle, bool for_all, char key[BLYI_NOTIFY_KEY]);
bly_status blyi_notify_allow(void *handle, const int32_t *pids, size_t n);
bly_status blyi_notify_import(const char *key, bool peer, uint32_t site, void **handle);

/* Inside. */
struct blyi_notify {
    void *handle;
    struct blyi_card *card;
    uint32_t id;
    uint32_t site;
    bool counting;
    bool counted; /* against the card's limit: not an imported one */
    uint32_t refs;
    uint32_t n_records;         /* queued and not run */
    uint32_t value;             /* block.c */
    struct blyi_list watchers;  /* block.c: streams that wait, while `signal` is NULL */
    struct blyi_signal *signal; /* once exported or imported: has the value and who waits. Atomic */
    struct blyi_list link;      /* notify.c */
};
void blyi_notify_unref(struct blyi_notify *notify);
/* Pins a live one. E_FORKED, E_HANDLE. */
bly_status blyi_notify_pin(void *handle, bool counting, struct blyi_notify **out);
/* Makes one; `signal` may be NULL, and is taken over when it succeeds. */
bly_status blyi_notify_make(struct blyi_card *card, bool counting, uint32_t site,
                            struct blyi_signal *signal, void **handle);
/* Gives it a signal that has its value from here on; false: it has one already. */
bool blyi_notify_share(struct blyi_notify *notify, struct blyi_signal *signal);
/* Owner only: the task runs. wait: false: the stream is blocked, see block.h. */
void blyi_notify_run_record(struct blyi_task *task);
bool blyi_notify_run_wait(struct blyi_stream *stream, struct blyi_task *task, bly_status *status);
/* Notifies of a card that is reset become invalid. */
void blyi_notify_end_all(const struct blyi_card *card);

#endif
