/* SPDX-License-Identifier: Apache-2.0
 *
 * ckpt_search.h - for small chains, the least time of any schedule: Dijkstra's search over all
 * states of checkpoint.h's rules, which shares nothing with the planner.
 */
#ifndef CKPT_SEARCH_H
#define CKPT_SEARCH_H

#include <belay/checkpoint.h>

#define SEARCH_STAGES_MAX 7

/* UINT64_MAX: no schedule fits. Times of stages are small numbers. */
uint64_t search_best_ns(const bly_chain *chain, uint64_t budget);

/* The same among persistent schedules only: what is kept stays until its last use, saving
 * keeps the stage's input, and only the running output of a row of forwards may go. */
uint64_t search_persistent_ns(const bly_chain *chain, uint64_t budget);

#endif
