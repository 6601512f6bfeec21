/* SPDX-License-Identifier: Apache-2.0
 *
 * account.h - who holds how much: a sink of probes that keeps exact figures of card memory,
 * pinned memory, streams, events and their kin, by card and by site.
 *
 * `asked` is what the program wrote, `rounded` what AscendCL's rule makes of it, `backed` the
 * pages really taken. Live and peak figures count asked bytes; the backed ones stand beside them.
 * When the host has no memory for a block's record, the totals stay exact and the block is put
 * down to site 0 ("unknown").
 */
#ifndef BLYI_ACCOUNT_H
#define BLYI_ACCOUNT_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/probe.h"

#define BLYI_ACCOUNT_CARDS  64
#define BLYI_ACCOUNT_PINNED (-1) /* in place of a card: pinned host memory */
#define BLYI_ACCOUNT_IDS    8

struct blyi_tally {
    uint64_t count, asked, rounded, backed;
};

/* Things with an id that are made and destroyed: streams, events, notifies, graphs, contexts,
 * queues. */
struct blyi_tally_ids {
    uint64_t made, live;
    uint64_t reset;                 /* destroyed by a device reset, not by the program */
    uint32_t ids[BLYI_ACCOUNT_IDS]; /* lowest ids of `reset` and `live`, rising */
    uint32_t n_ids;
};

/* What one site did on one card. */
struct blyi_account_group {
    int32_t card; /* or BLYI_ACCOUNT_PINNED */
    uint32_t site;
    struct blyi_tally all;     /* every allocation so far */
    struct blyi_tally live;    /* not freed */
    struct blyi_tally at_peak; /* live at the moment of the process's peak */
    struct blyi_tally reset;   /* taken back by a device reset */
    uint64_t first_address;    /* lowest leaked block; 0: none */
    uint64_t saving;           /* backed bytes of live blocks that exist for the +32 bytes alone */
    uint64_t saving_peak;      /* the most that `saving` was */
    uint64_t refused, refused_largest;
    int64_t refused_status; /* of the last refusal, a bly_status */
    /* Physical memory behind handles: part of the figures above. */
    struct blyi_tally handles, handles_reset;
    uint64_t handles_orphan;                  /* of both, reachable by no address at the end */
    struct blyi_tally imports, imports_reset; /* of other processes: in no figure above */
    struct blyi_tally_ids streams, events, notifies, graphs, contexts, queues;
    /* Of live events, where the checker knows: recorded by queued work; in use by queued work. */
    uint64_t events_pending, events_used;
    uint64_t epoch; /* private: the peak that at_peak belongs to */
};

struct blyi_account_card {
    bool opened;
    uint64_t total, overhead;
    struct blyi_tally live;
    uint64_t peak, peak_backed; /* each at its own moment */
    uint64_t held;              /* by pools, whether in blocks or idle */
    uint64_t taken, peak_taken; /* held, and what backs blocks outside of pools */
};

struct blyi_account_pages {
    struct blyi_tally all, live;
    uint64_t peak_backed;
};

struct blyi_account_objects {
    uint64_t made, destroyed, live, peak;
};

/* Memory of the program's that it registered, outside of pinned blocks. */
struct blyi_account_registered {
    uint64_t made;
    struct blyi_tally live;
};

struct blyi_account_totals {     /* of card memory, or of pinned memory */
    struct blyi_tally all, live; /* in a copy, live pinned memory has what is registered too */
    uint64_t peak, peak_backed;  /* of pinned memory: with what is registered */
    uint64_t frees, reset;       /* calls that freed; blocks taken back by a reset */
    uint64_t refused;
};

/* Host code that touched card memory, at one instruction of the program. */
struct blyi_account_access {
    int32_t card;
    uint32_t site;       /* of the access */
    uint32_t block_site; /* 0: no live block */
    bool is_write;
    uint64_t address;      /* the first time */
    uint64_t offset, size; /* in the block; size 0: no live block */
    uint64_t count;
};
#define BLYI_ACCOUNT_ACCESSES 32

struct blyi_account_refused_frees {
    uint64_t count;
    uint32_t site; /* of the last */
};

/* A copy of all figures at one moment. */
struct blyi_account {
    struct blyi_account_card cards[BLYI_ACCOUNT_CARDS];
    struct blyi_account_totals process, pinned;
    struct blyi_account_pages pages[BLYI_PAGE_KIND_COUNT];
    struct blyi_account_objects streams, events, notifies, graphs, contexts, queues;
    struct blyi_account_registered registered;
    struct blyi_account_refused_frees frees; /* of card or pinned memory */
    uint64_t untracked;                      /* blocks without a record, for want of host memory */
    struct blyi_account_group *groups;
    size_t n_groups;
    struct blyi_account_access accesses[BLYI_ACCOUNT_ACCESSES];
    size_t n_accesses;
    bool knows_work; /* the checker has told what queued work does with events */
    bool dying;      /* a signal ends the process: what is live is no leak */
};

/* Starts counting; further calls do nothing. [any] */
void blyi_account_start(void);
/* True when counting began and the figures are this process's own: a child forked after its
 * parent counted something has none. */
bool blyi_account_is_own(void);

/* E_HOST_MEMORY. Waits at most two seconds for the account's lock, since the process may be
 * about to end; E_TIMEOUT then. [any] */
bly_status blyi_account_read(struct blyi_account *out);
void blyi_account_fini(struct blyi_account *copy);

/* The figures are of a process that a signal ends. */
void blyi_account_set_dying(void);

/* Sums of records, groups and totals agree. */
bool blyi_account_audit(void);

#endif
