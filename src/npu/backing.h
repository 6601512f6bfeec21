/* SPDX-License-Identifier: Apache-2.0
 *
 * backing.h - the host memory behind a card's frames: one sparse memfd, committed frame by
 * frame at first use, kept resident a while after a frame is freed. Guards its own state
 * (rank BACKING).
 *
 *   absent ── commit ──> committed ── retire ──> spare ── reuse ──> committed
 *      ^                                           │
 *      └──────────────── punched ──────────────────┘
 */
#ifndef BLYI_BACKING_H
#define BLYI_BACKING_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_backing;
struct blyi_stock;

#define BLYI_BACKING_HOST 64 /* in place of a card: physical memory of the host (vmm.h) */

enum blyi_backing_pages { BLYI_BACKING_HUGE, BLYI_BACKING_SMALL };

/* Of a card: `fd` is its memory, which is closed with it, and `stock` says whose frames are whose.
 * BLYI_BACKING_HOST: -1 and NULL, the memfd is made here. E_SYSTEM, E_HOST_MEMORY; the descriptor
 * is the caller's then. Options PAGES and RESIDENT are read here. */
bly_status blyi_backing_create(int card, uint32_t n_frames, int fd, struct blyi_stock *stock,
                               struct blyi_backing **out);
/* Nothing may be mapped any more. [excl] */
void blyi_backing_destroy(struct blyi_backing *backing);
/* All frames in a row, for the library alone (guard.h), or NULL. */
/* In the child of a fork: the files are the parent's, and are not reached any more. No lock. */
void blyi_backing_forget_all(void);
char *blyi_backing_alias(const struct blyi_backing *backing);
/* Ask each time: -1 (EBADF, logged once) when the program has closed it. */
int blyi_backing_fd(struct blyi_backing *backing);

/* Makes frames [first, first + count), mapped at `address`, usable without a fault that could
 * fail. Frames that are resident cost nothing. E_HOST_MEMORY: the host cannot afford them, even
 * after the spare frames of all cards were punched; the sentence says what is asked, what the
 * host has and who set the limit; frames that were committed before the failure stay so. */
bly_status blyi_backing_commit(struct blyi_backing *backing, uint32_t first, uint32_t count,
                               void *address);
bool blyi_backing_is_committed(struct blyi_backing *backing, uint32_t frame);
/* Length of the run at `first`, at most `count`, that is committed as a whole or not at all. */
uint32_t blyi_backing_span(struct blyi_backing *backing, uint32_t first, uint32_t count,
                           bool *committed);
/* The card freed these frames: those that are committed become spare. */
void blyi_backing_retire(struct blyi_backing *backing, uint32_t first, uint32_t count);
/* Punches the oldest spare frames beyond the limit; called once their mappings are gone. */
void blyi_backing_settle(struct blyi_backing *backing);
/* The card took these frames again: they are no longer spare. Until then any thread may punch
 * them, so this comes before anybody asks whether they are committed. */
void blyi_backing_reuse(struct blyi_backing *backing, uint32_t first, uint32_t count);
/* Gives spare frames back to the host; returns bytes. */
uint64_t blyi_backing_trim(struct blyi_backing *backing, uint64_t bytes);
/* The same over all cards. */
uint64_t blyi_backing_trim_all(uint64_t bytes);
/* For stock.c, inside the ledger's lock. Another process freed these frames: what the host backs of
 * them is spare. Or took or punched them: nothing of it is known here any more. Or nobody can say:
 * all words are read again. */
void blyi_backing_gain(struct blyi_backing *backing, uint32_t first, uint32_t count);
void blyi_backing_lose(struct blyi_backing *backing, uint32_t first, uint32_t count);
void blyi_backing_reread(struct blyi_backing *backing);
/* A process died while it made or took away the pages of a frame, which is ours now: it has none
 * afterwards. */
void blyi_backing_make_sure(struct blyi_backing *backing, uint32_t frame);
/* A bit per frame that is spare, for blyi_frames_take(); NULL when none is. */
const uint64_t *blyi_backing_prefer(const struct blyi_backing *backing);

struct blyi_backing_figures {
    uint64_t committed; /* bytes of host memory behind the card */
    uint64_t spare;     /* of those, behind free frames */
    uint64_t huge;      /* of those committed, behind one huge page each */
};
void blyi_backing_figures(struct blyi_backing *backing, struct blyi_backing_figures *out);
bool blyi_backing_audit(struct blyi_backing *backing);

/* What the host could still give: min of MemAvailable, cgroup limit and BELAY_HOST_LIMIT, less
 * a margin; bytes (host_room.h). Also used by pinned memory and `belay doctor`. */
uint64_t blyi_backing_host_room(void);

#endif
