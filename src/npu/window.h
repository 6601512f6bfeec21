/* SPDX-License-Identifier: Apache-2.0
 *
 * window.h - the unified address space: one reserved range per card, one for pinned host memory
 * and one for addresses that programs reserve (vmm.h), each with a page table of 2 MiB granules.
 *
 *   address ─ window base → granule ─ one load → entry
 *
 *     63        51 50     44 43   32 31          0
 *     [  more flags  ] [ owner ] [flags] [  frame    ]
 *
 * `owner` is used in the window of reserved addresses only: whose frame it is.
 * Finding the window of an address and reading an entry take no lock. Taking, mapping and
 * returning granules is done under the owner's lock (CARD, PINNED or VMM).
 */
#ifndef BLYI_WINDOW_H
#define BLYI_WINDOW_H

#include <belay/base.h>
#include <stdbool.h>
#include "base/compiler.h"
#include "base/ranges.h"

#define BLYI_GRANULE       ((uint64_t)2 << 20)
#define BLYI_GRANULE_SHIFT 21

#define BLYI_ENTRY_MAPPED      ((uint64_t)1 << 32) /* a frame is behind the granule */
#define BLYI_ENTRY_COMMITTED   ((uint64_t)1 << 33) /* the host backs it: no fault can fail */
#define BLYI_ENTRY_PARTIAL     ((uint64_t)1 << 34) /* a frame of normal pages: ask memory.h */
#define BLYI_ENTRY_READONLY    ((uint64_t)1 << 35)
#define BLYI_ENTRY_SMALL       ((uint64_t)1 << 36) /* behaves as 4 KiB pages */
#define BLYI_ENTRY_GIANT       ((uint64_t)1 << 37) /* behaves as 1 GiB pages */
#define BLYI_ENTRY_OWN         ((uint64_t)1 << 38) /* reserved: the card of the frame may touch it */
#define BLYI_ENTRY_HOST        ((uint64_t)1 << 39) /* reserved: host code may touch it */
#define BLYI_ENTRY_PAGES       ((uint64_t)1 << 42) /* PARTIAL, of an import: only some are mapped */
#define BLYI_ENTRY_FOREIGN     ((uint64_t)1 << 43) /* of an import for work of another card */
#define BLYI_ENTRY_GAP_LOW     ((uint64_t)1 << 51) /* of PAGES: not from the granule's start on */
#define BLYI_ENTRY_GAP_HIGH    ((uint64_t)1 << 52) /* of PAGES: not up to its end */
#define BLYI_ENTRY_AWAY        ((uint64_t)1 << 53) /* not MAPPED: its content is elsewhere (away.h) */
#define BLYI_ENTRY_OWNER_SHIFT 44
#define BLYI_ENTRY_OWNER_MASK  ((uint64_t)0x7f << BLYI_ENTRY_OWNER_SHIFT)

#define BLYI_WINDOW_VMM    (-2)                /* `owner` of the window of reserved addresses */
#define BLYI_WINDOW_PINNED (-1)                /* of the pinned window; cards are 0 .. */
#define BLYI_OWNER_HOST    64                  /* in an entry: the frame is host memory (vmm.h) */
#define BLYI_WINDOW_ALIGN  ((uint64_t)1 << 30) /* of `base`, so that giant pages can align */

struct blyi_window {
    uintptr_t base;
    uint64_t size;     /* bytes, a multiple of the granule */
    int owner;         /* card id, BLYI_WINDOW_PINNED or BLYI_WINDOW_VMM */
    uint64_t *entries; /* size / granule; untouched ones cost no host memory */
    uint64_t *live;    /* of the pinned window: a bit a page (live_pages.h) */
    struct blyi_ranges free_granules;
    uint32_t n_mappings; /* host mappings in use, an estimate for the budget */
    uint32_t n_aside;    /* granules that wait for a second try (window_inside.h) */
};

/* Reserves about `size` bytes (halved on refusal, never below `least`) and makes the window
 * findable. E_SYSTEM: even `least` was refused; E_HOST_MEMORY. */
bly_status blyi_window_create(int owner, uint64_t size, uint64_t least, struct blyi_window **out);
/* The same at exactly `base`; no halving. E_SYSTEM when something is there. */
bly_status blyi_window_create_at(int owner, uintptr_t base, uint64_t size,
                                 struct blyi_window **out);
/* Unmaps all of it. [excl] */
void blyi_window_destroy(struct blyi_window *window);

/* In the child of a fork: no window is there any more, nor what was mapped in it. Takes no lock. */
void blyi_window_forget_all(void);

/* What a window of so many bytes, which nobody asked for in particular, may take: where the address
 * space is limited (ulimit -v) a third of what is left, so that the windows that come later and the
 * program's own memory find room. [any] */
uint64_t blyi_window_share(uint64_t size);

/* The window an address lies in, or NULL. [any] */
struct blyi_window *blyi_window_find(uintptr_t address);

static inline uint64_t blyi_window_entry(const struct blyi_window *window, uintptr_t address)
{
    /* acquire, with the release stores of window.c: who sees a flag sees what it promises */
    return __atomic_load_n(&window->entries[(address - window->base) >> BLYI_GRANULE_SHIFT],
                           __ATOMIC_ACQUIRE);
}

static inline int blyi_entry_owner(uint64_t entry)
{
    return (int)((entry & BLYI_ENTRY_OWNER_MASK) >> BLYI_ENTRY_OWNER_SHIFT);
}

static inline uint32_t blyi_entry_frame(uint64_t entry)
{
    return (uint32_t)entry;
}

/* Takes `n` granules of addresses in a row, at a multiple of `align` granules. E_NO_MEMORY with
 * a sentence (addresses, not frames, ran out), E_HOST_MEMORY. */
bly_status blyi_window_take(struct blyi_window *window, uint64_t n, uint64_t align,
                            uintptr_t *address);
/* Takes exactly these granules. E_INVALID, without a sentence: not all of them are free. */
bly_status blyi_window_take_at(struct blyi_window *window, uintptr_t address, uint64_t n);
/* The granules must be unmapped. Does not fail. */
void blyi_window_give(struct blyi_window *window, uintptr_t address, uint64_t n);

/* Maps `n` frames of `fd` from `first_frame` at `address`; entries get `flags`. E_SYSTEM with a
 * sentence (max_map_count named when it is the cause); nothing changed then. */
bly_status blyi_window_map(struct blyi_window *window, uintptr_t address, int fd,
                           uint32_t first_frame, uint64_t n, uint64_t flags);
/* Maps 4 KiB pages [page, page + pages) of a frame, at their places in the granule; the rest of it
 * has no access. E_SYSTEM as above. */
bly_status blyi_window_map_pages(struct blyi_window *window, uintptr_t granule, int fd,
                                 uint32_t frame, uint32_t page, uint32_t pages, uint64_t flags);
/* Puts these frames behind mapped or parked granules, whose flags stay; mapped ones are never
 * without the old or the new. E_SYSTEM as above; nothing changed then. */
bly_status blyi_window_remap(struct blyi_window *window, uintptr_t address, int fd,
                             uint32_t first_frame, uint64_t n);
/* Takes mapped granules out of reach; they keep their flags and become AWAY. False: the kernel
 * refuses, nothing changed. True at once when none is mapped. */
bool blyi_window_park(struct blyi_window *window, uintptr_t address, uint64_t n);
/* Back to a reservation without access; granules that were not mapped are allowed in between.
 * Does not fail: if the kernel refuses, the window keeps the addresses aside, tells it once and
 * tries again later. Returns false then: the granules must not be given back by the caller. */
bool blyi_window_unmap(struct blyi_window *window, uintptr_t address, uint64_t n);
/* The same, and calls run(arg, first, count) for each run of frames that was behind the granules,
 * in the order of addresses, once they are out of reach. */
bool blyi_window_unmap_each(struct blyi_window *window, uintptr_t address, uint64_t n,
                            void (*run)(void *arg, uint32_t first, uint32_t count), void *arg);
void blyi_window_set_flags(struct blyi_window *window, uintptr_t address, uint64_t n, uint64_t set,
                           uint64_t clear);
/* Host code may touch mapped granules as well. E_SYSTEM with a sentence; nothing changed then. */
bly_status blyi_window_let_host(struct blyi_window *window, uintptr_t address, uint64_t n);
/* Gives everything that is mapped, but for single pages, the rights that blyi_guard_map() kept
 * back. */
void blyi_window_unguard(struct blyi_window *window);
bool blyi_window_audit(const struct blyi_window *window);

/* Host mappings that all windows use, and how many they allow themselves: three quarters of
 * vm.max_map_count. For `belay doctor`. */
uint64_t blyi_window_mappings(uint64_t *budget);

#endif
