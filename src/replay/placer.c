/* SPDX-License-Identifier: Apache-2.0
 *
 * placer.c - see placer.h. Pending are blocks that were freed while other streams used them, in the
 * order of their frees.
 */
#include "replay/placer.h"

#include "base/fail.h"
#include "base/host.h"

#define NONE UINT32_MAX

struct pending {
    uint32_t previous, next; /* in its list */
    bool used, waits, told;
    size_t due; /* event; of those that are not told */
};

struct list {
    uint32_t first, last;
};

struct placer {
    const struct blyi_placement *placement;
    void *state;
    struct blyi_placer_card card;
    struct pending *blocks;
    struct list lists[2]; /* pending; [1]: until told */
    uint64_t pad;
    uint32_t lag;
};

bool blyi_placer_map(struct blyi_placer_card *card, uint64_t bytes, uint64_t handles)
{
    struct blyi_replay_figures *f = &card->figures;
    if (bytes > card->capacity - f->reserved)
        return false;
    f->reserved += bytes;
    f->peak_reserved = f->reserved > f->peak_reserved ? f->reserved : f->peak_reserved;
    f->ranges_mapped++;
    f->handles_mapped += handles;
    f->pages_mapped += bytes / BLYI_REPLAY_PAGE;
    return true;
}

void blyi_placer_unmap(struct blyi_placer_card *card, uint64_t bytes, uint64_t handles)
{
    struct blyi_replay_figures *f = &card->figures;
    f->reserved -= bytes;
    f->ranges_unmapped++;
    f->handles_unmapped += handles;
    f->pages_unmapped += bytes / BLYI_REPLAY_PAGE;
}

bly_status blyi_placer_make(const struct blyi_placement *placement,
                            const struct blyi_replay_setup *setup, void **state)
{
    uint32_t n = setup->trace->n_blocks;
    struct placer *placer = blyi_host_calloc(1, sizeof(*placer));
    if (placer == NULL)
        goto no_memory;
    *placer = (struct placer){.placement = placement,
                              .card = {.capacity = setup->capacity},
                              .lists = {{NONE, NONE}, {NONE, NONE}},
                              .pad = setup->pad,
                              .lag = setup->lag};
    placer->blocks = blyi_host_calloc((size_t)n + 1, sizeof(*placer->blocks));
    if (placer->blocks == NULL)
        goto no_memory;
    placer->state = placement->make(&placer->card, n);
    if (placer->state == NULL)
        goto no_memory;
    *state = placer;
    return BLY_OK;
no_memory:
    if (placer != NULL)
        blyi_host_free(placer->blocks);
    blyi_host_free(placer);
    return blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory to replay %u blocks", placement->name,
                     n);
}

void blyi_placer_drop(void *state)
{
    struct placer *placer = state;
    placer->placement->drop(placer->state);
    blyi_host_free(placer->blocks);
    blyi_host_free(placer);
}

void blyi_placer_figures(const void *state, struct blyi_replay_figures *figures)
{
    const struct placer *placer = state;
    *figures = placer->card.figures;
}

/* ---- pending blocks ---------------------------------------------------------------------- */

static void put_off(struct placer *placer, uint32_t block, bool told, size_t due)
{
    struct list *list = &placer->lists[told];
    placer->blocks[block] = (struct pending){list->last, NONE, true, true, told, due};
    if (list->last == NONE)
        list->first = block;
    else
        placer->blocks[list->last].next = block;
    list->last = block;
}

static bly_status settle(struct placer *placer, uint32_t block)
{
    struct pending *p = &placer->blocks[block];
    struct list *list = &placer->lists[p->told];
    if (!p->waits)
        return BLY_OK;
    p->waits = false;
    *(p->previous == NONE ? &list->first : &placer->blocks[p->previous].next) = p->next;
    *(p->next == NONE ? &list->last : &placer->blocks[p->next].previous) = p->previous;
    return placer->placement->give(placer->state, block);
}

static bly_status settle_all(struct placer *placer)
{
    bly_status status = BLY_OK;
    for (int told = 0; told < 2; told++)
        while (status == BLY_OK && placer->lists[told].first != NONE)
            status = settle(placer, placer->lists[told].first);
    return status;
}

/* The lag is the same for all, so that what is due stands first. */
static bly_status settle_due(struct placer *placer, size_t now)
{
    bly_status status = BLY_OK;
    const struct list *list = &placer->lists[0];
    while (status == BLY_OK && list->first != NONE && placer->blocks[list->first].due <= now)
        status = settle(placer, list->first);
    return status;
}

/* ---- events ------------------------------------------------------------------------------ */

static bly_status on_alloc(struct placer *placer, const struct blyi_replay_event *event)
{
    const struct blyi_placement *placement = placer->placement;
    uint64_t bytes = event->bytes + placer->pad;
    bly_status status = placement->place(placer->state, event->block, bytes, event->stream);
    if (status != BLY_E_NO_MEMORY || placement->flush == NULL)
        return status;
    placer->card.figures.flushes++;
    status = settle_all(placer);
    if (status == BLY_OK)
        status = placement->flush(placer->state);
    if (status == BLY_OK)
        status = placement->place(placer->state, event->block, bytes, event->stream);
    return status;
}

static bly_status on_free(struct placer *placer, size_t now, const struct blyi_replay_event *event)
{
    if (!placer->blocks[event->block].used)
        return placer->placement->give(placer->state, event->block);
    put_off(placer, event->block, event->told, now + placer->lag);
    return BLY_OK;
}

bly_status blyi_placer_step(void *state, size_t now, const struct blyi_replay_event *event)
{
    struct placer *placer = state;
    bly_status status = settle_due(placer, now);
    if (status != BLY_OK)
        return status;
    switch (event->op) {
    case BLYI_REPLAY_ALLOC:
        return on_alloc(placer, event);
    case BLYI_REPLAY_FREE:
        return on_free(placer, now, event);
    case BLYI_REPLAY_USE:
        placer->blocks[event->block].used = true;
        return BLY_OK;
    case BLYI_REPLAY_DONE:
        return settle(placer, event->block);
    case BLYI_REPLAY_SYNC:
        return settle_all(placer);
    default:
        return BLY_OK;
    }
}
