/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_tell.c - what the simulated device is told.
 */
#include <inttypes.h>
#include "backend/sim_inside.h"
#include "base/assert.h"
#include "base/ended.h"
#include "base/host.h"

void blyi_sim_figures(const struct blyi_sim *sim, struct blyi_sim_figures *out)
{
    *out = sim->is;
}

void blyi_sim_set_total(struct blyi_sim *sim, uint64_t total)
{
    sim->total = total;
}

void blyi_sim_tick(struct blyi_sim *sim)
{
    sim->clock++;
}

blyi_mark blyi_sim_use(struct blyi_sim *sim, void *stream, const void *address, uint64_t size)
{
    struct blyi_lane *lane = blyi_sim_lane(sim, stream);
    uintptr_t from = (uintptr_t)address / BLYI_SIM_GRANULE,
              to = ((uintptr_t)address + size - 1) / BLYI_SIM_GRANULE;
    blyi_mark at = sim->lag == BLYI_SIM_HELD ? ++lane->issued : sim->clock;
    for (uintptr_t i = from; i <= to; i++) {
        struct blyi_sim_granule *g = blyi_map_get(&sim->granules, i);
        bly_check_msg(g != NULL, "0x%" PRIxPTR " is used, and not mapped", i * BLYI_SIM_GRANULE);
        struct blyi_sim_use_of *use = g->uses;
        while (use != NULL && use->lane != lane)
            use = use->next;
        if (use == NULL) {
            use = blyi_sim_need(sizeof *use);
            use->lane = lane;
            use->next = g->uses;
            g->uses = use;
        }
        use->mark = at;
    }
    return at;
}

bool blyi_sim_passed(struct blyi_sim *sim, void *stream, blyi_mark mark)
{
    return blyi_sim_lane_passed(sim, blyi_sim_lane(sim, stream), mark);
}

void blyi_sim_complete(struct blyi_sim *sim, void *stream)
{
    struct blyi_lane *lane = blyi_sim_lane(sim, stream);
    lane->ended_to = sim->lag == BLYI_SIM_HELD ? lane->issued : sim->clock;
}

void blyi_sim_stick(struct blyi_sim *sim, void *stream, bool stuck)
{
    blyi_sim_lane(sim, stream)->stuck = stuck;
}

void blyi_sim_hold(struct blyi_sim *sim, void *stream)
{
    blyi_sim_lane(sim, stream)->held = true;
}

void blyi_sim_end(struct blyi_sim *sim, void *stream)
{
    blyi_sim_complete(sim, stream);
    blyi_sim_lane(sim, stream)->ended = true;
    blyi_ended_add();
}

void blyi_sim_reset(struct blyi_sim *sim)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (blyi_map_next(&sim->granules, &cursor, &key, &value)) {
        blyi_map_remove(&sim->granules, key);
        blyi_sim_drop_granule(value);
    }
    BLYI_LIST_FOR(node, &sim->lanes)
    {
        BLYI_CONTAINER(node, struct blyi_lane, link)->ended = true;
    }
    sim->gone = true;
    blyi_ended_add();
}

void blyi_sim_fail(struct blyi_sim *sim, enum blyi_sim_op op, uint64_t nth)
{
    sim->fail[op] = nth;
    sim->failed = false;
}

bool blyi_sim_failed(const struct blyi_sim *sim)
{
    return sim->failed;
}
