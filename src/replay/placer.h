/* SPDX-License-Identifier: Apache-2.0
 *
 * placer.h - what the simulated allocators share: the order of frees, and the driver's books.
 *
 * A placement knows where blocks lie. The front end gives it a block back only when its uses on
 * other streams are over, and when it has no room waits for all work, has it flush and asks again.
 */
#ifndef BLYI_REPLAY_PLACER_H
#define BLYI_REPLAY_PLACER_H

#include "replay/replay.h"

#define BLYI_PLACER_QUANTUM 512u

/* The driver: capacity and counts. */
struct blyi_placer_card {
    uint64_t capacity;
    struct blyi_replay_figures figures;
};
/* One range of `bytes` (a multiple of pages) in so many handles. False: more than the card has. */
bool blyi_placer_map(struct blyi_placer_card *card, uint64_t bytes, uint64_t handles);
void blyi_placer_unmap(struct blyi_placer_card *card, uint64_t bytes, uint64_t handles);

struct blyi_placement {
    const char *name;
    /* NULL: no host memory. */
    void *(*make)(struct blyi_placer_card *card, uint32_t n_blocks);
    /* E_NO_MEMORY: the card has no room. E_HOST_MEMORY. `bytes` has the pad. */
    bly_status (*place)(void *state, uint32_t block, uint64_t bytes, int32_t stream);
    bly_status (*give)(void *state, uint32_t block);
    /* Unmaps what is idle; NULL: nothing is kept idle, and the driver does not wait. */
    bly_status (*flush)(void *state);
    void (*drop)(void *state);
};

bly_status blyi_placer_make(const struct blyi_placement *placement,
                            const struct blyi_replay_setup *setup, void **state);
bly_status blyi_placer_step(void *state, size_t now, const struct blyi_replay_event *event);
void blyi_placer_figures(const void *state, struct blyi_replay_figures *figures);
void blyi_placer_drop(void *state);

#endif
