/* SPDX-License-Identifier: Apache-2.0
 *
 * insight_growth.h - what memory does over cycles: a saw-tooth that returns, a plateau that was
 * reached, a creep that goes on.
 *
 * A cycle is what a program repeats: a step, a request. Its *valley* is the least that was live in
 * it. Cycles are found by marks or ranges that repeat, else by the curve itself.
 */
#ifndef BLYI_INSIGHT_GROWTH_H
#define BLYI_INSIGHT_GROWTH_H

#include <stddef.h>
#include "observe/insight_label.h"
#include "observe/insight_peak.h"

#define BLYI_CYCLES_MIN  4    /* fewer tell nothing */
#define BLYI_CYCLES_KEPT 4096 /* of more, the last ones */
#define BLYI_CREEP_MIN   3    /* valleys in a row that rose, to the end */

enum blyi_growth_kind {
    BLYI_GROWTH_UNKNOWN,  /* too few cycles */
    BLYI_GROWTH_SAWTOOTH, /* comes back to where it was */
    BLYI_GROWTH_PLATEAU,  /* rose, and has stopped */
    BLYI_GROWTH_CREEP,    /* rises from cycle to cycle, up to the end */
    BLYI_GROWTH_UNEVEN,   /* none of these */
};
const char *blyi_growth_key(enum blyi_growth_kind kind);
const char *blyi_growth_words(enum blyi_growth_kind kind); /* "creeps upwards" */

struct blyi_growth {
    enum blyi_growth_kind kind;
    size_t from;    /* of a creep: the valley it begins at; of a plateau: where it is reached */
    size_t rises;   /* of a creep: how often it rose in a row */
    uint64_t grown; /* bytes from there to the last valley */
    uint64_t least, most; /* rise of a cycle in a creep */
};
/* valleys  n values in order. [any] */
void blyi_growth_of(const uint64_t *valleys, size_t n, struct blyi_growth *out);

enum blyi_cycle_source { BLYI_CYCLES_NONE, BLYI_CYCLES_MARKS, BLYI_CYCLES_CURVE };
struct blyi_cycles {
    enum blyi_cycle_source source;
    uint32_t name;      /* of the mark or range that begins a cycle */
    size_t n, dropped;  /* cycles; how many earlier ones are left out */
    uint32_t *at;       /* position of each valley */
    uint64_t *live;     /* bytes live there */
    uint64_t *reserved; /* bytes that pools had there */
};
/* Cycles of a card's memory (BLYI_ALL_CARDS: of all). E_HOST_MEMORY. */
bly_status blyi_cycles_make(const struct blyi_history *history, uint8_t card,
                            struct blyi_cycles *out);
void blyi_cycles_fini(struct blyi_cycles *cycles);

/* A site that asks for more each time: n requests in a row, each larger than the one before. */
struct blyi_ramp {
    uint32_t label;
    uint64_t n, first, last; /* requests; smallest and largest size */
    uint64_t step;           /* 0: it differs */
};
#define BLYI_RAMP_MIN 8
#define BLYI_RAMPS    8
/* The longest of each site, by falling n; *n of at most BLYI_RAMPS. E_HOST_MEMORY. */
bly_status blyi_ramps_make(const struct blyi_history *history, const struct blyi_labels *labels,
                           struct blyi_ramp ramps[BLYI_RAMPS], size_t *n);

#endif
