/* SPDX-License-Identifier: Apache-2.0
 *
 * import_info.c - what an address is that lies in imported memory, or near it; audit.
 */
#include "npu/card.h"
#include "npu/memory.h"
#include "npu/share_inside.h"
#include "npu/window.h"
#include "base/fail.h"
#include "base/site.h"
#include "base/size.h"
#include "base/sys.h"
#include <inttypes.h>
#include <sys/mman.h>

uintptr_t blyi_import_bad_locked(const struct blyi_card *card, uintptr_t start, uintptr_t end)
{
    const struct blyi_import *import = blyi_import_find_locked(card, start);
    if (!import || start < import->address || start >= import->address + import->size)
        return start;
    uintptr_t stop = import->address + import->size;
    return stop < end ? stop : end;
}

void blyi_import_append_near_locked(const struct blyi_card *card, uintptr_t bad)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_import *import = blyi_import_of(blyi_tree_floor(&card->imports, bad));
    if (!import || bad - blyi_import_base(import) >= (import->n + 1) * BLYI_GRANULE)
        return;
    uintptr_t end = import->address + import->size;
    if (bad >= import->address && bad < end)
        blyi_fail_append("; 0x%" PRIxPTR " of %s, imported from pid %u at %s, is read-only",
                         import->address, blyi_size_text(import->size, size), import->maker_pid,
                         blyi_site_text(import->site, site));
    else
        blyi_fail_append("; 0x%" PRIxPTR " of %s, imported from pid %u at %s, %s %" PRIu64
                         " B %s it",
                         import->address, blyi_size_text(import->size, size), import->maker_pid,
                         blyi_site_text(import->site, site), bad >= end ? "ends" : "begins",
                         (uint64_t)(bad >= end ? bad - end : import->address - bad),
                         bad >= end ? "before" : "behind");
}

void blyi_import_unguard_locked(struct blyi_card *card)
{
    for (struct blyi_tree_node *node = blyi_tree_first(&card->imports); node;
         node = blyi_tree_next(node)) {
        const struct blyi_import *import = blyi_import_of(node);
        for (uint32_t i = 0; i < import->n; i++) {
            uintptr_t at = blyi_import_base(import) + i * BLYI_GRANULE, end = at + BLYI_GRANULE;
            if (!(blyi_window_entry(card->window, at) & BLYI_ENTRY_PAGES))
                continue;
            if (at < import->address)
                at = import->address;
            if (end > import->address + import->size)
                end = import->address + import->size;
            (void)blyi_sys_mprotect((void *)at, end - at,
                                    PROT_READ | PROT_WRITE); /* as in blyi_window_unguard() */
        }
    }
}

bool blyi_import_info_locked(const struct blyi_card *card, uintptr_t address,
                             struct blyi_import_info *out)
{
    const struct blyi_import *import = blyi_import_find_locked(card, address);
    if (!import || address < import->address || address >= import->address + import->size)
        return false;
    *out = (struct blyi_import_info){
        .address = import->address,
        .size = import->size,
        .maker_pid = import->maker_pid,
        .page_size = (uint32_t)blyi_page_bytes((enum blyi_page_kind)import->node.sub),
        .site = import->site,
        .for_card = import->for_card,
        .time_ns = import->time_ns,
        .serial = import->serial};
    return true;
}

bool blyi_import_info(struct blyi_card *card, uintptr_t address, struct blyi_import_info *out)
{
    blyi_card_lock(card);
    bool found = blyi_import_info_locked(card, address, out);
    blyi_card_unlock(card);
    return found;
}

bool blyi_import_find(const void *address, struct blyi_import_info *out)
{
    const struct blyi_window *window = blyi_window_find((uintptr_t)address);
    struct blyi_card *card = window ? blyi_card_get(window->owner) : NULL;
    return card && blyi_import_info(card, (uintptr_t)address, out);
}

/* Every import is mapped as it should be, and every hold is of a live share. */
bool blyi_share_audit_locked(struct blyi_card *card)
{
    size_t n = 0;
    for (struct blyi_tree_node *node = blyi_tree_first(&card->imports); node;
         node = blyi_tree_next(node), n++) {
        const struct blyi_import *import = blyi_import_of(node);
        for (uint32_t i = 0; i < import->n; i++)
            if (!(blyi_window_entry(card->window, blyi_import_base(import) + i * BLYI_GRANULE) &
                  BLYI_ENTRY_MAPPED))
                return false;
        if (!blyi_share_is_held(import->hold))
            return false;
    }
    BLYI_LIST_FOR(node, &card->import_ages)
    n--;
    return n == 0 && blyi_tree_audit(&card->imports) && blyi_list_audit(&card->import_ages);
}
