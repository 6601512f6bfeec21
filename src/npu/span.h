/* SPDX-License-Identifier: Apache-2.0
 *
 * span.h - addresses of a card with frames behind them: taken, mapped and given back together.
 * Under the card's lock.
 */
#ifndef BLYI_SPAN_H
#define BLYI_SPAN_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/shortage.h"

struct blyi_card;

struct blyi_span_request {
    uint32_t n; /* frames */
    enum blyi_short kind;
    uint64_t flags; /* of the entries: READONLY */
};

struct blyi_run {
    uint32_t first, count;
};

/* The next run of at most `left` frames that a request of this kind may have; false when there
 * is none. */
bool blyi_run_take(struct blyi_card *card, enum blyi_short kind, uint32_t left,
                   struct blyi_run *run);
void blyi_run_give(struct blyi_card *card, struct blyi_run run);

/* E_NO_MEMORY with *short_of_frames and no sentence: the card has no such frames. Else as
 * window.h. Nothing changed on failure. */
bly_status blyi_span_take(struct blyi_card *card, const struct blyi_span_request *request,
                          uintptr_t *address, bool *short_of_frames);
/* Gives back `n` granules and the frames behind them. */
void blyi_span_give(struct blyi_card *card, uintptr_t address, uint32_t n);

#endif
