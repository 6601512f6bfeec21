/* SPDX-License-Identifier: Apache-2.0
 *
 * span.c - one range of addresses, as few runs of frames as can be had, one mmap a run; back
 * with one mmap for the whole range.
 */
#include "npu/span.h"
#include "npu/card.h"
#include "npu/stock.h"
#include "base/assert.h"
#include "base/compiler.h"

#define LOW_FRAMES ((uint32_t)(4 * GiB / BLYI_FRAME_SIZE))

bool blyi_run_take(struct blyi_card *card, enum blyi_short kind, uint32_t left,
                   struct blyi_run *run)
{
    run->count = left;
    switch (kind) {
    case BLYI_SHORT_GIANT:
        run->count = BLYI_GIANT_FRAMES;
        return blyi_stock_take_run(card->stock, BLYI_GIANT_FRAMES, BLYI_GIANT_FRAMES, &run->first);
    case BLYI_SHORT_RUN:
        return blyi_stock_take_run(card->stock, left, 1, &run->first);
    case BLYI_SHORT_GIANT_RUN:
        return blyi_stock_take_run(card->stock, left, BLYI_GIANT_FRAMES, &run->first);
    case BLYI_SHORT_LOW:
        return blyi_stock_take_below(card->stock, left, LOW_FRAMES, &run->first);
    case BLYI_SHORT_NORMAL:
    case BLYI_SHORT_HUGE:
        break;
    }
    run->count = blyi_stock_take(card->stock, left, &run->first);
    return run->count > 0;
}

void blyi_run_give(struct blyi_card *card, struct blyi_run run)
{
    blyi_stock_give(card->stock, run.first, run.count);
}

static bly_status map_run(struct blyi_card *card, struct blyi_run run, uintptr_t address,
                          uint64_t flags)
{
    bool committed;
    uint32_t same = blyi_backing_span(card->backing, run.first, run.count, &committed);
    if (committed)
        flags |= BLYI_ENTRY_COMMITTED;
    bly_status status = blyi_window_map(card->window, address, blyi_backing_fd(card->backing),
                                        run.first, run.count, flags);
    if (status != BLY_OK)
        return status;
    for (uint32_t at = same; at < run.count; at += same) { /* the flag changes within the run */
        uintptr_t start = address + at * BLYI_GRANULE;
        same = blyi_backing_span(card->backing, run.first + at, run.count - at, &committed);
        blyi_window_set_flags(card->window, start, same, committed ? BLYI_ENTRY_COMMITTED : 0,
                              committed ? 0 : BLYI_ENTRY_COMMITTED);
    }
    return BLY_OK;
}

static void give_run(void *arg, uint32_t first, uint32_t count)
{
    blyi_run_give(arg, (struct blyi_run){first, count});
}

/* The frames go back once nothing leads to them any more: another process may take them at once. */
static void unmap_and_give(struct blyi_card *card, uintptr_t address, uint32_t n)
{
    if (blyi_window_unmap_each(card->window, address, n, give_run, card))
        blyi_window_give(card->window, address, n);
    blyi_backing_settle(card->backing);
}

bly_status blyi_span_take(struct blyi_card *card, const struct blyi_span_request *request,
                          uintptr_t *address, bool *short_of_frames)
{
    *short_of_frames = blyi_stock_free(card->stock) < request->n;
    if (*short_of_frames)
        return BLY_E_NO_MEMORY;
    bool giant = request->kind == BLYI_SHORT_GIANT || request->kind == BLYI_SHORT_GIANT_RUN;
    uintptr_t base;
    bly_status status =
        blyi_window_take(card->window, request->n, giant ? BLYI_GIANT_FRAMES : 1, &base);
    if (status != BLY_OK)
        return status;

    struct blyi_run run = {0, 0},
                    next = {0, 0}; /* `run` waits for a neighbour before it is mapped */
    uint32_t mapped = 0, taken = 0;
    while (taken < request->n) {
        if (!blyi_run_take(card, request->kind, request->n - taken, &next)) {
            *short_of_frames = true;
            status = BLY_E_NO_MEMORY;
            goto give;
        }
        taken += next.count;
        if (run.count > 0 && run.first + run.count == next.first) {
            run.count += next.count;
            continue;
        }
        if (run.count > 0) {
            status = map_run(card, run, base + mapped * BLYI_GRANULE, request->flags);
            if (status != BLY_OK)
                goto give_next;
            mapped += run.count;
        }
        run = next;
    }
    status = map_run(card, run, base + mapped * BLYI_GRANULE, request->flags);
    if (status != BLY_OK)
        goto give;
    *address = base;
    return BLY_OK;

give_next:
    blyi_run_give(card, next);
give:
    if (run.count > 0)
        blyi_run_give(card, run);
    if (mapped > 0)
        unmap_and_give(card, base, request->n);
    else
        blyi_window_give(card->window, base, request->n);
    return status;
}

void blyi_span_give(struct blyi_card *card, uintptr_t address, uint32_t n)
{
    unmap_and_give(card, address, n);
}
