/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model.h - the model beside the checker (check_model.c): sets of accesses that are before
 * others.
 */
#ifndef CHECK_MODEL_H
#define CHECK_MODEL_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>
#include "base/compiler.h"
#include "observe/check.h"

#define STREAMS 4
#define EVENTS  4
#define TASKS   128
#define STEPS   60
#define WORDS   ((TASKS + 63) / 64)
#define GRAPHS  2
#define BLOCK   0x100000u

struct set {
    uint64_t bits[WORDS];
};

struct access {
    bool is_task, writes, is_told, is_done;
    int stream;
    uint64_t number, lo, hi;
    struct set before; /* known to it, itself not included */
    /* A record's or a wait's. */
    int event; /* -1: none */
    int waits_for;
    bool is_record, is_wait;
    int graph;       /* of a run; -1: none */
    struct set host; /* what the host knew at submission */
};

/* A graph of two lines; a run's tasks are drawn when it begins. The second line may wait for a
 * record of the first. */
struct model_line {
    struct set set; /* what its tasks so far knew and were */
    int queue[4], first, last;
    uint64_t number; /* of its last task */
    bool goes_on;
};

struct model_graph {
    int runner; /* stream; -1: none */
    struct set runs, arrived;
    struct model_line lines[2];
    int record; /* -1: none */
};

struct model {
    uint64_t seed;
    uint64_t length; /* of the block */
    struct blyi_check *check;
    struct access all[TASKS];
    int n;
    struct set stream[STREAMS]; /* what its tasks so far knew and were */
    struct set host;
    int queue[STREAMS][TASKS], first[STREAMS], last[STREAMS];
    uint64_t number[STREAMS];
    int recorded[EVENTS]; /* the last record; -1: none */
    struct model_graph graphs[GRAPHS];
    bool found_false;
    int n_tasks;
    bool races[TASKS + 1][TASKS + 1];
    size_t n_races;
};

static inline uint64_t next(struct model *m)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return m->seed;
}

static inline int below(struct model *m, int n)
{
    return (int)(next(m) % (uint64_t)n);
}

static inline void join(struct set *to, const struct set *from)
{
    for (int i = 0; i < WORDS; i++)
        to->bits[i] |= from->bits[i];
}

static inline void add(struct set *to, int i)
{
    to->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline bool has(const struct set *set, int i)
{
    return (set->bits[i / 64] >> (i % 64) & 1) != 0;
}

static inline void tell(struct model *m, struct blyi_probe probe)
{
    blyi_check_probe(m->check, &probe);
}

/* Before the checker hears of it, so that its findings can be judged. */
void note_races(struct model *m, int of);
void pick_range(struct model *m, struct access *a);
/* As a task of a stream; number 0: by the host. */
void tell_access(struct model *m, int i, uint32_t stream, uint64_t number);

/* check_model_graph.c: the head of the stream is a run. False: it cannot go on now. *ends: all of
 * it has run. */
bool run_graph(struct model *m, int s, struct access *run, bool *ends);

#endif
