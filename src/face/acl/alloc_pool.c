/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc_pool.c - the pools behind aclrtMalloc.
 *
 * Made at the first request on a card, and again behind a reset. `lock` guards the table; a pool's
 * pointer is used without it, as pools end with their card alone, when nobody may use it any more.
 */
#include "face/acl/alloc_pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/host.h"
#include "base/lock.h"
#include "base/option.h"
#include "base/site.h"
#include "base/size.h"
#include "face/acl/pool_graph.h"
#include "face/acl/pools.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/moment.h"
#include "npu/runtime.h"
#include "npu/snapshot.h"
#include "npu/vmm.h"
#include "pool/export.h"
#include "pool/front.h"
#include "pool/pool.h"
#include "pool/told.h"

#define ALLOC_POOL 1 /* of the option's words */

static struct blyi_lock lock = BLYI_LOCK_INIT(BLYI_RANK_FACE_POOLS);
static bly_pool *pools[BLYI_CARD_MAX]; /* atomic; NULL: not made yet */

bool blyi_alloc_pool_takes(const struct blyi_card *card, const struct blyi_mem_request *request)
{
    return unlikely(blyi_option_int(BLYI_OPT_ALLOC) == ALLOC_POOL) && request->flags == 0 &&
           (request->policy == BLYI_MEM_HUGE_FIRST || request->policy == BLYI_MEM_NORMAL_ONLY) &&
           request->rounded <= card->total;
}

/* "90%" of the card, or "1GiB". */
static bly_status read_prefill(const struct blyi_card *card, uint64_t *bytes)
{
    const char *text = blyi_option_text(BLYI_OPT_POOL_PREFILL);
    char *end;
    unsigned long share = strtoul(text, &end, 10);
    *bytes = 0;
    if (text[0] == '\0')
        return BLY_OK;
    if (end != text && strcmp(end, "%") == 0 && share <= 100)
        *bytes = blyi_align_down(card->total / 100 * share + card->total % 100 * share / 100,
                                 BLYI_POOL_GRANULE);
    else if (!blyi_size_try_parse(text, bytes))
        return blyi_fail(BLY_E_PARSE,
                         "BELAY_POOL_PREFILL is \"%s\": a share of the card up to 100%%, or bytes",
                         text);
    return BLY_OK;
}

static bly_status make_pool(const struct blyi_card *card, bly_pool **out)
{
    bly_pool_opts opts = bly_pool_opts_default();
    bly_status status = read_prefill(card, &opts.prefill);
    if (status != BLY_OK)
        return status;
    opts.align = (uint64_t)blyi_option_int(BLYI_OPT_POOL_ALIGN);
    if (opts.align >= BLYI_POOL_GRANULE)
        opts.flags = BLY_POOL_EXPORTABLE;
    opts.slack = (uint32_t)blyi_option_int(BLYI_OPT_POOL_SLACK);
    opts.split = (uint64_t)blyi_option_int(BLYI_OPT_POOL_SPLIT);
    opts.device = card->id;
    opts.backend = "npu";
    opts.name = "aclrtMalloc";
    return bly_pool_create(&opts, out);
}

static bly_status pool_of(const struct blyi_card *card, bly_pool **out)
{
    bly_status status = BLY_OK;
    *out = __atomic_load_n(&pools[card->id], __ATOMIC_ACQUIRE);
    if (likely(*out != NULL))
        return BLY_OK;
    blyi_lock_take(&lock);
    *out = pools[card->id];
    if (*out == NULL)
        status = make_pool(card, out);
    if (status == BLY_OK) {
        __atomic_store_n(&pools[card->id], *out, __ATOMIC_RELEASE);
        blyi_device_listen(blyi_acl_pools_reset);
    }
    blyi_lock_drop(&lock);
    return status;
}

bly_status blyi_alloc_pool_alloc(struct blyi_card *card, const struct blyi_mem_request *request,
                                 void **address)
{
    const void *pc = blyi_site_pc(request->site);
    const bly_pool_request wish = {.struct_size = sizeof(wish), .size = request->rounded};
    bly_pool *pool = NULL;
    void *block = NULL;
    bly_status status = blyi_snapshot_pass();
    if (status == BLY_OK)
        status = pool_of(card, &pool);
    if (status == BLY_OK)
        status = blyi_front_alloc(pool, &wish, NULL, pc, &block);
    if (status != BLY_OK) {
        if (pool != NULL && unlikely(blyi_probe_on(BLYI_PROBE_ALLOC_FAIL)))
            blyi_told_refused(pool, request->asked, pc, status);
        return status;
    }
    if (unlikely(blyi_pool_told()))
        blyi_told_alloc(block, request->asked, request->rounded, pc);
    *address = block;
    return BLY_OK;
}

bly_status blyi_alloc_pool_check_export(const void *address)
{
    struct blyi_reservation_info range;
    bool pooled =
        blyi_alloc_pool_has(address) && blyi_vmm_find((uintptr_t)address, &range) && range.of_pool;
    return pooled ? blyi_pool_export_at(address, NULL) : BLY_OK;
}

/* ── Free ─────────────────────────────────────────────────────────────────────────────────── */

/* Everything that is queued on the card may use the block. */
static bly_status note_uses(void *block, const struct blyi_moment *moment)
{
    for (uint32_t i = 0; moment != NULL && i < moment->n; i++) {
        bly_status status = blyi_front_note(block, moment->at[i].stream);
        if (status == BLY_E_HANDLE) /* the stream has ended, and its work with it */
            blyi_fail_clear();
        else if (status != BLY_OK)
            return status;
    }
    return BLY_OK;
}

/* A block of the program's own pool is not kept there. */
static void let_go_of(bly_pool *pool, const bly_pool_info *before, uint64_t size)
{
    bly_pool_info after = {.struct_size = sizeof(after)};
    if (bly_pool_get_info(pool, &after) != BLY_OK) {
        blyi_fail_clear();
        return;
    }
    if (after.reserved == before->reserved && after.reserved >= size)
        (void)bly_pool_trim(pool, after.reserved - size, NULL);
}

static bly_status free_block(const bly_pool_block *block, const void *pc)
{
    struct blyi_moment *moment;
    bly_pool_info before = {.struct_size = sizeof(before)};
    bool own = block->pool == __atomic_load_n(&pools[block->pool->device], __ATOMIC_RELAXED);
    bly_status status = blyi_moment_take(blyi_card_get(block->pool->device), &moment);
    if (status == BLY_OK && !own)
        status = bly_pool_get_info(block->pool, &before);
    if (status != BLY_OK)
        return status;
    if (unlikely(blyi_pool_told()))
        blyi_told_free(block->address, BLYI_TOLD_NOW, NULL, pc);
    status = note_uses(block->address, moment);
    if (status == BLY_OK)
        status = blyi_front_free(block->address);
    if (status == BLY_OK && !own && moment == NULL)
        let_go_of(block->pool, &before, block->size);
    blyi_host_free(moment);
    return status;
}

/* A live block that begins at the address, in a pool that has not ended. */
static bly_status find_block(void *address, const void *pc, bly_pool_block *block)
{
    block->struct_size = sizeof(*block);
    bly_status status = bly_pool_find(address, block);
    if (status == BLY_OK && block->address == address && !blyi_acl_pool_has_ended(block->pool))
        return BLY_OK;
    if (unlikely(blyi_pool_told()))
        blyi_told_free_refused(address, pc);
    if (status == BLY_OK && block->address == address)
        return blyi_fail(BLY_E_INVALID, "%p is a block of a pool that was destroyed", address);
    return blyi_front_refuse(address, "free");
}

bly_status blyi_alloc_pool_free(void *address, uint32_t site)
{
    const void *pc = blyi_site_pc(site);
    bly_pool_block block;
    bly_status status = blyi_snapshot_check();
    if (status == BLY_OK)
        status = find_block(address, pc, &block);
    if (status != BLY_OK || blyi_pool_graph_give(address, &status))
        return status;
    return free_block(&block, pc);
}

bly_status blyi_alloc_pool_free_on(void *address, void *stream, uint32_t site)
{
    const void *pc = blyi_site_pc(site);
    bly_pool_block block;
    bly_status status = find_block(address, pc, &block);
    if (status != BLY_OK || blyi_pool_graph_give(address, &status))
        return status;
    bool same = block.stream == stream;
    if (!same)
        status = blyi_front_note(address, stream);
    if (status == BLY_OK && unlikely(blyi_pool_told()))
        blyi_told_free(address, same ? BLYI_TOLD_OWN : BLYI_TOLD_ON, stream, pc);
    return status == BLY_OK ? blyi_front_free(address) : status;
}

void blyi_alloc_pool_reset(int card)
{
    blyi_lock_take(&lock);
    bly_pool *pool = pools[card];
    __atomic_store_n(&pools[card], NULL, __ATOMIC_RELEASE);
    blyi_lock_drop(&lock);
    if (pool == NULL)
        return;
    if (unlikely(blyi_pool_told()))
        blyi_told_reset(pool);
    if (bly_pool_destroy(pool) != BLY_OK)
        blyi_fail_clear();
}
