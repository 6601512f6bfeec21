/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c - blocks of card memory: allocation by page kind, free, reset.
 *
 * Everything about a block happens under its card's lock, probes included, so that a sink sees
 * the free of an address before the next allocation there.
 */
#include "npu/memory.h"
#include "npu/away.h"
#include "npu/cap.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/mem_block.h"
#include "npu/relief.h"
#include "npu/round.h"
#include "npu/runtime.h"
#include "npu/shortage.h"
#include "npu/snapshot.h"
#include "npu/span.h"
#include "npu/tally.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/site.h"
#include "base/size.h"
#include "base/stat.h"
#include <inttypes.h>

#define LOW_FRAMES ((uint32_t)(4 * GiB / BLYI_FRAME_SIZE))

/* One try to find room. */
struct attempt {
    const struct blyi_mem_request *request;
    enum blyi_page_kind page_kind;
    enum blyi_short kind; /* what is needed, and named when it is short */
    uint64_t backed;
    uint64_t began_ns;     /* when the call did; for probes */
    bool short_of_frames;  /* E_NO_MEMORY has no sentence yet */
    bool capped;           /* E_CAP likewise */
    uint64_t free, usable; /* of the card, when it was short of frames; for probes */
};

uint64_t blyi_page_bytes(enum blyi_page_kind kind)
{
    static const uint64_t bytes[BLYI_PAGE_KIND_COUNT] = {BLYI_PAGE_SIZE, BLYI_FRAME_SIZE, GiB};
    return bytes[kind];
}

struct blyi_block *blyi_block_find_locked(struct blyi_card *card, uintptr_t address)
{
    struct blyi_block *block = blyi_block_of(blyi_tree_floor(&card->blocks, address));
    return block && address - blyi_block_start(block) < block->backed ? block : NULL;
}

static struct attempt plan(const struct blyi_mem_request *request, enum blyi_page_kind page_kind)
{
    struct attempt try = {.request = request, .page_kind = page_kind};
    bool contiguous = request->flags & BLYI_MEM_CONTIGUOUS;
    try.backed = blyi_align_up(request->rounded, blyi_page_bytes(page_kind));
    if (page_kind == BLYI_PAGE_GIANT)
        try.kind = contiguous ? BLYI_SHORT_GIANT_RUN : BLYI_SHORT_GIANT;
    else if (request->flags & BLYI_MEM_LOW)
        try.kind = BLYI_SHORT_LOW;
    else if (contiguous)
        try.kind = BLYI_SHORT_RUN;
    else
        try.kind = page_kind == BLYI_PAGE_HUGE ? BLYI_SHORT_HUGE : BLYI_SHORT_NORMAL;
    return try;
}

/* Unused pages of a partial frame that is there already; false when none has enough. */
static bool place_in_partial(struct blyi_card *card, const struct attempt *try,
                             struct blyi_block *block, uintptr_t *address)
{
    bool low = try->request->flags & BLYI_MEM_LOW;
    struct blyi_partial *partial =
        blyi_partial_choose(card->partials, block->pages, low ? LOW_FRAMES : UINT32_MAX);
    if (!partial)
        return false;
    uint32_t page = blyi_partial_fit(partial, block->pages);
    blyi_partial_take(card->partials, partial, page, block->pages,
                      block->flags & BLYI_MEM_READONLY);
    *address = partial->address + page * BLYI_PAGE_SIZE;
    return true;
}

/* Frames of its own, the last of them partial when there is a tail. */
static bly_status place_in_frames(struct blyi_card *card, struct attempt *try,
                                  struct blyi_block *block, uintptr_t *address)
{
    bool readonly = block->flags & BLYI_MEM_READONLY;
    static const uint64_t page_flags[BLYI_PAGE_KIND_COUNT] = {
        [BLYI_PAGE_NORMAL] = BLYI_ENTRY_SMALL, [BLYI_PAGE_GIANT] = BLYI_ENTRY_GIANT};
    struct blyi_span_request span = {.n = block->whole + (block->pages > 0),
                                     .kind = try->kind,
                                     .flags = (readonly ? BLYI_ENTRY_READONLY : 0) |
                                              page_flags[block->page_kind]};
    struct blyi_partial *partial = NULL;
    if (block->pages > 0) {
        partial = blyi_partial_new();
        if (!partial)
            return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory for a partial frame",
                             card->id);
    }
    bly_status status = blyi_span_take(card, &span, address, &try->short_of_frames);
    if (status != BLY_OK) {
        blyi_partial_drop(partial);
        return status;
    }
    if (partial) {
        uintptr_t tail = *address + block->whole * BLYI_GRANULE;
        /* Read-only pages of a partial frame are kept by page. */
        blyi_window_set_flags(card->window, tail, 1, BLYI_ENTRY_PARTIAL, BLYI_ENTRY_READONLY);
        blyi_partial_add(card->partials, partial, tail,
                         blyi_entry_frame(blyi_window_entry(card->window, tail)));
        blyi_partial_take(card->partials, partial, 0, block->pages, readonly);
    }
    return BLY_OK;
}

static void account_alloc(struct blyi_card *card, const struct blyi_block *block)
{
    uint64_t *live = &card->modules[block->module].live, *peak = &card->modules[block->module].peak;
    card->live += block->backed;
    *live += block->backed;
    if (card->live > card->peak)
        card->peak = card->live;
    if (*live > *peak)
        *peak = *live;
}

/* The kinds of pages that a policy tries, in order. */
static int page_kinds(const struct blyi_mem_request *request, enum blyi_page_kind kinds[2])
{
    switch (request->policy) {
    case BLYI_MEM_HUGE_ONLY:
        kinds[0] = BLYI_PAGE_HUGE;
        return 1;
    case BLYI_MEM_GIANT_ONLY:
        kinds[0] = BLYI_PAGE_GIANT;
        return 1;
    case BLYI_MEM_HUGE_FIRST:
        if (request->rounded > BLYI_MEM_HUGE_ABOVE) {
            kinds[0] = BLYI_PAGE_HUGE;
            kinds[1] = BLYI_PAGE_NORMAL;
            return 2;
        }
        break;
    case BLYI_MEM_NORMAL_ONLY:
        break;
    }
    kinds[0] = BLYI_PAGE_NORMAL;
    return 1;
}

/* What the request would take without aclrtMalloc's 32 bytes more; for the report of waste. */
static uint64_t backed_unpadded(const struct attempt *try)
{
    struct blyi_mem_request twin = *try->request;
    enum blyi_page_kind kinds[2];
    blyi_round_size(twin.asked, false, &twin.rounded); /* the padded size did fit in 64 bits */
    if (twin.rounded >= try->request->rounded)
        return try->backed;
    page_kinds(&twin, kinds);
    return plan(&twin, try->page_kind == BLYI_PAGE_HUGE ? kinds[0] : try->page_kind).backed;
}

static bly_status try_locked(struct blyi_card *card, struct attempt *try, struct blyi_block *block,
                             uintptr_t *address)
{
    const struct blyi_mem_request *request = try->request;
    uintptr_t at = 0;
    bly_status status = BLY_OK;
    try->short_of_frames = try->capped = false;
    if (request->rounded > card->total) { /* also keeps the sums below from overflow */
        try->short_of_frames = true;
        return BLY_E_NO_MEMORY;
    }
    if (!blyi_cap_take(try->backed)) {
        try->capped = true;
        return BLY_E_CAP;
    }
    bool normal = try->page_kind == BLYI_PAGE_NORMAL;
    blyi_tails_settle_locked(card);
    *block = (struct blyi_block){
        .asked = request->asked,
        .rounded = request->rounded,
        .backed = try->backed,
        .site = request->site,
        .flags = request->flags,
        .whole = (uint32_t)(try->backed / BLYI_FRAME_SIZE),
        .pages = normal ? (uint32_t)(try->backed % BLYI_FRAME_SIZE / BLYI_PAGE_SIZE) : 0,
        .module = request->module < BLYI_MODULE_COUNT ? request->module : BLYI_MODULE_APPLICATION,
        .page_kind = try->page_kind};
    if (block->whole > 0 || !place_in_partial(card, try, block, &at))
        status = place_in_frames(card, try, block, &at);
    if (status != BLY_OK) {
        blyi_cap_give(try->backed);
        return status;
    }
    block->time_ns = blyi_clock_ns();
    block->serial = blyi_block_serial();
    blyi_tree_insert(&card->blocks, &block->node, at, 0);
    account_alloc(card, block);
    blyi_tally_row(BLYI_ROW_BLOCK, card->id, block->site, block->backed, 1);
    BLYI_PROBE(ALLOC, .card = card->id, .address = at, .size = block->asked, .asked = block->asked,
               .rounded = block->rounded, .backed = block->backed, .page_kind = block->page_kind,
               .site = block->site, .time_ns = try->began_ns ? 0 : block->time_ns,
               .began_ns = try->began_ns, .aux = (int64_t)backed_unpadded(try));
    *address = at;
    return BLY_OK;
}

/* All kinds in turn. On failure *first tells about the first one, whose shortage is named. */
static bly_status try_kinds_locked(struct blyi_card *card, const struct blyi_mem_request *request,
                                   struct blyi_block *block, uintptr_t *address,
                                   struct attempt *first)
{
    enum blyi_page_kind kinds[2];
    int n = page_kinds(request, kinds);
    uint64_t began_ns = first->began_ns;
    *first = plan(request, kinds[0]);
    first->began_ns = began_ns;
    bly_status status = try_locked(card, first, block, address);
    if (n == 1 || !first->short_of_frames)
        return status;
    struct attempt second = plan(request, kinds[1]);
    second.began_ns = began_ns;
    bly_status other = try_locked(card, &second, block, address);
    return second.short_of_frames ? status : other;
}

static bly_status word_locked(struct blyi_card *card, struct attempt *try, bly_status status)
{
    if (try->capped)
        return blyi_shortage_cap_locked(card, try->request->asked, try->backed, NULL);
    if (!try->short_of_frames)
        return status;
    blyi_shortage_room_locked(card, try->kind, &try->free, &try->usable);
    return blyi_shortage_card_locked(card, try->request->asked, try->backed, try->kind, NULL);
}

static bly_status check_request(const struct blyi_card *card,
                                const struct blyi_mem_request *request)
{
    if (request->rounded == 0)
        return blyi_fail(BLY_E_INVALID, "card %d: a block of 0 bytes was asked", card->id);
    if (request->policy == BLYI_MEM_GIANT_ONLY && !card->model.giant_pages)
        return blyi_fail(BLY_E_UNSUPPORTED, "card %d: model %s has no pages of 1 GiB", card->id,
                         card->model.name);
    return BLY_OK;
}

bly_status blyi_mem_alloc(struct blyi_card *card, const struct blyi_mem_request *request,
                          void **address)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_ALLOC);
    bly_status alive = blyi_snapshot_check();
    if (alive != BLY_OK)
        return alive;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    uintptr_t at = 0;
    struct attempt try = {.began_ns = began_ns};
    struct blyi_block *block = NULL;
    bly_status status = check_request(card, request);
    if (status != BLY_OK)
        goto fail;
    block = blyi_host_alloc(sizeof *block);
    if (!block) {
        status =
            blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to describe a block", card->id);
        goto fail;
    }
    struct blyi_relief relief = {0};
    for (;;) {
        status = blyi_card_lock_present(card);
        if (status != BLY_OK)
            goto fail;
        status = try_kinds_locked(card, request, block, &at, &try);
        bool is_short = status != BLY_OK && (try.short_of_frames || try.capped);
        if (is_short && relief.over) {
            status = word_locked(card, &try, status);
            blyi_relief_append(&relief);
        }
        blyi_card_unlock(card);
        if (!is_short || relief.over)
            break;
        blyi_relief_seek(&relief, card, try.backed, try.capped);
    }
    if (status == BLY_OK) {
        *address = (void *)at;
        return BLY_OK;
    }

fail:
    blyi_host_free(block);
    BLYI_PROBE(ALLOC_FAIL, .card = card->id, .size = request->asked, .asked = request->asked,
               .rounded = try.short_of_frames ? try.backed : 0, .backed = try.free,
               .other = try.usable, .site = request->site, .aux = status, .began_ns = began_ns);
    return status;
}

/* Its frames, and its pages of a partial frame. */
static void give_frames_locked(struct blyi_card *card, const struct blyi_block *block)
{
    uintptr_t address = blyi_block_start(block), tail = address + block->whole * BLYI_GRANULE;
    uint32_t n = block->whole;
    if (block->pages > 0) {
        struct blyi_partial *partial = blyi_partial_of(
            card->partials, blyi_entry_frame(blyi_window_entry(card->window, tail)));
        blyi_partial_give(card->partials, partial,
                          (uint32_t)((tail - partial->address) / BLYI_PAGE_SIZE), block->pages);
        if (partial->n_used == 0) {
            if (block->whole == 0)
                address = partial->address;
            blyi_partial_remove(card->partials, partial);
            n++;
        } else {
            (void)blyi_tails_after_give_locked(card, partial);
        }
    }
    if (n > 0)
        blyi_span_give(card, address, n);
}

/* Takes a block out of the card; the caller frees the structure. */
static void take_down_locked(struct blyi_card *card, struct blyi_block *block, uint32_t site)
{
    blyi_tree_remove(&card->blocks, &block->node);
    if (unlikely(block->hold.generation != 0))
        blyi_share_free_block_locked(card, block, site);
    else
        give_frames_locked(card, block);
    blyi_tally_row(BLYI_ROW_BLOCK, card->id, block->site, block->backed, -1);
    card->live -= block->backed;
    card->modules[block->module].live -= block->backed;
    blyi_cap_give(block->backed);
    blyi_freed_add(card->freed, &(struct blyi_freed_block){.address = blyi_block_start(block),
                                                           .asked = block->asked,
                                                           .backed = block->backed,
                                                           .alloc_site = block->site,
                                                           .free_site = site,
                                                           .time_ns = blyi_clock_ns()});
}

/* Why nothing can be freed at `address`, which lies in the card's window. */
static bly_status refuse_free_locked(struct blyi_card *card, uintptr_t address)
{
    char a[BLYI_FREED_TEXT], b[BLYI_SITE_TEXT], size[BLYI_SIZE_TEXT];
    const struct blyi_block *block = blyi_block_find_locked(card, address);
    if (block)
        return blyi_fail(BLY_E_INVALID,
                         "card %d: cannot free 0x%" PRIxPTR ": it is %" PRIu64 " bytes inside the "
                         "block 0x%" PRIxPTR " of %s made at %s",
                         card->id, address, (uint64_t)(address - blyi_block_start(block)),
                         blyi_block_start(block), blyi_size_text(block->asked, size),
                         blyi_site_text(block->site, b));
    struct blyi_import_info import;
    if (blyi_import_info_locked(card, address, &import))
        return blyi_fail(BLY_E_INVALID,
                         "card %d: cannot free 0x%" PRIxPTR ": it is memory of exporter pid %u, "
                         "imported at %s; aclrtIpcMemClose ends the import",
                         card->id, address, import.maker_pid, blyi_site_text(import.site, b));
    const struct blyi_freed_block *freed = blyi_freed_find(card->freed, address);
    if (freed)
        return blyi_fail(BLY_E_INVALID,
                         "card %d: cannot free 0x%" PRIxPTR ": freed already, %s; block 0x%" PRIxPTR
                         " of %s was made at %s",
                         card->id, address, blyi_freed_when(freed, a), freed->address,
                         blyi_size_text(freed->asked, size), blyi_site_text(freed->alloc_site, b));
    return blyi_fail(BLY_E_INVALID,
                     "card %d: cannot free 0x%" PRIxPTR ": no block was allocated there, as far as "
                     "the last %d frees tell",
                     card->id, address, BLYI_FREED_MAX);
}

/* The block that was meant is gone, and its address is another's. */
static bly_status refuse_other(const struct blyi_card *card, const struct blyi_block *block)
{
    char site[BLYI_SITE_TEXT], size[BLYI_SIZE_TEXT];
    return blyi_fail(BLY_E_INVALID,
                     "card %d: cannot free 0x%" PRIxPTR
                     ": freed already; another block of %s, made "
                     "at %s, lies there now",
                     card->id, blyi_block_start(block), blyi_size_text(block->asked, size),
                     blyi_site_text(block->site, site));
}

/* serial  of the block that is meant; 0: whichever lies there. */
static bly_status free_block(uintptr_t at, uint64_t serial, uint32_t site)
{
    uint64_t began_ns = blyi_probe_began(BLYI_PROBE_FREE);
    bly_status entered = blyi_snapshot_enter(); /* the child of a fork has no cards */
    if (entered != BLY_OK)
        return entered;
    blyi_stat_add(BLYI_STAT_driver_calls, 1);
    struct blyi_window *window = blyi_window_find(at);
    struct blyi_card *card = window ? blyi_card_get(window->owner) : NULL;
    if (!card) {
        BLYI_PROBE(FREE_FAIL, .card = -1, .address = at, .site = site, .aux = BLY_E_INVALID);
        return blyi_fail(BLY_E_INVALID, "cannot free 0x%" PRIxPTR ": it is %s, not card memory", at,
                         !window                            ? "an address of the host"
                         : window->owner == BLYI_WINDOW_VMM ? "a reserved address"
                                                            : "pinned host memory");
    }
    bly_status status = blyi_card_lock_present(card);
    if (status != BLY_OK)
        return status;
    struct blyi_block *block = blyi_block_of(blyi_tree_find(&card->blocks, at, 0));
    if (!block || (serial != 0 && block->serial != serial)) {
        status = block ? refuse_other(card, block) : refuse_free_locked(card, at);
        BLYI_PROBE(FREE_FAIL, .card = card->id, .address = at, .site = site, .aux = status);
        blyi_card_unlock(card);
        return status;
    }
    take_down_locked(card, block, site);
    BLYI_PROBE(FREE, .card = card->id, .address = at, .size = block->asked, .asked = block->asked,
               .rounded = block->rounded, .backed = block->backed, .page_kind = block->page_kind,
               .site = site, .began_ns = began_ns);
    blyi_card_unlock(card);
    blyi_host_free(block);
    return BLY_OK;
}

bly_status blyi_mem_free(void *address, uint32_t site)
{
    return free_block((uintptr_t)address, 0, site);
}

bly_status blyi_mem_free_block(const struct blyi_mem_block *block, uint32_t site)
{
    return free_block(block->address, block->serial, site);
}

void blyi_mem_free_all(struct blyi_card *card)
{
    struct blyi_tree_node *node;
    blyi_card_lock_teardown(card);
    while ((node = blyi_tree_first(&card->blocks)) != NULL) {
        struct blyi_block *block = blyi_block_of(node);
        uintptr_t at = blyi_block_start(block);
        take_down_locked(card, block, 0);
        BLYI_PROBE(RESET_FREE, .card = card->id, .address = at, .size = block->asked,
                   .asked = block->asked, .rounded = block->rounded, .backed = block->backed,
                   .page_kind = block->page_kind);
        blyi_host_free(block);
    }
    blyi_card_unlock(card);
}
