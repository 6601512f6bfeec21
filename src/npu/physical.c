/* SPDX-License-Identifier: Apache-2.0
 *
 * physical.c - handles of physical memory: references, their end, orphans, what is told of them.
 */
#include "npu/away.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/pinned.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/tally.h"
#include "npu/vmm_inside.h"
#include "base/assert.h"
#include "base/ended.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/stat.h"
#include <inttypes.h>

/* How many addresses reach it; also read under the card's lock alone, so relaxed */
static uint32_t n_mappings_of(const struct blyi_physical *p)
{
    return __atomic_load_n(&p->n_mappings, __ATOMIC_RELAXED);
}

void blyi_physical_account_locked(struct blyi_card *card, int64_t bytes)
{
    card->live = (uint64_t)((int64_t)card->live + bytes);
    if (card->live > card->peak)
        card->peak = card->live;
    uint64_t *live = &card->modules[BLYI_MODULE_APPLICATION].live;
    uint64_t *peak = &card->modules[BLYI_MODULE_APPLICATION].peak;
    *live = (uint64_t)((int64_t)*live + bytes);
    if (*live > *peak)
        *peak = *live;
}

void blyi_physical_tell(const struct blyi_physical *p, bool create, bool by_reset,
                        uint64_t began_ns)
{
    struct blyi_probe probe = {.kind = create ? BLYI_PROBE_PHYS_CREATE : BLYI_PROBE_PHYS_FREE,
                               .card = p->card ? p->card->id : -1,
                               .address = (uintptr_t)p->id,
                               .size = p->size,
                               .asked = p->asked,
                               .rounded = p->size,
                               .backed = p->size,
                               .page_kind = p->page_kind,
                               .site = p->site,
                               .aux = by_reset,
                               .began_ns = began_ns};
    if (p->of_pool)
        return;
    if (p->imported)
        probe.kind = BLYI_PROBE_IMPORT_CLOSE; /* share_physical.c tells the beginning */
    probe.other = p->imported ? (uintptr_t)p->id : 0;
    if (blyi_probe_on(probe.kind))
        blyi_probe_emit_slow(&probe);
}

struct blyi_physical *blyi_physical_get_locked(void *handle)
{
    struct blyi_physical *p = blyi_handle_get(BLYI_HANDLE_PHYSICAL, handle);
    if (p)
        blyi_handle_put(handle); /* it is removed under VMM only */
    return p;
}

/* relaxed: walks read it under the card's lock alone */
static uint32_t set_refs_locked(struct blyi_physical *p, uint32_t refs)
{
    __atomic_store_n(&p->refs, refs, __ATOMIC_RELAXED);
    return refs;
}

static void drop_handle_locked(struct blyi_physical *p)
{
    bly_status status = blyi_handle_remove(BLYI_HANDLE_PHYSICAL, p->handle);
    bly_check_msg(status == BLY_OK, "a handle of physical memory is not live");
    p->handle = NULL;
    set_refs_locked(p, 0);
}

void blyi_physical_settle_locked(struct blyi_physical *p, bool by_reset, uint64_t began_ns)
{
    struct blyi_card *card = p->card;
    if (p->refs > 0 || p->n_mappings > 0)
        return;
    if (card)
        blyi_card_lock(card);
    blyi_list_remove(&p->link);
    if (p->hold.generation != 0)
        blyi_share_free_physical_locked(p);
    else
        blyi_physical_give_frames_locked(p);
    blyi_physical_tell(p, false, by_reset, began_ns);
    if (card && p->imported) {
        blyi_tally_row(BLYI_ROW_IMPORT, card->id, p->site, p->size, -1);
        blyi_card_unlock(card);
    } else if (card) {
        blyi_physical_account_locked(card, -(int64_t)p->size);
        if (!p->of_pool)
            blyi_tally_row(BLYI_ROW_HANDLE, card->id, p->site, p->size, -1);
        blyi_card_unlock(card);
        blyi_cap_give(p->size);
    } else {
        blyi_pinned_unbook(p->size);
    }
    blyi_host_free(p->runs);
    blyi_host_free(p);
}

static bly_status release_locked(struct blyi_physical *p, uint32_t site, uint64_t began_ns)
{
    if (p->of_pool && p->retained == 0)
        return blyi_fail(BLY_E_INVALID, "the handle is of memory of a pool, which the program has "
                                        "not retained");
    p->retained -= p->of_pool;
    if (set_refs_locked(p, p->refs - 1) > 0)
        return BLY_OK;
    p->freed_site = site;
    drop_handle_locked(p);
    blyi_physical_settle_locked(p, false, began_ns);
    return BLY_OK;
}

/* The program has kept a handle of what its pool gives up. */
static void become_own_locked(struct blyi_physical *p)
{
    blyi_card_lock(p->card);
    p->of_pool = false;
    blyi_tally_row(BLYI_ROW_HANDLE, p->card->id, p->site, p->size, 1);
    blyi_card_unlock(p->card);
    blyi_physical_tell(p, true, false, 0);
}

bly_status blyi_physical_release_pooled(void *handle)
{
    bly_status status = blyi_runtime_check();
    if (status == BLY_OK)
        status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    struct blyi_physical *p = blyi_physical_get_locked(handle);
    if (p && p->retained > 0) {
        set_refs_locked(p, p->refs - 1);
        become_own_locked(p);
    } else if (p) {
        set_refs_locked(p, 0);
        drop_handle_locked(p);
        blyi_physical_settle_locked(p, false, 0);
    }
    blyi_lock_drop(&blyi_vmm.lock);
    return p ? BLY_OK : BLY_E_HANDLE;
}

bly_status blyi_physical_release(void *handle, uint32_t site)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_PHYS_FREE);
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    alive = blyi_vmm_lock_present();
    if (alive != BLY_OK)
        return alive;
    struct blyi_physical *p = blyi_physical_get_locked(handle);
    bly_status status = p ? release_locked(p, site, began_ns) : BLY_E_HANDLE;
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

static void describe(const struct blyi_physical *p, struct blyi_physical_info *out)
{
    *out = (struct blyi_physical_info){.card = p->card ? p->card->id : BLYI_PHYSICAL_HOST,
                                       .for_card = blyi_physical_for(p),
                                       .asked = p->asked,
                                       .size = p->size,
                                       .page_kind = p->page_kind,
                                       .contiguous = p->contiguous,
                                       .on_node = p->on_node,
                                       .of_pool = p->of_pool,
                                       .numa = p->numa,
                                       .refs = __atomic_load_n(&p->refs, __ATOMIC_RELAXED),
                                       .n_mappings = n_mappings_of(p),
                                       .site = p->site,
                                       .time_ns = p->time_ns,
                                       .handle = p->id};
}

bly_status blyi_physical_info(void *handle, struct blyi_physical_info *out)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_physical *p = blyi_physical_get_locked(handle);
    if (p)
        describe(p, out);
    blyi_lock_drop(&blyi_vmm.lock);
    return p ? BLY_OK : BLY_E_HANDLE;
}

bly_status blyi_physical_retain(uintptr_t address, uint32_t site, void **handle)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_vmm.lock);
    struct blyi_mapping *m = blyi_mapping_of(blyi_tree_find(&blyi_vmm.mappings, address, 0));
    if (!m)
        status = blyi_fail(BLY_E_INVALID, "nothing is mapped from 0x%" PRIxPTR, address);
    else if (m->physical->refs == 0)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, m->physical, NULL, &m->physical->handle);
    if (status == BLY_OK) {
        set_refs_locked(m->physical, m->physical->refs + 1);
        if (m->physical->of_pool && m->physical->retained++ == 0)
            m->physical->site = site;
        *handle = m->physical->handle;
    }
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

void blyi_physical_free_list_locked(struct blyi_list *list)
{
    while (!blyi_list_empty(list)) {
        struct blyi_physical *p = BLYI_CONTAINER(list->next, struct blyi_physical, link);
        bly_check(p->n_mappings == 0);
        if (p->handle)
            drop_handle_locked(p);
        blyi_physical_settle_locked(p, true, 0);
    }
}

void blyi_physical_free_all(struct blyi_card *card)
{
    blyi_vmm_lock_teardown();
    struct blyi_tree_node *node = blyi_tree_first(&blyi_vmm.mappings);
    while (node) {
        struct blyi_mapping *m = blyi_mapping_of(node);
        node = blyi_tree_next(node);
        if (m->physical->card == card)
            blyi_mapping_remove_locked(m, 0, true);
    }
    blyi_physical_free_list_locked(&card->physicals);
    card->resets++;
    blyi_ended_add();
    blyi_lock_drop(&blyi_vmm.lock);
}

void blyi_physical_sums_locked(const struct blyi_card *card, struct blyi_physical_sums *out)
{
    *out = (struct blyi_physical_sums){0};
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (p->imported)
            continue; /* counted by who made it */
        bool orphan = n_mappings_of(p) == 0;
        out->count++;
        out->bytes += p->size;
        out->orphans += orphan;
        out->orphan_bytes += orphan ? p->size : 0;
        for (uint32_t i = 0; i < p->n_runs; i++)
            out->frames += p->runs[i].count;
    }
}

void blyi_physical_walk_locked(struct blyi_card *card,
                               void (*fn)(void *arg, const struct blyi_physical_info *info),
                               void *arg)
{
    struct blyi_physical_info info;
    BLYI_LIST_FOR(node, &card->physicals)
    {
        describe(BLYI_CONTAINER(node, struct blyi_physical, link), &info);
        fn(arg, &info);
    }
}
