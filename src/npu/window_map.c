/* SPDX-License-Identifier: Apache-2.0
 *
 * window_map.c - what is behind granules: mapping, moving and unmapping, and the budget of host
 * mappings.
 *
 * The kernel merges neighbours that are both unmapped, or both mapped to neighbouring frames.
 * So the number of its mappings is one more than the number of places in the table where two
 * neighbouring granules are neither; the difference is counted at every change.
 */
#include "npu/window_inside.h"
#include "npu/guard.h"
#include "npu/maps.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/size.h"
#include "base/stat.h"
#include "base/sys.h"
#include <errno.h>
#include <string.h>

/* A gap beside what is not backed is part of that; between two that are it is a mapping of its
 * own. */
int blyi_window_borders_between(uint64_t a, uint64_t b)
{
    if (is_backed(a) != is_backed(b))
        return 1;
    if (!is_backed(a))
        return 0;
    if ((a & BLYI_ENTRY_GAP_HIGH) || (b & BLYI_ENTRY_GAP_LOW))
        return 2;
    return blyi_entry_frame(a) + 1 != blyi_entry_frame(b) || ((a ^ b) & BLYI_ENTRY_OWNER_MASK) != 0;
}

int blyi_window_edges(const struct blyi_window *w, uint64_t first, uint64_t n, uint64_t first_entry,
                      uint64_t last_entry)
{
    int borders = 0;
    if (first > 0)
        borders += blyi_window_borders_between(w->entries[first - 1], first_entry);
    else
        borders += (first_entry & BLYI_ENTRY_GAP_LOW) != 0;
    if (first + n < granules_of(w))
        borders += blyi_window_borders_between(last_entry, w->entries[first + n]);
    else
        borders += (last_entry & BLYI_ENTRY_GAP_HIGH) != 0;
    return borders;
}

void blyi_window_count(struct blyi_window *w, int64_t delta)
{
    w->n_mappings = (uint32_t)(w->n_mappings + delta);
    blyi_maps_add(delta);
}

bool blyi_window_unmap_host(uintptr_t address, uint64_t n)
{
    return blyi_sys_mmap((void *)address, n * BLYI_GRANULE, PROT_NONE, RESERVED | MAP_FIXED, -1,
                         0) != MAP_FAILED;
}

int64_t blyi_window_borders(const struct blyi_window *w, uint64_t first, uint64_t n)
{
    int64_t borders = blyi_window_edges(w, first, n, w->entries[first], w->entries[first + n - 1]);
    for (uint64_t i = first; i + 1 < first + n; i++)
        borders += blyi_window_borders_between(w->entries[i], w->entries[i + 1]);
    return borders;
}

bly_status blyi_window_map(struct blyi_window *w, uintptr_t address, int fd, uint32_t first_frame,
                           uint64_t n, uint64_t flags)
{
    uint64_t first = index_of(w, address), entry = BLYI_ENTRY_MAPPED | flags | first_frame;
    bly_assert(n > 0 && first + n <= granules_of(w));
    char who[32];
    int64_t more =
        blyi_window_edges(w, first, n, entry, entry + n - 1) - blyi_window_edges(w, first, n, 0, 0);
    if (unlikely(!blyi_maps_allow(more)))
        return blyi_maps_spent(blyi_window_owner_text(w, who), more);
    void *at = blyi_guard_map((void *)address, n * BLYI_GRANULE, fd,
                              (off_t)(first_frame * BLYI_GRANULE), flags & BLYI_ENTRY_HOST);
    if (at == MAP_FAILED) {
        int error = errno;
        (void)blyi_window_unmap_host(address, n); /* as in map_again() */
        return blyi_maps_refused(blyi_window_owner_text(w, who), n * BLYI_GRANULE, error);
    }
    /* Card memory would be dumped like any shared memory; half a microsecond keeps it out of
     * core files. Best effort: a dump that is too large is not worth a failed call. */
    (void)blyi_sys_madvise(at, n * BLYI_GRANULE, MADV_DONTDUMP);
    for (uint64_t i = 0; i < n; i++)
        entry_store(w, first + i, entry + i);
    blyi_window_count(w, more);
    blyi_stat_add(BLYI_STAT_maps, 1);
    return BLY_OK;
}

bly_status blyi_window_map_pages(struct blyi_window *w, uintptr_t granule, int fd, uint32_t frame,
                                 uint32_t page, uint32_t pages, uint64_t flags)
{
    const uint64_t page_size = 4096;
    uint64_t i = index_of(w, granule);
    uint64_t entry = BLYI_ENTRY_MAPPED | BLYI_ENTRY_PAGES | BLYI_ENTRY_PARTIAL | flags | frame;
    bly_assert(pages > 0 && (page + pages) * page_size <= BLYI_GRANULE);
    if (page > 0)
        entry |= BLYI_ENTRY_GAP_LOW;
    if ((page + pages) * page_size < BLYI_GRANULE)
        entry |= BLYI_ENTRY_GAP_HIGH;
    char who[32];
    int64_t more = blyi_window_edges(w, i, 1, entry, entry) - blyi_window_edges(w, i, 1, 0, 0);
    if (!blyi_maps_allow(more))
        return blyi_maps_spent(blyi_window_owner_text(w, who), more);
    void *at = blyi_guard_map((void *)(granule + page * page_size), pages * page_size, fd,
                              (off_t)(frame * BLYI_GRANULE + page * page_size), false);
    if (at == MAP_FAILED) {
        int error = errno;
        (void)blyi_window_unmap_host(granule, 1); /* as in map_again() */
        return blyi_maps_refused(blyi_window_owner_text(w, who), pages * page_size, error);
    }
    (void)blyi_sys_madvise(at, pages * page_size, MADV_DONTDUMP);
    entry_store(w, i, entry);
    blyi_window_count(w, more);
    blyi_stat_add(BLYI_STAT_maps, 1);
    return BLY_OK;
}

bly_status blyi_window_let_host(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    char who[32];
    if (!blyi_guard_let_host((void *)address, n * BLYI_GRANULE))
        return blyi_maps_refused(blyi_window_owner_text(w, who), n * BLYI_GRANULE, errno);
    blyi_window_set_flags(w, address, n, BLYI_ENTRY_HOST, 0);
    return BLY_OK;
}

void blyi_window_unguard(struct blyi_window *w)
{
    for (uint64_t i = 0, n = 1; i < granules_of(w); i += n) {
        for (n = 1; i + n < granules_of(w); n++)
            if (is_backed(w->entries[i]) != is_backed(w->entries[i + n]) ||
                ((w->entries[i] ^ w->entries[i + n]) & BLYI_ENTRY_PAGES))
                break;
        /* Refused, the range stays closed: whoever touches it is told as for a wild address. */
        if (is_backed(w->entries[i]) && !(w->entries[i] & BLYI_ENTRY_PAGES))
            (void)blyi_sys_mprotect((void *)(w->base + i * BLYI_GRANULE), n * BLYI_GRANULE,
                                    PROT_READ | PROT_WRITE);
    }
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
    int64_t more =
        blyi_window_edges(w, first, n, entry, entry + n - 1) - blyi_window_borders(w, first, n);
    if (!blyi_maps_allow(more))
        return blyi_maps_spent(blyi_window_owner_text(w, who), more);
    bool host = w->entries[first] & BLYI_ENTRY_HOST, was_mapped = is_backed(w->entries[first]);
    void *at = blyi_guard_map((void *)address, n * BLYI_GRANULE, fd,
                              (off_t)(first_frame * BLYI_GRANULE), host);
    if (at == MAP_FAILED) {
        int error = errno;
        if (was_mapped)
            map_again(w, first, n, fd, host);
        else
            (void)blyi_window_unmap_host(address, n); /* as in map_again() */
        return blyi_maps_refused(blyi_window_owner_text(w, who), n * BLYI_GRANULE, error);
    }
    (void)blyi_sys_madvise(at, n * BLYI_GRANULE, MADV_DONTDUMP);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t flags = w->entries[first + i] & ~(BLYI_ENTRY_AWAY | UINT32_MAX);
        entry_store(w, first + i, flags | BLYI_ENTRY_MAPPED | (first_frame + i));
    }
    blyi_window_count(w, more);
    blyi_stat_add(BLYI_STAT_maps, 1);
    return BLY_OK;
}

bool blyi_window_park(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    const uint64_t gone = BLYI_ENTRY_MAPPED | BLYI_ENTRY_COMMITTED | UINT32_MAX;
    uint64_t first = index_of(w, address), mapped = 0;
    bly_assert(n > 0 && first + n <= granules_of(w));
    for (uint64_t i = first; i < first + n; i++)
        mapped += (w->entries[i] & BLYI_ENTRY_MAPPED) != 0;
    if (mapped == 0)
        return true;
    int64_t before = blyi_window_borders(w, first, n);
    if (!blyi_window_unmap_host(address, n))
        return false;
    for (uint64_t i = first; i < first + n; i++)
        entry_store(w, i, (w->entries[i] & ~gone) | BLYI_ENTRY_AWAY);
    blyi_window_count(w, blyi_window_edges(w, first, n, 0, 0) - before);
    blyi_stat_add(BLYI_STAT_unmaps, 1);
    return true;
}

static void tell_runs(const struct blyi_window *w, uint64_t first, uint64_t n,
                      void (*run)(void *arg, uint32_t first, uint32_t count), void *arg)
{
    uint32_t start = 0, count = 0;
    for (uint64_t i = first; i < first + n; i++) {
        if (!(w->entries[i] & BLYI_ENTRY_MAPPED))
            continue;
        uint32_t frame = blyi_entry_frame(w->entries[i]);
        if (count > 0 && frame == start + count) {
            count++;
            continue;
        }
        if (count > 0)
            run(arg, start, count);
        start = frame;
        count = 1;
    }
    if (count > 0)
        run(arg, start, count);
}

bool blyi_window_unmap(struct blyi_window *w, uintptr_t address, uint64_t n)
{
    return blyi_window_unmap_each(w, address, n, NULL, NULL);
}

bool blyi_window_unmap_each(struct blyi_window *w, uintptr_t address, uint64_t n,
                            void (*run)(void *arg, uint32_t first, uint32_t count), void *arg)
{
    uint64_t first = index_of(w, address);
    bly_assert(n > 0 && first + n <= granules_of(w));
    int64_t before = blyi_window_borders(w, first, n);
    bool done = blyi_window_unmap_host(address, n);
    int error = errno;
    if (run)
        tell_runs(w, first, n, run, arg);
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
        blyi_window_count(w, blyi_window_edges(w, first, n, 0, 0) - before);
        blyi_stat_add(BLYI_STAT_unmaps, 1);
        return true;
    }
    if (w->n_aside == 0) {
        char who[32], text[BLYI_SIZE_TEXT];
        blyi_log(BLYI_LOG_WARN, "%s: the kernel refused to unmap %s, kept aside until it does: %s",
                 blyi_window_owner_text(w, who), blyi_size_text(n * BLYI_GRANULE, text),
                 strerror(error));
    }
    w->n_aside += (uint32_t)n;
    return false;
}
