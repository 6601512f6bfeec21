/* SPDX-License-Identifier: Apache-2.0
 *
 * sim.h - a device that is no more than accounts: for tests of the pool, and for replays.
 *
 * Streams are numbers; their work is told by whoever simulates. Time is a count of events
 * (blyi_sim_tick). Work ends `lag` events after it was queued; with BLYI_SIM_HELD it ends when
 * blyi_sim_complete() says so. Waiting for work makes it end.
 *
 * The device stops the process when a pool does what it must not: maps over what is mapped, unmaps
 * what a stream may still use, releases what is mapped, forgets something at its end. [excl]
 */
#ifndef BLYI_SIM_H
#define BLYI_SIM_H

#include "backend/backend.h"

#define BLYI_SIM_HELD UINT64_MAX

struct blyi_sim;

enum blyi_sim_op { BLYI_SIM_CREATE, BLYI_SIM_RESERVE, BLYI_SIM_MAP, BLYI_SIM_HOLD, BLYI_SIM_OPS };

struct blyi_sim_figures {
    uint64_t held, held_peak; /* bytes of handles */
    uint64_t mapped, mapped_peak;
    uint64_t reserved;          /* bytes of addresses */
    uint64_t creates, releases; /* calls */
    uint64_t maps, unmaps;      /* handles */
    uint64_t map_bytes, unmap_bytes;
    uint64_t map_runs, unmap_runs; /* the same, calls in a row at neighbouring addresses as one */
    uint64_t waits;                /* for work that had not ended */
};

/* E_HOST_MEMORY. The pool that owns the backend closes it. */
bly_status blyi_sim_create(uint64_t total, uint64_t lag, struct blyi_sim **sim);
struct blyi_backend *blyi_sim_backend(struct blyi_sim *sim);
void blyi_sim_figures(const struct blyi_sim *sim, struct blyi_sim_figures *out);
void blyi_sim_set_total(struct blyi_sim *sim, uint64_t total);

/* A stream's name; `number` counts from 0. */
static inline void *blyi_sim_stream(uint32_t number)
{
    return (void *)(uintptr_t)(number + 1);
}

void blyi_sim_tick(struct blyi_sim *sim);
/* Work is queued on a stream that uses a range; the moment behind it. */
blyi_mark blyi_sim_use(struct blyi_sim *sim, void *stream, const void *address, uint64_t size);
bool blyi_sim_passed(struct blyi_sim *sim, void *stream, blyi_mark mark);
/* All work of the stream so far ends (BLYI_SIM_HELD too). */
void blyi_sim_complete(struct blyi_sim *sim, void *stream);
/* From now on only blyi_sim_complete() ends its work, and waits. */
void blyi_sim_hold(struct blyi_sim *sim, void *stream);
/* Its work does not end by being waited for: waits with a limit fail. */
void blyi_sim_stick(struct blyi_sim *sim, void *stream, bool stuck);
/* The stream is destroyed; its name may be used again. */
void blyi_sim_end(struct blyi_sim *sim, void *stream);
/* The device is reset: all of it is gone. */
void blyi_sim_reset(struct blyi_sim *sim);

/* The nth call from now fails (1: the next); 0: none does. */
void blyi_sim_fail(struct blyi_sim *sim, enum blyi_sim_op op, uint64_t nth);
bool blyi_sim_failed(const struct blyi_sim *sim);

#endif
