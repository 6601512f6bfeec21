/* SPDX-License-Identifier: Apache-2.0
 *
 * card.h - one card of this process: model, frames, backing, window, limits, lock.
 *
 * Cards are opened at first need and stay; blyi_card_get() takes no lock. `lock` (rank CARD)
 * guards window and blocks; frames, and limits of streams and events, are shared with other
 * processes (stock.h, tally.h).
 */
#ifndef BLYI_CARD_H
#define BLYI_CARD_H

#include <belay/base.h>
#include "base/list.h"
#include "base/lock.h"
#include "base/tree.h"
#include "npu/backing.h"
#include "npu/frame.h"
#include "npu/model.h"
#include "npu/span.h"
#include "npu/stock.h"
#include "npu/window.h"

#define BLYI_CARD_MAX 64

#define BLYI_OVERHEAD_RUNS 32 /* pieces in which the runtime takes its own on a full card */

#define BLYI_MODULE_COUNT       96 /* driver modules; others count as the application */
#define BLYI_MODULE_APPLICATION 33
#define BLYI_MODULE_RUNTIME     7

struct blyi_away;

struct blyi_card {
    int id;
    struct blyi_model model; /* with the options applied */
    uint64_t total;          /* bytes that programs see: whole frames */
    struct blyi_lock lock;
    struct blyi_stock *stock; /* frames, shared with other processes (stock.h) */
    struct blyi_backing *backing;
    struct blyi_window *window;

    struct blyi_tree blocks;        /* struct blyi_block by address (memory.c) */
    struct blyi_partials *partials; /* frames of normal pages (partial.c) */
    struct blyi_freed *freed;       /* the last frees (freed.c) */
    struct blyi_list physicals;     /* memory behind handles (physical.h) */
    struct blyi_tree imports;       /* memory of other processes by address (import.c) */
    struct blyi_list import_ages;   /* the same by age */
    struct blyi_list tails;         /* of freed blocks that others hold (share_tail.c) */
    uint64_t imported;              /* bytes of others that this process has open */
    uint64_t shared, deferred;      /* of `live`, in frames of shares; of `tails` */
    uint64_t live;                  /* backed bytes of live blocks and handles */
    uint64_t peak;
    uint32_t n_bound;  /* contexts of this process on the card */
    uint64_t overhead; /* taken while n_bound > 0 */
    struct blyi_run overhead_runs[BLYI_OVERHEAD_RUNS];
    uint32_t n_overhead_runs, overhead_frames;
    struct {
        uint64_t live, peak;
    } modules[BLYI_MODULE_COUNT];

    struct blyi_away *away; /* its content is in host memory, or on the way (away.h) */

    uint64_t resets;    /* how often all its physical memory was freed; under VMM */
    uint32_t n_waiting; /* threads at `lock`; atomic */
};

/* Number of cards (option CARDS). */
int blyi_card_count(void);
/* Opens the card when needed. E_DEVICE, E_SYSTEM, E_HOST_MEMORY, E_IO and E_PARSE (model file),
 * E_INVALID (options that contradict the model). [any] */
bly_status blyi_card_open(int id, struct blyi_card **out);
/* What would keep any card from being opened and used: E_IO, E_PARSE and E_INVALID as
 * blyi_card_open(); E_CAP: the cap leaves no room for the runtime's overhead. Opens nothing. [any]
 */
bly_status blyi_card_check_options(void);
/* An open card, or NULL. */
struct blyi_card *blyi_card_get(int id);
/* Frees all blocks and closes the card; for tests and the end of the process. [excl] */
void blyi_card_close(struct blyi_card *card);

/* Take and drop `lock`. Long work calls blyi_card_yield() now and then: those who wait go first,
 * where a mutex alone would let the same thread win again and again. */
void blyi_card_lock(struct blyi_card *card);
void blyi_card_unlock(struct blyi_card *card);
void blyi_card_yield(struct blyi_card *card);

/* A context of this process appears on / leaves the card: the first takes the runtime's
 * overhead, the last gives it back. E_NO_MEMORY, E_CAP. */
bly_status blyi_card_bind(struct blyi_card *card);
void blyi_card_unbind(struct blyi_card *card);
/* The frames of the overhead alone, while the rest of the account stays (away.c). False: the card
 * has no such frames. Under the lock. */
void blyi_card_give_overhead_locked(struct blyi_card *card);
bool blyi_card_take_overhead_locked(struct blyi_card *card);

/* Takes one of a limited number; false when all are in use. */
bool blyi_card_take_stream(struct blyi_card *card);
void blyi_card_give_stream(struct blyi_card *card);
bool blyi_card_take_event(struct blyi_card *card);
void blyi_card_give_event(struct blyi_card *card);
bool blyi_card_take_notify(struct blyi_card *card);
void blyi_card_give_notify(struct blyi_card *card);

/* Everything of the card: frames, backing, window, blocks and their sums. */
bool blyi_card_audit(struct blyi_card *card);

#endif
