/* SPDX-License-Identifier: Apache-2.0
 *
 * skyline.c - see skyline.h. Raising a range never has to be pushed down the tree.
 */
#include "plan/skyline.h"

#include "base/host.h"

bool blyi_skyline_init(struct blyi_skyline *sky, size_t n)
{
    sky->leaves = 1;
    while (sky->leaves < n)
        sky->leaves *= 2;
    sky->most = blyi_host_calloc_dense(2 * sky->leaves, sizeof(int64_t));
    sky->raised = blyi_host_calloc_dense(2 * sky->leaves, sizeof(int64_t));
    return sky->most != NULL && sky->raised != NULL;
}

void blyi_skyline_fini(struct blyi_skyline *sky)
{
    blyi_host_free(sky->most);
    blyi_host_free(sky->raised);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void skyline_lift(struct blyi_skyline *sky, size_t at, int64_t v)
{
    sky->most[at] = larger(sky->most[at], v);
    sky->raised[at] = larger(sky->raised[at], v);
}

static void skyline_rebuild(struct blyi_skyline *sky, size_t at)
{
    for (at /= 2; at > 0; at /= 2)
        sky->most[at] = larger(larger(sky->most[2 * at], sky->most[2 * at + 1]), sky->raised[at]);
}

void blyi_skyline_raise(struct blyi_skyline *sky, size_t first, size_t last, int64_t v)
{
    size_t l = first + sky->leaves, r = last + sky->leaves + 1;
    for (; l < r; l /= 2, r /= 2) {
        if (l & 1)
            skyline_lift(sky, l++, v);
        if (r & 1)
            skyline_lift(sky, --r, v);
    }
    skyline_rebuild(sky, first + sky->leaves);
    skyline_rebuild(sky, last + sky->leaves);
}

int64_t blyi_skyline_most(const struct blyi_skyline *sky, size_t first, size_t last)
{
    int64_t v = 0;
    size_t l = first + sky->leaves, r = last + sky->leaves + 1;
    for (; l < r; l /= 2, r /= 2) {
        if (l & 1)
            v = larger(v, sky->most[l++]);
        if (r & 1)
            v = larger(v, sky->most[--r]);
    }
    /* What covers a node taken above covers one end of the range, too. */
    for (l = (first + sky->leaves) / 2, r = (last + sky->leaves) / 2; l > 0; l /= 2, r /= 2)
        v = larger(v, larger(sky->raised[l], sky->raised[r]));
    return v;
}
