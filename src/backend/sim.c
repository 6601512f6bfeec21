/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.c - the simulated device.
 */
#include "backend/sim_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/assert.h"
#include "base/compiler.h"
#include "base/ended.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/list.h"
#include "base/map.h"

#define FIRST_ADDR ((uintptr_t)1 << 44)
#define LAST_ADDR  ((uintptr_t)1 << 47)

static struct blyi_sim *sim_of(struct blyi_backend *backend)
{
    return BLYI_CONTAINER(backend, struct blyi_sim, backend);
}

/* For what a device needs no memory of the host for: one failure, made by a test, is no lack. */
void *blyi_sim_need(size_t size)
{
    void *memory = blyi_host_calloc(1, size);
    if (memory == NULL)
        memory = blyi_host_calloc(1, size);
    bly_check(memory != NULL);
    return memory;
}

static bool is_hit(struct blyi_sim *sim, enum blyi_sim_op op)
{
    if (sim->fail[op] == 0 || --sim->fail[op] > 0)
        return false;
    sim->failed = true;
    return true;
}

static void describe(struct blyi_backend *backend, struct blyi_backend_info *info)
{
    const struct blyi_sim *sim = sim_of(backend);
    *info = (struct blyi_backend_info){.name = "sim",
                                       .device = 0,
                                       .granule = BLYI_SIM_GRANULE,
                                       .total = sim->total,
                                       .free = sim->total - sim->is.held};
}

void blyi_sim_drop_granule(struct blyi_sim_granule *g)
{
    while (g->uses != NULL) {
        struct blyi_sim_use_of *use = g->uses;
        g->uses = use->next;
        blyi_host_free(use);
    }
    blyi_host_free(g);
}

static void close_sim(struct blyi_backend *backend)
{
    struct blyi_sim *sim = sim_of(backend);
    bly_check_msg(sim->gone || (sim->is.held == 0 && sim->is.mapped == 0 && sim->is.reserved == 0),
                  "left behind: %" PRIu64 " held, %" PRIu64 " mapped, %" PRIu64 " reserved",
                  sim->is.held, sim->is.mapped, sim->is.reserved);
    BLYI_LIST_FOR_SAFE(node, &sim->lanes)
    {
        struct blyi_lane *lane = BLYI_CONTAINER(node, struct blyi_lane, link);
        bly_check_msg(lane->holds == 0, "%" PRIu32 " holds of a stream are left", lane->holds);
        blyi_host_free(lane);
    }
    blyi_map_fini(&sim->granules);
    blyi_host_free(sim);
}

static bly_status alive(struct blyi_backend *backend)
{
    return sim_of(backend)->gone ? blyi_fail(BLY_E_STATE, "the simulated device was reset")
                                 : BLY_OK;
}

static bly_status create(struct blyi_backend *backend, uint64_t size, uint64_t *handle)
{
    struct blyi_sim *sim = sim_of(backend);
    bly_check(size > 0 && size % BLYI_SIM_GRANULE == 0);
    if (is_hit(sim, BLYI_SIM_CREATE) || size > sim->total || sim->is.held > sim->total - size)
        return BLY_E_NO_MEMORY;
    struct blyi_sim_handle *made = blyi_host_calloc(1, sizeof *made);
    if (made == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to simulate a handle");
    made->size = size;
    sim->is.held += size;
    sim->is.creates++;
    if (sim->is.held > sim->is.held_peak)
        sim->is.held_peak = sim->is.held;
    *handle = (uintptr_t)made;
    return BLY_OK;
}

static void release(struct blyi_backend *backend, uint64_t name)
{
    struct blyi_sim *sim = sim_of(backend);
    struct blyi_sim_handle *handle = (struct blyi_sim_handle *)(uintptr_t)name;
    if (!sim->gone)
        bly_check_msg(handle->address == 0, "a handle mapped at 0x%" PRIxPTR " is released",
                      handle->address);
    sim->is.held -= handle->size;
    sim->is.releases++;
    blyi_host_free(handle);
}

static uint64_t relieve(struct blyi_backend *backend, uint64_t bytes)
{
    (void)backend;
    (void)bytes;
    return 0;
}

static void shortage(struct blyi_backend *backend, uint64_t size)
{
    const struct blyi_sim *sim = sim_of(backend);
    (void)size;
    blyi_fail_append("; simulated card: %" PRIu64 " B free of %" PRIu64 " B",
                     sim->total - sim->is.held, sim->total);
}

static bly_status reserve(struct blyi_backend *backend, uint64_t size, uintptr_t *address)
{
    struct blyi_sim *sim = sim_of(backend);
    bly_check(size > 0 && size % BLYI_SIM_GRANULE == 0);
    if (is_hit(sim, BLYI_SIM_RESERVE) || size > LAST_ADDR - sim->next)
        return blyi_fail(BLY_E_NO_MEMORY, "no addresses are free");
    *address = sim->next;
    sim->next += size + BLYI_SIM_GRANULE;
    sim->is.reserved += size;
    return BLY_OK;
}

static void unreserve(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct blyi_sim *sim = sim_of(backend);
    (void)address;
    bly_check(sim->is.reserved >= size);
    sim->is.reserved -= size;
}

static bly_status map(struct blyi_backend *backend, uintptr_t address, uint64_t size, uint64_t name)
{
    struct blyi_sim *sim = sim_of(backend);
    struct blyi_sim_handle *handle = (struct blyi_sim_handle *)(uintptr_t)name;
    bly_check_msg(handle->address == 0 && handle->size == size && address % BLYI_SIM_GRANULE == 0,
                  "a handle of %" PRIu64 " at 0x%" PRIxPTR " is mapped at 0x%" PRIxPTR,
                  handle->size, handle->address, address);
    if (is_hit(sim, BLYI_SIM_MAP))
        return blyi_fail(BLY_E_SYSTEM, "no more mappings are allowed");
    for (uintptr_t at = address; at < address + size; at += BLYI_SIM_GRANULE) {
        bly_check_msg(blyi_map_get(&sim->granules, at / BLYI_SIM_GRANULE) == NULL,
                      "0x%" PRIxPTR " is mapped already", at);
        struct blyi_sim_granule *g = blyi_sim_need(sizeof *g);
        g->handle = handle;
        if (blyi_map_put(&sim->granules, at / BLYI_SIM_GRANULE, g) != BLY_OK)
            bly_check(blyi_map_put(&sim->granules, at / BLYI_SIM_GRANULE, g) == BLY_OK);
    }
    handle->address = address;
    sim->is.maps++;
    sim->is.map_bytes += size;
    sim->is.map_runs += sim->map_end != address;
    sim->map_end = address + size;
    sim->unmap_end = 0;
    sim->is.mapped += size;
    if (sim->is.mapped > sim->is.mapped_peak)
        sim->is.mapped_peak = sim->is.mapped;
    return BLY_OK;
}

bool blyi_sim_lane_passed(const struct blyi_sim *sim, const struct blyi_lane *lane, blyi_mark mark)
{
    return mark <= lane->ended_to ||
           (sim->lag != BLYI_SIM_HELD && !lane->held && sim->clock - mark >= sim->lag);
}

static void unmap(struct blyi_backend *backend, uintptr_t address, uint64_t size)
{
    struct blyi_sim *sim = sim_of(backend);
    if (sim->gone)
        return;
    for (uintptr_t at = address; at < address + size; at += BLYI_SIM_GRANULE) {
        struct blyi_sim_granule *g = blyi_map_remove(&sim->granules, at / BLYI_SIM_GRANULE);
        bly_check_msg(g != NULL && g->handle->address == address && g->handle->size == size,
                      "0x%" PRIxPTR " is not mapped so", at);
        for (const struct blyi_sim_use_of *use = g->uses; use != NULL; use = use->next)
            bly_check_msg(blyi_sim_lane_passed(sim, use->lane, use->mark),
                          "0x%" PRIxPTR " is unmapped, and a stream uses it", at);
        if (at + BLYI_SIM_GRANULE == address + size)
            g->handle->address = 0;
        blyi_sim_drop_granule(g);
    }
    sim->is.unmaps++;
    sim->is.unmap_bytes += size;
    sim->is.unmap_runs += sim->unmap_end != address + size;
    sim->unmap_end = address;
    sim->map_end = 0;
    sim->is.mapped -= size;
}

struct blyi_lane *blyi_sim_lane(struct blyi_sim *sim, void *stream)
{
    BLYI_LIST_FOR(node, &sim->lanes)
    {
        struct blyi_lane *lane = BLYI_CONTAINER(node, struct blyi_lane, link);
        if (lane->stream == stream && !lane->ended)
            return lane;
    }
    struct blyi_lane *lane = blyi_sim_need(sizeof *lane);
    lane->stream = stream;
    blyi_list_push_back(&sim->lanes, &lane->link);
    return lane;
}

static bly_status hold(struct blyi_backend *backend, void *stream, struct blyi_lane **out)
{
    struct blyi_sim *sim = sim_of(backend);
    if (is_hit(sim, BLYI_SIM_HOLD))
        return blyi_fail(BLY_E_HANDLE, "%p is no stream", stream);
    *out = blyi_sim_lane(sim, stream);
    (*out)->holds++;
    return BLY_OK;
}

static void let_go(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    bly_check(lane->holds > 0);
    lane->holds--;
}

static const blyi_mark *marks(struct blyi_backend *backend, struct blyi_lane *lane)
{
    const struct blyi_sim *sim = sim_of(backend);
    return sim->lag == BLYI_SIM_HELD ? &lane->issued : &sim->clock;
}

static bool passed(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at)
{
    return blyi_sim_lane_passed(sim_of(backend), lane, at);
}

static bly_status wait_mark(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at,
                            uint64_t limit_ns)
{
    struct blyi_sim *sim = sim_of(backend);
    (void)limit_ns; /* nobody else would make it pass */
    if (blyi_sim_lane_passed(sim, lane, at))
        return BLY_OK;
    if (lane->stuck && limit_ns > 0)
        return blyi_fail(BLY_E_TIMEOUT, "the work of a simulated stream does not end");
    lane->ended_to = at;
    sim->is.waits++;
    return BLY_OK;
}

static bly_status order(struct blyi_backend *backend, struct blyi_lane *lane,
                        struct blyi_lane *other, blyi_mark at)
{
    (void)backend;
    (void)lane;
    (void)other;
    (void)at;
    return BLY_OK;
}

static void awaited(struct blyi_backend *backend, struct blyi_lane *lane, blyi_mark at, char *text,
                    size_t size)
{
    (void)backend;
    (void)lane;
    snprintf(text, size, "moment %" PRIu64, at);
}

static bool knows(struct blyi_backend *backend, struct blyi_lane *lane, struct blyi_lane *other,
                  blyi_mark at)
{
    return lane == other || blyi_sim_lane_passed(sim_of(backend), other, at);
}

static uint32_t number(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    (void)lane;
    return 0;
}

static bool ended(struct blyi_backend *backend, struct blyi_lane *lane)
{
    (void)backend;
    return lane->ended;
}

static void cells(struct blyi_backend *backend, struct blyi_cells *out)
{
    (void)backend;
    *out = (struct blyi_cells){NULL, NULL, NULL};
}

static bly_status pin(struct blyi_backend *backend, uint64_t size, void **address)
{
    (void)backend;
    void *made = blyi_host_alloc(size);
    if (made == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to pin");
    *address = made;
    return BLY_OK;
}

static void unpin(struct blyi_backend *backend, void *address, uint64_t size)
{
    (void)backend;
    (void)size;
    blyi_host_free(address);
}

static const struct blyi_backend_ops sim_ops = {
    .describe = describe,
    .close = close_sim,
    .alive = alive,
    .create = create,
    .release = release,
    .relieve = relieve,
    .shortage = shortage,
    .reserve = reserve,
    .unreserve = unreserve,
    .map = map,
    .unmap = unmap,
    .hold = hold,
    .let_go = let_go,
    .marks = marks,
    .passed = passed,
    .wait = wait_mark,
    .order = order,
    .awaited = awaited,
    .knows = knows,
    .number = number,
    .ended = ended,
    .cells = cells,
    .pin = pin,
    .unpin = unpin,
};

bly_status blyi_sim_create(uint64_t total, uint64_t lag, struct blyi_sim **out)
{
    struct blyi_sim *sim = blyi_host_calloc(1, sizeof *sim);
    if (sim == NULL)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to simulate a card");
    sim->backend.ops = &sim_ops;
    sim->total = total;
    sim->lag = lag;
    sim->clock = 1;
    sim->next = FIRST_ADDR;
    blyi_list_init(&sim->lanes);
    blyi_map_init(&sim->granules);
    *out = sim;
    return BLY_OK;
}

struct blyi_backend *blyi_sim_backend(struct blyi_sim *sim)
{
    return &sim->backend;
}
