/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_inside.h - what pickle.c and pickle_stack.c share. Errors are kept in the pickle; after
 * one nothing more is done.
 */
#ifndef BELAY_PICKLE_INSIDE_H
#define BELAY_PICKLE_INSIDE_H

#include "pickle.h"

struct piece {
    struct piece *next;
    size_t used, size;
};

struct values { /* an array that grows */
    struct pickle_value *at;
    size_t n, room;
};

struct pickle {
    const unsigned char *start, *at, *end;
    const char *name;
    struct piece *pieces;
    size_t memory, memory_max;
    struct values stack, memo;
    size_t *marks;
    size_t n_marks, marks_room;
    struct pickle_value top;
    bool done;
    bly_status status;
};

void pickle_fail_at(struct pickle *p, const char *what);
void pickle_push(struct pickle *p, struct pickle_value value);
bool pickle_has(struct pickle *p, size_t n);
void pickle_push_mark(struct pickle *p);
bool pickle_pop_mark(struct pickle *p, size_t *first);
void pickle_push_box(struct pickle *p, enum pickle_kind kind, size_t first);
void pickle_push_marked(struct pickle *p, enum pickle_kind kind);
void pickle_add_items(struct pickle *p, enum pickle_kind kind, size_t first);
void pickle_add_marked(struct pickle *p, enum pickle_kind kind);
size_t pickle_floor_of(const struct pickle *p);
bool pickle_grow(struct pickle *p, struct values *values, size_t n);

#endif
