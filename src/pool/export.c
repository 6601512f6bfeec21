/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - a block's memory is about to be shared with other processes.
 *
 * A block that leaves has a note (notes.c): it is off the fast path, and its free waits for its own
 * stream, too, as its memory is unmapped then.
 */
#include "pool/export.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "pool/front_inside.h"
#include "pool/own.h"
#include "pool/pool.h"

/* How far from where a share could begin, for those who pack their blocks. */
static bly_status refuse(const struct blyi_spot *spot, uintptr_t address)
{
    const bly_pool *pool = blyi_spot_pool(spot);
    uint64_t offset = address % pool->granule;
    blyi_fail(BLY_E_INVALID,
              "pool %s: cannot export 0x%" PRIxPTR
              ": it lies in memory that serves many blocks, whose handles are %" PRIu64
              " B and multiples of it",
              pool->name, address, pool->granule);
    if (offset != 0)
        blyi_fail_append(", %" PRIu64 " B behind the begin of one and %" PRIu64
                         " B before the next",
                         offset, pool->granule - offset);
    blyi_fail_append("; allocate what is to be exported export-ready: BLY_POOL_EXPORTABLE of the "
                     "request or of the pool, ACL_MEM_HANDLE_TYPE_POSIX of aclrtMemPoolCreate, "
                     "BELAY_POOL_ALIGN=2MiB for blocks of aclrtMalloc above %" PRIu64 " B; or with "
                     "ACL_MEM_MALLOC_HUGE_ONLY, which takes pages of its own",
                     pool->front->small);
    return BLY_E_INVALID;
}

static bly_status export_spot(const struct blyi_spot *spot, void **handle)
{
    bly_pool *pool = blyi_spot_pool(spot);
    bly_status status = blyi_note_use(spot, blyi_spot_arena(spot));
    if (status != BLY_OK)
        return status;
    const struct blyi_span *span = spot->span;
    uint64_t made = 0;
    blyi_lock_take(&pool->lock);
    bool lives = !span->hole && span->address == spot->address; /* no other thread frees it */
    if (lives) {
        __atomic_store_n(&span->extent->leaves, true, __ATOMIC_RELAXED);
        made = span->extent->chunks[0]->handle;
    }
    blyi_lock_drop(&pool->lock);
    if (!lives)
        return blyi_spot_none(spot->address, "export");
    if (handle != NULL)
        *handle = (void *)(uintptr_t)made;
    return BLY_OK;
}

bly_status blyi_pool_export_at(const void *address, void **handle)
{
    struct blyi_spot spot;
    uintptr_t at = (uintptr_t)address;
    if (!blyi_spot_find(at, &spot))
        return blyi_spot_none(at, "export");
    bly_status status = blyi_pool_check(blyi_spot_pool(&spot));
    if (status == BLY_OK)
        status = blyi_spot_live(&spot, spot.address, "export");
    if (status != BLY_OK)
        return status;
    bool own = spot.slab == NULL && spot.span->extent->zone->own;
    return own ? export_spot(&spot, handle) : refuse(&spot, at);
}

bly_status bly_pool_export(void *block, void **handle)
{
    struct blyi_spot spot;
    if (!blyi_spot_find((uintptr_t)block, &spot))
        return blyi_spot_none((uintptr_t)block, "export");
    bly_status status = blyi_spot_live(&spot, (uintptr_t)block, "export");
    return status == BLY_OK ? blyi_pool_export_at(block, handle) : status;
}
