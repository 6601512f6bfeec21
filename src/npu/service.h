/* SPDX-License-Identifier: Apache-2.0
 *
 * service.h - the thread that does what other processes ask of this one, and notices who died.
 *
 * It is made when this process first binds a card, sleeps at the bell of its slot, and ends at
 * finalise. While no other slot is in use it sleeps without a limit; else it wakes every
 * 500 ms and clears away the dead (ledger.h). docs/design/service.md.
 *
 *   asker:  [take the mailbox] [write the request] [ring] ... [read the answer] [leave it free]
 *   thread:                                          [do it, write the answer]
 */
#ifndef BLYI_SERVICE_H
#define BLYI_SERVICE_H

#include <belay/base.h>
#include <stdbool.h>

/* Starts the thread when it is not there. The process is attached to the ledger. E_SYSTEM. [any] */
bly_status blyi_service_need(void);
/* Ends it once it has done what it is doing; a later need starts it again. */
void blyi_service_stop(void);
/* In the child of a fork: there is no thread. No lock. */
void blyi_service_forget(void);

/* Wakes the thread of a process to look around; of all others. No lock, and no system call while it
 * is awake. [any] */
void blyi_service_ring(uint32_t slot);
void blyi_service_ring_all(void);

enum blyi_ask {
    BLYI_ASK_GIVE = 1, /* give back up to `bytes` of the card: reclaim.h */
    BLYI_ASK_DEFRAG,   /* gather the free memory of the card until a run has `bytes`; 0: all */
};

struct blyi_request {
    enum blyi_ask what;
    int card;
    uint64_t bytes;
    uint64_t timeout_ns; /* for the work, once the other side has begun */
};

struct blyi_answer {
    bly_status status; /* of the work, without its sentence */
    uint64_t bytes;    /* given back, or moved */
    uint64_t copied;   /* DEFRAG: of those, with content */
    uint64_t fixed;    /* DEFRAG: bytes that must stay where they are */
};

enum blyi_asked {
    BLYI_ASKED_ANSWERED,
    BLYI_ASKED_STOPPED, /* by a signal: it was not asked */
    BLYI_ASKED_SILENT,  /* it did not begin within 2 s: it is busy */
    BLYI_ASKED_LATE,    /* it began and did not end in time */
    BLYI_ASKED_ENDED,   /* the process is gone */
};
#define BLYI_ASK_BEGIN_NS ((uint64_t)2 * 1000000000)

/* Asks another slot and waits for its answer, with no lock held. *answer is written when it is
 * ANSWERED. [any] */
enum blyi_asked blyi_service_ask(uint32_t slot, const struct blyi_request *request,
                                 struct blyi_answer *answer);
/* "did not begin within 2 s" and the like; NULL for ANSWERED. */
const char *blyi_asked_text(enum blyi_asked asked);

/* Under the ledger's lock: `slot` is dead; mailboxes that it has taken become free. */
void blyi_service_reap_locked(uint32_t slot);

#endif
