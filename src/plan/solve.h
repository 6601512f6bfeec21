/* SPDX-License-Identifier: Apache-2.0
 *
 * solve.h - the portfolio over one problem: quick plans first, then a race of searches.
 */
#ifndef BLYI_PLAN_SOLVE_H
#define BLYI_PLAN_SOLVE_H

#include "plan/pack.h"
#include "plan/stop.h"

#define BLYI_DIVE_MAX 30000 /* items up to which dives are quick */

struct blyi_solve {
    /* given */
    const struct blyi_pack *pack;
    int64_t enough; /* stop at this peak; 0: at the bound */
    uint64_t seed;
    uint64_t node_budget; /* UINT64_MAX: none */
    uint32_t n_threads;   /* at least 1 */
    struct blyi_stop stop;
    uint64_t began_ns;
    void (*report)(struct blyi_solve *solve); /* after each improvement; may be NULL */
    void *report_arg;
    /* found */
    int64_t *offset; /* n values, owned by the caller */
    int64_t *spare;  /* n values of scratch, owned by the caller */
    int64_t peak;    /* INT64_MAX: no plan yet */
    int64_t bound;   /* certified */
    const char *solver;
    uint64_t nodes; /* used */
};

/* The peak at which there is nothing left to do. */
static inline int64_t blyi_solve_goal(const struct blyi_solve *s)
{
    return s->enough > s->bound ? s->enough : s->bound;
}

static inline bool blyi_solve_done(const struct blyi_solve *s)
{
    return s->peak <= blyi_solve_goal(s);
}

/* Takes spare as the plan if it is better. */
void blyi_solve_offer(struct blyi_solve *solve, const char *solver);

/* Greedy plans, best first guess first; at least one is made whatever the deadline says.
 * E_HOST_MEMORY: there may be no plan. */
bly_status blyi_solve_first(struct blyi_solve *solve);

/* Rounds of searches until done, out of budget or stopped.
 * E_HOST_MEMORY: the plan so far stands. */
bly_status blyi_solve_race(struct blyi_solve *solve);

#endif
