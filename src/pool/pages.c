/* SPDX-License-Identifier: Apache-2.0
 *
 * pages.c - the table of addresses.
 */
#include "pool/pages.h"

#include <inttypes.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/lock.h"
#include "base/sys.h"

#define PAGE       BLYI_PAGE
#define GRANULE    (2 * MiB)
#define LEAF_BITS  32 /* addresses of a part of the table that is made writable at once */
#define LEAF       (UINT64_C(1) << LEAF_BITS)
#define LEAF_BYTES (LEAF / PAGE * sizeof(blyi_page))
#define LEAF_MOST  (1u << (BLYI_ADDRESS_BITS - LEAF_BITS))
#define LEAF_LEAST 4u

static blyi_page nothing[1];
struct blyi_pages blyi_pages = {nothing, 0};
static uint32_t owners[LEAF_MOST]; /* of leaves of the table: address >> LEAF_BITS and 1; 0: none */
static uint64_t n_leaves;
static struct blyi_lock making = BLYI_LOCK_INIT(BLYI_RANK_PAGES);

/* So many leaves that can be read. Not to be filled with pages by mlockall(), so nothing until it
 * is unlocked. NULL: no. */
static blyi_page *map_table(uint64_t n)
{
    blyi_page *table = blyi_sys_mmap(NULL, n * LEAF_BYTES, PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED)
        return NULL;
    (void)blyi_sys_munlock(table, n * LEAF_BYTES);
    if (blyi_sys_mprotect(table, n * LEAF_BYTES, PROT_READ) == 0)
        return table;
    (void)blyi_sys_munmap(table, n * LEAF_BYTES);
    return NULL;
}

static void make_table_locked(void)
{
    blyi_page *table = NULL;
    uint64_t n = 2 * (uint64_t)LEAF_MOST;
    if (blyi_pages.mask != 0)
        return;
    while (table == NULL && n > LEAF_LEAST)
        table = map_table(n /= 2);
    if (table == NULL)
        return;
    __atomic_store_n(&blyi_pages.entries, table, __ATOMIC_RELAXED);
    /* Release: who has the mask has the table. */
    __atomic_store_n(&blyi_pages.mask, n * (LEAF / PAGE) - 1, __ATOMIC_RELEASE);
}

static bly_status need_table(void)
{
    if (unlikely(__atomic_load_n(&blyi_pages.mask, __ATOMIC_ACQUIRE) == 0)) {
        blyi_lock_take(&making);
        make_table_locked();
        blyi_lock_drop(&making);
        if (blyi_pages.mask == 0)
            return blyi_fail(BLY_E_HOST_MEMORY, "pool: no addresses for the table of addresses");
    }
    return BLY_OK;
}

static blyi_page *place_of(uintptr_t address)
{
    return &blyi_pages.entries[address >> BLYI_PAGE_BITS & blyi_pages.mask];
}

static uint32_t *owner_of(uintptr_t address)
{
    return &owners[address >> LEAF_BITS & blyi_pages.mask >> (LEAF_BITS - BLYI_PAGE_BITS)];
}

static bly_status need_leaf(uintptr_t leaf)
{
    uint32_t *place = owner_of(leaf), owner = (uint32_t)(leaf >> LEAF_BITS) + 1;
    uint32_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
    if (old == owner)
        return BLY_OK;
    if (old == 0 && blyi_sys_mprotect(place_of(leaf), LEAF_BYTES, PROT_READ | PROT_WRITE) != 0)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "pool: no host memory for the table of addresses at 0x%" PRIxPTR
                         " (%" PRIu64 " KiB for each 4 GiB)",
                         leaf, LEAF_BYTES / KiB);
    if (old == 0 &&
        __atomic_compare_exchange_n(place, &old, owner, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        __atomic_fetch_add(&n_leaves, 1, __ATOMIC_RELAXED);
    else if (old != owner)
        return blyi_fail(BLY_E_HOST_MEMORY,
                         "pool: the table of addresses has no room for 0x%" PRIxPTR
                         ", as the process's addresses are limited (ulimit -v)",
                         leaf);
    return BLY_OK;
}

bly_status blyi_pages_cover(uintptr_t address, uint64_t size)
{
    if (size == 0 || address >> BLYI_ADDRESS_BITS != 0 ||
        size > (UINT64_C(1) << BLYI_ADDRESS_BITS) - address)
        return blyi_fail(BLY_E_INVALID,
                         "pool: addresses 0x%" PRIxPTR " and %" PRIu64
                         " bytes on are not below 2^%d",
                         address, size, BLYI_ADDRESS_BITS);
    bly_status status = need_table();
    for (uintptr_t at = blyi_align_down(address, LEAF);
         status == BLY_OK && at - 1 < address + size - 1; at += LEAF)
        status = need_leaf(at);
    return status;
}

static struct blyi_span *span_of(blyi_page page)
{
    return blyi_page_is_slab(page) ? __atomic_load_n(&blyi_page_slab(page)->span, __ATOMIC_RELAXED)
                                   : (struct blyi_span *)page;
}

static blyi_page page_of(const struct blyi_span *span)
{
    return span->slab != NULL ? (uintptr_t)span->slab + BLYI_PAGE_SLAB : (uintptr_t)span;
}

static struct blyi_span *at(uintptr_t address)
{
    return address >> BLYI_ADDRESS_BITS != 0 ? NULL : span_of(blyi_pages_entry(address));
}

static void set(uintptr_t address, blyi_page page)
{
    bly_assert_msg(blyi_pages_known(address), "0x%" PRIxPTR " is not covered", address);
    /* Release: what is entered was written before. */
    __atomic_store_n(place_of(address), page, __ATOMIC_RELEASE);
}

static bool starts_in(blyi_page entry, uintptr_t page)
{
    const struct blyi_span *span = span_of(entry);
    return span != NULL && span->address - page < PAGE;
}

static bool covers(const struct blyi_span *span, uintptr_t address)
{
    uintptr_t start = __atomic_load_n(&span->address, __ATOMIC_RELAXED);
    return address - start < __atomic_load_n(&span->size, __ATOMIC_RELAXED);
}

/* Whether addresses in all pages of a span are looked up, and not its first one alone. */
static bool is_cut(const struct blyi_span *span)
{
    const struct blyi_slab *slab = span->slab;
    return slab != NULL && slab->n > 1;
}

/* What lies wholly in a span is its own. Its last page may be where the next one starts, which then
 * has the entry. */
static void set_rest(const struct blyi_span *span, blyi_page from, blyi_page to)
{
    uint64_t step = is_cut(span) ? PAGE : GRANULE;
    uintptr_t last = blyi_align_down(span->address + span->size - 1, PAGE);
    uintptr_t page = blyi_align_up(blyi_align_down(span->address, PAGE) + 1, step);
    for (; page < last; page += step)
        set(page, to);
    if (page == last && blyi_pages_entry(page) == from)
        set(page, to);
}

void blyi_pages_enter(struct blyi_span *span)
{
    uintptr_t page = blyi_align_down(span->address, PAGE);
    uintptr_t last = blyi_align_down(span->address + span->size - 1, PAGE);
    struct blyi_slab *slab = span->slab;
    bly_assert_msg(span->size >= BLYI_SPAN_MIN, "a span of %" PRIu64 " bytes", span->size);
    if (slab != NULL) {
        __atomic_store_n(&slab->span, span, __ATOMIC_RELAXED);
        __atomic_store_n(&slab->base, span->address, __ATOMIC_RELAXED);
    }
    set(page, page_of(span));
    /* Nobody else covers the begin of the last page: it is free, or another's that starts in it. */
    blyi_page there = blyi_pages_entry(last);
    set_rest(span, starts_in(there, last) ? page_of(span) : there, page_of(span));
}

/* Who covers the begin of the page in which a span started that has gone: a slab with more than one
 * slot, or with `any` whatever does. */
static blyi_page before(uintptr_t page, bool any)
{
    struct blyi_span *span = any ? blyi_pages_find(page - 1) : at(page - PAGE);
    return span != NULL && (any || is_cut(span)) && covers(span, page) ? page_of(span) : 0;
}

void blyi_pages_leave(struct blyi_span *span)
{
    uintptr_t page = blyi_align_down(span->address, PAGE);
    set(page, page == span->address ? 0 : before(page, page % GRANULE == 0));
    set_rest(span, page_of(span), 0);
}

/* The nearest entry at or left of `page`, no further than its granule's first one. */
static struct blyi_span *nearest(uintptr_t page)
{
    struct blyi_span *span = at(page);
    while (span == NULL && page % GRANULE != 0)
        span = at(page -= PAGE);
    return span;
}

static struct blyi_span *look(uintptr_t address)
{
    uintptr_t page = blyi_align_down(address, PAGE);
    struct blyi_span *span = at(page);
    /* It may start behind the address: then who covers that was entered further left. */
    if (span == NULL ? page % GRANULE != 0
                     : address < __atomic_load_n(&span->address, __ATOMIC_RELAXED))
        span = page == 0 ? NULL : nearest(page - PAGE);
    return span != NULL && covers(span, address) ? span : NULL;
}

struct blyi_span *blyi_pages_find(uintptr_t address)
{
    /* A neighbour's record that is reused while we look may hide a live span: what is there twice
     * is there. */
    struct blyi_span *span = look(address), *again;
    while ((again = look(address)) != span)
        span = again;
    return span;
}

struct blyi_slab *blyi_pages_slab(uintptr_t slot)
{
    blyi_page page = blyi_pages_entry(slot);
    if (!blyi_page_is_slab(page) ||
        slot < __atomic_load_n(&blyi_page_slab(page)->base, __ATOMIC_RELAXED))
        page = blyi_pages_entry(slot - PAGE);
    return blyi_page_slab(page);
}

bool blyi_pages_known(uintptr_t address)
{
    return address >> BLYI_ADDRESS_BITS == 0 &&
           BLYI_READ(*owner_of(address)) == (address >> LEAF_BITS) + 1;
}

uint64_t blyi_pages_bytes(void)
{
    return __atomic_load_n(&n_leaves, __ATOMIC_RELAXED) * LEAF_BYTES;
}
