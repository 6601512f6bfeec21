/* SPDX-License-Identifier: Apache-2.0
 *
 * window.c - reserved addresses, their page tables, and the budget of host mappings.
 *
 * The kernel merges neighbours that are both unmapped, or both mapped to neighbouring frames.
 * So the number of its mappings is one more than the number of places in the table where two
 * neighbouring granules are neither; the difference is counted at every change.
 *
 * Two things can go wrong where no error can be returned. A granule is then set aside with a
 * tag and tried again at the next take:
 *   STALE  the kernel refused to unmap: the old frame is still behind the address
 *   IDLE   no host memory for a node of the free ranges
 */
#include "npu/window.h"
#include "npu/guard.h"
#include "npu/maps.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stat.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ENTRY_STALE ((uint64_t)1 << 40)
#define ENTRY_IDLE  ((uint64_t)1 << 41)
#define WINDOW_MAX  66 /* reserved addresses, pinned, and one per card */
#define SLOT(owner) ((owner) + 2)

/* Frames of different owners lie in different files: never one mapping for the kernel. */
#define ENTRY_KIND BLYI_ENTRY_OWNER_MASK

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* Slot 0 is the window of reserved addresses, 1 the pinned window, n + 2 that of card n.
 * Release/acquire: who finds a window sees it whole. n_slots only grows. */
static _Atomic(struct blyi_window *) windows[WINDOW_MAX];
static _Atomic int n_slots;

static uint64_t granules_of(const struct blyi_window *w)
{
    return w->size / BLYI_GRANULE;
}

static uint64_t index_of(const struct blyi_window *w, uintptr_t address)
{
    return (address - w->base) / BLYI_GRANULE;
}

/* Writers hold the owner's lock, so a plain read of what they wrote is enough for them. */
static void entry_store(struct blyi_window *w, uint64_t i, uint64_t entry)
{
    /* release: pairs with blyi_window_entry() */
    __atomic_store_n(&w->entries[i], entry, __ATOMIC_RELEASE);
}

static const char *owner_text(const struct blyi_window *w, char buf[32])
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
                  owner_text(w, who), blyi_size_text(w->size, text));
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
                          owner_text(w, who), blyi_size_text(asked, a), blyi_size_text(size, b),
                          strerror(error));
            blyi_host_free(w);
            return status;
        }
        size = blyi_align_up(size / 2 > least ? size / 2 : least, BLYI_GRANULE);
    }
    if (size < asked)
        blyi_log(BLYI_LOG_INFO, "%s: %s of addresses instead of %s: %s", owner_text(w, who),
                 blyi_size_text(size, a), blyi_size_text(asked, b), strerror(error));
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
                                  owner_text(w, who), base);
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

static bool is_backed(uint64_t entry)
{
    return (entry & (BLYI_ENTRY_MAPPED | ENTRY_STALE)) != 0;
}

/* Whether the kernel needs a mapping of its own on each side of the line between a and b. */
static int is_border(uint64_t a, uint64_t b)
{
    if (is_backed(a) != is_backed(b))
        return 1;
    return is_backed(a) &&
           (blyi_entry_frame(a) + 1 != blyi_entry_frame(b) || ((a ^ b) & ENTRY_KIND) != 0);
}

/* Borders at the outer edges of [first, first + n), should its first and last entry be these. */
static int edges(const struct blyi_window *w, uint64_t first, uint64_t n, uint64_t first_entry,
                 uint64_t last_entry)
{
    int borders = 0;
    if (first > 0)
        borders += is_border(w->entries[first - 1], first_entry);
    if (first + n < granules_of(w))
        borders += is_border(last_entry, w->entries[first + n]);
    return borders;
}

static void count_mappings(struct blyi_window *w, int64_t delta)
{
    w->n_mappings = (uint32_t)(w->n_mappings + delta);
    blyi_maps_add(delta);
}

static bool unmap_host(uintptr_t address, uint64_t n)
{
    return blyi_sys_mmap((void *)address, n * BLYI_GRANULE, PROT_NONE, RESERVED | MAP_FIXED, -1,
                         0) != MAP_FAILED;
}

bly_status blyi_window_map(struct blyi_window *w, uintptr_t address, int fd, uint32_t first_frame,
                           uint64_t n, uint64_t flags)
{
    uint64_t first = index_of(w, address), entry = BLYI_ENTRY_MAPPED | flags | first_frame;
    bly_assert(n > 0 && first + n <= granules_of(w));
    char who[32];
    int64_t more = edges(w, first, n, entry, entry + n - 1) - edges(w, first, n, 0, 0);
    if (unlikely(!blyi_maps_allow(more)))
        return blyi_maps_spent(owner_text(w, who), more);
    void *at = blyi_guard_map((void *)address, n * BLYI_GRANULE, fd,
                              (off_t)(first_frame * BLYI_GRANULE), flags & BLYI_ENTRY_HOST);
    if (at == MAP_FAILED) {
        int error = errno;
        (void)unmap_host(address, n); /* as in map_again() */
        return blyi_maps_refused(owner_text(w, who), n * BLYI_GRANULE, error);
    }
    /* Card memory would be dumped like any shared memory; half a microsecond keeps it out of
     * core files. Best effort: a dump that is too large is not worth a failed call. */
    (void)blyi_sys_madvise(at, n * BLYI_GRANULE, MADV_DONTDUMP);
    for (uint64_t i = 0; i < n; i++)
        entry_store(w, first + i, entry + i);
    count_mappings(w, more);
    blyi_stat_add(BLYI_STAT_maps, 1);
    return BLY_OK;
}

bly_status blyi_window_let_host(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    char who[32];
    if (!blyi_guard_let_host((void *)address, n * BLYI_GRANULE))
        return blyi_maps_refused(owner_text(w, who), n * BLYI_GRANULE, errno);
    blyi_window_set_flags(w, address, n, BLYI_ENTRY_HOST, 0);
    return BLY_OK;
}

void blyi_window_unguard(struct blyi_window *w)
{
    for (uint64_t i = 0, n = 1; i < granules_of(w); i += n) {
        for (n = 1; i + n < granules_of(w); n++)
            if (is_backed(w->entries[i]) != is_backed(w->entries[i + n]))
                break;
        /* Refused, the range stays closed: whoever touches it is told as for a wild address. */
        if (is_backed(w->entries[i]))
            (void)blyi_sys_mprotect((void *)(w->base + i * BLYI_GRANULE), n * BLYI_GRANULE,
                                    PROT_READ | PROT_WRITE);
    }
}

/* Borders inside [first, first + n) and at its edges. */
static int64_t borders_of(const struct blyi_window *w, uint64_t first, uint64_t n)
{
    int64_t borders = edges(w, first, n, w->entries[first], w->entries[first + n - 1]);
    for (uint64_t i = first; i + 1 < first + n; i++)
        borders += is_border(w->entries[i], w->entries[i + 1]);
    return borders;
}

/* What the entries say: a guard's mapping is made in two steps, of which the first may have been
 * done. Refused again, the range stays without access, and whoever touches it is told so. */
static void map_again(struct blyi_window *w, uint64_t first, uint64_t n, int fd, bool host)
{
    for (uint64_t i = first; i < first + n; i++)
        (void)blyi_guard_map((void *)(w->base + i * BLYI_GRANULE), BLYI_GRANULE, fd,
                             (off_t)(blyi_entry_frame(w->entries[i]) * BLYI_GRANULE), host);
}

bly_status blyi_window_remap(struct blyi_window *w, uintptr_t address, int fd, uint32_t first_frame,
                             uint64_t n)
{
    uint64_t first = index_of(w, address);
    bly_assert(n > 0 && first + n <= granules_of(w));
    char who[32];
    uint64_t kind = w->entries[first] & ENTRY_KIND;
    uint64_t entry = BLYI_ENTRY_MAPPED | kind | first_frame;
    int64_t more = edges(w, first, n, entry, entry + n - 1) - borders_of(w, first, n);
    if (!blyi_maps_allow(more))
        return blyi_maps_spent(owner_text(w, who), more);
    bool host = w->entries[first] & BLYI_ENTRY_HOST;
    void *at = blyi_guard_map((void *)address, n * BLYI_GRANULE, fd,
                              (off_t)(first_frame * BLYI_GRANULE), host);
    if (at == MAP_FAILED) {
        int error = errno;
        map_again(w, first, n, fd, host);
        return blyi_maps_refused(owner_text(w, who), n * BLYI_GRANULE, error);
    }
    (void)blyi_sys_madvise(at, n * BLYI_GRANULE, MADV_DONTDUMP);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t flags = w->entries[first + i] & ~(uint64_t)UINT32_MAX;
        entry_store(w, first + i, flags | (first_frame + i));
    }
    count_mappings(w, more);
    blyi_stat_add(BLYI_STAT_maps, 1);
    return BLY_OK;
}

bool blyi_window_unmap(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    uint64_t first = index_of(w, address);
    bly_assert(n > 0 && first + n <= granules_of(w));
    int64_t before = borders_of(w, first, n);
    bool done = unmap_host(address, n);
    int error = errno;
    for (uint64_t i = first; i < first + n; i++) {
        uint64_t entry = w->entries[i];
        if (done)
            entry_store(w, i, 0);
        else
            entry_store(w, i,
                        is_backed(entry)
                            ? ENTRY_STALE | (entry & ENTRY_KIND) | blyi_entry_frame(entry)
                            : ENTRY_IDLE);
    }
    if (done) {
        count_mappings(w, edges(w, first, n, 0, 0) - before);
        blyi_stat_add(BLYI_STAT_unmaps, 1);
        return true;
    }
    if (w->n_aside == 0) {
        char who[32], text[BLYI_SIZE_TEXT];
        blyi_log(BLYI_LOG_WARN, "%s: the kernel refused to unmap %s, kept aside until it does: %s",
                 owner_text(w, who), blyi_size_text(n * BLYI_GRANULE, text), strerror(error));
    }
    w->n_aside += (uint32_t)n;
    return false;
}

/* Tries again what was set aside. Rare, so it may read the whole table. */
static void retry_aside(struct blyi_window *w)
{
    for (uint64_t i = 0; i < granules_of(w) && w->n_aside > 0; i++) {
        uint64_t entry = w->entries[i];
        if ((entry & (ENTRY_STALE | ENTRY_IDLE)) == 0)
            continue;
        if (entry & ENTRY_STALE) {
            int64_t before = borders_of(w, i, 1);
            if (!unmap_host(w->base + i * BLYI_GRANULE, 1))
                return;
            entry_store(w, i, ENTRY_IDLE);
            count_mappings(w, edges(w, i, 1, 0, 0) - before);
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
                     owner_text(w, who), blyi_size_text(n * BLYI_GRANULE, a),
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
            borders += (uint64_t)is_border(w->entries[i - 1], w->entries[i]);
    }
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
