/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_view.h - the shared state as somebody sees it who has no part in it and changes nothing:
 * a copy, made without the lock, in which only the living are left.
 */
#ifndef BLYI_LEDGER_VIEW_H
#define BLYI_LEDGER_VIEW_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/ledger_layout.h"
#include "npu/share.h"

struct blyi_view_card {
    bool made;
    uint32_t n_frames;
    uint32_t free, longest; /* frames; those of the dead count as free */
    uint32_t shared;        /* frames of shares */
    uint32_t least_free;
    uint32_t committed; /* frames that the host backs */
    char model[BLYI_SLOT_NAME];
};

struct blyi_ledger_view {
    bool steady; /* nobody changed anything while it was read */
    uint32_t n_slots;
    struct blyi_slot *slots; /* of the living, in order of their numbers; texts are printable */
    uint32_t *numbers;       /* of those */
    struct blyi_view_card cards[BLYI_LEDGER_CARDS];
    uint32_t n_shares;
    struct blyi_share_info *shares; /* that somebody living holds */
};

/* The living slot with this number, or NULL. */
const struct blyi_slot *blyi_view_slot(const struct blyi_ledger_view *view, uint32_t number);

/* E_IO: there is no state (nobody ever used a card in this folder), or it is not ours; E_STATE: it
 * is another version's, or damaged; E_HOST_MEMORY. [any] */
bly_status blyi_ledger_view(struct blyi_ledger_view *out);
void blyi_ledger_view_fini(struct blyi_ledger_view *view);

#endif
