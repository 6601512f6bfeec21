/* SPDX-License-Identifier: Apache-2.0
 *
 * away.h - card memory whose content is in host memory: a process that is backed up keeps its
 * blocks, handles and mappings, and their addresses, but no frames.
 *
 *   save    content of all cards' memory ──> host memory        nothing changed on failure
 *   leave   addresses without access, frames to the card        cannot fail
 *   return  frames from the card, content back, addresses       all as before leave on failure
 *
 * The callers are snapshot.c's, one at a time; the gate is closed, so nobody touches card memory.
 * From save on `away` of a card and of blyi_vmm is set, and whoever changes what is in there looks
 * at it under the lock: blyi_card_lock_present(), blyi_vmm_lock_present().
 */
#ifndef BLYI_AWAY_H
#define BLYI_AWAY_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_away;
struct blyi_card;

/* E_STATE: something is shared with other processes; E_HOST_MEMORY, E_SYSTEM. */
bly_status blyi_away_save(void);
void blyi_away_forget(void);
void blyi_away_leave(void);
/* E_NO_MEMORY, E_CAP, E_HOST_MEMORY, E_SYSTEM. */
bly_status blyi_away_return(void);

/* Over all cards: bytes of frames given back, and of host memory. [any] */
void blyi_away_sums(uint64_t *frames, uint64_t *content);
/* Of one card, under its lock: bytes of frames that this process has all the same, as the kernel
 * refused to unmap them; and those that it has not. */
void blyi_away_figures(const struct blyi_away *away, uint64_t *kept, uint64_t *gone);
/* Frames have left: not between save and leave. Under the card's lock. */
bool blyi_away_is_gone(const struct blyi_card *card);

/* The card's lock (VMM), once what it guards is in its place. E_STATE as blyi_snapshot_pass(); not
 * locked then. Inside the gate it is never away, so engines do not wait here. */
bly_status blyi_card_lock_present(struct blyi_card *card);
bly_status blyi_vmm_lock_present(void);
/* For teardown that began before the memory went away: it goes on when that is back. The keeper of
 * a snapshot never gets here, its calls are refused at their beginning. */
void blyi_card_lock_teardown(struct blyi_card *card);
void blyi_vmm_lock_teardown(void);

#endif
