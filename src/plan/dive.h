/* SPDX-License-Identifier: Apache-2.0
 *
 * dive.h - skyline dive: the item that can lie lowest comes next, on top of what is there
 * already. Its weak spot is the word "lowest": a little higher up may lie an item that is worth
 * more there. A style says how much more, and a search tries styles.
 */
#ifndef BLYI_PLAN_DIVE_H
#define BLYI_PLAN_DIVE_H

#include "plan/fit.h"
#include "plan/rand.h"
#include "plan/stop.h"

enum blyi_dive_pull { BLYI_DIVE_LIFETIME, BLYI_DIVE_ROOT_AREA };

struct blyi_dive_style {
    enum blyi_fit_by by; /* the larger of it wins among equals */
    double step;         /* offsets closer than this are equal; in mean sizes, 0: one unit */
    double pull;         /* an average item may come first from so much higher; in mean sizes */
    enum blyi_dive_pull pull_by; /* and others in proportion to this */
    double blur;                 /* share by which chance raises the pull of an item */
    uint64_t noise;              /* seed of that chance */
};

/* Fixed items come first, and nothing goes below them. For any number of items:
 * O((n + moves) log n), and O(n log n) once stopped. *done: false when it was given up because
 * the peak would be above `limit`.
 * E_HOST_MEMORY: offset is unspecified. */
bly_status blyi_dive(const struct blyi_pack *pack, const struct blyi_dive_style *style,
                     int64_t limit, struct blyi_stop *stop, int64_t *offset, bool *done);

/* A search among styles: new ones by chance, and neighbours of the best so far. */
struct blyi_divers {
    struct blyi_rand rand;
    struct blyi_dive_style best;
    int64_t peak;    /* of the best; INT64_MAX: none yet */
    uint32_t opened; /* of the styles that are known to be good */
    uint32_t tries;  /* in the next attempt: more after a gain, fewer after none */
};

void blyi_divers_init(struct blyi_divers *divers, uint64_t seed);

/* Dives some times; *peak and offset become those of the best plan if it is below *peak. spare:
 * n values. *nodes: what was used, a step for every 16 items.
 * E_HOST_MEMORY: offset is what it was. */
bly_status blyi_divers_run(struct blyi_divers *divers, const struct blyi_pack *pack,
                           struct blyi_stop *stop, int64_t *spare, int64_t *offset, int64_t *peak,
                           uint64_t *nodes);

#endif
