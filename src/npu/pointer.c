/* SPDX-License-Identifier: Apache-2.0
 *
 * pointer.c - what an address is, in full.
 */
#include "npu/pointer.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/mapping.h"
#include "npu/partial.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/registered.h"
#include "npu/runtime.h"
#include "npu/share.h"
#include "npu/vmm.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* With sites as ids, for sentences. */
struct found {
    bly_pointer_kind kind;
    int card;
    uint32_t page_size;
    uintptr_t base;
    uint64_t size, time_ns;
    uint32_t made, ended;
    uint32_t maker_pid; /* IMPORTED */
};

const char *bly_pointer_kind_text(bly_pointer_kind kind)
{
    switch (kind) {
#define KIND_TEXT(name, value, text)                                                               \
    case BLY_POINTER_##name:                                                                       \
        return text;
        BLY_POINTER_KINDS(KIND_TEXT)
#undef KIND_TEXT
    }
    return "unknown";
}

static struct found find_on_card(int id, uintptr_t at)
{
    struct found found = {.kind = BLY_POINTER_OUTSIDE, .card = id};
    struct blyi_mem_block block;
    if (blyi_mem_find((const void *)at, &block)) {
        found.kind = BLY_POINTER_CARD;
        found.page_size = (uint32_t)blyi_page_bytes(block.page_kind);
        found.base = block.address;
        found.size = block.asked;
        found.made = block.site;
        found.time_ns = block.time_ns;
        return found;
    }
    struct blyi_card *card = blyi_card_get(id);
    if (!card)
        return found;
    struct blyi_import_info import;
    if (blyi_import_info(card, at, &import)) {
        found.kind = BLY_POINTER_IMPORTED;
        found.page_size = import.page_size;
        found.base = import.address;
        found.size = import.size;
        found.made = import.site;
        found.time_ns = import.time_ns;
        found.maker_pid = import.maker_pid;
        return found;
    }
    blyi_card_lock(card);
    const struct blyi_freed_block *freed = blyi_freed_find(card->freed, at);
    if (freed) {
        found.kind = BLY_POINTER_FREED;
        found.base = freed->address;
        found.size = freed->backed;
        found.made = freed->alloc_site;
        found.ended = freed->free_site;
        found.time_ns = freed->time_ns;
    }
    blyi_card_unlock(card);
    return found;
}

static struct found find_reserved(uintptr_t at)
{
    struct found found = {.kind = BLY_POINTER_OUTSIDE, .card = -1};
    struct blyi_mapping_info m;
    struct blyi_reservation_info r;
    struct blyi_unmapped_info u;
    if (blyi_mapping_find(at, &m))
        return (struct found){.kind = BLY_POINTER_MAPPED,
                              .card = m.card,
                              .page_size = (uint32_t)blyi_page_bytes(m.page_kind),
                              .base = m.address,
                              .size = m.size,
                              .made = m.map_site,
                              .time_ns = m.time_ns};
    bool reserved = blyi_vmm_find(at, &r);
    if (blyi_mapping_unmapped(at, &u) && (!reserved || u.time_ns >= r.time_ns))
        return (struct found){.kind = reserved ? BLY_POINTER_UNMAPPED : BLY_POINTER_FREED,
                              .card = -1,
                              .base = u.address,
                              .size = u.size,
                              .made = u.physical_site,
                              .ended = u.unmap_site,
                              .time_ns = u.time_ns};
    if (reserved)
        return (struct found){.kind = BLY_POINTER_RESERVED,
                              .card = -1,
                              .base = r.address,
                              .size = r.size,
                              .made = r.site,
                              .time_ns = r.time_ns};
    return found;
}

static struct found find_pinned(uintptr_t at)
{
    struct blyi_pinned_block block;
    struct blyi_freed_block freed;
    if (blyi_pinned_find((const void *)at, &block))
        return (struct found){.kind = BLY_POINTER_PINNED,
                              .card = -1,
                              .page_size = (uint32_t)blyi_page_bytes(BLYI_PAGE_NORMAL),
                              .base = block.address,
                              .size = block.asked,
                              .made = block.site,
                              .time_ns = block.time_ns};
    if (blyi_pinned_freed(at, &freed))
        return (struct found){.kind = BLY_POINTER_FREED,
                              .card = -1,
                              .base = freed.address,
                              .size = freed.backed,
                              .made = freed.alloc_site,
                              .ended = freed.free_site,
                              .time_ns = freed.time_ns};
    return (struct found){.kind = BLY_POINTER_OUTSIDE, .card = -1};
}

static struct found find(uintptr_t at)
{
    struct blyi_registered range;
    if (at == 0)
        return (struct found){.kind = BLY_POINTER_NULL, .card = -1};
    const struct blyi_window *w = blyi_window_find(at);
    if (w && w->owner == BLYI_WINDOW_PINNED)
        return find_pinned(at);
    if (w && w->owner == BLYI_WINDOW_VMM)
        return find_reserved(at);
    if (w)
        return find_on_card(w->owner, at);
    if (blyi_registered_any() && blyi_registered_find(at, &range))
        return (struct found){.kind = BLY_POINTER_REGISTERED,
                              .card = -1,
                              .page_size = (uint32_t)blyi_page_bytes(BLYI_PAGE_NORMAL),
                              .base = range.address,
                              .size = range.size,
                              .made = range.site,
                              .time_ns = range.time_ns};
    return (struct found){.kind = BLY_POINTER_HOST, .card = -1};
}

bool blyi_pointer_partial(const void *address, struct blyi_pointer_quick *out)
{
    uintptr_t at = (uintptr_t)address;
    const struct blyi_window *w = blyi_window_find(at);
    struct blyi_card *card = w ? blyi_card_get(w->owner) : NULL;
    if (!card || !(blyi_window_entry(w, at) & BLYI_ENTRY_PARTIAL))
        return false;
    /* Not blyi_card_lock(): a look this short need not be told to those who yield. */
    blyi_lock_take(&card->lock);
    uint64_t entry = blyi_window_entry(w, at);
    bool live = false;
    if (entry & BLYI_ENTRY_PAGES) {
        live = blyi_import_bad_locked(card, at, at + 1) > at;
    } else if (entry & BLYI_ENTRY_PARTIAL) {
        uint32_t page = (uint32_t)(at % BLYI_GRANULE / BLYI_PAGE_SIZE);
        live = blyi_partial_bad(blyi_partial_of(card->partials, blyi_entry_frame(entry)), page,
                                page + 1, false) > page;
    }
    blyi_lock_drop(&card->lock);
    out->card = w->owner;
    out->page_kind = BLYI_PAGE_NORMAL;
    return live;
}

bly_status bly_pointer_info(const void *address, bly_pointer *info)
{
    if (!info || info->struct_size < 16)
        return blyi_fail(BLY_E_INVALID, "bly_pointer_info: %s",
                         info ? "struct_size is below 16" : "info is NULL");
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    struct found found = find((uintptr_t)address);
    bly_pointer out = {.struct_size = info->struct_size,
                       .kind = (int32_t)found.kind,
                       .card = found.card,
                       .page_size = found.page_size,
                       .base = (void *)found.base,
                       .size = found.size,
                       .offset = found.base != 0 ? (uintptr_t)address - found.base : 0,
                       .made_by = blyi_site_pc(found.made),
                       .ended_by = blyi_site_pc(found.ended),
                       .age_ns = found.time_ns != 0 ? blyi_clock_ns() - found.time_ns : 0};
    memcpy(info, &out, info->struct_size < sizeof out ? info->struct_size : sizeof out);
    return BLY_OK;
}

const char *bly_pointer_text(const void *address, char *text, size_t size)
{
    char bytes[BLYI_SIZE_TEXT], a[BLYI_SITE_TEXT], b[BLYI_SITE_TEXT], card[24] = "";
    char line[BLY_POINTER_TEXT + 2 * BLYI_SITE_TEXT];
    if (!text || size == 0)
        return "";
    if (blyi_runtime_is_forked()) {
        snprintf(text, size, "0x%" PRIxPTR ": not known, the process was forked",
                 (uintptr_t)address);
        return text;
    }
    struct found found = find((uintptr_t)address);
    if (found.card >= 0)
        snprintf(card, sizeof card, " of card %d", found.card);
    int used = snprintf(line, sizeof line, "0x%" PRIxPTR ": %s%s", (uintptr_t)address,
                        bly_pointer_kind_text(found.kind), card);
    if (found.kind == BLY_POINTER_IMPORTED)
        used +=
            snprintf(line + used, sizeof line - (size_t)used, ", exporter pid %u", found.maker_pid);
    bool ended = found.kind == BLY_POINTER_FREED || found.kind == BLY_POINTER_UNMAPPED;
    if (found.base != 0)
        used += snprintf(line + used, sizeof line - (size_t)used,
                         ", %" PRIu64 " bytes into 0x%" PRIxPTR " of %s made at %s",
                         (uint64_t)((uintptr_t)address - found.base), found.base,
                         blyi_size_text(found.size, bytes), blyi_site_text(found.made, a));
    if (ended)
        snprintf(line + used, sizeof line - (size_t)used, ", %s %" PRIu64 " us ago %s%s",
                 found.kind == BLY_POINTER_FREED ? "freed" : "unmapped",
                 (blyi_clock_ns() - found.time_ns) / 1000,
                 found.ended == 0 ? "by a device reset" : "at ",
                 found.ended == 0 ? "" : blyi_site_text(found.ended, b));
    snprintf(text, size, "%s", line);
    return text;
}
