/* SPDX-License-Identifier: Apache-2.0
 *
 * firstfit.c - one arena for everything, lowest address first, whatever stream a block was on: what
 * a single range could do if order between streams cost nothing. It grows by whole pages and gives
 * nothing back.
 */
#include "base/fail.h"
#include "base/host.h"
#include "replay/holes.h"
#include "replay/placer.h"

#define RANGE (2 * BLYI_REPLAY_UNBOUNDED)

struct block {
    uint64_t address, size;
};

struct arena {
    struct blyi_placer_card *card;
    struct blyi_holes holes;
    uint64_t end; /* of what is mapped */
    struct block *blocks;
};

static void drop(void *state)
{
    struct arena *arena = state;
    blyi_holes_fini(&arena->holes);
    blyi_host_free(arena->blocks);
    blyi_host_free(arena);
}

static void *make(struct blyi_placer_card *card, uint32_t n_blocks)
{
    struct arena *arena = blyi_host_calloc(1, sizeof(*arena));
    if (arena == NULL)
        return NULL;
    arena->card = card;
    blyi_holes_init(&arena->holes);
    arena->blocks = blyi_host_calloc((size_t)n_blocks + 1, sizeof(*arena->blocks));
    if (arena->blocks != NULL && blyi_holes_give(&arena->holes, 0, RANGE))
        return arena;
    drop(arena);
    return NULL;
}

static bly_status place(void *state, uint32_t number, uint64_t bytes, int32_t stream)
{
    struct arena *arena = state;
    struct block block = {.size = blyi_align_up(bytes, BLYI_PLACER_QUANTUM)};
    (void)stream;
    if (!blyi_holes_find(&arena->holes, block.size, &block.address))
        return BLY_E_NO_MEMORY;
    uint64_t end = blyi_align_up(block.address + block.size, BLYI_REPLAY_PAGE);
    if (end > arena->end) {
        if (!blyi_placer_map(arena->card, end - arena->end, 1))
            return BLY_E_NO_MEMORY;
        arena->end = end;
    }
    blyi_holes_take(&arena->holes, block.address, block.size);
    arena->blocks[number] = block;
    return BLY_OK;
}

static bly_status give(void *state, uint32_t number)
{
    struct arena *arena = state;
    const struct block *block = &arena->blocks[number];
    if (!blyi_holes_give(&arena->holes, block->address, block->size))
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the holes of a replay");
    return BLY_OK;
}

static const struct blyi_placement placement = {"firstfit", make, place, give, NULL, drop};

static bly_status make_policy(const struct blyi_replay_setup *setup, void **state)
{
    return blyi_placer_make(&placement, setup, state);
}

const struct blyi_replay_policy blyi_replay_firstfit = {
    .name = "firstfit",
    .about = "one arena, lowest address first, blind to the order between streams",
    .make = make_policy,
    .step = blyi_placer_step,
    .figures = blyi_placer_figures,
    .drop = blyi_placer_drop,
};
