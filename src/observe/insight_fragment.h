/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_fragment.h - memory that pools took and do not use, and what keeps it from going back.
 *
 *   piece   |#####......##....|................|      as the pool took it from the card
 *            live  idle                 nothing in it: can go back
 *
 * A piece goes back whole. One live block pins all of it.
 */
#ifndef BLYI_INSIGHT_FRAGMENT_H
#define BLYI_INSIGHT_FRAGMENT_H

#include "observe/insight_label.h"
#include "observe/insight_peak.h"

/* A piece in use with idle bytes in it. */
struct blyi_pin {
    uint64_t address, size, idle;
    uint64_t blocks, bytes; /* that lie in it: live or waiting for a stream, rounded */
    uint32_t label;         /* site of its largest block */
    uint64_t label_bytes;   /* of that block */
    uint8_t card;
};

struct blyi_fragments {
    uint64_t n_pieces, reserved;
    uint64_t live, waiting;           /* of `reserved` */
    uint64_t idle;                    /* the rest */
    uint64_t free_pieces, releasable; /* pieces with nothing in them */
    uint64_t pinned;                  /* idle bytes in the others */
    uint64_t largest; /* idle bytes in one row: the largest request that fits without the card */
    uint64_t outside; /* live bytes of blocks that lie in no piece */
    struct blyi_pin *pins; /* by falling idle bytes */
    size_t n_pins;
    /* What if the blocks of the pieces that are at most half used lay elsewhere? */
    uint64_t sparse, sparse_blocks, sparse_bytes, sparse_idle;
};
/* At a position. E_HOST_MEMORY. pins are freed by blyi_host_free(). */
bly_status blyi_fragments_make(const struct blyi_history *history, const struct blyi_labels *labels,
                               uint8_t card, uint32_t at, struct blyi_fragments *out);

#endif
