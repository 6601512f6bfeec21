/* SPDX-License-Identifier: Apache-2.0
 *
 * around.h - a first-fit walk over time around buffers that have their places.
 */
#ifndef BLYI_PLAN_AROUND_H
#define BLYI_PLAN_AROUND_H

#include "plan/sweep.h"

/* Places every item whose offset[] is BLYI_PACK_FREE at the lowest place that is free now and stays
 * free of those that have a place and are born during its life. For problems without alignments
 * and gaps. E_HOST_MEMORY: offset is unspecified. */
bly_status blyi_sweep_around(const struct blyi_pack *pack, const struct blyi_timeline *line,
                             int64_t *offset);

#endif
