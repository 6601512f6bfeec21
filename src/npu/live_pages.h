/* SPDX-License-Identifier: Apache-2.0
 *
 * live_pages.h - which pages of the pinned window hold a live block: a bit a page, written under
 * the lock PINNED, read without.
 */
#ifndef BLYI_LIVE_PAGES_H
#define BLYI_LIVE_PAGES_H

#include <belay/base.h>
#include <stdbool.h>
#include "npu/window.h"

#define BLYI_LIVE_PAGE ((uint64_t)4096)

/* None is live. E_HOST_MEMORY. */
bly_status blyi_live_pages_make(struct blyi_window *window);
/* Of whole pages. */
void blyi_live_pages_set(struct blyi_window *window, uintptr_t address, uint64_t size, bool live);
uint64_t blyi_live_pages_count(const struct blyi_window *window);

/* The address lies in the window. */
static inline bool blyi_live_pages_has(const struct blyi_window *window, uintptr_t address)
{
    uint64_t page = (address - window->base) / BLYI_LIVE_PAGE;
    /* A window can be found before its table is there. Acquire: the table is cleared. */
    const uint64_t *live = __atomic_load_n(&window->live, __ATOMIC_ACQUIRE);
    /* Acquire: who finds a block live finds its pages mapped. */
    return live != NULL && (__atomic_load_n(&live[page / 64], __ATOMIC_ACQUIRE) >> (page % 64) & 1);
}

#endif
