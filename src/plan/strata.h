/* SPDX-License-Identifier: Apache-2.0
 *
 * strata.h - first fit in order of size for long traces: what is large is placed first, class by
 * class, and the many that hold little last, in order of birth.
 */
#ifndef BLYI_PLAN_STRATA_H
#define BLYI_PLAN_STRATA_H

#include "plan/stop.h"
#include "plan/sweep.h"

/* Places all items; for problems without gaps, fixed offsets and alignments of their own, whose
 * lower bound is `bound`. *done: all have a place and none ends above `limit`;
 * not where so much is live at once that it would take long.
 * E_HOST_MEMORY: offset is unspecified. */
bly_status blyi_strata(const struct blyi_pack *pack, const struct blyi_timeline *line,
                       int64_t bound, int64_t limit, struct blyi_stop *stop, int64_t *offset,
                       bool *done);

#endif
