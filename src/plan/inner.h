/* SPDX-License-Identifier: Apache-2.0
 *
 * inner.h - a problem made up on the way to the plan of another one.
 */
#ifndef BLYI_PLAN_INNER_H
#define BLYI_PLAN_INNER_H

#include "plan/solve.h"

/* Plans buffers whose sizes are units of the outer problem, in a part of its steps and until `stop`
 * or until a plan is no higher than the outer bound. offset: n values; *peak: their largest end.
 * E_HOST_MEMORY. */
bly_status blyi_solve_inner(struct blyi_solve *outer, const bly_plan_buffer *buffers, size_t n,
                            const struct blyi_stop *stop, int64_t *offset, int64_t *peak);

#endif
