/* SPDX-License-Identifier: Apache-2.0
 *
 * pinned_look.c - which pinned blocks there are, and what they sum up to.
 */
#include "npu/pinned_inside.h"
#include "npu/live_pages.h"
#include "npu/runtime.h"

struct blyi_pinned *blyi_pinned_find_locked(uintptr_t address)
{
    struct blyi_pinned *block = blyi_pinned_of(blyi_tree_floor(&blyi_pinned.blocks, address));
    return block && address - blyi_pinned_start(block) < block->backed ? block : NULL;
}

static void describe(const struct blyi_pinned *block, struct blyi_pinned_block *out)
{
    *out = (struct blyi_pinned_block){.address = blyi_pinned_start(block),
                                      .asked = block->asked,
                                      .rounded = block->rounded,
                                      .backed = block->backed,
                                      .site = block->site,
                                      .module = block->module,
                                      .time_ns = block->time_ns,
                                      .serial = block->serial};
}

void blyi_pinned_walk(void (*fn)(void *arg, const struct blyi_pinned_block *block), void *arg)
{
    blyi_lock_take(&blyi_pinned.lock);
    for (struct blyi_tree_node *node = blyi_tree_first(&blyi_pinned.blocks); node;
         node = blyi_tree_next(node)) {
        struct blyi_pinned_block block;
        describe(blyi_pinned_of(node), &block);
        fn(arg, &block);
    }
    blyi_lock_drop(&blyi_pinned.lock);
}

bool blyi_pinned_find(const void *address, struct blyi_pinned_block *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&blyi_pinned.lock);
    const struct blyi_pinned *block = blyi_pinned_find_locked((uintptr_t)address);
    bool live = block && !block->dying;
    if (live)
        describe(block, out);
    blyi_lock_drop(&blyi_pinned.lock);
    return live;
}

bool blyi_pinned_freed(uintptr_t address, struct blyi_freed_block *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&blyi_pinned.lock);
    const struct blyi_freed_block *freed = blyi_freed_find(&blyi_pinned.freed, address);
    if (freed)
        *out = *freed;
    blyi_lock_drop(&blyi_pinned.lock);
    return freed != NULL;
}

void blyi_pinned_figures(struct blyi_pinned_figures *out)
{
    *out = (struct blyi_pinned_figures){0};
    if (blyi_runtime_is_forked())
        return;
    uint64_t limit = blyi_pinned_limit();
    blyi_lock_take(&blyi_pinned.lock);
    *out = (struct blyi_pinned_figures){.live = blyi_pinned.live,
                                        .asked = blyi_pinned.asked,
                                        .peak = blyi_pinned.peak,
                                        .blocks = blyi_pinned.n_live,
                                        .locked = blyi_pinned.locked,
                                        .limit = limit};
    blyi_lock_drop(&blyi_pinned.lock);
}

/* Blocks do not overlap, sums agree, and every page of the window is free, in a block, or
 * aside. A test calls it while nothing is being allocated. */
bool blyi_pinned_audit(void)
{
    uint64_t live = 0, asked = 0, locked = 0, aside = 0, end = 0, dying = 0;
    bool sound = true;
    blyi_lock_take(&blyi_pinned.lock);
    for (struct blyi_tree_node *node = blyi_tree_first(&blyi_pinned.blocks); node;
         node = blyi_tree_next(node)) {
        const struct blyi_pinned *block = blyi_pinned_of(node);
        sound = sound && node->key >= end && (!block->dying || block->n_holds > 0);
        end = node->key + block->backed;
        live += block->backed;
        asked += block->asked;
        locked += block->locked ? block->backed : 0;
        dying += block->dying ? block->backed : 0;
    }
    for (const struct blyi_pinned *block = blyi_pinned.aside; block; block = block->next)
        aside += block->backed;
    if (blyi_pinned.window)
        sound =
            sound && blyi_tree_audit(&blyi_pinned.blocks) &&
            blyi_ranges_audit(&blyi_pinned.free_pages) &&
            blyi_pinned.free_pages.total * PINNED_PAGE + live + aside == blyi_pinned.window->size &&
            blyi_live_pages_count(blyi_pinned.window) * PINNED_PAGE == live - dying;
    sound = sound && live == blyi_pinned.live &&
            live + blyi_pinned.elsewhere == blyi_pinned.booked && asked == blyi_pinned.asked &&
            locked == blyi_pinned.locked && blyi_pinned.n_live == blyi_pinned.blocks.count;
    blyi_lock_drop(&blyi_pinned.lock);
    return sound;
}
