/* SPDX-License-Identifier: Apache-2.0
 *
 * window.c - reserved addresses: windows made and found, their granules taken and given.
 */
#include "npu/window_inside.h"
#include "npu/maps.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW_MAX  66 /* reserved addresses, pinned, and one per card */
#define SLOT(owner) ((owner) + 2)

/* Slot 0 is the window of reserved addresses, 1 the pinned window, n + 2 that of card n.
 * Release/acquire: who finds a window sees it whole. n_slots only grows. */
static _Atomic(struct blyi_window *) windows[WINDOW_MAX];
static _Atomic int n_slots;

const char *blyi_window_owner_text(const struct blyi_window *w, char buf[32])
{
    if (w->owner == BLYI_WINDOW_PINNED)
        return "pinned host memory";
    if (w->owner == BLYI_WINDOW_VMM)
        return "reserved addresses";
    snprintf(buf, 32, "card %d", w->owner);
    return buf;
}

/* Reserves `size` bytes at a multiple of BLYI_WINDOW_ALIGN; 0 when refused. */
static uintptr_t reserve(uint64_t size)
{
    uint64_t whole = size + BLYI_WINDOW_ALIGN;
    void *at = blyi_sys_mmap(NULL, whole, PROT_NONE, RESERVED, -1, 0);
    if (at == MAP_FAILED)
        return 0;
    uintptr_t start = (uintptr_t)at, base = blyi_align_up(start, BLYI_WINDOW_ALIGN);
    if (base > start)
        blyi_sys_munmap(at, base - start);
    uintptr_t end = base + size, whole_end = start + whole;
    if (whole_end > end)
        blyi_sys_munmap((void *)end, whole_end - end);
    return base;
}

static struct blyi_window *new_window(int owner)
{
    bly_assert(owner >= BLYI_WINDOW_VMM && SLOT(owner) < WINDOW_MAX);
    struct blyi_window *w = blyi_host_calloc(1, sizeof *w);
    if (!w) {
        blyi_fail(BLY_E_HOST_MEMORY, "no host memory for an address window");
        return NULL;
    }
    w->owner = owner;
    return w;
}

/* Gives reserved addresses their table and makes the window findable; undoes all on failure. */
static bly_status finish_window(struct blyi_window *w, struct blyi_window **out)
{
    char who[32], text[BLYI_SIZE_TEXT];
    bly_status status = BLY_E_HOST_MEMORY;
    blyi_ranges_init(&w->free_granules);
    w->entries = blyi_host_calloc(granules_of(w), sizeof *w->entries);
    if (w->entries)
        status = blyi_ranges_add(&w->free_granules, 0, granules_of(w));
    else
        blyi_fail(BLY_E_HOST_MEMORY, "%s: no host memory for the table of %s of addresses",
                  blyi_window_owner_text(w, who), blyi_size_text(w->size, text));
    if (status != BLY_OK) {
        blyi_host_free(w->entries);
        blyi_ranges_fini(&w->free_granules);
        blyi_sys_munmap((void *)w->base, w->size);
        blyi_host_free(w);
        return status;
    }
    w->n_mappings = 1;
    blyi_maps_add(1);
    int slot = SLOT(w->owner), slots = atomic_load_explicit(&n_slots, memory_order_relaxed);
    atomic_store_explicit(&windows[slot], w, memory_order_release);
    while (slots < slot + 1 &&
           !atomic_compare_exchange_weak_explicit(&n_slots, &slots, slot + 1, memory_order_release,
                                                  memory_order_relaxed))
        ;
    *out = w;
    return BLY_OK;
}

bly_status blyi_window_create(int owner, uint64_t size, uint64_t least, struct blyi_window **out)
{
    char who[32], a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    struct blyi_window *w = new_window(owner);
    if (!w)
        return BLY_E_HOST_MEMORY;
    least = blyi_align_up(least, BLYI_GRANULE);
    size = blyi_align_up(size > least ? size : least, BLYI_GRANULE);
    uint64_t asked = size;
    int error = 0;
    while ((w->base = reserve(size)) == 0) {
        error = errno;
        if (size == least) {
            bly_status status =
                blyi_fail(BLY_E_SYSTEM,
                          "%s: no addresses: %s were asked, at last %s; mmap: %s (a limit of "
                          "address space, ulimit -v, has this effect)",
                          blyi_window_owner_text(w, who), blyi_size_text(asked, a),
                          blyi_size_text(size, b), strerror(error));
            blyi_host_free(w);
            return status;
        }
        size = blyi_align_up(size / 2 > least ? size / 2 : least, BLYI_GRANULE);
    }
    if (size < asked)
        blyi_log(BLYI_LOG_INFO, "%s: %s of addresses instead of %s: %s",
                 blyi_window_owner_text(w, who), blyi_size_text(size, a), blyi_size_text(asked, b),
                 strerror(error));
    w->size = size;
    return finish_window(w, out);
}

bly_status blyi_window_create_at(int owner, uintptr_t base, uint64_t size, struct blyi_window **out)
{
    char who[32];
    struct blyi_window *w = new_window(owner);
    if (!w)
        return BLY_E_HOST_MEMORY;
    /* A wish, not MAP_FIXED_NOREPLACE: ThreadSanitizer changes addresses that it cannot shadow. */
    void *at = blyi_sys_mmap((void *)base, size, PROT_NONE, RESERVED, -1, 0);
    if (at == (void *)base) {
        w->base = base;
        w->size = size;
        return finish_window(w, out);
    }
    bly_status status = blyi_fail(BLY_E_SYSTEM, "%s: addresses at 0x%" PRIxPTR " are not free",
                                  blyi_window_owner_text(w, who), base);
    if (at != MAP_FAILED)
        blyi_sys_munmap(at, size);
    blyi_host_free(w);
    return status;
}

void blyi_window_destroy(struct blyi_window *w)
{
    if (!w)
        return;
    atomic_store_explicit(&windows[SLOT(w->owner)], NULL, memory_order_release);
    blyi_sys_munmap((void *)w->base, w->size);
    blyi_maps_add(-(int64_t)w->n_mappings);
    blyi_ranges_fini(&w->free_granules);
    blyi_host_free(w->live);
    blyi_host_free(w->entries);
    blyi_host_free(w);
}

/* Not MADV_DONTFORK: it is lost where something else is mapped, so each map would pay for it. */
void blyi_window_forget_all(void)
{
    int n = atomic_exchange(&n_slots, 0);
    for (int i = 0; i < n; i++) {
        struct blyi_window *w = atomic_load(&windows[i]);
        if (w)
            blyi_sys_munmap((void *)w->base, w->size);
    }
}

struct blyi_window *blyi_window_find(uintptr_t address)
{
    int n = atomic_load_explicit(&n_slots, memory_order_acquire);
    for (int i = 0; i < n; i++) {
        struct blyi_window *w = atomic_load_explicit(&windows[i], memory_order_acquire);
        if (w && address - w->base < w->size)
            return w;
    }
    return NULL;
}

/* Tries again what was set aside. Rare, so it may read the whole table. */
static void retry_aside(struct blyi_window *w)
{
    for (uint64_t i = 0; i < granules_of(w) && w->n_aside > 0; i++) {
        uint64_t entry = w->entries[i];
        if ((entry & (ENTRY_STALE | ENTRY_IDLE)) == 0)
            continue;
        if (entry & ENTRY_STALE) {
            int64_t before = blyi_window_borders(w, i, 1);
            if (!blyi_window_unmap_host(w->base + i * BLYI_GRANULE, 1))
                return;
            entry_store(w, i, ENTRY_IDLE);
            blyi_window_count(w, blyi_window_edges(w, i, 1, 0, 0) - before);
        }
        if (blyi_ranges_add(&w->free_granules, i, 1) != BLY_OK)
            return;
        entry_store(w, i, 0);
        w->n_aside--;
    }
}

bly_status blyi_window_take(struct blyi_window *w, uint64_t n, uint64_t align, uintptr_t *address)
{
    uint64_t first;
    if (unlikely(w->n_aside > 0))
        retry_aside(w);
    bly_status status = blyi_ranges_take(&w->free_granules, n, align, &first);
    if (status == BLY_OK) {
        *address = w->base + first * BLYI_GRANULE;
        return BLY_OK;
    }
    if (status != BLY_E_NO_MEMORY)
        return status;
    char who[32], a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], c[BLYI_SIZE_TEXT], d[BLYI_SIZE_TEXT];
    return blyi_fail(BLY_E_NO_MEMORY,
                     "%s: addresses, not memory, ran out: %s in a row were asked, the longest free "
                     "range is %s, free %s of the window's %s",
                     blyi_window_owner_text(w, who), blyi_size_text(n * BLYI_GRANULE, a),
                     blyi_size_text(blyi_ranges_largest(&w->free_granules) * BLYI_GRANULE, b),
                     blyi_size_text(w->free_granules.total * BLYI_GRANULE, c),
                     blyi_size_text(w->size, d));
}

bly_status blyi_window_take_at(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    if (unlikely(w->n_aside > 0))
        retry_aside(w);
    return blyi_ranges_take_at(&w->free_granules, index_of(w, address), n);
}

void blyi_window_give(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    uint64_t first = index_of(w, address);
    if (likely(blyi_ranges_add(&w->free_granules, first, n) == BLY_OK))
        return;
    for (uint64_t i = first; i < first + n; i++)
        entry_store(w, i, ENTRY_IDLE);
    w->n_aside += (uint32_t)n;
}

void blyi_window_set_flags(struct blyi_window *w, uintptr_t address, uint64_t n, uint64_t set,
                           uint64_t clear)
{
    uint64_t first = index_of(w, address);
    for (uint64_t i = first; i < first + n; i++)
        entry_store(w, i, (w->entries[i] & ~clear) | set);
}

/* Free granules have empty entries; the counts agree with the table. */
bool blyi_window_audit(const struct blyi_window *w)
{
    if (!blyi_ranges_audit(&w->free_granules))
        return false;
    uint64_t aside = 0, borders = 0;
    for (uint64_t i = 0; i < granules_of(w); i++) {
        aside += (w->entries[i] & (ENTRY_STALE | ENTRY_IDLE)) != 0;
        if (i > 0)
            borders += (uint64_t)blyi_window_borders_between(w->entries[i - 1], w->entries[i]);
    }
    borders += (w->entries[0] & BLYI_ENTRY_GAP_LOW) != 0;
    borders += (w->entries[granules_of(w) - 1] & BLYI_ENTRY_GAP_HIGH) != 0;
    for (const struct blyi_tree_node *node = blyi_tree_first(&w->free_granules.by_size); node;
         node = blyi_tree_next(node))
        for (uint64_t i = node->sub; i < node->sub + node->key; i++)
            if (w->entries[i] != 0)
                return false;
    return aside == w->n_aside && borders + 1 == w->n_mappings;
}

uint64_t blyi_window_mappings(uint64_t *budget)
{
    *budget = blyi_maps_budget();
    return blyi_maps_used();
}
