/* SPDX-License-Identifier: Apache-2.0
 *
 * crest.c - see crest.h. In a long trace that varies, few buffers live where the sum of live sizes
 * comes near its largest, or few that live long hold much of the memory: a small problem.
 */
#include "plan/crest.h"

#include "base/fail.h"
#include "base/host.h"
#include "plan/around.h"
#include "plan/bound.h"
#include "plan/inner.h"

#define CREST_MAX  5000 /* buffers at crests: searches see all of them */
#define CREST_MIN  2
#define LONG_SHARE 128 /* of so many buffers at most one lives long */
#define LONG_AREA  8   /* and has to hold at least one part in so many */

struct crest {
    struct blyi_solve *solve;
    int64_t *load;    /* per section */
    uint32_t *before; /* sections on a crest before a section, n_sections + 1 values */
    uint32_t *ids;    /* of those that are planned first */
    bly_plan_buffer *buffers;
    int64_t *offset;
    size_t n;
    uint32_t long_life; /* in sections; 0: crests decide */
};

static uint32_t life_of(const struct blyi_pack_item *item)
{
    return item->last - item->first + 1;
}

static bool is_first(const struct crest *c, uint32_t i)
{
    const struct blyi_pack_item *item = &c->solve->pack->items[i];
    if (c->long_life > 0)
        return life_of(item) >= c->long_life;
    return c->before[item->last + 1] > c->before[item->first];
}

/* Looks for a power of two that few lives reach, but much memory. */
static bool choose_life(struct crest *c)
{
    const struct blyi_pack *pack = c->solve->pack;
    size_t count[32] = {0}, n = 0;
    double area[32] = {0}, all = 0, reached = 0;
    for (uint32_t i = 0; i < pack->n; i++) {
        uint32_t life = life_of(&pack->items[i]);
        int power = 31 - __builtin_clz(life);
        count[power]++;
        area[power] += (double)life * (double)pack->items[i].size;
        all += (double)life * (double)pack->items[i].size;
    }
    int power = 31;
    for (; power > 0 && n + count[power] <= pack->n / LONG_SHARE; power--) {
        n += count[power];
        reached += area[power];
    }
    if (reached * LONG_AREA < all)
        return false;
    c->long_life = UINT32_C(2) << power;
    c->n = n;
    return true;
}

/* Counts the buffers that live where at least `level` is live. */
static void mark_crests(struct crest *c, int64_t level)
{
    const struct blyi_pack *pack = c->solve->pack;
    c->before[0] = 0;
    for (uint32_t s = 0; s < pack->n_sections; s++)
        c->before[s + 1] = c->before[s] + (c->load[s] >= level);
    c->n = 0;
    for (uint32_t i = 0; i < pack->n; i++)
        c->n += is_first(c, i);
}

/* The lowest level at which not too many are. */
static bool choose_level(struct crest *c)
{
    static const double levels[] = {0.8, 0.85, 0.9, 0.93, 0.96, 0.98};
    for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
        mark_crests(c, (int64_t)((double)c->solve->bound * levels[l]));
        if (c->n <= CREST_MAX)
            return c->n >= CREST_MIN;
    }
    return false;
}

static bool crest_init(struct crest *c)
{
    const struct blyi_pack *pack = c->solve->pack;
    c->load = blyi_host_alloc_dense((pack->n_sections + (size_t)1) * sizeof(*c->load));
    c->before = blyi_host_alloc_dense((pack->n_sections + (size_t)1) * sizeof(*c->before));
    return c->load != NULL && c->before != NULL;
}

/* Room for those that are planned first. */
static bool reserve(struct crest *c)
{
    c->ids = blyi_host_alloc_dense(c->n * sizeof(*c->ids));
    c->buffers = blyi_host_alloc_dense(c->n * sizeof(*c->buffers));
    c->offset = blyi_host_alloc_dense(c->n * sizeof(*c->offset));
    return c->ids != NULL && c->buffers != NULL && c->offset != NULL;
}

static void crest_fini(struct crest *c)
{
    blyi_host_free(c->load);
    blyi_host_free(c->before);
    blyi_host_free(c->ids);
    blyi_host_free(c->buffers);
    blyi_host_free(c->offset);
}

/* A quarter of the time that is left. */
static struct blyi_stop stop_soon(const struct blyi_stop *stop)
{
    struct blyi_stop soon = *stop;
    uint64_t now = blyi_clock_ns();
    if (stop->deadline_ns != UINT64_MAX && stop->deadline_ns > now)
        soon.deadline_ns = now + (stop->deadline_ns - now) / 4;
    return soon;
}

static bly_status no_memory(const struct crest *c)
{
    return blyi_fail(BLY_E_HOST_MEMORY, "planning %u buffers: the host has no memory",
                     c->solve->pack->n);
}

static bly_status plan_first(struct crest *c)
{
    const struct blyi_pack *pack = c->solve->pack;
    size_t n = 0;
    if (!reserve(c))
        return no_memory(c);
    for (uint32_t i = 0; i < pack->n; i++) {
        const struct blyi_pack_item *item = &pack->items[i];
        c->solve->spare[i] = BLYI_PACK_FREE;
        if (!is_first(c, i))
            continue;
        c->ids[n] = i;
        c->buffers[n++] =
            bly_plan_buffer_make(item->first, (int64_t)item->last + 1, (uint64_t)item->size);
    }
    struct blyi_stop stop = stop_soon(&c->solve->stop);
    int64_t peak;
    bly_status status = blyi_solve_inner(c->solve, c->buffers, n, &stop, c->offset, &peak);
    for (size_t x = 0; status == BLY_OK && x < n; x++)
        c->solve->spare[c->ids[x]] = c->offset[x];
    return status;
}

bly_status blyi_crest(struct blyi_solve *solve, const struct blyi_timeline *line,
                      const char **solver)
{
    struct crest c = {.solve = solve};
    int64_t bound;
    *solver = NULL;
    bly_status status = crest_init(&c) ? BLY_OK : no_memory(&c);
    if (status == BLY_OK)
        status = blyi_bound_load(solve->pack, c.load, &bound);
    const char *found = NULL;
    if (status == BLY_OK)
        found = choose_life(&c) ? "long-first" : choose_level(&c) ? "crest" : NULL;
    if (found != NULL) {
        status = plan_first(&c);
        if (status == BLY_OK)
            status = blyi_sweep_around(solve->pack, line, solve->spare);
        if (status == BLY_OK)
            *solver = found;
    }
    crest_fini(&c);
    return status;
}
