/* SPDX-License-Identifier: Apache-2.0
 *
 * defrag.h - what stays in the way of a long run of free frames (belay/card.h has the call).
 */
#ifndef BLYI_DEFRAG_H
#define BLYI_DEFRAG_H

#include <belay/card.h>

struct blyi_card;

struct blyi_fixed {
    uint64_t bytes, count; /* all that stays */
    uint64_t largest;      /* of one holder */
    uint32_t site;         /* whose; 0: the runtime */
    const char *why;       /* "contiguous", "exported", "1 GiB pages", "the runtime's own" */
};
/* Under the card's lock. */
void blyi_fixed_locked(struct blyi_card *card, struct blyi_fixed *out);

#endif
