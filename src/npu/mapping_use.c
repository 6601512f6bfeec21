/* SPDX-License-Identifier: Apache-2.0
 *
 * mapping_use.c - the check before a touch of reserved addresses: mapped, allowed, committed.
 */
#include "npu/away.h"
#include "npu/card.h"
#include "npu/peer.h"
#include "npu/runtime.h"
#include "npu/vmm_inside.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/probe.h"
#include "base/site.h"
#include "base/size.h"
#include <inttypes.h>
#include <sched.h>

#define COMMIT_STEP 4 /* as in use.c */

struct range {
    uintptr_t start, end;
    enum blyi_access access;
    int accessor; /* card, or -1: whoever has a right */
    int owner;    /* of pool memory that was refused to the accessor; -1: none was */
};

void blyi_mapping_append_unmapped_locked(uintptr_t bad)
{
    char size[BLYI_SIZE_TEXT], a[BLYI_SITE_TEXT], b[BLYI_SITE_TEXT];
    const struct blyi_freed_block *was = blyi_freed_find(blyi_vmm.unmapped, bad);
    if (was)
        blyi_fail_append("; unmapped %" PRIu64 " us ago at %s: range 0x%" PRIxPTR
                         " of %s, physical memory made at %s",
                         (blyi_clock_ns() - was->time_ns) / 1000, blyi_site_text(was->free_site, a),
                         was->address, blyi_size_text(was->backed, size),
                         blyi_site_text(was->alloc_site, b));
}

static bly_status fail_locked(struct range *range, uintptr_t bad)
{
    char size[BLYI_SIZE_TEXT], site[BLYI_SITE_TEXT];
    const struct blyi_reservation *r = blyi_reservation_find_locked(bad);
    const struct blyi_mapping *m = blyi_mapping_find_locked(bad);
    if (m && m->mapped && m->physical->of_pool && range->accessor >= 0) {
        range->owner = m->physical->card->id;
        return blyi_peer_use(range->accessor, range->owner);
    }
    bly_status status =
        blyi_fail(BLY_E_FAULT, "%s of %s at 0x%" PRIxPTR " touches 0x%" PRIxPTR ", which is ",
                  range->access & BLYI_WRITE ? "write" : "read",
                  blyi_size_text(range->end - range->start, size), range->start, bad);
    if (m && range->accessor >= 0)
        blyi_fail_append("mapped at %s, without access for card %d (aclrtMemSetAccess)",
                         blyi_site_text(m->site, site), range->accessor);
    else if (m)
        blyi_fail_append("mapped at %s, without access for anybody (aclrtMemSetAccess)",
                         blyi_site_text(m->site, site));
    else if (r)
        blyi_fail_append("reserved, not mapped; range 0x%" PRIxPTR " of %s was reserved at %s",
                         (uintptr_t)r->node.key, blyi_size_text(r->size, size),
                         blyi_site_text(r->site, site));
    else
        blyi_fail_append("not reserved");
    if (!m)
        blyi_mapping_append_unmapped_locked(bad);
    return status;
}

/* Memory of a pool is open to the cards that memory of aclrtMalloc is open to. */
static bool allows(const struct blyi_mapping *m, int accessor)
{
    const struct blyi_physical *p = m->physical;
    return m->mapped && (accessor < 0 || (m->cards >> accessor & 1) ||
                         (p->of_pool && blyi_peer_enabled(accessor, p->card->id)));
}

/* First place that may not be touched so, or range->end. */
static uintptr_t find_bad_locked(const struct range *range, uintptr_t at)
{
    while (at < range->end) {
        const struct blyi_mapping *m = blyi_mapping_find_locked(at);
        if (!m || !allows(m, range->accessor))
            return at;
        at = m->node.key + m->physical->size;
    }
    return range->end;
}

/* Commits the next few absent frames; *at moves behind what is committed. */
static bly_status commit_step_locked(struct range *range, uintptr_t *at)
{
    const struct blyi_window *w = blyi_vmm.window;
    while (*at < range->end && (blyi_window_entry(w, *at) & BLYI_ENTRY_COMMITTED))
        *at += BLYI_GRANULE;
    if (*at >= range->end)
        return BLY_OK;
    uintptr_t bad = find_bad_locked(range, *at > range->start ? *at : range->start);
    if (bad < range->end)
        return fail_locked(range, bad);

    const struct blyi_mapping *m = blyi_mapping_find_locked(*at);
    struct blyi_card *card = m->physical->card;
    uintptr_t end = m->node.key + m->physical->size;
    uint32_t n = 1, first = blyi_entry_frame(blyi_window_entry(w, *at));
    for (; n < COMMIT_STEP && *at + n * BLYI_GRANULE < end; n++) {
        uint64_t entry = blyi_window_entry(w, *at + n * BLYI_GRANULE);
        if (*at + n * BLYI_GRANULE >= range->end || (entry & BLYI_ENTRY_COMMITTED) ||
            blyi_entry_frame(entry) != first + n)
            break;
    }
    bly_status status;
    if (card) { /* frames of a card are committed under its lock */
        blyi_card_lock(card);
        status = blyi_backing_commit(card->backing, first, n, (void *)*at);
        blyi_card_unlock(card);
    } else {
        status = blyi_backing_commit(blyi_vmm.host_backing, first, n, (void *)*at);
    }
    if (status != BLY_OK)
        return status;
    blyi_window_set_flags(blyi_vmm.window, *at, n, BLYI_ENTRY_COMMITTED, 0);
    *at += n * BLYI_GRANULE;
    return BLY_OK;
}

bly_status blyi_mapping_use(uintptr_t address, uint64_t size, enum blyi_access access, int accessor)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    struct range range = {address, address + size, access, accessor, -1};
    uintptr_t at = blyi_align_down(address, BLYI_GRANULE);
    bly_status status = blyi_vmm_lock_present();
    if (status != BLY_OK)
        return status;
    uintptr_t bad = find_bad_locked(&range, address);
    status = bad < range.end ? fail_locked(&range, bad) : BLY_OK;
    while (status == BLY_OK) {
        status = commit_step_locked(&range, &at);
        if (at >= range.end)
            break;
        blyi_lock_drop(&blyi_vmm.lock); /* others first: a step takes a millisecond or more */
        sched_yield();
        blyi_lock_take(&blyi_vmm.lock);
    }
    blyi_lock_drop(&blyi_vmm.lock);
    if (unlikely(range.owner >= 0))
        BLYI_PROBE(PEER_FAIL, .card = accessor, .address = address, .size = size, .asked = size,
                   .aux = range.owner);
    return status;
}
