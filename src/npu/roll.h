/* SPDX-License-Identifier: Apache-2.0
 *
 * roll.h - the live streams and events of each card, so that a limit that is reached can be
 * explained. Guards its own lists (rank STREAM); touched at creation and destruction only.
 */
#ifndef BLYI_ROLL_H
#define BLYI_ROLL_H

#include <belay/base.h>
#include <stdbool.h>

struct blyi_card;
struct blyi_context;
struct blyi_event;
struct blyi_moment;
struct blyi_stream;

void blyi_roll_add_stream(struct blyi_stream *stream);
void blyi_roll_remove_stream(struct blyi_stream *stream);
void blyi_roll_add_event(struct blyi_event *event);
void blyi_roll_remove_event(struct blyi_event *event);
/* Some live event of the context, referenced; NULL: none left. */
struct blyi_event *blyi_roll_take_event(struct blyi_context *context);
/* How many events that hold an id of the card have work queued. */
uint32_t blyi_roll_pending_events(struct blyi_card *card);

/* Whether some stream of the card has work queued; which, and behind which position that is:
 * returns how many there are, writes at most `room`. */
bool blyi_roll_has_work(const struct blyi_card *card);
uint32_t blyi_roll_moment(const struct blyi_card *card, struct blyi_moment *moment, uint32_t room);

/* E_NO_STREAM and E_NO_EVENT with their sentences: used / limit, by site, what can be done. */
bly_status blyi_roll_no_stream(struct blyi_card *card);
bly_status blyi_roll_no_event(struct blyi_card *card);

#endif
