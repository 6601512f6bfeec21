/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger.h - this process among the others: its slot, the lock that they share, who is alive.
 * See docs/design/ledger.md.
 */
#ifndef BLYI_LEDGER_H
#define BLYI_LEDGER_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/ledger_layout.h"

/* Takes a slot at first use. E_IO, E_STATE (another layout or pid space, damaged while in use, no
 * slot left), E_SYSTEM, E_HOST_MEMORY, each with a sentence. Cheap afterwards. [any] */
bly_status blyi_ledger_attach(void);
bool blyi_ledger_attached(void);
/* In the child of a fork: nothing of it is there any more. No lock. */
void blyi_ledger_forget(void);

/* All below need an attached process. */

/* A file was cut short while it was mapped, so that touching it is SIGBUS: called by the handler.
 * True: the address is one of the ledger's, and a page of nothing is there now. */
bool blyi_ledger_mend(uintptr_t address);
/* It has happened: what this process has stays its own, but it can take no more. */
bool blyi_ledger_is_lost(void);
#define BLYI_LEDGER_LOST_TEXT                                                                      \
    "the files of the shared state were cut short while in use; what this process has stays its "  \
    "own, but it can take no more memory of a card: start it anew"

/* The lock, for all processes and threads. Rank LEDGER. May wait for another process; when that
 * died inside, what it left is put right first. [any] */
void blyi_ledger_lock(void);
void blyi_ledger_unlock(void);

struct blyi_ledger *blyi_ledger_header(void);
uint32_t blyi_ledger_slot(void);                      /* ours */
struct blyi_slot *blyi_ledger_slot_at(uint32_t slot); /* any, in use or not; slot < BLYI_SLOTS */
struct blyi_slot *blyi_ledger_mine(void);
bool blyi_ledger_in_use(uint32_t slot); /* its bit in `used` */
/* Whether another slot is in use and its process alive. Ours always is. No lock. [any] */
bool blyi_ledger_is_alive(uint32_t slot);
/* Clears slots of the dead; returns how many. Quick when nobody died (a system call per other
 * process). Not under the lock. [any] */
uint32_t blyi_ledger_reap(void);
/* The same, if nobody did so in the last `since_ns`, so that many idle processes do not look at one
 * another all the time. */
void blyi_ledger_reap_in_turn(uint64_t now_ns, uint64_t since_ns);
/* Slots in use by others, as far as the ledger knows. [any] */
uint32_t blyi_ledger_others(void);

/* A part of the ledger's file, promised by the disk; E_IO when it is full. */
bly_status blyi_ledger_back(uint64_t at, uint64_t size, void **part);

/* The file of a card's words. NULL, no sentence: the card was never made in this state. Stays
 * mapped. Under the lock. */
struct blyi_card_file *blyi_ledger_card_locked(int card);
/* Has the disk promise the links of its file (see the layout). E_IO. */
bly_status blyi_ledger_back_links(int card);
/* Opens the memory of a card: that of whoever has it open, or a new one, noted in our slot.
 * E_STATE: in use with another size or model; E_SYSTEM: no holder lets us have it. [any] */
bly_status blyi_ledger_card_open(int card, uint32_t n_frames, const char *model,
                                 struct blyi_card_file **file, int *fd);
void blyi_ledger_card_close(int card);

/* Of a card whose file is mapped: how many words there are (the file's own word for it may be a
 * lie), and the links behind them. */
uint32_t blyi_ledger_card_frames(int card);
uint64_t *blyi_ledger_card_links(int card);

/* Every frame has an owner that exists, every slot the frames that its figures say; for times at
 * which no other process moves. False: why not. */
bool blyi_ledger_audit(char *why, size_t size);

/* A place inside a change at which a process may die; a test chooses which (option FAIL_LEDGER). */
void blyi_ledger_step(void);
/* For tests: the nth step from now (1: the next) is the last; 0: none. */
void blyi_ledger_die_at(uint64_t nth);

#endif
