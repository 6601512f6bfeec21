/* SPDX-License-Identifier: Apache-2.0
 *
 * visible.h - device ids as the program counts them, and the cards they stand for.
 *
 *   user id      position in ASCEND_RT_VISIBLE_DEVICES; without it the card's id
 *   card id      what src/npu counts; logical and physical ids of AscendCL are the same
 *
 * The variable is a rising list of card ids with commas between. Reading stops at the first
 * entry that is no card; a repeated or falling id, or no card at all, leaves no device.
 * It is read once, at first use. [any]
 */
#ifndef BLYI_ACL_VISIBLE_H
#define BLYI_ACL_VISIBLE_H

#include <stdbool.h>
#include <stdint.h>

int blyi_visible_count(void);
/* The card of a user id, or the user id of a card; -1 when there is none. */
int blyi_visible_card(int user);
int blyi_visible_user(int card);
/* The same for memory that was imported from a process which sees more cards: where this one does
 * not see `card`, the card that it was imported for. */
uint32_t blyi_visible_place(int card, int for_card);
/* The value of the variable, for sentences; "unset" without. */
const char *blyi_visible_text(void);

/* Pure part, for tests: writes at most n_cards ids and returns how many, 0 when refused. */
int blyi_visible_parse(const char *text, int n_cards, int cards[]);

#endif
