/* SPDX-License-Identifier: Apache-2.0
 *
 * dive.c - the skyline dive: a heap of lowest offsets, brought up to date when popped.
 */
#include "plan/dive.h"

#include "base/fail.h"
#include "base/host.h"
#include "plan/skyline.h"

#define PULL_MAX 1e17 /* units; offsets stay below 2^62 */

struct entry {
    int64_t key; /* of the lowest offset known, in the steps of the style */
    int64_t offset;
    uint32_t rank, item;
};

struct dive {
    const struct blyi_pack *pack;
    struct blyi_skyline sky;
    struct entry *heap;
    size_t n;      /* in the heap */
    int64_t *pull; /* per item, at most `most`; NULL: none */
    int64_t most, step;
};

static bool before(const struct entry *a, const struct entry *b)
{
    return a->key != b->key ? a->key < b->key : a->rank < b->rank;
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

static int64_t key_of(const struct dive *d, uint32_t i, int64_t offset)
{
    return (offset + d->most - (d->pull == NULL ? 0 : d->pull[i])) / d->step;
}

static int64_t lowest(const struct dive *d, uint32_t i)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(d->pack, i, &count, &own);
    int64_t offset = 0;
    for (uint32_t c = 0; c < count; c++) {
        int64_t least = blyi_skyline_most(&d->sky, p[c].first, p[c].last) - p[c].lo;
        offset = least > offset ? least : offset;
    }
    return blyi_pack_align(d->pack, i, offset);
}

static void put(struct dive *d, uint32_t i, int64_t offset)
{
    struct blyi_pack_piece own;
    uint32_t count;
    const struct blyi_pack_piece *p = blyi_pack_pieces(d->pack, i, &count, &own);
    for (uint32_t c = 0; c < count; c++)
        blyi_skyline_raise(&d->sky, p[c].first, p[c].last, offset + p[c].hi);
}

/* Once stopped, items go in the order of the heap, which costs least. False: above the limit. */
static bool empty_heap(struct dive *d, int64_t limit, struct blyi_stop *stop, int64_t *offset)
{
    struct entry *heap = d->heap;
    while (d->n > 0) {
        uint32_t i = heap[0].item;
        int64_t least = blyi_stop_poll(stop) ? heap[0].offset : lowest(d, i);
        if (least + d->pack->items[i].size > limit)
            return false;
        if (least > heap[0].offset) {
            heap[0].offset = least;
            heap[0].key = key_of(d, i, least);
            sift_down(heap, d->n, 0);
            continue;
        }
        offset[i] = lowest(d, i);
        put(d, i, offset[i]);
        heap[0] = heap[--d->n];
        if (d->n > 0)
            sift_down(heap, d->n, 0);
    }
    return true;
}

static uint64_t root(uint64_t x)
{
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 62; bit > 0; bit /= 4) {
        if (x >= r + bit) {
            x -= r + bit;
            r += 2 * bit;
        }
        r /= 2;
    }
    return r;
}

static uint64_t worth(const struct blyi_pack *pack, enum blyi_dive_pull by, uint32_t i)
{
    const struct blyi_pack_item *item = &pack->items[i];
    uint64_t life = pack->time[item->last + 1] - pack->time[item->first];
    uint64_t size = (uint64_t)item->size;
    if (by == BLYI_DIVE_LIFETIME)
        return life;
    return size > UINT64_MAX / (life + 1) ? UINT32_MAX : root(size * life);
}

/* Pull and step in units. False: no host memory. */
static bool apply_style(struct dive *d, const struct blyi_dive_style *style)
{
    const struct blyi_pack *pack = d->pack;
    double size = 0, total = 0;
    d->step = 1;
    if (pack->n == 0 || (style->step <= 0 && style->pull <= 0))
        return true;
    for (uint32_t i = 0; i < pack->n; i++)
        size += (double)pack->items[i].size / pack->n;
    if (style->step * size > 1)
        d->step = (int64_t)(style->step * size);
    if (style->pull <= 0)
        return true;
    d->pull = blyi_host_alloc_dense(pack->n * sizeof(*d->pull));
    if (d->pull == NULL)
        return false;
    struct blyi_rand rand;
    blyi_rand_init(&rand, style->noise);
    for (uint32_t i = 0; i < pack->n; i++)
        total += (double)worth(pack, style->pull_by, i);
    double unit = style->pull * size * pack->n / (total > 0 ? total : 1);
    for (uint32_t i = 0; i < pack->n; i++) {
        double pull = unit * (double)worth(pack, style->pull_by, i);
        pull *= 1 + style->blur * blyi_rand_unit(&rand);
        d->pull[i] = pull < PULL_MAX ? (int64_t)pull : (int64_t)PULL_MAX;
        d->most = d->pull[i] > d->most ? d->pull[i] : d->most;
    }
    return true;
}

static void fill_heap(struct dive *d, const uint32_t *order, int64_t *offset)
{
    const struct blyi_pack *pack = d->pack;
    for (uint32_t r = 0; r < pack->n; r++) {
        uint32_t i = order[r];
        if (blyi_pack_is_fixed(pack, i))
            put(d, i, offset[i] = pack->fixed[i]);
        else
            d->heap[d->n++] = (struct entry){key_of(d, i, 0), 0, r, i};
    }
    for (size_t at = d->n / 2; at-- > 0;)
        sift_down(d->heap, d->n, at);
}

bly_status blyi_dive(const struct blyi_pack *pack, const struct blyi_dive_style *style,
                     int64_t limit, struct blyi_stop *stop, int64_t *offset, bool *done)
{
    size_t n = pack->n;
    struct dive d = {.pack = pack};
    uint32_t *order = blyi_host_alloc_dense((n + 1) * sizeof(*order));
    d.heap = blyi_host_alloc_dense((n + 1) * sizeof(*d.heap));
    bool ready = blyi_skyline_init(&d.sky, pack->n_sections + (size_t)1) && order != NULL &&
                 d.heap != NULL && apply_style(&d, style);
    bly_status status = BLY_OK;
    if (!ready)
        status = blyi_fail(BLY_E_HOST_MEMORY, "placing %zu buffers: the host has no memory", n);
    else
        status = blyi_fit_order(pack, style->by, 0, order);
    if (status == BLY_OK) {
        fill_heap(&d, order, offset);
        *done = empty_heap(&d, limit, stop, offset);
    }
    blyi_skyline_fini(&d.sky);
    blyi_host_free(d.pull);
    blyi_host_free(d.heap);
    blyi_host_free(order);
    return status;
}
