/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_step.h - one step out of a trace that repeats it.
 */
#ifndef BELAY_PLAN_STEP_H
#define BELAY_PLAN_STEP_H

#include <belay/plan.h>
#include <stdbool.h>

struct plan_step {
    bly_plan_period period;
    size_t number; /* of the step that was taken, from 0 */
    int64_t lower, upper;
    bly_plan_input input; /* what is live in it; ids are those of the trace */
};

/* Finds the step and takes one.
 *
 * Steps that are equal: the second, or the first of two. What lives on into the next step came in
 * from the one before, too: it is a buffer of the whole step with a gap. What lives for longer
 * than a step has as many places as steps it lives for. What came in and ends in it is left out.
 * Steps whose sizes differ: the one in which most is live; lifetimes are cut to it.
 *
 * False: said why. `trace` has to outlive the step. */
bool plan_step_take(const char *path, const bly_plan_input *trace, struct plan_step *step);
void plan_step_release(struct plan_step *step);

#endif
