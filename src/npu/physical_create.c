/* SPDX-License-Identifier: Apache-2.0
 *
 * physical_create.c - physical memory is made: what may be asked for, frames, what others give back
 * first, the sentence where there is none.
 */
#include "npu/away.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/pinned.h"
#include "npu/relief.h"
#include "npu/runtime.h"
#include "npu/shortage.h"
#include "npu/snapshot.h"
#include "npu/tally.h"
#include "npu/vmm_inside.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/size.h"
#include "base/stat.h"
#include <inttypes.h>

#define SIZE_MAX_ASKED ((uint64_t)1 << 50)

struct attempt {
    uint64_t began_ns; /* when the call did; for probes */
    enum blyi_short kind;
    bool short_of_frames, capped;  /* no sentence yet */
    uint64_t needed, free, usable; /* of a card that was short of frames; for probes */
    void *handle; /* of the memory made: once the lock is dropped, who guesses it can free it */
};

static bly_status try_card_locked(struct blyi_physical *p, struct attempt *try)
{
    struct blyi_card *card = p->card;
    try->short_of_frames = try->capped = false;
    if (p->size > card->total) {
        try->short_of_frames = true;
        return BLY_E_NO_MEMORY;
    }
    if (!blyi_cap_take(p->size)) {
        try->capped = true;
        return BLY_E_CAP;
    }
    bly_status status = blyi_physical_take_frames_locked(p, try->kind, &try->short_of_frames);
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, p, NULL, &p->handle);
    if (status != BLY_OK) {
        if (p->n_runs > 0)
            blyi_physical_give_frames_locked(p);
        blyi_cap_give(p->size);
        return status;
    }
    p->id = try->handle = p->handle;
    blyi_list_push_back(&card->physicals, &p->link);
    blyi_physical_account_locked(card, (int64_t)p->size);
    if (!p->of_pool) /* told by the pools' own cells */
        blyi_tally_row(BLYI_ROW_HANDLE, card->id, p->site, p->size, 1);
    blyi_physical_tell(p, true, false, try->began_ns);
    return BLY_OK;
}

static bly_status create_card(struct blyi_physical *p, struct attempt *try)
{
    bly_status status;
    struct blyi_relief relief = {0};
    for (;;) {
        status = blyi_card_lock_present(p->card);
        if (status != BLY_OK)
            return status;
        status = try_card_locked(p, try);
        bool is_short = status != BLY_OK && (try->short_of_frames || try->capped) && !p->of_pool;
        if (is_short && relief.over) {
            if (!try->capped)
                blyi_shortage_room_locked(p->card, try->kind, &try->free, &try->usable);
            status = try->capped
                         ? blyi_shortage_cap_locked(p->card, p->asked, p->size, NULL)
                         : blyi_shortage_card_locked(p->card, p->asked, p->size, try->kind, NULL);
            blyi_relief_append(&relief);
        }
        blyi_card_unlock(p->card);
        if (!is_short || relief.over)
            return status;
        blyi_relief_seek(&relief, p->card, p->size, try->capped);
    }
}

static bly_status create_host_locked(struct blyi_physical *p, struct attempt *try)
{
    char a[BLYI_SIZE_TEXT], b[BLYI_SIZE_TEXT];
    bly_status status = blyi_vmm_open_host_locked();
    if (status != BLY_OK)
        return status;
    status = blyi_pinned_book(p->asked, p->size);
    if (status != BLY_OK)
        return status;
    status = blyi_physical_take_frames_locked(p, try->kind, &try->short_of_frames);
    if (try->short_of_frames)
        status =
            blyi_fail(BLY_E_NO_MEMORY, "host memory: no room for %s%s: free %s",
                      blyi_size_text(p->asked, a), p->contiguous ? " in contiguous frames" : "",
                      blyi_size_text(blyi_frames_free(blyi_vmm.host_frames) * BLYI_FRAME_SIZE, b));
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, p, NULL, &p->handle);
    if (status != BLY_OK) {
        if (p->n_runs > 0)
            blyi_physical_give_frames_locked(p);
        blyi_pinned_unbook(p->size);
        return status;
    }
    p->id = try->handle = p->handle;
    blyi_list_push_back(&blyi_vmm.host, &p->link);
    blyi_physical_tell(p, true, false, try->began_ns);
    return BLY_OK;
}

static bly_status check_request(const struct blyi_physical_request *request)
{
    if (request->size == 0 || request->size > SIZE_MAX_ASKED)
        return blyi_fail(BLY_E_INVALID, "%" PRIu64 " bytes of physical memory were asked",
                         request->size);
    if (request->page_kind != BLYI_PAGE_GIANT)
        return BLY_OK;
    if (!request->card)
        return blyi_fail(BLY_E_UNSUPPORTED, "physical memory of the host has no 1 GiB pages");
    if (request->card->model.giant_pages == 0)
        return blyi_fail(BLY_E_UNSUPPORTED, "card %d: model %s has no 1 GiB pages",
                         request->card->id, request->card->model.name);
    return BLY_OK;
}

bly_status blyi_physical_create(const struct blyi_physical_request *request, void **handle)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_PHYS_CREATE);
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    bool giant = request->page_kind == BLYI_PAGE_GIANT;
    struct attempt try = {.began_ns = began_ns,
                          .kind = request->contiguous
                                      ? (giant ? BLYI_SHORT_GIANT_RUN : BLYI_SHORT_RUN)
                                      : (giant ? BLYI_SHORT_GIANT : BLYI_SHORT_HUGE)};
    bly_status status = check_request(request);
    struct blyi_physical *p = status == BLY_OK ? blyi_host_calloc(1, sizeof *p) : NULL;
    if (status == BLY_OK && !p)
        status = blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
    if (status != BLY_OK)
        goto fail;
    p->card = request->card;
    p->asked = request->size;
    p->size = blyi_align_up(request->size, giant ? GiB : BLYI_FRAME_SIZE);
    try.needed = p->size;
    p->page_kind = request->page_kind;
    p->contiguous = request->contiguous;
    p->on_node = request->on_node;
    p->numa = request->numa;
    p->site = request->site;
    p->of_pool = request->of_pool;
    p->refs = 1;
    blyi_list_init(&p->mappings);
    p->time_ns = blyi_clock_ns();
    if (p->card) {
        status = create_card(p, &try);
    } else {
        blyi_lock_take(&blyi_vmm.lock);
        status = create_host_locked(p, &try);
        blyi_lock_drop(&blyi_vmm.lock);
    }
    if (status == BLY_OK) {
        *handle = try.handle;
        return BLY_OK;
    }
    blyi_host_free(p->runs);
    blyi_host_free(p);

fail:
    if (request->of_pool)
        return status;
    BLYI_PROBE(ALLOC_FAIL, .card = request->card ? request->card->id : -1, .size = request->size,
               .asked = request->size, .rounded = try.short_of_frames ? try.needed : 0,
               .backed = try.free, .other = try.usable, .site = request->site, .aux = status,
               .began_ns = try.began_ns);
    return status;
}
