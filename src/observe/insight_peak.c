/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_peak.c - see insight_peak.h.
 */
#include "observe/insight_peak.h"

static void add_life(struct blyi_live *live, const struct blyi_life *life)
{
    live->count++;
    live->asked += life->asked;
    live->rounded += life->rounded;
    live->backed += life->backed;
}

static void drop_life(struct blyi_live *live, const struct blyi_life *life)
{
    live->count--;
    live->asked -= life->asked;
    live->rounded -= life->rounded;
    live->backed -= life->backed;
}

/* Both of a card and of all cards. */
#define OF_BOTH(curve, card_, act)                                                                 \
    do {                                                                                           \
        struct blyi_live *of = &(curve)->live[card_];                                              \
        act;                                                                                       \
        of = &(curve)->live[BLYI_ALL_CARDS];                                                       \
        if ((card_) != BLYI_NO_CARD)                                                               \
            act;                                                                                   \
    } while (0)

void blyi_curve_begin(struct blyi_curve *curve, const struct blyi_history *h)
{
    *curve = (struct blyi_curve){.history = h};
    for (size_t i = 0; i < h->n_start; i++)
        OF_BOTH(curve, h->lives[i].card, add_life(of, &h->lives[i]));
    for (size_t i = 0; i < h->n_pieces; i++)
        if (h->pieces[i].born_at == 0)
            OF_BOTH(curve, h->pieces[i].card, of->reserved += h->pieces[i].size);
}

static void change_life(struct blyi_curve *curve, enum blyi_change_kind kind,
                        const struct blyi_life *life)
{
    curve->card = life->card;
    curve->went_up = kind == BLYI_CHANGE_BORN;
    if (kind == BLYI_CHANGE_BORN)
        OF_BOTH(curve, life->card, add_life(of, life));
    else if (kind == BLYI_CHANGE_DIED)
        OF_BOTH(curve, life->card, drop_life(of, life));
    /* Dead, but in use elsewhere until it is done. */
    if (kind == BLYI_CHANGE_DIED && life->done_at != life->died_at)
        OF_BOTH(curve, life->card, of->waiting += life->rounded);
    else if (kind == BLYI_CHANGE_DONE)
        OF_BOTH(curve, life->card, of->waiting -= life->rounded);
}

bool blyi_curve_next(struct blyi_curve *curve)
{
    const struct blyi_history *h = curve->history;
    if (curve->at >= h->n_changes)
        return false;
    struct blyi_change change = h->changes[curve->at++];
    if (change.kind < BLYI_CHANGE_PIECE) {
        change_life(curve, (enum blyi_change_kind)change.kind, &h->lives[change.index]);
        return true;
    }
    const struct blyi_piece *piece = &h->pieces[change.index];
    curve->card = piece->card;
    curve->went_up = change.kind == BLYI_CHANGE_PIECE;
    if (curve->went_up)
        OF_BOTH(curve, piece->card, of->reserved += piece->size);
    else
        OF_BOTH(curve, piece->card, of->reserved -= piece->size);
    return true;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void look(struct blyi_peak *peak, const struct blyi_curve *curve, uint8_t card)
{
    const struct blyi_history *h = curve->history;
    const struct blyi_live *live = &curve->live[card];
    peak->used = peak->used || live->count > 0 || live->reserved > 0;
    peak->backed = larger(peak->backed, live->backed);
    peak->reserved = larger(peak->reserved, live->reserved);
    peak->waiting = larger(peak->waiting, live->waiting);
    if (live->asked <= peak->at_peak.asked)
        return;
    peak->at_peak = *live;
    peak->at = (uint32_t)curve->at;
    if (curve->at == 0)
        return;
    peak->ns = h->change_ns[curve->at - 1];
    peak->seq = h->lives[h->changes[curve->at - 1].index].seq;
}

void blyi_peaks_make(const struct blyi_history *h, struct blyi_peak peaks[BLYI_PEAK_COUNT])
{
    struct blyi_curve curve;
    blyi_curve_begin(&curve, h);
    for (uint8_t card = 0; card < BLYI_PEAK_COUNT; card++) {
        peaks[card] = (struct blyi_peak){.start = curve.live[card]};
        look(&peaks[card], &curve, card);
    }
    while (blyi_curve_next(&curve)) {
        look(&peaks[curve.card], &curve, curve.card);
        if (curve.card != BLYI_NO_CARD)
            look(&peaks[BLYI_ALL_CARDS], &curve, BLYI_ALL_CARDS);
    }
    for (uint8_t card = 0; card < BLYI_PEAK_COUNT; card++)
        peaks[card].end = curve.live[card];
}
