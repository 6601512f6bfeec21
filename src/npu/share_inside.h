/* SPDX-License-Identifier: Apache-2.0
 *
 * share_inside.h - what share.c, share_reap.c, share_key.c, share_tail.c, ipc.c, import.c and
 * share_physical.c share. "Locked" means the ledger's lock, by blyi_stock_enter() where words
 * change; the card's lock is held as well where a card is named.
 */
#ifndef BLYI_SHARE_INSIDE_H
#define BLYI_SHARE_INSIDE_H

#include "base/list.h"
#include "base/tree.h"
#include "npu/share.h"
#include "npu/share_layout.h"
#include "npu/span.h"

struct blyi_stock;

struct blyi_partial;

/* A mapping of a key in a card's window. */
struct blyi_import {
    struct blyi_tree_node node; /* of card->imports; key: its first granule */
    struct blyi_list link;      /* of card->import_ages */
    uintptr_t address;          /* the program's part of it */
    uint64_t size;
    uint32_t n; /* granules */
    struct blyi_hold hold;
    uint32_t maker_pid;
    int for_card; /* whose work may use it */
    uint32_t site;
    uint64_t time_ns, serial; /* as blocks have it */
    char key[BLYI_KEY_TEXT_SIZE - 1];
};

/* Pages of a block that its maker has freed and others hold: out of use until they let go. */
struct blyi_tail {
    struct blyi_list link; /* of card->tails */
    struct blyi_partial *partial;
    uint32_t page, pages;
    struct blyi_hold hold;
};

/* share.c: records and words. */
struct blyi_shares *blyi_shares(void);
bool blyi_shares_in_use(void);    /* attached, and somebody has shared something */
uint32_t blyi_shares_count(void); /* records that may be read */
uint32_t blyi_keys_count(void);
struct blyi_share *blyi_share_at(uint32_t index); /* index < BLYI_SHARES */
struct blyi_key *blyi_key_at(uint32_t index);
/* Hints for growing, read without the lock; garbage may be in them. */
static inline void blyi_shares_count_live(uint32_t *live, int sign)
{
    uint32_t n = __atomic_load_n(live, __ATOMIC_RELAXED);
    __atomic_store_n(live, sign > 0 ? n + 1 : n - (n > 0), __ATOMIC_RELAXED);
}
/* Room for one more share or key; may grow the file. Without the ledger's lock. */
bly_status blyi_shares_prepare(int card);
/* The live share of a hold, or NULL. */
struct blyi_share *blyi_share_get_locked(struct blyi_hold hold);
bool blyi_share_is_held(struct blyi_hold hold); /* takes the ledger's lock */
bool blyi_share_has_holders(const struct blyi_share *share);
void blyi_share_set_state(struct blyi_share *share, enum blyi_share_state state);
void blyi_share_set_holder(struct blyi_share *share, uint32_t slot, bool holds);
/* A record and the words of its frames, which are ours. E_NO_MEMORY (no record), E_STATE (the words
 * say otherwise). */
bly_status blyi_share_form_locked(struct blyi_card *card, const struct blyi_share *with,
                                  const struct blyi_run *runs, uint32_t n_runs,
                                  struct blyi_hold *hold);
/* share_words.c: links and words say that the runs are the share's. False, and as before: a word
 * names somebody else. */
bool blyi_share_take_words_locked(struct blyi_card *card, struct blyi_share *share, uint32_t owner,
                                  const struct blyi_run *runs, uint32_t n_runs);
/* Nobody holds it any more: its frames go back to the card (give), or become ours. */
void blyi_share_end_locked(struct blyi_card *card, uint32_t index, bool give);
/* share_hold.c: makes frames of ours a share's; `with` has what the program knows of it. Takes the
 * ledger's lock. E_NO_MEMORY (no record), E_STATE (the words say otherwise). */
bly_status blyi_share_make(struct blyi_card *card, const struct blyi_share *with,
                           const struct blyi_run *runs, uint32_t n_runs, struct blyi_hold *hold);
/* What a form opens, with one more hold of this process. */
struct blyi_opening {
    struct blyi_share share; /* as it was */
    struct blyi_hold hold;
    uint64_t offset, length;
};
/* Which card a form's memory is on. Errors of blyi_key_find_locked(). */
bly_status blyi_share_card_of(struct blyi_key_form form, int *card);
/* E_INVALID, E_PERMISSION (share_key.c), E_CAP, E_STATE (damaged). Takes the ledger's lock. */
bly_status blyi_share_open(struct blyi_card *card, struct blyi_key_form form,
                           struct blyi_opening *out);
/* One less; the last of all gives the frames back to the card. Nothing of it is mapped for this
 * hold any more. Takes the ledger's lock. Returns whether others hold it still. */
bool blyi_share_leave(struct blyi_card *card, struct blyi_hold hold);
/* If nobody but its maker, us, holds it and no key is left, the frames are ours again: true, and
 * the hold has ended. Takes the ledger's lock. */
bool blyi_share_dissolve(struct blyi_card *card, struct blyi_hold hold);
/* Frames [from, from + count) of a share that we hold. E_STATE: the state is damaged. */
bly_status blyi_share_runs(struct blyi_card *card, struct blyi_hold hold, uint32_t from,
                           uint32_t count, struct blyi_run **runs, uint32_t *n_runs);
/* The owner of a frame is changed, if it was `from`. */
bool blyi_share_rename(struct blyi_card_file *file, uint32_t frame, uint32_t from, uint32_t to);
/* The same for a frame that goes from us to a share (an owner as words name it), or comes back. */
bool blyi_share_turn(struct blyi_stock *stock, uint32_t frame, uint32_t share, bool ours);
/* The partial frame of a share that ends goes to another that has pages in it. False: there is
 * none. */
bool blyi_share_pass_tail_locked(struct blyi_card_file *file, uint32_t index);
/* Whether the frame of its tail is its maker's, or of a share that has pages there. */
bool blyi_share_has_tail(struct blyi_card *card, struct blyi_hold hold);
/* Whether the host backs a frame, as its word says. */
bool blyi_share_is_committed(struct blyi_card *card, uint32_t frame);

/* share_key.c */
/* The live key of a form, with its share, which is live; NULL with a sentence. */
struct blyi_key *blyi_key_find_locked(struct blyi_key_form form);
/* Whether this process, `pid` (blyi_key_pid), may import by it. E_INVALID (its own), E_PERMISSION.
 */
bly_status blyi_key_admits(const struct blyi_key *key, int32_t pid);
/* What a new key will open. E_SYSTEM: no random bytes. */
struct blyi_key_draft {
    uint32_t kind, flags;
    uint64_t offset, length;
    uint64_t id;
    uint8_t secret[BLYI_KEY_SECRET];
};
bly_status blyi_key_draw(struct blyi_key_draft *draft);
/* share_physical.c: as blyi_ipc_export(), of reserved addresses: a block of a pool, whose memory is
 * one handle. E_INVALID: the program's own, or not mapped. */
bly_status blyi_ipc_export_pooled(uintptr_t address, uint64_t size, struct blyi_key_draft *draft,
                                  uint32_t site, char text[BLYI_KEY_TEXT_SIZE]);
void blyi_key_write(const struct blyi_key_draft *draft, void *out);
/* False, with a sentence: it has not the form of a key. */
bool blyi_key_read(struct blyi_key_form form, struct blyi_key_draft *out);
const char *blyi_key_name(const struct blyi_key_draft *draft, char buf[48]);
/* E_NO_MEMORY: all keys are in use. */
bly_status blyi_key_make_locked(const struct blyi_key_draft *draft, struct blyi_hold hold);
/* The maker ends a key of its own, or all of a share; `where` for those who come late. */
void blyi_key_end_locked(struct blyi_key *key, enum blyi_key_end end, const char *where);
void blyi_key_end_all_locked(struct blyi_hold hold, enum blyi_key_end end, const char *where);
/* A key of ours that ended with its memory is closed as well; false: it is no such key. */
bool blyi_key_close_freed_locked(struct blyi_key_form form);
/* Joins the others; E_INVALID: nobody has shared anything, so there is no such key. */
bly_status blyi_key_attach(struct blyi_key_form form);
bool blyi_key_is_mine(const struct blyi_key *key);

static inline struct blyi_import *blyi_import_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_import, node);
}

static inline uintptr_t blyi_import_base(const struct blyi_import *import)
{
    return (uintptr_t)import->node.key;
}

/* import.c: under the card's lock. The import around an address (of its granules). */
struct blyi_import *blyi_import_find_locked(const struct blyi_card *card, uintptr_t address);
/* The oldest mapping of a key is taken away. False: there is none in this card's window. */
bool blyi_import_close_oldest(struct blyi_card *card, const char *key, uint32_t site);

#endif
