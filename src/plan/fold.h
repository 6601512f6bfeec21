/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.h - periodic folding: a trace that repeats a step is planned once and tiled.
 */
#ifndef BLYI_PLAN_FOLD_H
#define BLYI_PLAN_FOLD_H

#include "plan/solve.h"
#include "plan/sweep.h"

/* Plans one step of what repeats into solve->spare, and what does not repeat on top of it.
 * *done: there is a plan; otherwise nothing repeats, or too little to be worth it. For problems
 * without gaps, fixed offsets and alignments of their own.
 * E_HOST_MEMORY: there is no plan. */
bly_status blyi_fold(struct blyi_solve *solve, const struct blyi_timeline *line, bool *done);

#endif
