/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.h - the frames of a card among the processes that use it: what frame.h answers, after
 * what others did was read from the ledger, and written there when we take or give.
 *
 * Each call takes the ledger's lock (rank LEDGER) for itself, so the card's lock may be held. The
 * allocator and the bits of resident frames (backing.h) are private caches; the words of the
 * card's file are the truth.
 */
#ifndef BLYI_STOCK_H
#define BLYI_STOCK_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_backing;
struct blyi_stock;

/* Opens the card's file and memory (ledger.h). E_STATE, E_IO, E_SYSTEM, E_HOST_MEMORY. */
bly_status blyi_stock_open(int card, uint32_t n_frames, const char *model,
                           struct blyi_stock **stock, struct blyi_backing **backing);
/* Nothing of it may be held any more. [excl] */
void blyi_stock_close(struct blyi_stock *stock);

/* As the functions of frame.h with these names; frames taken are ours, and those that the host
 * backs are no longer spare. */
uint32_t blyi_stock_take(struct blyi_stock *stock, uint32_t want, uint32_t *first);
bool blyi_stock_take_run(struct blyi_stock *stock, uint32_t count, uint32_t align, uint32_t *first);
bool blyi_stock_take_below(struct blyi_stock *stock, uint32_t count, uint32_t below,
                           uint32_t *first);
bool blyi_stock_take_at(struct blyi_stock *stock, uint32_t first, uint32_t count);
/* Frames of ours: free for everybody, spare where the host backs them. They must not be mapped
 * here any more. */
void blyi_stock_give(struct blyi_stock *stock, uint32_t first, uint32_t count);

struct blyi_stock_figures {
    uint32_t total, free, longest, giants; /* frames; giants: aligned GiB */
    uint64_t unused;                       /* bytes in partial frames, of all processes */
    uint32_t least_free;                   /* since the card was made: its peak */
};
void blyi_stock_figures(struct blyi_stock *stock, struct blyi_stock_figures *out);
uint32_t blyi_stock_free(struct blyi_stock *stock);
/* A bit per frame that is free now; BLYI_BITS_WORDS(total) words. */
void blyi_stock_snapshot(struct blyi_stock *stock, uint64_t *free);
bool blyi_stock_is_free(struct blyi_stock *stock, uint32_t frame);

/* For those who change words themselves (share.c, backing.c): the ledger's lock is taken and the
 * caches are up to date. */
void blyi_stock_enter(struct blyi_stock *stock);
void blyi_stock_leave(struct blyi_stock *stock);
/* Inside: tells other processes. `kind` is an enum blyi_change. */
void blyi_stock_log_locked(struct blyi_stock *stock, unsigned kind, uint32_t first, uint32_t count);
/* Inside: as blyi_stock_give(), whoever the words name (a share that ended). */
void blyi_stock_give_locked(struct blyi_stock *stock, uint32_t first, uint32_t count);
/* Inside: a frame of ours went over to a share, or came back from one. */
void blyi_stock_turn_locked(struct blyi_stock *stock, uint32_t frame, bool ours);
struct blyi_card_file *blyi_stock_file(struct blyi_stock *stock);

/* The words and the caches agree, and as many words name us as we think. */
bool blyi_stock_audit(struct blyi_stock *stock, uint32_t ours);

#endif
