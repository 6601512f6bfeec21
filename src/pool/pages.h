/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.h - address → slab or block, for all pools of the process. One load and no lock for
 * whoever reads.
 *
 * One entry for each 64 KiB of all addresses there are: the span that starts in that page, else the
 * one that covers it. The table is 32 GiB of the process's addresses, of which only what was
 * covered can be written: 512 KiB for each 4 GiB that pools reserve, 8 bytes for each page in use.
 * Where so many addresses cannot be had (ulimit -v) the table is a part of it, and stands for the
 * addresses modulo what it covers; what two pools would then share is refused to the second one.
 *
 * A span has at least 64 KiB, so at most one starts in a page, and what lies before that start
 * belongs to the entry of the page before. A slab is entered in all its pages, as any of its slots
 * may be looked up. A block, and a slab of one slot, is entered in its first page and in the first
 * page of each granule: freeing needs no more, and blyi_pages_find() looks back for the rest.
 *
 * Writers hold the lock of the pool that owns the granule. An entry is set before anything of the
 * span is handed out and cleared after all of it came back, so whoever holds a live block finds its
 * span. Looking up any other address is safe and finds NULL or what is there now: records of spans
 * are never anything else while their pool lives.
 */
#ifndef BLYI_PAGES_H
#define BLYI_PAGES_H

#include "pool/slab.h"

#define BLYI_PAGE_BITS    16
#define BLYI_PAGE         (UINT64_C(1) << BLYI_PAGE_BITS)
#define BLYI_ADDRESS_BITS 48

/* 0, a span, or a slab with BLYI_PAGE_SLAB added. */
typedef uintptr_t blyi_page;
#define BLYI_PAGE_SLAB ((uintptr_t)1)

BLYI_HOT_EXTERN struct blyi_pages {
    blyi_page *entries;
    uint64_t mask; /* of the index; 0 and one entry as long as nothing was covered */
} blyi_pages;

/* Makes the entries of [address, address + size) writable, for the life of the process. E_INVALID,
 * E_HOST_MEMORY. [any] */
bly_status blyi_pages_cover(uintptr_t address, uint64_t size);
/* Enters a span by its address, size and slab, which then knows its span and where it begins;
 * takes it out again. */
void blyi_pages_enter(struct blyi_span *span);
void blyi_pages_leave(struct blyi_span *span);

/* The span around any address, or NULL. */
struct blyi_span *blyi_pages_find(uintptr_t address);
/* Whether the address lies where a pool has been. */
bool blyi_pages_known(uintptr_t address);
/* Host bytes of the table. */
uint64_t blyi_pages_bytes(void);

/* The entry of a page. Bits above the table's are nothing here: whoever uses the entry compares the
 * whole address. */
static inline blyi_page blyi_pages_entry(uintptr_t address)
{
    uint64_t index = blyi_word_masked(address >> BLYI_PAGE_BITS, &blyi_pages.mask);
    /* Acquire: what is entered was written before. */
    return __atomic_load_n(&BLYI_READ(blyi_pages.entries)[index], __ATOMIC_ACQUIRE);
}

static inline bool blyi_page_is_slab(blyi_page page)
{
    return (page & BLYI_PAGE_SLAB) != 0;
}

static inline struct blyi_slab *blyi_page_slab(blyi_page page)
{
    return (struct blyi_slab *)(page - BLYI_PAGE_SLAB);
}

/* The slab that holds a slot. */
struct blyi_slab *blyi_pages_slab(uintptr_t slot);

#endif
