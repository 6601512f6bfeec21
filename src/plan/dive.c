/* SPDX-License-Identifier: Apache-2.0
 *
 * dive.c - the skyline dive: a heap of lowest offsets, brought up to date when popped, over a
 * tree that knows the skyline's maximum of any range of sections.
 */
#include "plan/fit.h"

#include <string.h>

#include "base/fail.h"
#include "base/host.h"

/* Range maximum under "raise a range to at least v", which never has to be pushed down. */
struct skyline {
    int64_t *most; /* of the subtree, its own `raised` included */
    int64_t *raised;
    size_t leaves;
};

static bool skyline_init(struct skyline *sky, size_t n)
{
    sky->leaves = 1;
    while (sky->leaves < n)
        sky->leaves *= 2;
    sky->most = blyi_host_calloc(2 * sky->leaves, sizeof(int64_t));
    sky->raised = blyi_host_calloc(2 * sky->leaves, sizeof(int64_t));
    return sky->most != NULL && sky->raised != NULL;
}

static void skyline_fini(struct skyline *sky)
{
    blyi_host_free(sky->most);
    blyi_host_free(sky->raised);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void skyline_lift(struct skyline *sky, size_t at, int64_t v)
{
    sky->most[at] = larger(sky->most[at], v);
    sky->raised[at] = larger(sky->raised[at], v);
}

static void skyline_rebuild(struct skyline *sky, size_t at)
{
    for (at /= 2; at > 0; at /= 2)
        sky->most[at] = larger(larger(sky->most[2 * at], sky->most[2 * at + 1]), sky->raised[at]);
}

static void skyline_raise(struct skyline *sky, size_t first, size_t last, int64_t v)
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

static int64_t skyline_most(const struct skyline *sky, size_t first, size_t last)
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

struct entry {
    int64_t offset;
    uint32_t rank, item;
};

static bool before(const struct entry *a, const struct entry *b)
{
    return a->offset != b->offset ? a->offset < b->offset : a->rank < b->rank;
}

static void sift_down(struct entry *heap, size_t n, size_t at)
{
    struct entry e = heap[at];
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &e))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = e;
}

static int64_t lowest(const struct blyi_pack *pack, const struct skyline *sky, uint32_t i)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
    int64_t offset = 0;
    for (uint32_t c = 0; c < count; c++)
        offset = larger(offset, skyline_most(sky, p[c].first, p[c].last) - p[c].lo);
    return blyi_pack_align(pack, i, offset);
}

static void put(const struct blyi_pack *pack, struct skyline *sky, uint32_t i, int64_t offset)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(pack, i, &count, &own);
    for (uint32_t c = 0; c < count; c++)
        skyline_raise(sky, p[c].first, p[c].last, offset + p[c].hi);
}

/* Once stopped, items go in the order of the heap, which costs least. */
static void dive(const struct blyi_pack *pack, struct skyline *sky, struct entry *heap, size_t n,
                 struct blyi_stop *stop, int64_t *offset)
{
    while (n > 0) {
        uint32_t i = heap[0].item;
        int64_t least = blyi_stop_poll(stop) ? heap[0].offset : lowest(pack, sky, i);
        if (least > heap[0].offset) {
            heap[0].offset = least;
            sift_down(heap, n, 0);
            continue;
        }
        offset[i] = lowest(pack, sky, i);
        put(pack, sky, i, offset[i]);
        heap[0] = heap[--n];
        if (n > 0)
            sift_down(heap, n, 0);
    }
}

bly_status blyi_dive(const struct blyi_pack *pack, enum blyi_fit_by by, struct blyi_stop *stop,
                     int64_t *offset)
{
    struct skyline sky = {NULL, NULL, 0};
    size_t n = pack->n;
    uint32_t *order = blyi_host_alloc((n + 1) * sizeof(*order));
    struct entry *heap = blyi_host_alloc((n + 1) * sizeof(*heap));
    bool ready = skyline_init(&sky, pack->n_sections + (size_t)1) && order != NULL && heap != NULL;
    bly_status status = BLY_OK;
    if (!ready)
        status = blyi_fail(BLY_E_HOST_MEMORY, "placing %zu buffers: the host has no memory", n);
    else
        status = blyi_fit_order(pack, by, 0, order);
    if (status == BLY_OK) {
        uint32_t free = 0;
        for (uint32_t r = 0; r < pack->n; r++) {
            uint32_t i = order[r];
            if (blyi_pack_is_fixed(pack, i))
                put(pack, &sky, i, offset[i] = pack->fixed[i]);
            else
                heap[free++] = (struct entry){0, r, i}; /* equal offsets: a heap already */
        }
        dive(pack, &sky, heap, free, stop, offset);
    }
    skyline_fini(&sky);
    blyi_host_free(order);
    blyi_host_free(heap);
    return status;
}
