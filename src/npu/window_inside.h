/* SPDX-License-Identifier: Apache-2.0
 *
 * window_inside.h - what window.c (granules) and window_map.c (what is behind them) share.
 *
 * Two things can go wrong where no error can be returned. A granule is then set aside with a
 * tag and tried again at the next take:
 *   STALE  the kernel refused to unmap: the old frame is still behind the address
 *   IDLE   no host memory for a node of the free ranges
 */
#ifndef BLYI_WINDOW_INSIDE_H
#define BLYI_WINDOW_INSIDE_H

#include "npu/window.h"
#include <sys/mman.h>

#define ENTRY_STALE ((uint64_t)1 << 40)
#define ENTRY_IDLE  ((uint64_t)1 << 41)

/* Frames of different owners lie in different files, and single pages leave gaps: never one
 * mapping for the kernel. */
#define ENTRY_GAPS (BLYI_ENTRY_GAP_LOW | BLYI_ENTRY_GAP_HIGH)
#define ENTRY_KIND (BLYI_ENTRY_OWNER_MASK | BLYI_ENTRY_PAGES | ENTRY_GAPS)

/* The host's mapping of granules that have nothing behind them. */
#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

static inline uint64_t granules_of(const struct blyi_window *w)
{
    return w->size / BLYI_GRANULE;
}

static inline uint64_t index_of(const struct blyi_window *w, uintptr_t address)
{
    return (address - w->base) / BLYI_GRANULE;
}

/* Writers hold the owner's lock, so a plain read of what they wrote is enough for them. */
static inline void entry_store(struct blyi_window *w, uint64_t i, uint64_t entry)
{
    /* release: pairs with blyi_window_entry() */
    __atomic_store_n(&w->entries[i], entry, __ATOMIC_RELEASE);
}

static inline bool is_backed(uint64_t entry)
{
    return (entry & (BLYI_ENTRY_MAPPED | ENTRY_STALE)) != 0;
}

const char *blyi_window_owner_text(const struct blyi_window *w, char buf[32]);

/* How often the kernel goes over to another mapping about the line between two entries. */
int blyi_window_borders_between(uint64_t a, uint64_t b);
/* Borders at the outer edges of [first, first + n), should its first and last entry be these. */
int blyi_window_edges(const struct blyi_window *w, uint64_t first, uint64_t n, uint64_t first_entry,
                      uint64_t last_entry);
/* Borders inside [first, first + n) and at its edges. */
int64_t blyi_window_borders(const struct blyi_window *w, uint64_t first, uint64_t n);
void blyi_window_count(struct blyi_window *w, int64_t delta);
/* False: the kernel refused; what was there is there. */
bool blyi_window_unmap_host(uintptr_t address, uint64_t n);

#endif
