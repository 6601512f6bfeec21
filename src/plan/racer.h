/* SPDX-License-Identifier: Apache-2.0
 *
 * racer.h - who takes part in the race: an engine, how it goes about its slice of a round, and
 * what it found in it.
 */
#ifndef BLYI_PLAN_RACER_H
#define BLYI_PLAN_RACER_H

#include "plan/anneal.h"
#include "plan/dive.h"
#include "plan/press.h"
#include "plan/search.h"
#include "plan/valley.h"

#define BLYI_RACERS 9

enum blyi_racer_kind {
    BLYI_RACER_SEARCH,
    BLYI_RACER_VALLEY,
    BLYI_RACER_PRESS,
    BLYI_RACER_ANNEAL,
    BLYI_RACER_DIVE
};

struct blyi_racer {
    enum blyi_racer_kind kind;
    const char *name;
    struct blyi_order order;
    uint64_t slice;
    uint64_t runs;  /* in a round, all of one slice; 1: one, of Luby's length */
    uint64_t rests; /* rounds between two that it runs in, once all orders have opened */
    bool mirrored;
    bool opens; /* begins with every order, undisturbed */
    /* owned */
    struct blyi_search *search;
    struct blyi_valley *valley;
    struct blyi_anneal *anneal;
    struct blyi_press press;
    struct blyi_divers divers;
    int64_t *offset, *spare;
    /* the round's result */
    int64_t peak, bound;
    uint64_t nodes;
    bly_status status;
};

/* The line-up, in order: the first of equal results wins. */
extern const struct blyi_racer blyi_line_up[BLYI_RACERS];

static inline bool blyi_racer_is_tree(const struct blyi_racer *r)
{
    return r->kind == BLYI_RACER_SEARCH || r->kind == BLYI_RACER_VALLEY;
}

/* Gives a racer its engine. graph: for those that need one; line: sections by time.
 * E_HOST_MEMORY: blyi_racer_fini() is needed in either case. */
bly_status blyi_racer_init(struct blyi_racer *r, const struct blyi_pack *pack,
                           const struct blyi_graph *graph, const struct blyi_timeline *line,
                           uint64_t seed);
void blyi_racer_fini(struct blyi_racer *r);

#endif
