/* SPDX-License-Identifier: Apache-2.0
 *
 * owned.c - knowing blocks again by their serial number.
 */
#include "npu/owned.h"

#include <inttypes.h>
#include "base/fail.h"
#include "base/pool_blocks.h"
#include "base/site.h"
#include "base/size.h"
#include "npu/card.h"
#include "npu/freed.h"
#include "npu/memory.h"
#include "npu/pinned.h"
#include "npu/share.h"

/* What a card's and a pinned block have in common here. */
struct found {
    uintptr_t address;
    uint64_t asked, serial;
    uint32_t site;
    int card;
};

/* Memory of another process. */
static bool find_import(int id, const void *address, struct found *out)
{
    struct blyi_import_info import;
    struct blyi_card *card = id >= 0 ? blyi_card_get(id) : NULL;
    if (card == NULL || !blyi_import_info(card, (uintptr_t)address, &import))
        return false;
    *out = (struct found){import.address, import.size, import.serial, import.site, id};
    return true;
}

/* Memory of a pool; one that is to be kept gets a serial number. */
static bool find_pooled(const void *address, bool keep, struct found *out)
{
    struct blyi_pool_block block;
    uintptr_t at = (uintptr_t)address;
    if (!(keep ? blyi_pool_blocks_keep(at, &block) : blyi_pool_blocks_find(at, &block)))
        return false;
    *out = (struct found){block.address, block.asked, block.serial, block.site, block.card};
    return true;
}

static bool find(const void *address, bool keep, struct found *out)
{
    struct blyi_mem_block block;
    struct blyi_pinned_block pinned;
    int card = -1;
    switch (blyi_place_of(address, &card)) {
    case BLYI_PLACE_CARD:
        if (!blyi_mem_find(address, &block))
            return find_pooled(address, keep, out) || find_import(card, address, out);
        *out = (struct found){block.address, block.asked, block.serial, block.site, block.card};
        return true;
    case BLYI_PLACE_PINNED:
        if (!blyi_pinned_find(address, &pinned))
            return false;
        *out = (struct found){pinned.address, pinned.asked, pinned.serial, pinned.site, -1};
        return true;
    case BLYI_PLACE_HOST:
        break;
    }
    return false;
}

static uint32_t add_one(struct blyi_owned *list, uint32_t n, const void *address)
{
    struct found block;
    if (!find(address, true, &block))
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (list[i].serial == block.serial)
            return n;
    list[n] = (struct blyi_owned){address, block.serial, block.card};
    return n + 1;
}

uint32_t blyi_owned_add(struct blyi_owned *list, uint32_t n, const void *address, uint64_t size)
{
    n = add_one(list, n, address);
    return size > 1 ? add_one(list, n, (const char *)address + size - 1) : n;
}

static bly_status tell_lost(const struct blyi_owned *owned, const struct found *now)
{
    char size[BLYI_SIZE_TEXT], when[BLYI_FREED_TEXT], site[BLYI_SITE_TEXT];
    struct blyi_freed_block was;
    bly_status status =
        blyi_fail(BLY_E_FAULT, "the memory at %p was freed after the task was captured", owned->at);
    bool known = owned->card >= 0 ? blyi_mem_freed(owned->card, (uintptr_t)owned->at, &was)
                                  : blyi_pinned_freed((uintptr_t)owned->at, &was);
    if (known)
        blyi_fail_append(", %s: block 0x%" PRIxPTR " of %s made at %s", blyi_freed_when(&was, when),
                         was.address, blyi_size_text(was.asked, size),
                         blyi_site_text(was.alloc_site, site));
    if (now != NULL)
        blyi_fail_append(
            "; now it is in block 0x%" PRIxPTR " of %s made at %s, which the task must "
            "not touch",
            now->address, blyi_size_text(now->asked, size), blyi_site_text(now->site, site));
    return status;
}

bly_status blyi_owned_check(const struct blyi_owned *list, uint32_t n, uint64_t *turn,
                            const void **lost)
{
    /* Read first: a block that is freed while we look makes the next check look again. */
    uint64_t now = blyi_freed_turn() + blyi_pool_blocks_turn() + 1;
    bool all_live = true;
    if (*turn == now)
        return BLY_OK;
    for (uint32_t i = 0; i < n; i++) {
        struct found block;
        bool lives = find(list[i].at, false, &block);
        if (lives && block.serial == list[i].serial)
            continue;
        if (!lives && (list[i].serial & BLYI_POOL_SERIAL) != 0) {
            all_live = false; /* look again: its next owner comes without a free */
            continue;
        }
        if (lost != NULL)
            *lost = list[i].at;
        return tell_lost(&list[i], lives ? &block : NULL);
    }
    if (all_live)
        *turn = now;
    return BLY_OK;
}
