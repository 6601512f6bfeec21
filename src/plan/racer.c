/* SPDX-License-Identifier: Apache-2.0
 *
 * racer.c - see racer.h.
 */
#include "plan/racer.h"

#include "base/fail.h"
#include "base/host.h"

/* Found by measuring every engine and order alone on MiniMalloc's eleven instances; see
 * docs/design/plan.md. */
const struct blyi_racer blyi_line_up[BLYI_RACERS] = {
    {BLYI_RACER_SEARCH, "tree", {0, true, 0}, 1000, .runs = 6, .opens = true},
    {BLYI_RACER_VALLEY, "valley", {4, true, 0}, 2000, .runs = 6, .opens = true, .mirrored = true},
    {BLYI_RACER_VALLEY, "valley", {0, true, 0}, 1000, .runs = 1, .opens = true, .rests = 3},
    {BLYI_RACER_SEARCH, "tree", {0, false, 0}, 1000, .runs = 1, .rests = 3},
    {BLYI_RACER_SEARCH, "tree", {0, true, 0}, 1000, .runs = 1, .rests = 3},
    {BLYI_RACER_VALLEY, "valley", {4, false, 0}, 1000, .runs = 1, .rests = 3, .mirrored = true},
    {BLYI_RACER_PRESS, "eject", {0, false, 0}, 0, .runs = 1},
    {BLYI_RACER_DIVE, "dive", {0, false, 0}, 0, .runs = 1},
    {BLYI_RACER_ANNEAL, "anneal", {0, false, 0}, 0, .runs = 1},
};

bly_status blyi_racer_init(struct blyi_racer *r, const struct blyi_pack *pack,
                           const struct blyi_graph *graph, const struct blyi_timeline *line,
                           uint64_t seed)
{
    r->offset = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*r->offset));
    if (r->kind == BLYI_RACER_DIVE)
        r->spare = blyi_host_alloc((pack->n + (size_t)1) * sizeof(*r->spare));
    if (r->offset == NULL || (r->kind == BLYI_RACER_DIVE && r->spare == NULL))
        return blyi_fail(BLY_E_HOST_MEMORY, "planning %u buffers: the host has no memory", pack->n);
    switch (r->kind) {
    case BLYI_RACER_SEARCH:
        return blyi_search_create(pack, graph, &r->search);
    case BLYI_RACER_VALLEY:
        return blyi_valley_create(pack, graph, r->mirrored, &r->valley);
    case BLYI_RACER_PRESS:
        blyi_press_init(&r->press, pack, line, seed);
        break;
    case BLYI_RACER_DIVE:
        blyi_divers_init(&r->divers, seed);
        break;
    case BLYI_RACER_ANNEAL: /* begins from a plan, in its first round */
    default:
        break;
    }
    return BLY_OK;
}

void blyi_racer_fini(struct blyi_racer *r)
{
    blyi_search_destroy(r->search);
    blyi_valley_destroy(r->valley);
    blyi_anneal_destroy(r->anneal);
    blyi_host_free(r->offset);
    blyi_host_free(r->spare);
}
