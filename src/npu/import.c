/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c - keys in the hands of another process: memory of its maker in our window of the card.
 *
 *   block    [ frame ][ frame ][ frame | pages ]          where a byte is in its granule, it is
 *   import           [  whole  ][ some pages ]            here too: whole frames are mapped as
 * such, of others the key's pages alone
 */
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/mem_block.h"
#include "npu/memory.h"
#include "npu/partial.h"
#include "npu/peer.h"
#include "npu/runtime.h"
#include "npu/share_inside.h"
#include "npu/snapshot.h"
#include "npu/tally.h"
#include "npu/window.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/host.h"
#include "base/probe.h"
#include <string.h>

/* Imports for another card. Relaxed: whoever copies there has imported before. */
static uint32_t n_foreign;

struct blyi_import *blyi_import_find_locked(const struct blyi_card *card, uintptr_t address)
{
    struct blyi_import *import = blyi_import_of(blyi_tree_floor(&card->imports, address));
    return import && address - blyi_import_base(import) < import->n * BLYI_GRANULE ? import : NULL;
}

/* Where in its granules a key's range lies, counted from the block's first granule. */
struct place {
    uint64_t low, high;
    uint32_t first, n; /* granules */
};

static struct place place_of(const struct blyi_opening *o)
{
    uint64_t low = o->share.tail_page * BLYI_PAGE_SIZE + o->offset, high = low + o->length;
    if (o->share.whole > 0)
        low = o->offset, high = low + o->length;
    uint32_t first = (uint32_t)(low / BLYI_GRANULE);
    return (struct place){low, high, first,
                          (uint32_t)((high + BLYI_GRANULE - 1) / BLYI_GRANULE) - first};
}

static uint64_t flags_of(const struct blyi_share *share, int for_card)
{
    static const uint64_t kinds[BLYI_PAGE_KIND_COUNT] = {
        [BLYI_PAGE_NORMAL] = BLYI_ENTRY_SMALL, [BLYI_PAGE_GIANT] = BLYI_ENTRY_GIANT};
    return kinds[share->page_kind] | ((uint32_t)for_card != share->card ? BLYI_ENTRY_FOREIGN : 0) |
           (share->flags & BLYI_SHARE_READONLY ? BLYI_ENTRY_READONLY : 0);
}

/* Whole frames in a row; each is told committed or not by its word. */
static bly_status map_frames(struct blyi_card *card, struct blyi_run run, uintptr_t at,
                             uint64_t flags)
{
    bly_status status = blyi_window_map(card->window, at, blyi_backing_fd(card->backing), run.first,
                                        run.count, flags);
    for (uint32_t i = 0; i < run.count && status == BLY_OK;) {
        uint32_t same = i;
        while (same < run.count && blyi_share_is_committed(card, run.first + same))
            same++;
        if (same > i)
            blyi_window_set_flags(card->window, at + i * BLYI_GRANULE, same - i,
                                  BLYI_ENTRY_COMMITTED, 0);
        i = same + 1;
    }
    return status;
}

/* One frame, all of it or some pages. Those were committed when the key was made. */
static bly_status map_pages(struct blyi_card *card, const struct place *place, uint32_t granule,
                            uint32_t frame, uintptr_t at, uint64_t flags)
{
    uint64_t start = granule * BLYI_GRANULE, end = start + BLYI_GRANULE;
    uint64_t low = place->low > start ? place->low : start;
    uint64_t high = place->high < end ? place->high : end;
    return blyi_window_map_pages(card->window, at, blyi_backing_fd(card->backing), frame,
                                 (uint32_t)((low - start) / BLYI_PAGE_SIZE),
                                 (uint32_t)((high - low) / BLYI_PAGE_SIZE),
                                 flags | BLYI_ENTRY_COMMITTED);
}

static bool is_cut(const struct place *place, uint32_t granule)
{
    return granule * BLYI_GRANULE < place->low || (granule + 1) * BLYI_GRANULE > place->high;
}

/* *mapped granules are mapped, whatever comes out. */
static bly_status map_run(struct blyi_card *card, const struct place *place, struct blyi_run run,
                          uintptr_t base, uint64_t flags, uint32_t *mapped)
{
    bly_status status = BLY_OK;
    for (uint32_t i = 0; i < run.count && status == BLY_OK;) {
        uint32_t granule = place->first + *mapped, n = 1;
        uintptr_t at = base + *mapped * BLYI_GRANULE;
        if (is_cut(place, granule)) {
            status = map_pages(card, place, granule, run.first + i, at, flags);
        } else {
            while (i + n < run.count && !is_cut(place, granule + n))
                n++;
            status = map_frames(card, (struct blyi_run){run.first + i, n}, at, flags);
        }
        if (status == BLY_OK)
            *mapped += n;
        i += n;
    }
    return status;
}

static bly_status map_range(struct blyi_card *card, const struct blyi_opening *o,
                            const struct place *place, uint64_t flags, uintptr_t base,
                            uint32_t *mapped)
{
    const struct blyi_share *share = &o->share;
    bly_status status = BLY_OK;
    *mapped = 0;
    uint32_t n_whole = place->first >= share->whole              ? 0
                       : place->first + place->n <= share->whole ? place->n
                                                                 : share->whole - place->first;
    if (n_whole > 0) {
        struct blyi_run *runs;
        uint32_t n_runs;
        status = blyi_share_runs(card, o->hold, place->first, n_whole, &runs, &n_runs);
        if (status != BLY_OK)
            return status;
        for (uint32_t r = 0; r < n_runs && status == BLY_OK; r++)
            status = map_run(card, place, runs[r], base, flags, mapped);
        blyi_host_free(runs);
    }
    if (status == BLY_OK && n_whole < place->n && !blyi_share_has_tail(card, o->hold))
        return blyi_fail(BLY_E_STATE,
                         "card %d: the shared state is damaged: pages of a share of process %u lie "
                         "in a frame of somebody else",
                         card->id, share->maker_pid);
    if (status == BLY_OK && n_whole < place->n) {
        status = map_pages(card, place, place->first + n_whole, share->tail_frame,
                           base + n_whole * BLYI_GRANULE, flags);
        *mapped += status == BLY_OK;
    }
    return status;
}

static bly_status place_locked(struct blyi_card *card, const struct blyi_opening *o,
                               struct blyi_import *import)
{
    struct place place = place_of(o);
    uintptr_t base;
    uint32_t mapped;
    bool giant = o->share.page_kind == BLYI_PAGE_GIANT;
    bly_status status =
        blyi_window_take(card->window, place.n, giant ? BLYI_GIANT_FRAMES : 1, &base);
    if (status != BLY_OK)
        return status;
    status = map_range(card, o, &place, flags_of(&o->share, import->for_card), base, &mapped);
    if (status != BLY_OK) {
        if (mapped == 0 || blyi_window_unmap(card->window, base, place.n))
            blyi_window_give(card->window, base, place.n);
        return status;
    }
    if (import->for_card != card->id)
        __atomic_fetch_add(&n_foreign, 1, __ATOMIC_RELAXED);
    import->n = place.n;
    import->address = base + (uintptr_t)(place.low - place.first * BLYI_GRANULE);
    import->size = o->length;
    import->hold = o->hold;
    import->maker_pid = o->share.maker_pid;
    import->time_ns = blyi_clock_ns();
    import->serial = blyi_block_serial();
    blyi_tree_insert(&card->imports, &import->node, base, o->share.page_kind);
    blyi_list_push_back(&card->import_ages, &import->link);
    blyi_tally_row(BLYI_ROW_IMPORT, card->id, import->site, import->size, 1);
    BLYI_PROBE(IMPORT, .card = card->id, .address = import->address, .size = import->size,
               .backed = import->size, .page_kind = o->share.page_kind, .site = import->site,
               .aux = import->maker_pid);
    return BLY_OK;
}

static bly_status reach(int card, int owner, bool peer)
{
    if (card == owner)
        return BLY_OK;
    return peer ? blyi_peer_enable(card, owner) : blyi_peer_check(card, owner);
}

bly_status blyi_ipc_import(const char *key, int for_card, bool peer, uint32_t site, void **address)
{
    struct blyi_key_form form = {BLYI_KEY_TEXT, key};
    struct blyi_opening opening;
    struct blyi_card *card;
    int id;
    bly_status status = blyi_snapshot_enter();
    if (status == BLY_OK)
        status = blyi_share_card_of(form, &id);
    if (status == BLY_OK)
        status = blyi_card_open(id, &card);
    if (status == BLY_OK)
        status = reach(for_card, id, peer);
    if (status != BLY_OK)
        return status;
    struct blyi_import *import = blyi_host_calloc(1, sizeof *import);
    if (!import)
        return blyi_fail(BLY_E_HOST_MEMORY, "card %d: no host memory to describe an import", id);
    import->for_card = for_card;
    import->site = site;
    memcpy(import->key, key, sizeof import->key); /* it was read as a key: as long as one */
    blyi_card_lock(card);
    status = blyi_share_open(card, form, &opening);
    if (status == BLY_OK) {
        status = place_locked(card, &opening, import);
        if (status != BLY_OK)
            (void)blyi_share_leave(card, opening.hold);
    }
    uintptr_t at = import->address;
    blyi_card_unlock(card);
    if (status == BLY_OK)
        *address = (void *)at;
    else
        blyi_host_free(import);
    return status;
}

static void close_locked(struct blyi_card *card, struct blyi_import *import, uint32_t site)
{
    uint32_t page_kind = (uint32_t)import->node.sub;
    if (blyi_window_unmap(card->window, blyi_import_base(import), import->n))
        blyi_window_give(card->window, blyi_import_base(import), import->n);
    blyi_tree_remove(&card->imports, &import->node);
    blyi_list_remove(&import->link);
    if (import->for_card != card->id)
        __atomic_fetch_sub(&n_foreign, 1, __ATOMIC_RELAXED);
    (void)blyi_share_leave(card, import->hold);
    blyi_backing_settle(card->backing);
    blyi_tally_row(BLYI_ROW_IMPORT, card->id, import->site, import->size, -1);
    blyi_freed_add(card->freed, &(struct blyi_freed_block){.address = import->address,
                                                           .asked = import->size,
                                                           .backed = import->size,
                                                           .alloc_site = import->site,
                                                           .free_site = site,
                                                           .time_ns = blyi_clock_ns()});
    BLYI_PROBE(IMPORT_CLOSE, .card = card->id, .address = import->address, .size = import->size,
               .backed = import->size, .page_kind = page_kind, .site = site, .aux = site == 0);
    blyi_host_free(import);
}

bool blyi_import_close_oldest(struct blyi_card *card, const char *key, uint32_t site)
{
    bool found = false;
    size_t length = strnlen(key, BLYI_KEY_TEXT_SIZE - 1);
    blyi_card_lock(card);
    BLYI_LIST_FOR_SAFE(node, &card->import_ages)
    {
        struct blyi_import *import = BLYI_CONTAINER(node, struct blyi_import, link);
        if (found || length != sizeof import->key || memcmp(import->key, key, length) != 0)
            continue;
        close_locked(card, import, site);
        found = true;
    }
    blyi_card_unlock(card);
    return found;
}

bly_status blyi_ipc_close_at(const void *address, uint32_t site)
{
    bly_status status = blyi_runtime_enter();
    if (status != BLY_OK)
        return status;
    const struct blyi_window *window = blyi_window_find((uintptr_t)address);
    struct blyi_card *card = window ? blyi_card_get(window->owner) : NULL;
    struct blyi_import *import = NULL;
    if (!card)
        return blyi_fail(BLY_E_INVALID, "cannot close %p: it is no address of a card's window",
                         address);
    blyi_card_lock(card);
    import = blyi_import_find_locked(card, (uintptr_t)address);
    if (import && import->address == (uintptr_t)address) {
        close_locked(card, import, site);
    } else {
        status = blyi_fail(BLY_E_INVALID, "card %d: cannot close %p: no import begins there",
                           card->id, address);
        blyi_mem_append_why_locked(card, (uintptr_t)address);
    }
    blyi_card_unlock(card);
    return status;
}

void blyi_import_close_all(struct blyi_card *of)
{
    for (int id = 0; id < BLYI_CARD_MAX; id++) {
        struct blyi_card *card = blyi_card_get(id);
        if (!card)
            continue;
        blyi_card_lock(card);
        BLYI_LIST_FOR_SAFE(node, &card->import_ages)
        {
            struct blyi_import *import = BLYI_CONTAINER(node, struct blyi_import, link);
            if (card == of || import->for_card == of->id)
                close_locked(card, import, 0);
        }
        blyi_card_unlock(card);
    }
}

bool blyi_import_is_foreign(const void *address)
{
    if (likely(__atomic_load_n(&n_foreign, __ATOMIC_RELAXED) == 0))
        return false;
    const struct blyi_window *w = blyi_window_find((uintptr_t)address);
    return w && w->owner >= 0 &&
           (blyi_window_entry(w, (uintptr_t)address) & BLYI_ENTRY_FOREIGN) != 0;
}
