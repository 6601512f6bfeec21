/* SPDX-License-Identifier: Apache-2.0
 *
 * share_physical.c - handles of physical memory that leave this process, and that come in.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/ledger.h"
#include "npu/peer.h"
#include "npu/runtime.h"
#include "npu/share_inside.h"
#include "npu/snapshot.h"
#include "npu/stock.h"
#include "npu/tally.h"
#include "npu/vmm_inside.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <stdio.h>

static bly_status check_export_locked(const struct blyi_physical *p)
{
    char site[BLYI_SITE_TEXT];
    if (!p->card)
        return blyi_fail(BLY_E_UNSUPPORTED,
                         "physical memory of the host cannot be shared with other processes");
    if (p->imported)
        return blyi_fail(BLY_E_INVALID,
                         "the handle was imported at %s: only the process that made the memory "
                         "exports it",
                         blyi_site_text(p->site, site));
    if (p->hold.generation != 0)
        return blyi_fail(BLY_E_INVALID,
                         "the handle made at %s was exported before: a handle is exported once",
                         blyi_site_text(p->site, site));
    return BLY_OK;
}

/* A key, and from the first one on the memory is a share's; `at`: where the maker has it, 0:
 * nowhere. */
static bly_status share_locked(struct blyi_physical *p, uintptr_t at, struct blyi_key_draft *draft)
{
    struct blyi_card *card = p->card;
    bly_status status = BLY_OK;
    bool first = p->hold.generation == 0;
    struct blyi_share with = {.card = (uint32_t)card->id,
                              .asked = p->asked,
                              .bytes = p->size,
                              .address = at,
                              .pc = (uintptr_t)blyi_site_pc(p->site),
                              .page_kind = p->page_kind,
                              .flags = BLYI_SHARE_PHYSICAL,
                              .tail_frame = BLYI_FRAME_NONE};
    if (p->contiguous)
        with.flags |= BLYI_SHARE_CONTIGUOUS;
    blyi_card_lock(card);
    if (first)
        status = blyi_share_make(card, &with, p->runs, p->n_runs, &p->hold);
    if (status == BLY_OK) {
        card->shared += first ? p->size : 0;
        blyi_stock_enter(card->stock);
        status = blyi_key_make_locked(draft, p->hold);
        blyi_stock_leave(card->stock);
        if (status != BLY_OK && first && blyi_share_dissolve(card, p->hold)) {
            p->hold = (struct blyi_hold){0, 0};
            card->shared -= p->size;
        }
    }
    blyi_card_unlock(card);
    return status;
}

static bly_status export_locked(struct blyi_physical *p, struct blyi_key_draft *draft)
{
    bly_status status = check_export_locked(p);
    draft->length = p->size;
    return status == BLY_OK ? share_locked(p, 0, draft) : status;
}

static bly_status check_range(const struct blyi_mapping *m, uintptr_t address, uint64_t size)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT];
    uint64_t offset = address % BLYI_FRAME_SIZE, room = m->physical->size;
    room -= address - m->node.key;
    if (offset != 0)
        return blyi_fail(BLY_E_ALIGN,
                         "cannot export 0x%" PRIxPTR ": an export begins at a multiple of the page "
                         "size %s, and the address is %" PRIu64 " B behind one; %" PRIu64
                         " B more would reach the next; export the block 0x%" PRIxPTR
                         " and send the offset",
                         address, blyi_size_text(BLYI_FRAME_SIZE, a), offset,
                         BLYI_FRAME_SIZE - offset, (uintptr_t)m->node.key);
    if (size > room)
        return blyi_fail(BLY_E_INVALID,
                         "cannot export %s at 0x%" PRIxPTR ": the block 0x%" PRIxPTR
                         " has %s of memory and ends %s behind that",
                         blyi_size_text(size, a), address, (uintptr_t)m->node.key,
                         blyi_size_text(m->physical->size, b), blyi_size_text(room, c));
    return BLY_OK;
}

static bly_status export_pooled_locked(const struct blyi_mapping *m, uintptr_t address,
                                       uint64_t size, struct blyi_key_draft *draft)
{
    if (!m || !m->physical->of_pool)
        return blyi_fail(BLY_E_INVALID,
                         "cannot export 0x%" PRIxPTR ": it is a reserved address; physical memory "
                         "is exported by its handle (aclrtMemExportToShareableHandle)",
                         address);
    bly_status status = check_range(m, address, size);
    draft->offset = address - m->node.key;
    draft->length = blyi_align_up(size, BLYI_FRAME_SIZE);
    return status == BLY_OK ? share_locked(m->physical, m->node.key, draft) : status;
}

bly_status blyi_ipc_export_pooled(uintptr_t address, uint64_t size, struct blyi_key_draft *draft,
                                  uint32_t site, char text[BLYI_KEY_TEXT_SIZE])
{
    struct blyi_mapping_info info;
    bly_status status = BLY_OK;
    if (blyi_mapping_find(address, &info) && info.card >= 0)
        status = blyi_shares_prepare(info.card);
    if (status == BLY_OK)
        status = blyi_key_draw(draft);
    if (status == BLY_OK)
        status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    const struct blyi_mapping *m = blyi_mapping_find_locked(address);
    status = export_pooled_locked(m, address, size, draft);
    if (status == BLY_OK)
        BLYI_PROBE(EXPORT, .card = m->physical->card->id, .address = address, .size = size,
                   .asked = size, .site = site);
    blyi_lock_drop(&blyi_vmm.lock);
    if (status == BLY_OK)
        blyi_key_write(draft, text);
    return status;
}

bly_status blyi_handle_export(void *handle, uint32_t kind, uint32_t flags, uint32_t site, void *out)
{
    struct blyi_key_draft draft = {.kind = kind, .flags = flags};
    struct blyi_physical_info info;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = blyi_physical_info(handle, &info);
    if (status == BLY_OK && info.card >= 0)
        status = blyi_shares_prepare(info.card);
    if (status == BLY_OK)
        status = blyi_key_draw(&draft);
    if (status != BLY_OK)
        return status;
    status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    struct blyi_physical *p = blyi_physical_get_locked(handle);
    status = p ? export_locked(p, &draft) : BLY_E_HANDLE;
    if (status == BLY_OK)
        BLYI_PROBE(EXPORT, .card = p->card->id, .address = (uintptr_t)p->id,
                   .other = (uintptr_t)p->id, .size = p->size, .site = site);
    blyi_lock_drop(&blyi_vmm.lock);
    if (status == BLY_OK)
        blyi_key_write(&draft, out);
    return status;
}

/* The frames of a share as physical memory of ours. VMM and the card's lock are held. */
static bly_status adopt_locked(struct blyi_physical *p, const struct blyi_opening *o)
{
    bly_status status = blyi_share_runs(p->card, o->hold, 0, o->share.whole, &p->runs, &p->n_runs);
    if (status != BLY_OK)
        return status;
    status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, p, NULL, &p->handle);
    if (status != BLY_OK)
        return status;
    p->id = p->handle;
    p->max_runs = p->n_runs;
    p->asked = o->share.asked;
    p->size = o->share.bytes;
    p->page_kind = (enum blyi_page_kind)o->share.page_kind;
    p->contiguous = (o->share.flags & BLYI_SHARE_CONTIGUOUS) != 0;
    p->hold = o->hold;
    blyi_list_push_back(&p->card->physicals, &p->link);
    blyi_tally_row(BLYI_ROW_IMPORT, p->card->id, p->site, p->size, 1);
    BLYI_PROBE(IMPORT, .card = p->card->id, .address = (uintptr_t)p->id, .other = (uintptr_t)p->id,
               .size = p->size, .backed = p->size, .page_kind = p->page_kind, .site = p->site,
               .aux = o->share.maker_pid);
    return BLY_OK;
}

/* Handles and what is shared go one to one. */
static bly_status check_once_locked(const struct blyi_physical *p, struct blyi_hold hold)
{
    char site[BLYI_SITE_TEXT];
    BLYI_LIST_FOR(node, &p->card->physicals)
    {
        const struct blyi_physical *other = BLYI_CONTAINER(node, struct blyi_physical, link);
        if (other->hold.generation == hold.generation)
            return blyi_fail(BLY_E_INVALID,
                             "the memory was imported before, at %s, and is %s: a process imports "
                             "a handle once",
                             blyi_site_text(other->site, site),
                             other->refs > 0 ? "not freed yet" : "still mapped");
    }
    return BLY_OK;
}

static bly_status import_locked(struct blyi_physical *p, struct blyi_key_form form)
{
    struct blyi_opening opening;
    bly_status status = blyi_share_open(p->card, form, &opening);
    if (status != BLY_OK)
        return status;
    status = check_once_locked(p, opening.hold);
    if (status == BLY_OK)
        status = adopt_locked(p, &opening);
    if (status != BLY_OK)
        (void)blyi_share_leave(p->card, opening.hold);
    return status;
}

bly_status blyi_handle_import(struct blyi_key_form form, int for_card, uint32_t site, void **handle)
{
    struct blyi_card *card;
    int id;
    bly_status status = blyi_snapshot_enter();
    if (status == BLY_OK)
        status = blyi_share_card_of(form, &id);
    if (status == BLY_OK)
        status = blyi_card_open(id, &card);
    if (status == BLY_OK && for_card != id)
        status = blyi_peer_check(for_card, id);
    if (status != BLY_OK)
        return status;
    struct blyi_physical *p = blyi_host_calloc(1, sizeof *p);
    if (!p)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
    p->card = card;
    p->for_card = for_card;
    p->site = site;
    p->refs = 1;
    p->imported = true;
    p->time_ns = blyi_clock_ns();
    blyi_list_init(&p->mappings);
    blyi_lock_take(&blyi_vmm.lock);
    blyi_card_lock(card);
    status = import_locked(p, form);
    void *made = p->handle;
    blyi_card_unlock(card);
    blyi_lock_drop(&blyi_vmm.lock);
    if (status == BLY_OK) {
        *handle = made; /* not p's: once the lock is dropped, who guesses it can free it */
        return BLY_OK;
    }
    blyi_host_free(p->runs);
    blyi_host_free(p);
    return status;
}

void blyi_share_free_physical_locked(struct blyi_physical *p)
{
    struct blyi_card *card = p->card;
    if (!p->imported) {
        char where[BLYI_SITE_TEXT];
        blyi_site_text(p->freed_site, where);
        blyi_ledger_lock();
        blyi_key_end_all_locked(p->hold, BLYI_KEY_FREED, p->freed_site ? where : "");
        blyi_ledger_unlock();
        card->shared -= p->size;
    }
    (void)blyi_share_leave(card, p->hold);
    blyi_backing_settle(card->backing);
}
