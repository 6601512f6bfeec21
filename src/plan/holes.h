/* SPDX-License-Identifier: Apache-2.0
 *
 * holes.h - free memory at one moment of a walk over time. Inline: a walk over a million buffers
 * spends its time here.
 */
#ifndef BLYI_PLAN_HOLES_H
#define BLYI_PLAN_HOLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/host.h"

#define BLYI_HOLES_ENDLESS (INT64_MAX / 2) /* size of the hole above everything */

/* Holes in order of offset; two arrays, so that a scan for a size reads sizes alone. */
struct blyi_holes {
    int64_t *start, *size;
    size_t n, room;
};

static inline bool blyi_holes_reserve(struct blyi_holes *h)
{
    if (h->n + 2 < h->room)
        return true;
    size_t room = h->room * 2 + 64;
    int64_t *start = blyi_host_realloc(h->start, room * sizeof(*start));
    if (start == NULL)
        return false;
    h->start = start;
    int64_t *size = blyi_host_realloc(h->size, room * sizeof(*size));
    if (size == NULL)
        return false;
    h->size = size;
    h->room = room;
    return true;
}

static inline void blyi_holes_insert(struct blyi_holes *h, size_t at, int64_t start, int64_t size)
{
    memmove(h->start + at + 1, h->start + at, (h->n - at) * sizeof(*h->start));
    memmove(h->size + at + 1, h->size + at, (h->n - at) * sizeof(*h->size));
    h->start[at] = start;
    h->size[at] = size;
    h->n++;
}

static inline void blyi_holes_remove(struct blyi_holes *h, size_t at)
{
    h->n--;
    memmove(h->start + at, h->start + at + 1, (h->n - at) * sizeof(*h->start));
    memmove(h->size + at, h->size + at + 1, (h->n - at) * sizeof(*h->size));
}

/* First hole that starts at or above `start`. */
static inline size_t blyi_holes_find(const struct blyi_holes *h, int64_t start)
{
    size_t lo = 0, hi = h->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (h->start[mid] < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Room was reserved by blyi_holes_reserve(). */
static inline void blyi_holes_free(struct blyi_holes *h, int64_t start, int64_t size)
{
    size_t lo = blyi_holes_find(h, start);
    bool below = lo > 0 && h->start[lo - 1] + h->size[lo - 1] == start;
    bool above = lo < h->n && h->start[lo] == start + size;
    if (below && above) {
        h->size[lo - 1] += size + h->size[lo];
        blyi_holes_remove(h, lo);
    } else if (below) {
        h->size[lo - 1] += size;
    } else if (above) {
        h->start[lo] = start;
        h->size[lo] += size;
    } else {
        blyi_holes_insert(h, lo, start, size);
    }
}

/* Takes [start, start + size) out of hole `at`. */
static inline void blyi_holes_cut(struct blyi_holes *h, size_t at, int64_t start, int64_t size)
{
    int64_t before = start - h->start[at];
    int64_t after = h->start[at] + h->size[at] - (start + size);
    if (before == 0 && after == 0) {
        blyi_holes_remove(h, at);
    } else if (before == 0) {
        h->start[at] = start + size;
        h->size[at] = after;
    } else {
        h->size[at] = before;
        if (after > 0)
            blyi_holes_insert(h, at + 1, start + size, after);
    }
}

static inline void blyi_holes_fini(struct blyi_holes *h)
{
    blyi_host_free(h->start);
    blyi_host_free(h->size);
}

#endif
