/* SPDX-License-Identifier: Apache-2.0
 *
 * shortage.h - the sentences of a request that found no room: which resource, the numbers, and
 * who holds it. All under the card's lock, on the failing path only.
 */
#ifndef BLYI_SHORTAGE_H
#define BLYI_SHORTAGE_H

#include <belay/base.h>

struct blyi_card;

enum blyi_short { /* what the request needed */
                  BLYI_SHORT_NORMAL,
                  BLYI_SHORT_HUGE,
                  BLYI_SHORT_GIANT,
                  BLYI_SHORT_RUN,       /* contiguous frames */
                  BLYI_SHORT_GIANT_RUN, /* contiguous GiB */
                  BLYI_SHORT_LOW,       /* in the first 4 GiB */
};

/* E_NO_MEMORY: no room for `asked` bytes, which are `backed` bytes in pages. `what` says for whom,
 * NULL: for the program. */
bly_status blyi_shortage_card_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                     enum blyi_short kind, const char *what);
/* What is free on the card, and the largest request of this kind that would find room. */
void blyi_shortage_room_locked(struct blyi_card *card, enum blyi_short kind, uint64_t *free,
                               uint64_t *usable);
/* E_CAP: `backed` bytes more would pass BELAY_CAP. */
bly_status blyi_shortage_cap_locked(struct blyi_card *card, uint64_t asked, uint64_t backed,
                                    const char *what);
/* For a pool's sentence: what of the card is not in pools. With no lock held. */
void blyi_shortage_append_others(struct blyi_card *card);

#endif
