/* SPDX-License-Identifier: Apache-2.0
 *
 * pointer.h - the quick part of what an address is (belay/pointer.h has the rest).
 */
#ifndef BLYI_POINTER_H
#define BLYI_POINTER_H

#include <belay/pointer.h>
#include <stdbool.h>
#include "base/probe.h"
#include "npu/live_pages.h"
#include "npu/registered.h"
#include "npu/window.h"

struct blyi_pointer_quick {
    int card; /* -1: the host's memory */
    enum blyi_page_kind page_kind;
};

/* Live memory of a card in whole frames, reserved addresses that are mapped, or pinned memory:
 * without a lock.
 * False: ask bly_pointer_info(). [any] */
static inline bool blyi_pointer_quick(const void *address, struct blyi_pointer_quick *out)
{
    const struct blyi_window *w = blyi_window_find((uintptr_t)address);
    if (!w)
        return false;
    if (w->owner == BLYI_WINDOW_PINNED) {
        out->card = -1;
        out->page_kind = BLYI_PAGE_NORMAL;
        return blyi_live_pages_has(w, (uintptr_t)address);
    }
    uint64_t entry = blyi_window_entry(w, (uintptr_t)address);
    if ((entry & (BLYI_ENTRY_MAPPED | BLYI_ENTRY_PARTIAL)) != BLYI_ENTRY_MAPPED)
        return false;
    int owner = w->owner == BLYI_WINDOW_VMM ? blyi_entry_owner(entry) : w->owner;
    out->card = owner == BLYI_OWNER_HOST ? -1 : owner;
    out->page_kind = entry & BLYI_ENTRY_GIANT   ? BLYI_PAGE_GIANT
                     : entry & BLYI_ENTRY_SMALL ? BLYI_PAGE_NORMAL
                                                : BLYI_PAGE_HUGE;
    return true;
}

/* Host memory that nobody pinned or registered: without a lock. [any] */
static inline bool blyi_pointer_is_plain(const void *address)
{
    return !blyi_window_find((uintptr_t)address) && !blyi_registered_any();
}

/* As blyi_pointer_quick(), for a frame of normal pages, some of which may be unused: under the
 * card's lock. */
bool blyi_pointer_partial(const void *address, struct blyi_pointer_quick *out);

#endif
