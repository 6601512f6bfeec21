/* SPDX-License-Identifier: Apache-2.0
 *
 * stock.c - no pool: each block is memory of its own from the driver, in whole pages.
 */
#include "base/host.h"
#include "replay/placer.h"

struct stock {
    struct blyi_placer_card *card;
    uint64_t *bytes; /* by block; 0: not there */
};

static void drop(void *state)
{
    struct stock *s = state;
    blyi_host_free(s->bytes);
    blyi_host_free(s);
}

static void *make(struct blyi_placer_card *card, uint32_t n_blocks)
{
    struct stock *s = blyi_host_calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->card = card;
    s->bytes = blyi_host_calloc((size_t)n_blocks + 1, sizeof(*s->bytes));
    if (s->bytes != NULL)
        return s;
    drop(s);
    return NULL;
}

static bly_status place(void *state, uint32_t block, uint64_t bytes, int32_t stream)
{
    struct stock *s = state;
    (void)stream;
    bytes = blyi_align_up(bytes, BLYI_REPLAY_PAGE);
    if (!blyi_placer_map(s->card, bytes, 1))
        return BLY_E_NO_MEMORY;
    s->bytes[block] = bytes;
    return BLY_OK;
}

static bly_status give(void *state, uint32_t block)
{
    struct stock *s = state;
    blyi_placer_unmap(s->card, s->bytes[block], 1);
    return BLY_OK;
}

static const struct blyi_placement placement = {"stock", make, place, give, NULL, drop};

static bly_status make_policy(const struct blyi_replay_setup *setup, void **state)
{
    return blyi_placer_make(&placement, setup, state);
}

const struct blyi_replay_policy blyi_replay_stock = {
    .name = "stock",
    .about = "each block from the driver, in pages of its own",
    .make = make_policy,
    .step = blyi_placer_step,
    .figures = blyi_placer_figures,
    .drop = blyi_placer_drop,
};
