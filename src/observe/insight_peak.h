/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_peak.h - live bytes over a history, and their peaks.
 */
#ifndef BLYI_INSIGHT_PEAK_H
#define BLYI_INSIGHT_PEAK_H

#include "observe/insight_history.h"

#define BLYI_ALL_CARDS  65 /* in place of a card: all memory of cards together */
#define BLYI_PEAK_COUNT 66 /* cards, pinned (BLYI_NO_CARD), all cards */

/* What is live after some changes. */
struct blyi_live {
    uint64_t count, asked, rounded, backed;
    uint64_t reserved; /* that pools took */
    uint64_t waiting;  /* freed blocks that other streams may still use, rounded */
};

struct blyi_curve {
    const struct blyi_history *history;
    size_t at; /* position */
    struct blyi_live live[BLYI_PEAK_COUNT];
    uint8_t card; /* of the change just done */
    bool went_up; /* it made something live */
};
void blyi_curve_begin(struct blyi_curve *curve, const struct blyi_history *history);
bool blyi_curve_next(struct blyi_curve *curve); /* false: no change is left */

struct blyi_peak {
    bool used; /* something was ever there */
    struct blyi_live start, end;
    struct blyi_live at_peak; /* at the first moment at which `asked` was highest */
    uint32_t at;
    uint64_t ns, seq;                   /* of that moment; seq 0: the start */
    uint64_t backed, reserved, waiting; /* highest, each at its own moment */
};
void blyi_peaks_make(const struct blyi_history *history, struct blyi_peak peaks[BLYI_PEAK_COUNT]);

static inline bool blyi_is_of(const struct blyi_life *life, uint8_t card)
{
    return life->card == card || (card == BLYI_ALL_CARDS && life->card != BLYI_NO_CARD);
}

#endif
