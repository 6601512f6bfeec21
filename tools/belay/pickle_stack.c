/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_stack.c - values of a pickle being read: the stack, marks, containers, and their memory,
 * which is bounded by the size of the file.
 */
#include "pickle_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

#define PIECE ((size_t)1 << 20)

void pickle_fail_at(struct pickle *p, const char *what)
{
    if (p->status == BLY_OK)
        p->status = blyi_fail(BLY_E_PARSE, "%s: byte %zu of the pickle: %s", p->name,
                              (size_t)(p->at - p->start), what);
}

static void no_memory(struct pickle *p)
{
    if (p->status == BLY_OK)
        p->status = blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for its values", p->name);
}

/* ── Memory ───────────────────────────────────────────────────────────────────────────────── */

static bool may_take(struct pickle *p, size_t size)
{
    if (size > p->memory_max - p->memory) {
        pickle_fail_at(p, "far more values than a file of its size should have");
        return false;
    }
    p->memory += size;
    return true;
}

static void *take(struct pickle *p, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (p->pieces == NULL || p->pieces->size - p->pieces->used < size) {
        size_t room = size > PIECE ? size : PIECE;
        if (!may_take(p, room))
            return NULL;
        struct piece *piece = malloc(sizeof(*piece) + 16 + room);
        if (piece == NULL) {
            no_memory(p);
            return NULL;
        }
        *piece = (struct piece){p->pieces, 0, room};
        p->pieces = piece;
    }
    char *base = (char *)(p->pieces + 1);
    base += -(uintptr_t)base & 15;
    void *at = base + p->pieces->used;
    p->pieces->used += size;
    return at;
}

bool pickle_grow(struct pickle *p, struct values *values, size_t n)
{
    if (n <= values->room)
        return true;
    size_t room = 2 * n + 64;
    if (!may_take(p, (room - values->room) * sizeof(*values->at)))
        return false;
    struct pickle_value *bigger = realloc(values->at, room * sizeof(*bigger));
    if (bigger == NULL) {
        no_memory(p);
        return false;
    }
    memset(bigger + values->room, 0, (room - values->room) * sizeof(*bigger));
    values->at = bigger;
    values->room = room;
    return true;
}

void pickle_push(struct pickle *p, struct pickle_value value)
{
    if (pickle_grow(p, &p->stack, p->stack.n + 1))
        p->stack.at[p->stack.n++] = value;
}

/* Values above the last mark may be taken, none below. */
size_t pickle_floor_of(const struct pickle *p)
{
    return p->n_marks > 0 ? p->marks[p->n_marks - 1] : 0;
}

bool pickle_has(struct pickle *p, size_t n)
{
    if (p->stack.n - pickle_floor_of(p) >= n)
        return true;
    pickle_fail_at(p, "an instruction that finds nothing to work on");
    return false;
}

void pickle_push_mark(struct pickle *p)
{
    if (p->n_marks == p->marks_room) {
        size_t room = 2 * p->marks_room + 64;
        size_t *bigger =
            may_take(p, room * sizeof(*bigger)) ? realloc(p->marks, room * sizeof(*bigger)) : NULL;
        if (bigger == NULL) {
            no_memory(p);
            return;
        }
        p->marks = bigger;
        p->marks_room = room;
    }
    p->marks[p->n_marks++] = p->stack.n;
}

/* Position of the first value above the last mark, which goes away. */
bool pickle_pop_mark(struct pickle *p, size_t *first)
{
    if (p->n_marks == 0) {
        pickle_fail_at(p, "no mark for an instruction that needs one");
        return false;
    }
    *first = p->marks[--p->n_marks];
    return true;
}

/* ── Containers ───────────────────────────────────────────────────────────────────────────── */

static bool box_room(struct pickle *p, struct pickle_box *box, size_t more)
{
    if (box->n + more <= box->room)
        return true;
    size_t room = box->room == 0 ? more : 2 * (box->n + more);
    struct pickle_value *items = take(p, room * sizeof(*items));
    if (items == NULL)
        return false;
    if (box->n > 0)
        memcpy(items, box->items, box->n * sizeof(*items));
    box->items = items;
    box->room = room;
    return true;
}

void pickle_push_box(struct pickle *p, enum pickle_kind kind, size_t first)
{
    size_t n = p->stack.n - first;
    struct pickle_box *box = take(p, sizeof(*box));
    if (box == NULL)
        return;
    *box = (struct pickle_box){0};
    if (n > 0 && !box_room(p, box, n))
        return;
    if (n > 0)
        memcpy(box->items, p->stack.at + first, n * sizeof(*box->items));
    box->n = n;
    p->stack.n = first;
    pickle_push(p, (struct pickle_value){.kind = kind, .is.box = box});
}

void pickle_push_marked(struct pickle *p, enum pickle_kind kind)
{
    size_t first;
    if (!pickle_pop_mark(p, &first))
        return;
    if (kind == PICKLE_DICT && (p->stack.n - first) % 2 != 0)
        pickle_fail_at(p, "a dictionary with a key and no value");
    else
        pickle_push_box(p, kind, first);
}

/* The values from `first` on go into the container below them. */
void pickle_add_items(struct pickle *p, enum pickle_kind kind, size_t first)
{
    size_t n = p->stack.n - first;
    if (first == pickle_floor_of(p) || p->stack.at[first - 1].kind != kind ||
        (kind == PICKLE_DICT && n % 2 != 0)) {
        pickle_fail_at(p, "items for something that does not hold such");
        return;
    }
    struct pickle_box *box = p->stack.at[first - 1].is.box;
    if (n > 0 && box_room(p, box, n)) {
        memcpy(box->items + box->n, p->stack.at + first, n * sizeof(*box->items));
        box->n += n;
    }
    p->stack.n = first;
}

void pickle_add_marked(struct pickle *p, enum pickle_kind kind)
{
    size_t first;
    if (pickle_pop_mark(p, &first))
        pickle_add_items(p, kind, first);
}
