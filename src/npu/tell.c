/* SPDX-License-Identifier: Apache-2.0
 *
 * tell.c - each thing as the probe told it that was emitted when it was made.
 */
#include "npu/tell.h"

#include "npu/card.h"
#include "npu/mem_block.h"
#include "npu/pinned.h"
#include "npu/runtime.h"
#include "npu/vmm_inside.h"

static void tell(const struct blyi_sink *to, const struct blyi_probe *probe)
{
    to->probe(to->arg, probe);
}

static void tell_physical(const struct blyi_sink *to, int card, const struct blyi_physical *p)
{
    if (p->of_pool) /* whose blocks the pool tells */
        return;
    tell(to, &(struct blyi_probe){.kind = BLYI_PROBE_PHYS_CREATE,
                                  .card = card,
                                  .address = (uintptr_t)p->id,
                                  .size = p->size,
                                  .asked = p->asked,
                                  .rounded = p->size,
                                  .backed = p->size,
                                  .page_kind = p->page_kind,
                                  .site = p->site,
                                  .time_ns = p->time_ns});
}

static void tell_card_locked(const struct blyi_sink *to, const struct blyi_card *card)
{
    tell(to, &(struct blyi_probe){.kind = BLYI_PROBE_CARD_OPEN,
                                  .card = card->id,
                                  .size = card->total,
                                  .aux = (int64_t)card->model.overhead});
    for (struct blyi_tree_node *node = blyi_tree_first(&card->blocks); node;
         node = blyi_tree_next(node)) {
        const struct blyi_block *block = blyi_block_of(node);
        tell(to, &(struct blyi_probe){.kind = BLYI_PROBE_ALLOC,
                                      .card = card->id,
                                      .address = blyi_block_start(block),
                                      .size = block->asked,
                                      .asked = block->asked,
                                      .rounded = block->rounded,
                                      .backed = block->backed,
                                      .page_kind = block->page_kind,
                                      .site = block->site,
                                      .time_ns = block->time_ns});
    }
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (!p->of_pool) /* pools tell their blocks */
            tell_physical(to, card->id, p);
    }
}

static void tell_pinned(void *arg, const struct blyi_pinned_block *block)
{
    tell(arg, &(struct blyi_probe){.kind = BLYI_PROBE_HOST_ALLOC,
                                   .card = -1,
                                   .address = block->address,
                                   .size = block->asked,
                                   .asked = block->asked,
                                   .rounded = block->rounded,
                                   .backed = block->backed,
                                   .site = block->site,
                                   .time_ns = block->time_ns});
}

static void tell_all(const struct blyi_sink *to)
{
    if (blyi_runtime_is_forked())
        return;
    for (int id = 0; id < BLYI_CARD_MAX; id++) {
        struct blyi_card *card = blyi_card_get(id);
        if (card == NULL)
            continue;
        blyi_card_lock(card);
        tell_card_locked(to, card);
        blyi_card_unlock(card);
    }
    blyi_lock_take(&blyi_vmm.lock);
    BLYI_LIST_FOR(node, &blyi_vmm.host)
    {
        tell_physical(to, -1, BLYI_CONTAINER(node, struct blyi_physical, link));
    }
    blyi_lock_drop(&blyi_vmm.lock);
    struct blyi_sink copy = *to;
    blyi_pinned_walk(tell_pinned, &copy);
}

void blyi_tell_start(void)
{
    static struct blyi_teller teller = {.tell = tell_all};
    blyi_probe_add_teller(&teller);
}
