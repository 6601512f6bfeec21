/* SPDX-License-Identifier: Apache-2.0
 *
 * physical.c - handles: frames taken and given back, references, orphans.
 */
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/pinned.h"
#include "npu/runtime.h"
#include "npu/shortage.h"
#include "npu/vmm_inside.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/handle.h"
#include "base/host.h"
#include "base/reclaim.h"
#include "base/size.h"
#include <inttypes.h>

#define SIZE_MAX_ASKED ((uint64_t)1 << 50)

struct attempt {
    enum blyi_short kind;
    bool short_of_frames, capped; /* no sentence yet */
    void *handle; /* of the memory made: once the lock is dropped, who guesses it can free it */
};

/* How many addresses reach it; also read under the card's lock alone, so relaxed */
static uint32_t n_mappings_of(const struct blyi_physical *p)
{
    return __atomic_load_n(&p->n_mappings, __ATOMIC_RELAXED);
}

static bool add_run(struct blyi_physical *p, struct blyi_run run)
{
    if (p->n_runs > 0) {
        struct blyi_run *last = &p->runs[p->n_runs - 1];
        if (last->first + last->count == run.first) {
            last->count += run.count;
            return true;
        }
    }
    if (p->n_runs == p->max_runs) {
        uint32_t more = p->max_runs > 0 ? 2 * p->max_runs : 1;
        struct blyi_run *runs = blyi_host_realloc(p->runs, more * sizeof *runs);
        if (!runs)
            return false;
        p->runs = runs;
        p->max_runs = more;
    }
    p->runs[p->n_runs++] = run;
    return true;
}

static void append(struct blyi_run *runs, uint32_t *n, uint32_t first, uint32_t count)
{
    if (count == 0)
        return;
    if (*n > 0 && runs[*n - 1].first + runs[*n - 1].count == first)
        runs[*n - 1].count += count;
    else
        runs[(*n)++] = (struct blyi_run){first, count};
}

bly_status blyi_physical_runs_with(const struct blyi_physical *p, uint32_t index, uint32_t first,
                                   uint32_t count, struct blyi_run **out, uint32_t *n_out)
{
    uint32_t n = 0, at = 0, end = index + count;
    struct blyi_run *runs = blyi_host_alloc((p->n_runs + 2) * sizeof *runs);
    if (!runs)
        return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
    for (uint32_t r = 0; r < p->n_runs; at += p->runs[r].count, r++) {
        const struct blyi_run *run = &p->runs[r];
        uint32_t stop = at + run->count;
        uint32_t before = at >= index ? 0 : (stop < index ? stop : index) - at;
        uint32_t after = stop <= end ? 0 : stop - (at > end ? at : end);
        append(runs, &n, run->first, before);
        if (at <= index && index < stop)
            append(runs, &n, first, count);
        append(runs, &n, run->first + run->count - after, after);
    }
    *out = runs;
    *n_out = n;
    return BLY_OK;
}

static void give_host_run(struct blyi_run run)
{
    blyi_frames_give(blyi_vmm.host_frames, run.first, run.count);
    blyi_backing_retire(blyi_vmm.host_backing, run.first, run.count);
}

static void give_run(struct blyi_physical *p, struct blyi_run run)
{
    if (p->card)
        blyi_run_give(p->card, run);
    else
        give_host_run(run);
}

static bool take_run(struct blyi_physical *p, enum blyi_short kind, uint32_t left,
                     struct blyi_run *run)
{
    if (p->card)
        return blyi_run_take(p->card, kind, left, run);
    if (p->contiguous) {
        run->count = left;
        return blyi_frames_take_run(blyi_vmm.host_frames, left, 1, &run->first);
    }
    run->count = blyi_frames_take(blyi_vmm.host_frames, left,
                                  blyi_backing_prefer(blyi_vmm.host_backing), &run->first);
    return run->count > 0;
}

/* The lock of the frames is held: the card's, or VMM. */
static void give_frames_locked(struct blyi_physical *p)
{
    for (uint32_t i = 0; i < p->n_runs; i++)
        give_run(p, p->runs[i]);
    p->n_runs = 0;
    blyi_backing_settle(p->card ? p->card->backing : blyi_vmm.host_backing);
}

static bly_status take_frames_locked(struct blyi_physical *p, struct attempt *try)
{
    struct blyi_frames *frames = p->card ? p->card->frames : blyi_vmm.host_frames;
    struct blyi_backing *backing = p->card ? p->card->backing : blyi_vmm.host_backing;
    uint64_t n = p->size / BLYI_FRAME_SIZE, taken = 0;
    try->short_of_frames = n > blyi_frames_free(frames);
    if (try->short_of_frames)
        return BLY_E_NO_MEMORY;
    while (taken < n) {
        struct blyi_run run;
        if (!take_run(p, try->kind, (uint32_t)(n - taken), &run)) {
            try->short_of_frames = true;
            give_frames_locked(p);
            return BLY_E_NO_MEMORY;
        }
        blyi_backing_reuse(backing, run.first, run.count);
        if (!add_run(p, run)) {
            give_run(p, run);
            give_frames_locked(p);
            return blyi_fail(BLY_E_HOST_MEMORY, "no host memory to describe physical memory");
        }
        taken += run.count;
    }
    return BLY_OK;
}

static void account(struct blyi_card *card, int64_t bytes)
{
    card->live = (uint64_t)((int64_t)card->live + bytes);
    if (card->live > card->peak)
        card->peak = card->live;
    uint64_t *live = &card->modules[BLYI_MODULE_APPLICATION].live;
    uint64_t *peak = &card->modules[BLYI_MODULE_APPLICATION].peak;
    *live = (uint64_t)((int64_t)*live + bytes);
    if (*live > *peak)
        *peak = *live;
}

static void emit(const struct blyi_physical *p, bool create, bool by_reset)
{
    struct blyi_probe probe = {.kind = create ? BLYI_PROBE_PHYS_CREATE : BLYI_PROBE_PHYS_FREE,
                               .card = p->card ? p->card->id : -1,
                               .address = (uintptr_t)p->id,
                               .size = p->size,
                               .asked = p->asked,
                               .rounded = p->size,
                               .backed = p->size,
                               .page_kind = p->page_kind,
                               .site = p->site,
                               .aux = by_reset};
    if (blyi_probe_on(probe.kind))
        blyi_probe_emit_slow(&probe);
}

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
    bly_status status = take_frames_locked(p, try);
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, p, NULL, &p->handle);
    if (status != BLY_OK) {
        if (p->n_runs > 0)
            give_frames_locked(p);
        blyi_cap_give(p->size);
        return status;
    }
    p->id = try->handle = p->handle;
    blyi_list_push_back(&card->physicals, &p->link);
    account(card, (int64_t)p->size);
    emit(p, true, false);
    return BLY_OK;
}

static bly_status create_card(struct blyi_physical *p, struct attempt *try)
{
    bly_status status;
    for (bool again = false;; again = true) {
        blyi_card_lock(p->card);
        status = try_card_locked(p, try);
        bool is_short = status != BLY_OK && (try->short_of_frames || try->capped);
        if (is_short && again)
            status = try->capped
                         ? blyi_shortage_cap_locked(p->card, p->asked, p->size, NULL)
                         : blyi_shortage_card_locked(p->card, p->asked, p->size, try->kind, NULL);
        blyi_card_unlock(p->card);
        if (!is_short || again)
            return status;
        (void)blyi_reclaim_run(p->card->id, p->size); /* the second try words the failure */
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
    status = take_frames_locked(p, try);
    if (try->short_of_frames)
        status =
            blyi_fail(BLY_E_NO_MEMORY, "host memory: no room for %s%s: free %s",
                      blyi_size_text(p->asked, a), p->contiguous ? " in contiguous frames" : "",
                      blyi_size_text(blyi_frames_free(blyi_vmm.host_frames) * BLYI_FRAME_SIZE, b));
    if (status == BLY_OK)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, p, NULL, &p->handle);
    if (status != BLY_OK) {
        if (p->n_runs > 0)
            give_frames_locked(p);
        blyi_pinned_unbook(p->size);
        return status;
    }
    p->id = try->handle = p->handle;
    blyi_list_push_back(&blyi_vmm.host, &p->link);
    emit(p, true, false);
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
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    bool giant = request->page_kind == BLYI_PAGE_GIANT;
    struct attempt try = {.kind = request->contiguous
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
    p->page_kind = request->page_kind;
    p->contiguous = request->contiguous;
    p->on_node = request->on_node;
    p->numa = request->numa;
    p->site = request->site;
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
    BLYI_PROBE(ALLOC_FAIL, .card = request->card ? request->card->id : -1, .size = request->size,
               .asked = request->size, .site = request->site, .aux = status);
    return status;
}

struct blyi_physical *blyi_physical_get_locked(void *handle)
{
    struct blyi_physical *p = blyi_handle_get(BLYI_HANDLE_PHYSICAL, handle);
    if (p)
        blyi_handle_put(handle); /* it is removed under VMM only */
    return p;
}

/* relaxed: walks read it under the card's lock alone */
static uint32_t set_refs_locked(struct blyi_physical *p, uint32_t refs)
{
    __atomic_store_n(&p->refs, refs, __ATOMIC_RELAXED);
    return refs;
}

static void drop_handle_locked(struct blyi_physical *p)
{
    bly_status status = blyi_handle_remove(BLYI_HANDLE_PHYSICAL, p->handle);
    bly_check_msg(status == BLY_OK, "a handle of physical memory is not live");
    p->handle = NULL;
    set_refs_locked(p, 0);
}

void blyi_physical_settle_locked(struct blyi_physical *p, bool by_reset)
{
    struct blyi_card *card = p->card;
    if (p->refs > 0 || p->n_mappings > 0)
        return;
    if (card)
        blyi_card_lock(card);
    blyi_list_remove(&p->link);
    give_frames_locked(p);
    emit(p, false, by_reset);
    if (card) {
        account(card, -(int64_t)p->size);
        blyi_card_unlock(card);
        blyi_cap_give(p->size);
    } else {
        blyi_pinned_unbook(p->size);
    }
    blyi_host_free(p->runs);
    blyi_host_free(p);
}

bly_status blyi_physical_release(void *handle, uint32_t site)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    (void)site; /* the checker will want it */
    blyi_lock_take(&blyi_vmm.lock);
    struct blyi_physical *p = blyi_physical_get_locked(handle);
    if (p && set_refs_locked(p, p->refs - 1) == 0) {
        drop_handle_locked(p);
        blyi_physical_settle_locked(p, false);
    }
    blyi_lock_drop(&blyi_vmm.lock);
    return p ? BLY_OK : BLY_E_HANDLE;
}

static void describe(const struct blyi_physical *p, struct blyi_physical_info *out)
{
    *out = (struct blyi_physical_info){.card = p->card ? p->card->id : BLYI_PHYSICAL_HOST,
                                       .asked = p->asked,
                                       .size = p->size,
                                       .page_kind = p->page_kind,
                                       .contiguous = p->contiguous,
                                       .on_node = p->on_node,
                                       .numa = p->numa,
                                       .refs = __atomic_load_n(&p->refs, __ATOMIC_RELAXED),
                                       .n_mappings = n_mappings_of(p),
                                       .site = p->site,
                                       .time_ns = p->time_ns,
                                       .handle = p->id};
}

bly_status blyi_physical_info(void *handle, struct blyi_physical_info *out)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    blyi_lock_take(&blyi_vmm.lock);
    const struct blyi_physical *p = blyi_physical_get_locked(handle);
    if (p)
        describe(p, out);
    blyi_lock_drop(&blyi_vmm.lock);
    return p ? BLY_OK : BLY_E_HANDLE;
}

bly_status blyi_physical_retain(uintptr_t address, void **handle)
{
    bly_status alive = blyi_runtime_check();
    if (alive != BLY_OK)
        return alive;
    bly_status status = BLY_OK;
    blyi_lock_take(&blyi_vmm.lock);
    struct blyi_mapping *m = blyi_mapping_of(blyi_tree_find(&blyi_vmm.mappings, address, 0));
    if (!m)
        status = blyi_fail(BLY_E_INVALID, "nothing is mapped from 0x%" PRIxPTR, address);
    else if (m->physical->refs == 0)
        status = blyi_handle_create(BLYI_HANDLE_PHYSICAL, m->physical, NULL, &m->physical->handle);
    if (status == BLY_OK) {
        set_refs_locked(m->physical, m->physical->refs + 1);
        *handle = m->physical->handle;
    }
    blyi_lock_drop(&blyi_vmm.lock);
    return status;
}

void blyi_physical_free_list_locked(struct blyi_list *list)
{
    while (!blyi_list_empty(list)) {
        struct blyi_physical *p = BLYI_CONTAINER(list->next, struct blyi_physical, link);
        bly_check(p->n_mappings == 0);
        if (p->handle)
            drop_handle_locked(p);
        blyi_physical_settle_locked(p, true);
    }
}

void blyi_physical_free_all(struct blyi_card *card)
{
    blyi_lock_take(&blyi_vmm.lock);
    struct blyi_tree_node *node = blyi_tree_first(&blyi_vmm.mappings);
    while (node) {
        struct blyi_mapping *m = blyi_mapping_of(node);
        node = blyi_tree_next(node);
        if (m->physical->card == card)
            blyi_mapping_remove_locked(m, 0, true);
    }
    blyi_physical_free_list_locked(&card->physicals);
    blyi_lock_drop(&blyi_vmm.lock);
}

void blyi_physical_sums_locked(const struct blyi_card *card, struct blyi_physical_sums *out)
{
    *out = (struct blyi_physical_sums){0};
    BLYI_LIST_FOR(node, &card->physicals)
    {
        const struct blyi_physical *p = BLYI_CONTAINER(node, struct blyi_physical, link);
        bool orphan = n_mappings_of(p) == 0;
        out->count++;
        out->bytes += p->size;
        out->orphans += orphan;
        out->orphan_bytes += orphan ? p->size : 0;
        for (uint32_t i = 0; i < p->n_runs; i++)
            out->frames += p->runs[i].count;
    }
}

void blyi_physical_walk_locked(struct blyi_card *card,
                               void (*fn)(void *arg, const struct blyi_physical_info *info),
                               void *arg)
{
    struct blyi_physical_info info;
    BLYI_LIST_FOR(node, &card->physicals)
    {
        describe(BLYI_CONTAINER(node, struct blyi_physical, link), &info);
        fn(arg, &info);
    }
}

/* Its frames are taken and as many as its size says. */
bool blyi_physical_audit(const struct blyi_physical *p)
{
    const struct blyi_frames *frames = p->card ? p->card->frames : blyi_vmm.host_frames;
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n_runs; i++) {
        n += p->runs[i].count;
        for (uint32_t k = 0; k < p->runs[i].count; k++)
            if (blyi_frames_is_free(frames, p->runs[i].first + k))
                return false;
    }
    return n * BLYI_FRAME_SIZE == p->size && (!p->contiguous || p->n_runs == 1);
}
