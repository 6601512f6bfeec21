/* SPDX-License-Identifier: Apache-2.0
 *
 * import_snapshot.h - private to import_snapshot.c and import_segments.c: a snapshot while it is
 * read.
 */
#ifndef BELAY_IMPORT_SNAPSHOT_H
#define BELAY_IMPORT_SNAPSHOT_H

#include "base/map.h"
#include "pickle.h"
#include "trace_input.h"

#define CARDS_MAX 64

struct import_card {
    const struct pickle_box *trace;
    size_t at;
    struct blyi_map live;     /* addresses that the history allocated and did not free */
    struct blyi_map segments; /* addresses that it took from the card */
    struct blyi_map pending;  /* freed, not completed */
    struct blyi_map made;     /* address -> entry of its last allocation + 1 */
    struct blyi_map sizes;    /* that entry -> bytes that its block has at the end */
};

struct import_snapshot {
    struct blyi_tracewriter *w;
    const char *name;
    struct blyi_map stacks;  /* frames list -> stack id + 1 */
    struct blyi_map streams; /* handle -> number */
    uint32_t n_streams;
    struct import_card cards[CARDS_MAX];
    size_t n_cards;
    uint64_t step; /* in place of times, where there are none */
    uint64_t start_ns, last_ns;
};

static inline uint64_t number(struct pickle_value dict, const char *key)
{
    struct pickle_value value;
    if (!pickle_get(dict, key, &value) || value.kind != PICKLE_INT || value.is.integer < 0)
        return 0;
    return (uint64_t)value.is.integer;
}

static inline const struct pickle_box *list_of(struct pickle_value dict, const char *key)
{
    static const struct pickle_box none;
    struct pickle_value value;
    return pickle_get(dict, key, &value) && value.kind == PICKLE_LIST ? value.is.box : &none;
}

/* The stack of a list of frames, innermost first as they stand there; *site is its first. */
uint32_t import_stack(struct import_snapshot *im, const struct pickle_box *frames, uint32_t *site);
uint32_t import_stream(struct import_snapshot *im, uint64_t handle);

/* Segments that the history did not take: they were there before it. */
void import_put_segments(struct import_snapshot *im, struct pickle_value top);
/* Blocks that the history did not make. */
void import_put_blocks(struct import_snapshot *im, struct pickle_value top);
bool import_learn_sizes(struct import_snapshot *im, struct pickle_value top);

#endif
