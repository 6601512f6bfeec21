/* SPDX-License-Identifier: Apache-2.0
 *
 * share.h - memory with several holders: the process that made it, and those that imported it.
 * See docs/design/share.md.
 *
 * Keys (IPC) open a block, or a range of whole pages of it; handles and fabric handles open
 * physical memory. Nothing is copied: an importer maps the same frames.
 */
#ifndef BLYI_SHARE_H
#define BLYI_SHARE_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/ledger_layout.h"

struct blyi_card;
struct blyi_block;

/* A hold on a share: one record in one use; generation 0: none. */
struct blyi_hold {
    uint32_t index;
    uint64_t generation;
};

#define BLYI_KEY_TEXT_SIZE   65 /* 64 characters and a NUL */
#define BLYI_KEY_FABRIC_SIZE 128

/* What the program has in its hands. */
struct blyi_key_form {
    uint32_t kind;     /* enum blyi_key_kind (share_layout.h) */
    const void *bytes; /* TEXT: 64 characters, then whatever; HANDLE: 8 bytes; FABRIC: 128 */
};

#define BLYI_EXPORT_ANY 1u /* no list of processes: whoever has the key may import */

/* A key for [address, address + size) of one live block, rounded up to its pages.
 * E_ALIGN    not at a multiple of the block's page size: needed boundary, offset, what helps
 * E_INVALID  no live block there, the range reaches beyond it, imported or mapped memory
 * E_NO_MEMORY the state has no room for another share or key; E_IO, E_HOST_MEMORY [any] */
bly_status blyi_ipc_export(void *address, uint64_t size, uint32_t flags, uint32_t site,
                           char key[BLYI_KEY_TEXT_SIZE]);
/* Maps what a key opens, for work of `card`; each call is a mapping of its own. `peer`: `card` may
 * touch all memory of the key's card from now on.
 * E_INVALID     unknown (or ended: by whom, when, where), or a key of this very process
 * E_PERMISSION  this process is not on the key's list
 * E_UNSUPPORTED BELAY_PEER keeps the cards apart; E_CAP; E_STATE (damaged); as blyi_card_open() */
bly_status blyi_ipc_import(const char *key, int card, bool peer, uint32_t site, void **address);
/* Importer: takes its oldest mapping of the key away. Maker: the key ends, the memory stays.
 * E_INVALID: neither. [any] */
bly_status blyi_ipc_close(const char *key, uint32_t site);
/* The maker's half alone, and the importer's by address. E_INVALID. [any] */
bly_status blyi_ipc_end(const char *key, uint32_t site);
bly_status blyi_ipc_close_at(const void *address, uint32_t site);

/* Blocks whose last key this process closed while others had them open are its own again once
 * those have let go: what blyi_ipc_close() does when nobody has. Quick when there are none; one
 * card, under its lock, or all cards. */
void blyi_ipc_settle_locked(struct blyi_card *card);
void blyi_ipc_settle(void);

/* A handle of physical memory (physical.h) goes out once, as HANDLE or FABRIC; `out` has the bytes
 * of the form. E_HANDLE, E_INVALID (exported before, imported), E_UNSUPPORTED (the host's memory),
 * E_NO_MEMORY, E_IO. [any] */
bly_status blyi_handle_export(void *handle, uint32_t kind, uint32_t flags, uint32_t site,
                              void *out);
/* A handle for the same memory in another process, to be mapped for `card`. Errors as
 * blyi_ipc_import(). */
bly_status blyi_handle_import(struct blyi_key_form form, int card, uint32_t site, void **handle);

/* Admits processes, besides those admitted before. E_INVALID: unknown or ended key, not a key of
 * this process, more than 255 in all. [any] */
bly_status blyi_key_allow(struct blyi_key_form form, const int32_t *pids, size_t n);
/* Whether there is such a key. E_INVALID, with a sentence. */
bly_status blyi_key_check(struct blyi_key_form form);

/* For memory.c, under the card's lock: the frames and pages of an exported block, which its maker
 * frees: back to the card, or left to those who hold them. */
void blyi_share_free_block_locked(struct blyi_card *card, struct blyi_block *block, uint32_t site);
/* Pages of freed blocks come back that importers have let go of. Quick when there are none. */
void blyi_tails_settle_locked(struct blyi_card *card);
struct blyi_partial;
/* Pages of a partial frame were given back: it goes, when no page is in use, or to those who hold
 * the rest. True: it is gone. */
bool blyi_tails_after_give_locked(struct blyi_card *card, struct blyi_partial *partial);

/* For use.c: the first address of [start, end) beyond an import's pages; `end`: none. */
uintptr_t blyi_import_bad_locked(const struct blyi_card *card, uintptr_t start, uintptr_t end);
/* Adds to the thread's sentence: "; 0x... of 64 KiB, imported from pid 12 at f+0x3, ends 1 B before
 * it". Nothing when no import is near. */
void blyi_import_append_near_locked(const struct blyi_card *card, uintptr_t bad);
/* Whether an address is memory that was imported for work of a card other than its own; such
 * memory is only for kernels and for copies in stream order between cards. [any] */
bool blyi_import_is_foreign(const void *address);
/* For guard.c: single pages get the rights that blyi_guard_map() kept back. */
void blyi_import_unguard_locked(struct blyi_card *card);

struct blyi_import_info {
    uintptr_t address;
    uint64_t size;
    uint32_t maker_pid;
    uint32_t page_size;
    uint32_t site;
    int for_card;             /* whose work may use it */
    uint64_t time_ns, serial; /* of this import and no other block */
};
/* The import around an address of a card's window. [any] */
bool blyi_import_info(struct blyi_card *card, uintptr_t address, struct blyi_import_info *out);
/* The same for an address of any window. [any] */
bool blyi_import_find(const void *address, struct blyi_import_info *out);
bool blyi_import_info_locked(const struct blyi_card *card, uintptr_t address,
                             struct blyi_import_info *out);

/* The number by which this process is admitted: as the outermost pid namespace that /proc shows
 * counts it. [any] */
int32_t blyi_key_pid(void);

/* Takes back what this process imported: memory of a card, or for work of it (reset). */
void blyi_import_close_all(struct blyi_card *card);

/* Under the ledger's lock, before the words of a dead slot are cleared: its holds end, memory of
 * its that others hold goes over to them, its keys end. */
void blyi_share_reap_locked(uint32_t slot);
/* Under the ledger's lock: bytes of the shares that members of a group of processes hold and none
 * of them made, each share once: what counts toward a common cap beside what they made. */
uint64_t blyi_share_charged_locked(bool (*is_member)(void *arg, uint32_t slot), void *arg);

/* One share, for those who show them. */
struct blyi_share_info {
    uint32_t index;
    int card;
    uint64_t asked, bytes;
    uint32_t maker_pid;
    uint32_t maker_slot; /* BLYI_SLOTS: ended */
    bool made_free;      /* its maker has freed it, or is gone: only importers hold it */
    bool physical;
    const void *pc; /* in the maker */
    uint64_t made_ns, freed_ns;
    uint64_t holders[BLYI_SLOTS / 64]; /* a bit per slot, the maker's included */
};
/* Copies at most `max` live shares of a card (-1: all); returns how many there are. [any] */
uint32_t blyi_share_list(int card, struct blyi_share_info *out, uint32_t max);
/* Adds to the thread's sentence what of the card its makers have freed, or left by ending, and who
 * keeps it: "; 69206016 B (66 MiB) that exporters no longer have are still open: 67108864 B (64
 * MiB) of pid 12 in pid 13 (serve), and 2097152 B (2 MiB) elsewhere". Nothing when there is none.
 */
void blyi_share_append_freed(int card);
/* One of blyi_share_list(), from a file that is only mapped (belay smi): `part` is
 * BLYI_LEDGER_AT_SHARES. */
struct blyi_shares;
bool blyi_share_read(const struct blyi_shares *part, uint32_t index, struct blyi_share_info *out);

/* Records, words and lists of this process agree. Under the card's lock. */
bool blyi_share_audit_locked(struct blyi_card *card);

#endif
