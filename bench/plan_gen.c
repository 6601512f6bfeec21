/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_gen.c - see plan_gen.h.
 */
#include "bench/plan_gen.h"

#include <stdlib.h>
#include <string.h>

#define LAYERS 24
#define DEPTH  4  /* forwards before the first backward */
#define MICRO  32 /* microbatches of a step */

struct gen {
    uint64_t state;
    bly_plan_buffer *buffers;
    size_t n, room;
};

static uint64_t next(struct gen *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t between(struct gen *g, int64_t low, int64_t high)
{
    return low + (int64_t)(next(g) % (uint64_t)(high - low + 1));
}

/* In [2^low, 2^high), each power of two as likely. */
static int64_t octaves(struct gen *g, int low, int high)
{
    int64_t base = (int64_t)1 << between(g, low, high - 1);
    return base + (int64_t)(next(g) % (uint64_t)base);
}

static void add(struct gen *g, int64_t lower, int64_t upper, int64_t size)
{
    if (g->n < g->room)
        g->buffers[g->n++] = bly_plan_buffer_make(lower, upper, (uint64_t)size);
}

static void mixed(struct gen *g)
{
    int top = 4;
    while (top < 40 && (int64_t)2 << top <= (int64_t)g->room / 8)
        top++;
    for (int64_t t = 0; g->n < g->room; t++) {
        int64_t life =
            between(g, 0, 99) != 0 ? octaves(g, 0, 10) : octaves(g, top - 1 < 6 ? top - 1 : 6, top);
        add(g, t, t + life, 256 * octaves(g, 0, 14));
    }
}

static void serve(struct gen *g)
{
    for (int64_t t = 0; g->n < g->room;) {
        int64_t tokens = octaves(g, 4, 13);
        t += between(g, 0, 2);
        int64_t life = 1 + tokens / 16 + between(g, 0, tokens / 8 + 8);
        add(g, t, t + life, 2048 * tokens);
    }
}

struct micro {
    int64_t birth[LAYERS][4], size[LAYERS][4];
};

static int64_t forward(struct gen *g, const int64_t *scale, int64_t t, struct micro *m)
{
    static const int64_t saved[4] = {8, 32, 8, 16}, temporary[2] = {32, 24};
    for (int k = 0; k < LAYERS; k++, t += 2) {
        int64_t longer = 1 + (between(g, 0, 3) == 0);
        for (int j = 0; j < 2; j++)
            add(g, t, t + 1 + between(g, 0, 1), scale[k] * temporary[j] * longer / 2);
        for (int j = 0; j < 4; j++) {
            m->birth[k][j] = t + j / 2;
            m->size[k][j] = scale[k] * saved[j] * longer / 2;
        }
    }
    return t;
}

static int64_t backward(struct gen *g, const int64_t *scale, int64_t t, const struct micro *m)
{
    static const int64_t temporary[3] = {32, 8, 24};
    for (int k = LAYERS - 1; k >= 0; k--) {
        for (int j = 0; j < 3; j++)
            add(g, t + j / 2, t + 2 + between(g, 0, 1), scale[k] * temporary[j] / 2);
        t += 3;
        for (int j = 0; j < 4; j++)
            add(g, m->birth[k][j], t - between(g, 0, 1), m->size[k][j]);
    }
    return t;
}

static void train(struct gen *g)
{
    int64_t scale[LAYERS], t = 0;
    struct micro live[DEPTH];
    for (int k = 0; k < LAYERS; k++)
        scale[k] = 65536 * between(g, 2, 5);
    while (g->n < g->room) {
        for (int f = 0, b = 0; b < MICRO;) {
            if (f < MICRO && f - b < DEPTH)
                t = forward(g, scale, t, &live[f++ % DEPTH]);
            else
                t = backward(g, scale, t, &live[b++ % DEPTH]);
        }
    }
}

bly_plan_buffer *plan_gen(const char *family, size_t n, uint64_t seed)
{
    struct gen g = {seed * 1000003u + 17, malloc((n + 1) * sizeof(*g.buffers)), 0, n};
    if (g.buffers == NULL)
        return NULL;
    if (strcmp(family, "mixed") == 0)
        mixed(&g);
    else if (strcmp(family, "serve") == 0)
        serve(&g);
    else
        train(&g);
    return g.buffers;
}
