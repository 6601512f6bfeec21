/* SPDX-License-Identifier: Apache-2.0
 *
 * sim_inside.h - what sim.c, the device, and sim_tell.c, those who simulate, share.
 */
#ifndef BLYI_SIM_INSIDE_H
#define BLYI_SIM_INSIDE_H

#include "backend/sim.h"
#include "base/list.h"
#include "base/map.h"

#define BLYI_SIM_GRANULE (2 * MiB)

/* Work of a lane that uses a granule. */
struct blyi_sim_use_of {
    const struct blyi_lane *lane;
    blyi_mark mark;
    struct blyi_sim_use_of *next;
};

struct blyi_sim_handle {
    uint64_t size;
    uintptr_t address; /* 0: mapped nowhere */
};

struct blyi_sim_granule {
    struct blyi_sim_handle *handle;
    struct blyi_sim_use_of *uses;
};

struct blyi_lane {
    struct blyi_list link;
    void *stream;
    blyi_mark issued, ended_to; /* BLYI_SIM_HELD: positions; else the times of queueing */
    uint32_t holds;
    bool ended, stuck, held;
};

struct blyi_sim {
    struct blyi_backend backend;
    uint64_t total, lag;
    blyi_mark clock;          /* from 1 */
    uintptr_t next;           /* address that was never reserved */
    struct blyi_map granules; /* mapped ones, by number */
    struct blyi_list lanes;
    struct blyi_sim_figures is;
    uint64_t fail[BLYI_SIM_OPS];
    bool failed, gone;
    uintptr_t map_end, unmap_end; /* where the last call left off */
};

/* Zeroed host memory, whatever fails. */
void *blyi_sim_need(size_t size);
/* The live stream of that name, made when there is none. */
struct blyi_lane *blyi_sim_lane(struct blyi_sim *sim, void *stream);
bool blyi_sim_lane_passed(const struct blyi_sim *sim, const struct blyi_lane *lane, blyi_mark mark);
void blyi_sim_drop_granule(struct blyi_sim_granule *granule);

#endif
