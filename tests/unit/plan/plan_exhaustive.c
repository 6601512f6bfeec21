/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_exhaustive.c - see plan_test.h. Nothing is shared with the planner.
 */
#include "plan_test.h"

#include <stdbool.h>

struct state {
    const bly_plan_buffer *buffers;
    size_t n;
    uint64_t offset[16];
    bool placed[16];
    uint64_t best;
};

static bool meet(const bly_plan_buffer *a, const bly_plan_buffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

static void place_next(struct state *s, size_t n_placed, uint64_t peak)
{
    if (peak >= s->best)
        return;
    if (n_placed == s->n) {
        s->best = peak;
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->placed[i])
            continue;
        uint64_t offset = 0;
        for (size_t k = 0; k < s->n; k++) {
            if (s->placed[k] && meet(&s->buffers[i], &s->buffers[k])) {
                uint64_t end = s->offset[k] + s->buffers[k].size;
                offset = end > offset ? end : offset;
            }
        }
        uint64_t end = offset + s->buffers[i].size;
        s->placed[i] = true;
        s->offset[i] = offset;
        place_next(s, n_placed + 1, end > peak ? end : peak);
        s->placed[i] = false;
    }
}

uint64_t plan_exhaustive(const bly_plan_buffer *buffers, size_t n)
{
    struct state s = {.buffers = buffers, .n = n, .best = UINT64_MAX};
    assert_true(n <= 16);
    place_next(&s, 0, 0);
    return s.best;
}
