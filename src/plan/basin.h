/* SPDX-License-Identifier: Apache-2.0
 *
 * basin.h - one valley of the skyline and what may be done with it: which item is the leftmost on
 * its floor, or none, and the floor rises to the lower wall.
 */
#ifndef BLYI_PLAN_BASIN_H
#define BLYI_PLAN_BASIN_H

#include "plan/terrain.h"

struct blyi_basin {
    uint32_t first, last;
    int64_t floor, left, right; /* walls; INT64_MAX: a border that nothing left crosses */
};

/* What was counted of the valley that begins at a section, and when. */
struct blyi_basin_memo {
    uint64_t clock;
    uint32_t last, count;
    bool exact; /* count is all of them, not only as many as were asked for */
    int64_t slack;
};

struct blyi_basins {
    const struct blyi_terrain *terrain;
    const uint32_t *rank; /* of items, for blyi_basin_choice() */
    int64_t capacity;
    int64_t *low; /* per section: scratch */
    struct blyi_basin_memo *memo;
};

bly_status blyi_basins_init(struct blyi_basins *b, const struct blyi_terrain *terrain,
                            const uint32_t *rank);
void blyi_basins_fini(struct blyi_basins *b);

/* The next valley of [lo, hi) from *at on. */
bool blyi_basin_next(const struct blyi_terrain *t, uint32_t *at, uint32_t hi, struct blyi_basin *b);

/* Choices, counted up to `limit`; *slack: units by which the tightest section may be raised. */
uint32_t blyi_basin_count(struct blyi_basins *s, const struct blyi_basin *b, uint32_t limit,
                          int64_t *slack);

/* The choice of least rank above `tried`; n closes the valley, BLYI_PACK_NONE: there is none. */
uint32_t blyi_basin_choice(struct blyi_basins *s, const struct blyi_basin *b, int64_t tried);

/* Height to which the part left of item k is raised when k is the leftmost. */
int64_t blyi_basin_left_height(const struct blyi_terrain *t, const struct blyi_basin *b,
                               uint32_t k);

#endif
