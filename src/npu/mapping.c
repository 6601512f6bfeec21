/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping.c - mapping, unmapping and rights.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/peer.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/vmm_inside.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include "base/stat.h"
#include <inttypes.h>
#include <stdio.h>

struct blyi_mapping *blyi_mapping_find_locked(uintptr_t address)
{
    struct blyi_mapping *m = blyi_mapping_of(blyi_tree_floor(&blyi_vmm.mappings, address));
    return m && address - m->node.key < m->physical->size ? m : NULL;
}

static struct blyi_backing *backing_of(const struct blyi_physical *p)
{
    return p->card ? p->card->backing : blyi_vmm.host_backing;
}

/* Flags of the entries, but for COMMITTED. */
static uint64_t flags_of(const struct blyi_mapping *m)
{
    const struct blyi_physical *p = m->physical;
    uint64_t owner = (uint64_t)(p->card ? p->card->id : BLYI_OWNER_HOST);
    uint64_t flags = owner << BLYI_ENTRY_OWNER_SHIFT;
    if (p->page_kind == BLYI_PAGE_GIANT)
        flags |= BLYI_ENTRY_GIANT;
    if (p->card && (m->cards >> p->card->id & 1))
        flags |= BLYI_ENTRY_OWN;
    if (m->host)
        flags |= BLYI_ENTRY_HOST;
    return flags;
}

/* Maps one run, whose frames are committed here and there. */
static bly_status map_run(const struct blyi_mapping *m, struct blyi_run run, uintptr_t address)
{
    struct blyi_backing *backing = backing_of(m->physical);
    bool committed;
    uint32_t same = blyi_backing_span(backing, run.first, run.count, &committed);
    bly_status status =
        blyi_window_map(blyi_vmm.window, address, blyi_backing_fd(backing), run.first, run.count,
                        flags_of(m) | (committed ? BLYI_ENTRY_COMMITTED : 0));
    for (uint32_t at = same; status == BLY_OK && at < run.count; at += same) {
        same = blyi_backing_span(backing, run.first + at, run.count - at, &committed);
        blyi_window_set_flags(blyi_vmm.window, address + at * BLYI_GRANULE, same,
                              committed ? BLYI_ENTRY_COMMITTED : 0,
                              committed ? 0 : BLYI_ENTRY_COMMITTED);
    }
    return status;
}

/* Puts the memory behind its addresses. Nothing changed on failure. */
static bly_status map_locked(struct blyi_mapping *m)
{
    const struct blyi_physical *p = m->physical;
    uintptr_t at = m->node.key;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        bly_status status = map_run(m, p->runs[i], at);
        if (status != BLY_OK) {
            uint64_t done = (at - m->node.key) / BLYI_GRANULE;
            if (done > 0 && !blyi_window_unmap(blyi_vmm.window, m->node.key, done))
                m->reservation->broken = true;
            return status;
        }
        at += p->runs[i].count * BLYI_GRANULE;
    }
    m->mapped = true;
    return BLY_OK;
}

static bly_status check_place_locked(uintptr_t address, uint64_t size,
                                     struct blyi_reservation **out)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    struct blyi_reservation *r = blyi_reservation_find_locked(address);
    if (!r)
        return blyi_fail(BLY_E_INVALID, "cannot map at 0x%" PRIxPTR ": no range is reserved there",
                         address);
    if (address % BLYI_GRANULE != 0)
        return blyi_fail(BLY_E_INVALID,
                         "cannot map at 0x%" PRIxPTR ": not a multiple of the granularity 2 MiB, "
                         "%" PRIu64 " bytes beyond 0x%" PRIx64,
                         address, address % BLYI_GRANULE, blyi_align_down(address, BLYI_GRANULE));
    uint64_t room = r->size - (address - r->node.key);
    if (size > room)
        return blyi_fail(BLY_E_INVALID,
                         "cannot map %s at 0x%" PRIxPTR ": the range 0x%" PRIxPTR
                         " reserved at %s ends %s behind that",
                         blyi_size_text(size, a), address, (uintptr_t)r->node.key,
                         blyi_site_text(r->site, site), blyi_size_text(room, b));
    if (r->broken)
        return blyi_fail(BLY_E_SYSTEM,
                         "cannot map at 0x%" PRIxPTR ": the kernel refused to unmap in the range "
                         "0x%" PRIxPTR " before, it is out of use",
                         address, (uintptr_t)r->node.key);
    const struct blyi_mapping *m =
        blyi_mapping_of(blyi_tree_floor(&blyi_vmm.mappings, address + size - 1));
    if (m && m->node.key + m->physical->size > address)
        return blyi_fail(BLY_E_INVALID,
                         "cannot map %s at 0x%" PRIxPTR ": 0x%" PRIxPTR
                         " of %s was mapped there at %s",
                         blyi_size_text(size, a), address, (uintptr_t)m->node.key,
                         blyi_size_text(m->physical->size, b), blyi_site_text(m->site, site));
    *out = r;
    return BLY_OK;
}

static const char *owner_text(const struct blyi_physical *p, char buf[32])
{
    if (!p->card)
        return "the host";
    snprintf(buf, 32, "card %d", p->card->id);
    return buf;
}

/* One reserved range holds memory of one card, made here or imported. */
static bly_status check_owner_locked(const struct blyi_reservation *r,
                                     const struct blyi_physical *p)
{
    char a[32], b[32];
    if (r->of_pool != p->of_pool)
        return blyi_fail(BLY_E_INVALID, "memory of a pool is mapped by its pool alone; other "
                                        "processes import what is exported of it");
    if (r->n_mappings == 0)
        return BLY_OK;
    const struct blyi_mapping *m = blyi_mapping_of(blyi_tree_ceil(&blyi_vmm.mappings, r->node.key));
    if (m->physical->card == p->card && m->physical->imported != p->imported)
        return blyi_fail(BLY_E_INVALID,
                         "cannot map %s memory: the range 0x%" PRIxPTR
                         " has memory that was %s; one range has one sort",
                         p->imported ? "imported" : "this process's own", (uintptr_t)r->node.key,
                         p->imported ? "made here" : "imported");
    if (m->physical->card == p->card)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID,
                     "cannot map memory of %s: the range 0x%" PRIxPTR " has memory of %s",
                     owner_text(p, a), (uintptr_t)r->node.key, owner_text(m->physical, b));
}

static void emit(const struct blyi_mapping *m, bool map, uint32_t site, bool by_reset)
{
    const struct blyi_physical *p = m->physical;
    struct blyi_probe probe = {.kind = map ? BLYI_PROBE_MAP : BLYI_PROBE_UNMAP,
                               .card = p->card ? p->card->id : -1,
                               .address = m->node.key,
                               .other = (uintptr_t)p->id,
                               .size = p->size,
                               .site = site,
                               .aux = by_reset};
    if (blyi_probe_on(probe.kind) && !p->of_pool)
        blyi_probe_emit_slow(&probe);
}

static bly_status make_locked(struct blyi_mapping *m, uintptr_t address, uint64_t size,
                              void *handle, bool access)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    struct blyi_physical *p = blyi_physical_get_locked(handle);
    if (!p)
        return BLY_E_HANDLE;
    if (size != p->size)
        return blyi_fail(BLY_E_INVALID, "cannot map %s: the physical memory has %s",
                         blyi_size_text(size, a), blyi_size_text(p->size, b));
    bly_status status = check_place_locked(address, size, &m->reservation);
    if (status == BLY_OK)
        status = check_owner_locked(m->reservation, p);
    if (status != BLY_OK)
        return status;
    m->physical = p;
    m->node.key = address;
    if (access) { /* whose memory it is may touch it at once */
        m->host = !p->card;
        if (p->card)
            m->cards = (uint64_t)1 << p->card->id;
        if (p->imported)
            m->cards |= (uint64_t)1 << p->for_card;
        status = map_locked(m);
        if (status != BLY_OK)
            return status;
    }
    blyi_tree_insert(&blyi_vmm.mappings, &m->node, address, 0);
    m->reservation->n_mappings++;
    blyi_list_push_back(&p->mappings, &m->link);
    blyi_vmm.mapped += size;
    /* relaxed: shortage.c counts orphans under the card's lock alone */
    __atomic_store_n(&p->n_mappings, p->n_mappings + 1, __ATOMIC_RELAXED);
    emit(m, true, m->site, false);
    return BLY_OK;
}

bly_status blyi_mapping_make(uintptr_t address, uint64_t size, uint64_t offset, void *handle,
                             bool access, uint32_t site)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    if (offset != 0)
        return blyi_fail(BLY_E_INVALID,
                         "cannot map at offset %" PRIu64 ": whole handles are mapped, from 0",
                         offset);
    struct blyi_mapping *m = blyi_host_calloc(1, sizeof *m);
    if (!m)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe a mapping");
    m->site = site;
    m->time_ns = blyi_clock_ns();
    bly_status status = blyi_vmm_lock_present();
    if (status == BLY_OK) {
        status = make_locked(m, address, size, handle, access);
        blyi_lock_drop(&blyi_vmm.lock);
    }
    if (status != BLY_OK)
        blyi_host_free(m);
    return status;
}

void blyi_mapping_remove_locked(struct blyi_mapping *m, uint32_t site, bool by_reset)
{
    struct blyi_physical *p = m->physical;
    if (m->mapped && !blyi_window_unmap(blyi_vmm.window, m->node.key, p->size / BLYI_GRANULE))
        m->reservation->broken = true;
    blyi_tree_remove(&blyi_vmm.mappings, &m->node);
    m->reservation->n_mappings--;
    blyi_list_remove(&m->link);
    blyi_vmm.mapped -= p->size;
    __atomic_store_n(&p->n_mappings, p->n_mappings - 1, __ATOMIC_RELAXED);
    blyi_freed_add(blyi_vmm.unmapped, &(struct blyi_freed_block){.address = m->node.key,
                                                                 .backed = p->size,
                                                                 .alloc_site = p->site,
                                                                 .free_site = site,
                                                                 .time_ns = blyi_clock_ns()});
    emit(m, false, site, by_reset);
    blyi_physical_settle_locked(p, by_reset, 0);
    blyi_host_free(m);
}

static bly_status refuse_unmap_locked(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_mapping *m = blyi_mapping_find_locked(address);
    if (m)
        return blyi_fail(BLY_E_INVALID,
                         "cannot unmap 0x%" PRIxPTR ": it is %" PRIu64 " bytes inside 0x%" PRIxPTR
                         " of %s mapped at %s",
                         address, (uint64_t)(address - m->node.key), (uintptr_t)m->node.key,
                         blyi_size_text(m->physical->size, size), blyi_site_text(m->site, site));
    const struct blyi_freed_block *was =
        blyi_vmm.unmapped ? blyi_freed_find(blyi_vmm.unmapped, address) : NULL;
    if (was && was->address == address)
        return blyi_fail(BLY_E_INVALID,
                         "cannot unmap 0x%" PRIxPTR ": unmapped already, %" PRIu64 " us ago at %s",
                         address, (blyi_clock_ns() - was->time_ns) / 1000,
                         blyi_site_text(was->free_site, site));
    return blyi_fail(BLY_E_INVALID, "cannot unmap 0x%" PRIxPTR ": nothing is mapped there",
                     address);
}

bly_status blyi_mapping_remove(uintptr_t address, uint32_t site)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    bly_status status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    struct blyi_mapping *m = blyi_mapping_of(blyi_tree_find(&blyi_vmm.mappings, address, 0));
    if (m)
        blyi_mapping_remove_locked(m, site, false);
    else
        status = refuse_unmap_locked(address);
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

static bly_status grant_locked(struct blyi_mapping *m, int location)
{
    const struct blyi_physical *p = m->physical;
    uint64_t cards = m->cards;
    bool host = m->host;
    if (location == BLYI_LOCATION_HOST)
        m->host = true;
    else
        m->cards |= (uint64_t)1 << location;
    if (m->cards == cards && m->host == host)
        return BLY_OK;
    if (!m->mapped) {
        bly_status status = map_locked(m);
        if (status != BLY_OK) {
            m->cards = cards;
            m->host = host;
        }
        return status;
    }
    bly_status status = BLY_OK;
    if (location == BLYI_LOCATION_HOST) {
        status = blyi_window_let_host(blyi_vmm.window, m->node.key, p->size / BLYI_GRANULE);
        m->host = status == BLY_OK;
    } else if (p->card && location == p->card->id) {
        blyi_window_set_flags(blyi_vmm.window, m->node.key, p->size / BLYI_GRANULE, BLYI_ENTRY_OWN,
                              0);
    }
    return status;
}

bly_status blyi_mapping_grant(uintptr_t address, uint64_t size, int location)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    bly_status status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    struct blyi_mapping *m = blyi_mapping_of(blyi_tree_find(&blyi_vmm.mappings, address, 0));
    if (!m)
        status = blyi_fail(BLY_E_INVALID, "cannot set access: nothing is mapped from 0x%" PRIxPTR,
                           address);
    else if (size != m->physical->size) {
        bool granted = location == BLYI_LOCATION_HOST ? m->host : m->cards >> location & 1;
        status = blyi_fail(granted ? BLY_E_STATE : BLY_E_INVALID,
                           "cannot set access to %s: 0x%" PRIxPTR " is a mapping of %s",
                           blyi_size_text(size, a), address, blyi_size_text(m->physical->size, b));
    } else if (location >= 0 && m->physical->card && location != m->physical->card->id)
        status = blyi_peer_check(location, m->physical->card->id);
    if (status == BLY_OK)
        status = grant_locked(m, location);
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

bly_status blyi_mapping_access(uintptr_t address, int location, bool *granted)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_mapping *m = blyi_mapping_find_locked(address);
    if (!m)
        status = blyi_fail(BLY_E_INVALID, "nothing is mapped at 0x%" PRIxPTR, address);
    else
        *granted = location == BLYI_LOCATION_HOST ? m->host : (m->cards >> location & 1) != 0;
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

bool blyi_mapping_find(uintptr_t address, struct blyi_mapping_info *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_mapping *m = blyi_mapping_find_locked(address);
    if (m)
        *out = (struct blyi_mapping_info){.card = m->physical->card ? m->physical->card->id : -1,
                                          .for_card = blyi_physical_for(m->physical),
                                          .address = m->node.key,
                                          .size = m->physical->size,
                                          .page_kind = m->physical->page_kind,
                                          .host_access = m->host,
                                          .touchable = m->mapped,
                                          .map_site = m->site,
                                          .physical_site = m->physical->site,
                                          .time_ns = m->time_ns};
    blyi_lock_drop(&blyi_vmm.lock);
    return m != NULL;
}

bool blyi_mapping_unmapped(uintptr_t address, struct blyi_unmapped_info *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_freed_block *was =
        blyi_vmm.unmapped ? blyi_freed_find(blyi_vmm.unmapped, address) : NULL;
    if (was)
        *out = (struct blyi_unmapped_info){.address = was->address,
                                           .size = was->backed,
                                           .physical_site = was->alloc_site,
                                           .unmap_site = was->free_site,
                                           .time_ns = was->time_ns};
    blyi_lock_drop(&blyi_vmm.lock);
    return was != NULL;
}
