/* SPDX-License-Identifier: Apache-2.0
 *
 * vmm.c - the window of reserved addresses, the host's frames, figures, audit.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/host_room.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/vmm_inside.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/option.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>

#define TiB (GiB << 10)
/* Hints of programs lie in 16 .. 24 TiB. */
#define HINT_END     ((uintptr_t)(24 * TiB))
#define ELSEWHERE    (512 * GiB) /* where they are not free */
#define LEAST        (2 * GiB)
#define GRANULES_GIB (GiB / BLYI_GRANULE)

struct blyi_vmm blyi_vmm = {.lock = BLYI_LOCK_INIT(BLYI_RANK_VMM),
                            .host = BLYI_LIST_INIT(blyi_vmm.host)};

static bly_status open_window(struct blyi_window **out)
{
    static const uint64_t starts[] = {16 * TiB, 17 * TiB}; /* AddressSanitizer ends behind 16 */
    uint64_t size = (uint64_t)blyi_option_int(BLYI_OPT_VMM_WINDOW);
    bly_status status;
    for (size_t i = 0; i < BLYI_COUNT(starts); i++) {
        uint64_t room = HINT_END - starts[i];
        if (size > room)
            break;
        status = blyi_window_create_at(BLYI_WINDOW_VMM, starts[i],
                                       size > 0 ? blyi_align_up(size, BLYI_GRANULE) : room, out);
        if (status != BLY_E_SYSTEM)
            return status;
    }
    status = blyi_window_create(BLYI_WINDOW_VMM, size > 0 ? size : blyi_window_share(ELSEWHERE),
                                size > 0 && size < LEAST ? size : LEAST, out);
    if (status == BLY_OK)
        blyi_fail_clear(); /* of the places that were tried before */
    return status;
}

static bly_status open_locked(void)
{
    if (likely(blyi_vmm.window != NULL))
        return BLY_OK;
    if (!blyi_vmm.unmapped)
        blyi_vmm.unmapped = blyi_host_calloc(1, sizeof *blyi_vmm.unmapped);
    if (!blyi_vmm.unmapped)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to remember what is unmapped");
    return open_window(&blyi_vmm.window);
}

bly_status blyi_vmm_open_host_locked(void)
{
    if (blyi_vmm.host_frames)
        return BLY_OK;
    struct blyi_host_room room;
    blyi_host_room_read(&room);
    uint32_t n = (uint32_t)(room.ram / BLYI_FRAME_SIZE);
    n = n > 0 ? n : 1;
    void *memory = blyi_host_calloc(1, blyi_frames_footprint(n));
    if (!memory)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory for the state of %u frames", n);
    bly_status status = blyi_backing_create(BLYI_BACKING_HOST, n, -1, NULL, &blyi_vmm.host_backing);
    if (status != BLY_OK) {
        blyi_host_free(memory);
        return status;
    }
    blyi_vmm.host_frames = blyi_frames_init(memory, n);
    return BLY_OK;
}

struct blyi_reservation *blyi_reservation_find_locked(uintptr_t address)
{
    struct blyi_reservation *r =
        blyi_reservation_of(blyi_tree_floor(&blyi_vmm.reservations, address));
    return r && address - r->node.key < r->size ? r : NULL;
}

/* Alignment that the driver demands of a wish. */
static uint64_t align_of(uint64_t size)
{
    if (size > 512 * MiB)
        return GiB;
    uint64_t align = BLYI_GRANULE;
    while (align < size)
        align *= 2;
    return align;
}

static bly_status take_expected_locked(uint64_t size, uintptr_t expect)
{
    const struct blyi_window *w = blyi_vmm.window;
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    uint64_t align = align_of(size);
    if (expect % align != 0)
        return blyi_fail(BLY_E_INVALID,
                         "reserve %s at 0x%" PRIxPTR ": that many must begin at a multiple of %s",
                         blyi_size_text(size, a), expect, blyi_size_text(align, b));
    if (expect - w->base >= w->size || size > w->size - (expect - w->base))
        return blyi_fail(BLY_E_INVALID,
                         "reserve %s at 0x%" PRIxPTR ": addresses that can be reserved are "
                         "0x%" PRIxPTR " .. 0x%" PRIxPTR,
                         blyi_size_text(size, a), expect, w->base, w->base + w->size);
    bly_status status = blyi_window_take_at(blyi_vmm.window, expect, size / BLYI_GRANULE);
    if (status != BLY_E_INVALID)
        return status;
    const struct blyi_reservation *r =
        blyi_reservation_of(blyi_tree_floor(&blyi_vmm.reservations, expect + size - 1));
    if (!r)
        return blyi_fail(status, "reserve %s at 0x%" PRIxPTR ": the addresses are in use",
                         blyi_size_text(size, a), expect);
    return blyi_fail(
        status, "reserve %s at 0x%" PRIxPTR ": the range 0x%" PRIxPTR " of %s was reserved at %s",
        blyi_size_text(size, a), expect, (uintptr_t)r->node.key, blyi_size_text(r->size, b),
        blyi_site_text(r->site, site));
}

static bly_status take_locked(uint64_t size, uintptr_t expect, uintptr_t *address)
{
    bly_status status = open_locked();
    if (status != BLY_OK)
        return status;
    if (expect != 0) {
        status = take_expected_locked(size, expect);
        if (status == BLY_OK)
            *address = expect;
        return status;
    }
    return blyi_window_take(blyi_vmm.window, size / BLYI_GRANULE, size >= GiB ? GRANULES_GIB : 1,
                            address);
}

bly_status blyi_vmm_reserve(uint64_t size, uintptr_t expect, uint32_t flags, uint32_t site,
                            uintptr_t *address)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    char text[BLYI_SIZE_TEXT];
    if (size == 0 || size > (uint64_t)1 << 50)
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes of addresses were asked", size);
    if ((flags & BLYI_RESERVE_GIB) && size % GiB != 0)
        return blyi_fail(BLY_E_INVALID, "%s of addresses were asked, not a multiple of 1 GiB",
                         blyi_size_text(size, text));
    struct blyi_reservation *r = blyi_host_calloc(1, sizeof *r);
    if (!r)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe reserved addresses");
    uintptr_t at;
    r->size = blyi_align_up(size, BLYI_GRANULE);
    r->of_pool = (flags & BLYI_RESERVE_POOL) != 0;
    r->site = site;
    r->time_ns = blyi_clock_ns();
    blyi_lock_take(&blyi_vmm.lock);
    bly_status status = take_locked(r->size, expect, &at);
    if (status == BLY_OK) {
        blyi_tree_insert(&blyi_vmm.reservations, &r->node, at, 0);
        blyi_vmm.reserved += r->size;
        if (!r->of_pool)
            BLYI_PROBE(VA_RESERVE, .card = -1, .address = at, .size = r->size, .asked = size,
                       .site = site);
        *address = at;
    }
    blyi_lock_drop(&blyi_vmm.lock);
    if (status != BLY_OK)
        blyi_host_free(r);
    return status;
}

static bly_status refuse_release_locked(uintptr_t address)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_reservation *r = blyi_reservation_find_locked(address);
    if (r)
        return blyi_fail(BLY_E_INVALID,
                         "cannot release 0x%" PRIxPTR ": it is %" PRIu64
                         " bytes inside the range 0x%" PRIxPTR " of %s reserved at %s",
                         address, (uint64_t)(address - r->node.key), (uintptr_t)r->node.key,
                         blyi_size_text(r->size, size), blyi_site_text(r->site, site));
    return blyi_fail(BLY_E_INVALID, "cannot release 0x%" PRIxPTR ": no range is reserved there",
                     address);
}

static bly_status refuse_mapped_locked(const struct blyi_reservation *r)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_mapping *first =
        blyi_mapping_of(blyi_tree_ceil(&blyi_vmm.mappings, r->node.key));
    return blyi_fail(BLY_E_INVALID,
                     "cannot release 0x%" PRIxPTR
                     " of %s: mappings in it: %u, the first 0x%" PRIxPTR " of %s made at %s",
                     (uintptr_t)r->node.key, blyi_size_text(r->size, a), r->n_mappings,
                     (uintptr_t)first->node.key, blyi_size_text(first->physical->size, b),
                     blyi_site_text(first->site, site));
}

static void drop_reservation_locked(struct blyi_reservation *r, uint32_t site, bool finalise)
{
    blyi_tree_remove(&blyi_vmm.reservations, &r->node);
    blyi_vmm.reserved -= r->size;
    if (!r->broken)
        blyi_window_give(blyi_vmm.window, r->node.key, r->size / BLYI_GRANULE);
    if (!r->of_pool)
        BLYI_PROBE(VA_RELEASE, .card = -1, .address = r->node.key, .size = r->size, .site = site,
                   .aux = finalise);
    blyi_host_free(r);
}

bly_status blyi_vmm_release(uintptr_t address, uint32_t site)
{
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_vmm.lock);
    struct blyi_reservation *r =
        blyi_reservation_of(blyi_tree_find(&blyi_vmm.reservations, address, 0));
    if (!r)
        status = refuse_release_locked(address);
    else if (r->n_mappings > 0)
        status = refuse_mapped_locked(r);
    else
        drop_reservation_locked(r, site, false);
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

bool blyi_vmm_find(uintptr_t address, struct blyi_reservation_info *out)
{
    if (blyi_runtime_is_forked())
        return false;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_reservation *r = blyi_reservation_find_locked(address);
    if (r)
        *out = (struct blyi_reservation_info){.address = r->node.key,
                                              .size = r->size,
                                              .site = r->site,
                                              .time_ns = r->time_ns,
                                              .n_mappings = r->n_mappings,
                                              .of_pool = r->of_pool};
    blyi_lock_drop(&blyi_vmm.lock);
    return r != NULL;
}

bly_status blyi_vmm_check_own(uintptr_t address)
{
    struct blyi_reservation_info range;
    if (!blyi_vmm_find(address, &range) || !range.of_pool)
        return BLY_OK;
    return blyi_fail(BLY_E_INVALID,
                     "0x%" PRIxPTR " is an address of a memory pool, which alone maps and unmaps "
                     "there",
                     address);
}

void blyi_vmm_figures(int id, struct blyi_vmm_figures *out)
{
    struct blyi_card *card = blyi_card_get(id);
    *out = (struct blyi_vmm_figures){0};
    if (blyi_runtime_is_forked())
        return;
    blyi_lock_take(&blyi_vmm.lock);
    out->reservations = blyi_vmm.reservations.count;
    out->reserved = blyi_vmm.reserved;
    out->mappings = blyi_vmm.mappings.count;
    out->mapped = blyi_vmm.mapped;
    if (blyi_vmm.window) {
        out->window_base = blyi_vmm.window->base;
        out->window_size = blyi_vmm.window->size;
    }
    if (card) {
        struct blyi_physical_sums sums;
        blyi_card_lock(card);
        blyi_physical_sums_locked(card, &sums);
        blyi_card_unlock(card);
        out->handles = sums.count;
        out->handle_bytes = sums.bytes;
        out->orphans = sums.orphans;
        out->orphan_bytes = sums.orphan_bytes;
    } else if (id < 0) {
        BLYI_LIST_FOR(node, &blyi_vmm.host)
        {
            const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
            out->handles++;
            out->handle_bytes += p->size;
            out->orphans += p->n_mappings == 0;
            out->orphan_bytes += p->n_mappings == 0 ? p->size : 0;
        }
    }
    blyi_lock_drop(&blyi_vmm.lock);
}

void blyi_vmm_finalise(void)
{
    if (blyi_runtime_is_forked())
        return;
    struct blyi_tree_node *node;
    blyi_vmm_lock_teardown();
    while ((node = blyi_tree_first(&blyi_vmm.mappings)) != NULL)
        blyi_mapping_remove_locked(blyi_mapping_of(node), 0, true);
    blyi_physical_free_list_locked(&blyi_vmm.host);
    while ((node = blyi_tree_first(&blyi_vmm.reservations)) != NULL)
        drop_reservation_locked(blyi_reservation_of(node), 0, true);
    blyi_lock_drop(&blyi_vmm.lock);
}

/* The entries behind a mapping are as its runs say. */
static bool audit_mapping(const struct blyi_mapping *m)
{
    const struct blyi_physical *p = m->physical;
    int owner = p->card ? p->card->id : BLYI_OWNER_HOST;
    uintptr_t at = m->node.key;
    bool own = p->card && (m->cards >> p->card->id & 1);
    if (m->mapped != (m->cards != 0 || m->host) || (p->refs > 0) != (p->handle != NULL))
        return false;
    if (p->card && blyi_away_is_gone(p->card))
        return true;
    for (uint32_t r = 0; r < p->n_runs; r++)
        for (uint32_t i = 0; i < p->runs[r].count; i++, at += BLYI_GRANULE) {
            uint64_t entry = blyi_window_entry(blyi_vmm.window, at);
            if (!m->mapped && entry != 0)
                return false;
            if (m->mapped && (!(entry & BLYI_ENTRY_MAPPED) || blyi_entry_owner(entry) != owner ||
                              blyi_entry_frame(entry) != p->runs[r].first + i ||
                              ((entry & BLYI_ENTRY_OWN) != 0) != own ||
                              ((entry & BLYI_ENTRY_HOST) != 0) != m->host))
                return false;
        }
    return at == m->node.key + p->size;
}

static bool audit_trees(void)
{
    uint64_t reserved = 0, mapped = 0, end = 0, n_mappings = 0;
    for (struct blyi_tree_node *node = blyi_tree_first(&blyi_vmm.reservations); node;
         node = blyi_tree_next(node)) {
        const struct blyi_reservation *r = blyi_reservation_of(node);
        if (!r->broken && node->key < end)
            return false;
        end = node->key + r->size;
        reserved += r->size;
        n_mappings += r->n_mappings;
    }
    end = 0;
    for (struct blyi_tree_node *node = blyi_tree_first(&blyi_vmm.mappings); node;
         node = blyi_tree_next(node)) {
        const struct blyi_mapping *m = blyi_mapping_of(node);
        const struct blyi_reservation *r = m->reservation;
        if (node->key < end || node->key < r->node.key ||
            node->key + m->physical->size > r->node.key + r->size || !audit_mapping(m))
            return false;
        end = node->key + m->physical->size;
        mapped += m->physical->size;
    }
    return reserved == blyi_vmm.reserved && mapped == blyi_vmm.mapped &&
           n_mappings == blyi_vmm.mappings.count && blyi_tree_audit(&blyi_vmm.reservations) &&
           blyi_tree_audit(&blyi_vmm.mappings);
}

bool blyi_vmm_audit(void)
{
    bool sound = true;
    uint64_t host = 0;
    blyi_lock_take(&blyi_vmm.lock);
    if (blyi_vmm.window)
        sound = blyi_window_audit(blyi_vmm.window) && audit_trees();
    BLYI_LIST_FOR(node, &blyi_vmm.host)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        sound = sound && blyi_physical_audit(p) && (p->refs > 0) == (p->handle != NULL);
        host += p->size / BLYI_FRAME_SIZE;
    }
    if (blyi_vmm.host_frames)
        sound = sound && blyi_frames_audit(blyi_vmm.host_frames) &&
                blyi_backing_audit(blyi_vmm.host_backing) &&
                host + blyi_frames_free(blyi_vmm.host_frames) ==
                    blyi_frames_total(blyi_vmm.host_frames);
    blyi_lock_drop(&blyi_vmm.lock);
    return sound;
}
