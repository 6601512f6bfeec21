/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.h - what this process holds, written into its slot of the ledger for others to read: sums
 * of each card, and rows by site. Needs an attached process, as every open card has. [any]
 */
#ifndef BLYI_TALLY_H
#define BLYI_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include "npu/ledger_layout.h"

struct blyi_card;

/* Copies the sums of a card whose lock is held; called as that is dropped. */
void blyi_tally_card_locked(const struct blyi_card *card);

/* One more or one less (sign) of a kind, made at a site. */
void blyi_tally_row(enum blyi_row_kind kind, int card, uint32_t site, uint64_t bytes, int sign);

/* Takes one of a limited number that all processes share; false when all are in use. */
enum blyi_limit { BLYI_LIMIT_STREAMS, BLYI_LIMIT_EVENTS, BLYI_LIMIT_NOTIFIES };
bool blyi_tally_take(int card, enum blyi_limit what, uint64_t limit);
void blyi_tally_give(int card, enum blyi_limit what);
/* In use by all living processes together. */
uint64_t blyi_tally_used(int card, enum blyi_limit what);

/* The name of a slot's process, fit to be printed. */
const char *blyi_slot_name(const struct blyi_slot *slot, char buf[BLYI_SLOT_NAME]);

/* Adds to the thread's sentence which other processes have memory of the card, the largest first:
 * "; other processes hold 807403520 B (770 MiB): pid 123 (serve) 805306368 B (768 MiB), most of it
 * (805306368 B (768 MiB)) in 1 block at main+0x1c (serve), and ... of overhead". */
void blyi_tally_append_memory(int card);
/* And which have streams or events: "; pid 123 (serve) has 20, 20 made at main+0x1c (serve)". */
void blyi_tally_append_counts(int card, enum blyi_limit what);

#endif
