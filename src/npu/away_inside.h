/* SPDX-License-Identifier: Apache-2.0
 *
 * away_inside.h - what away.c, away_list.c and away_copy.c share.
 */
#ifndef BLYI_AWAY_INSIDE_H
#define BLYI_AWAY_INSIDE_H

#include "npu/away.h"
#include "npu/span.h"

struct blyi_partial;
struct blyi_physical;

/* Frames that were asked for together: of a block, a partial frame, or physical memory. */
struct blyi_away_unit {
    uintptr_t address;              /* in the card's window; 0: of `physical` */
    struct blyi_physical *physical; /* its mappings are the addresses */
    struct blyi_partial *partial;   /* behind the last frame, or NULL */
    enum blyi_short kind;           /* what its frames must be */
    uint32_t n, at;                 /* frames; number of the first among all of the card */
    struct blyi_run *runs;          /* while `here` */
    uint32_t n_runs, max_runs;
    bool here;   /* its frames are ours */
    bool fresh;  /* taken by the return that is under way */
    bool lifted; /* `partial` knows that it has no frame */
};

struct blyi_away {
    struct blyi_card *card;
    struct blyi_away_unit *units;
    uint32_t n_units, max_units, n_frames;
    uint64_t *saved; /* a bit per frame that has content */
    char *content;   /* of those, in their order */
    uint64_t content_bytes;
    void *mapping;   /* around it: it begins at a multiple of a frame */
    uint64_t booked; /* what the cap counted */
    uint32_t n_kept; /* frames here although it is gone */
    bool gone, has_overhead;
};

/* Lists all memory of the card; VMM and the card's lock are held. */
bly_status blyi_away_list_locked(struct blyi_card *card, struct blyi_away **out);
void blyi_away_free(struct blyi_away *away);
/* False: no host memory. */
bool blyi_away_add_run(struct blyi_away_unit *unit, struct blyi_run run);

/* Its frames go back to the card, once no address leads to them; refused by the kernel they stay
 * ours, and count as kept. VMM and the card's lock are held. */
void blyi_away_give_unit(struct blyi_away *away, struct blyi_away_unit *unit);

/* No lock: the frames are ours, and `away` is set. */
bly_status blyi_away_copy_out(struct blyi_away *away);
/* Into the frames of fresh units. */
bly_status blyi_away_copy_in(struct blyi_away *away);

#endif
