/* SPDX-License-Identifier: Apache-2.0
 *
 * crest.h - plans the few buffers that decide the peak first, then everything else around them.
 *
 *   live    . . . . . . /\ . . . . . . ._. . .      the crests decide, and what lives long: it is
 *               __     /  \   _       /   \         in the way of all that comes after
 *         _____/  \___/    \_/ \_____/     \__
 */
#ifndef BLYI_PLAN_CREST_H
#define BLYI_PLAN_CREST_H

#include "plan/solve.h"
#include "plan/sweep.h"

/* For problems without alignments, fixed offsets and gaps. *solver: who made the plan that is in
 * solve->spare; NULL: nothing stands out, no plan. E_HOST_MEMORY. */
bly_status blyi_crest(struct blyi_solve *solve, const struct blyi_timeline *line,
                      const char **solver);

#endif
